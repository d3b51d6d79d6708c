"""The ten best of ten million entities, exact and with an index: milliseconds per question, and recall.

    python benchmarks/scale_finding.py --out results/scale_finding.json

Generates the weights of a MuRP run (d=40, seeded) on the tree of benchmarks/scale_reading.py: entity i is near its
parent ⌊(i - 1) / 8⌋ in the tangent space at the origin, at a distance that shrinks from level to level, and
``--spread`` sets how clear the cells are; relations stretch and translate by random amounts; biases are normal. The run
folder is opened in new processes, which measure the time to the first answer with mapped weights, the time of a
question in batches of exact answers and one by one with the index, and the share of the exact ten best that the index
finds. The nearest entities are measured in the same way. ``--entities 1000000`` is a tenth of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from measure import parser, result, store
from murp import models
from murp.config import Config
from murp.geometry import PoincareBall
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import Model
from murp.runs import folder

BRANCHES, RELATIONS, DIM, SEED = 8, 10, 40, 0

ASK = """
import json, sys, time
import numpy as np
began = time.perf_counter()
import murp
from murp.prediction.search import top_objects
imported = time.perf_counter()
run = murp.load(sys.argv[1], device="cpu")
opened = time.perf_counter()
first = run.predict(head="Q7", relation="r1", k=10)
answered = time.perf_counter()
model, draw, batch = run.model, np.random.default_rng(1), int(sys.argv[2])
subjects = draw.integers(model.num_entities, size=batch)
relations = draw.integers(2 * run.graph.num_relations, size=batch)

def clock(work):
    wall, busy = time.perf_counter(), time.process_time()
    found = work()
    return found, 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - busy)

top_objects(model, subjects[:2], relations[:2], 10)
exact, wall, busy = clock(lambda: top_objects(model, subjects, relations, 10))
told = {"import_s": imported - began, "open_s": opened - imported, "first_answer_s": answered - opened}
told["exact"] = {"questions": batch, "ms": wall / batch, "processor_ms": busy / batch}
_, wall, busy = clock(lambda: run.nearest("Q7", 10))
told["exact_nearest"] = {"questions": 1, "ms": wall, "processor_ms": busy}
made, wall, busy = clock(lambda: run.index(seed=0))
told["index"] = {name: getattr(made, name) for name in ("cells", "looks", "looks_near", "recall", "recall_near")}
told["index"] |= {"seconds": wall / 1000, "processor_s": busy / 1000}
index, nothing = run.opened_index, np.zeros(0, np.int64)
for s, r in zip(subjects[:3].tolist(), relations[:3].tolist()):
    index.best(model, s, r, 10, nothing)
times, hits = [], []
for row, (s, r) in enumerate(zip(subjects.tolist(), relations.tolist())):
    (found, _), wall, busy = clock(lambda: index.best(model, s, r, 10, nothing))
    times.append((wall, busy))
    hits.append(len(set(found.tolist()) & set(exact.entities[row].tolist())) / 10)
wall, busy = np.array(times).T
told["approximate"] = {"questions": batch, "ms": float(wall.mean()), "median_ms": float(np.median(wall))}
told["approximate"] |= {"least_ms": float(wall.min()), "processor_ms": float(busy.mean())}
told["approximate"]["recall"] = float(np.mean(hits))
near = [clock(lambda: index.nearest(model, e, 10))[1:] for e in subjects[:20].tolist()]
wall, busy = np.mean(near, 0).tolist()
told["approximate_nearest"] = {"questions": 20, "ms": wall, "processor_ms": busy}
for line in open("/proc/self/status"):
    if line.startswith(("VmHWM", "RssAnon")):
        told["peak_bytes" if line.startswith("VmHWM") else "private_bytes"] = int(line.split()[1]) * 1024
print(json.dumps(told))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--entities", type=int, default=10_000_000)
    options.add_argument("--questions", type=int, default=192)
    options.add_argument("--spread", type=float, default=0.9, help="of a level's distances to those of the one above")
    options.add_argument("--folder", help="where to put the run; default: a temporary folder")
    chosen = options.parse_args(arguments)
    entities, questions = (2_000, 20) if chosen.quick else (chosen.entities, chosen.questions)
    if chosen.folder:
        Path(chosen.folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        run = Path(place) / "run"
        make_run(run, entities, chosen.spread)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", ASK, str(run), str(questions)], check=True, stdout=subprocess.PIPE
        )
        figures: dict[str, Any] = json.loads(done.stdout)
    figures["exact_over_approximate"] = figures["exact"]["ms"] / figures["approximate"]["ms"]
    settings = {"entities": entities, "d": DIM, "relations": RELATIONS, "k": 10, "spread": chosen.spread, "seed": SEED}
    store(result("the best ten of many entities, milliseconds a question", settings, figures), chosen.out)


def make_run(path: Path, entities: int, spread: float) -> None:
    """A run folder with generated weights, as training would leave it."""
    config = Config(model="murp", dim=DIM, data="tree", validate_every=0)
    model = weights(config, entities, spread)
    heads = np.arange(1, entities, dtype=np.int32)
    facts = np.stack([heads, np.zeros_like(heads), (heads - 1) // BRANCHES], axis=1)
    ids = np.char.add("Q", np.arange(entities).astype(str)) if entities < 10_000 else None
    names = _ids(entities) if ids is None else list(ids)
    graph = KnowledgeGraph(
        "tree",
        Vocabulary("entity", names),
        Vocabulary("relation", [f"r{i}" for i in range(RELATIONS)]),
        train=facts,
        valid=facts[:0],
        test=facts[:0],
    )
    state = {"epoch": 0, "seconds": 0.0, "best_mrr": None, "best_epoch": None}
    folder.create(path, config, graph, model, state, folder.IMPORTED)


def weights(config: Config, entities: int, spread: float) -> Model:
    """Points down the tree, each near its parent; what relations do is random."""
    draw = np.random.default_rng(SEED)
    points = np.zeros((entities, DIM), np.float32)
    first, size, reach = 1, BRANCHES, 0.8 / DIM**0.5
    while first < entities:
        own = np.arange(first, min(first + size, entities))
        points[own] = points[(own - 1) // BRANCHES] + reach * draw.standard_normal((len(own), DIM), np.float32)
        first, size, reach = first + size, size * BRANCHES, reach * spread
    model = models.from_config(config, entities, RELATIONS)
    space = model.geometry
    assert isinstance(space, PoincareBall)
    rows = 2 * RELATIONS

    def normal(scale: float, *shape: int) -> torch.Tensor:
        return torch.from_numpy(scale * draw.standard_normal(shape, np.float32))

    model.parameters = {
        "entity": space.exp0(torch.from_numpy(points)),
        "subject_stretch": 1 + normal(0.2, rows, DIM),
        "translation": space.exp0(normal(0.5 / DIM**0.5, rows, DIM)),
        "subject_bias": normal(0.4, entities),
        "object_bias": normal(0.4, entities),
    }
    return model


def _ids(entities: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_string()
    return pc.binary_join_element_wise(
        pa.scalar("Q", kind), pa.array(np.arange(entities)).cast(kind), pa.scalar("", kind)
    )


if __name__ == "__main__":
    main()
