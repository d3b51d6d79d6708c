"""Long runs and numbers at the edge: finite to the end, or stopped with the reason.

    python reliability/edges.py --out results/reliability_edges.json
    python reliability/edges.py --out results/reliability_edges.json --part "long run"

*Long run*: ten thousand epochs on a small graph; on the way the points are inside the ball and the memory is what it
was. The other parts train a few epochs: on a graph with one triple and on a small tree over every combination of
learning rate, curvature, dimension, precision, engine and model; on a graph with 100,000 relations and on a hub with a
million edges over the corners of these. A case ends well if every parameter is a point of its space and every score of
a sample is finite, or if training stopped with the reason and the run folder still opens with good weights. Named
parts are measured anew and replace what the file says of them.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import murp
from measure import parser, parts, result, store
from murp import engines
from murp.errors import NotFiniteError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import Model
from murp.runs import Run, folder
from murp.training.job import Job
from murp.training.loop import fit
from murp.training.progress import Silent
from murp.training.start import configure, new_model
from murp.training.state import State

Settings = dict[str, Any]
RATES = (0.1, 1.0, 10.0, 100.0, 1000.0)
CURVATURES = (1e-3, 0.1, 1.0, 10.0)
DIMENSIONS = (1, 2, 40, 512)
TYPES, ENGINES, MODELS = ("float32", "float64"), ("torch", "numba"), ("murp", "mure")
SAMPLE = 1000


def graph_of(name: str, entities: int, relations: int, triples: np.ndarray) -> KnowledgeGraph:
    empty = np.empty((0, 3), dtype=np.int32)
    words = [Vocabulary(kind, [f"{kind}{i}" for i in range(n)]) for kind, n in _kinds(entities, relations)]
    return KnowledgeGraph(name, words[0], words[1], triples.astype(np.int32), empty, empty)


def _kinds(entities: int, relations: int) -> tuple[tuple[str, int], ...]:
    return ("entity", entities), ("relation", relations)


def one_triple(quick: bool) -> KnowledgeGraph:
    return graph_of("one triple", 2, 1, np.array([[0, 0, 1]]))


def tree(quick: bool) -> KnowledgeGraph:
    """A binary tree of 63 entities."""
    child = np.arange(1, 63)
    return graph_of("tree", 63, 1, np.stack([child, 0 * child, (child - 1) // 2], 1))


def hub(quick: bool) -> KnowledgeGraph:
    """One entity with an edge to each of the others."""
    leaf = np.arange(1, 1_000 if quick else 1_000_001)
    return graph_of("hub", len(leaf) + 1, 1, np.stack([0 * leaf, 0 * leaf, leaf], 1))


def relations(quick: bool) -> KnowledgeGraph:
    """A relation for every fact."""
    relation = np.arange(1_000 if quick else 100_000)
    draw = np.random.default_rng(0).integers(0, 1_000, (2, len(relation)))
    return graph_of("relations", 1_000, len(relation), np.stack([draw[0], relation, draw[1]], 1))


def small_cases(quick: bool) -> Iterator[Settings]:
    """Every combination."""
    grid = itertools.product(MODELS, ENGINES, TYPES, RATES, DIMENSIONS, CURVATURES)
    for model, engine, dtype, lr, dim, c in itertools.islice(grid, 0, None, 47 if quick else 1):
        if model == "murp" or c == 1.0:
            curvature = {"curvature": c} if model == "murp" else {}
            epochs = 5 if quick and dim == DIMENSIONS[-1] else 20  # seconds each in so many dimensions
            here = {"engine": engine, "dtype": dtype, "lr": lr, "dim": dim, "epochs": epochs}
            yield {"model": model, **here, **curvature}


def large_cases(quick: bool) -> Iterator[Settings]:
    """The corners: the lowest rate in the lowest dimension, the highest in the highest; float32 and float64 by turns.

    Large batches: a hub has the gradients of all of them at once. Few negatives: in 512 dimensions a million entities
    take gigabytes and minutes a case.
    """
    common = {"epochs": 1, "batch_size": 8192, "negatives": 1}
    ends = tuple(itertools.product(ENGINES, ((RATES[0], DIMENSIONS[0]), (RATES[-1], DIMENSIONS[-1]))))
    for i, (engine, (lr, dim)) in enumerate(ends[::3] if quick else ends):
        for j, c in enumerate((CURVATURES[0], CURVATURES[-1])):
            here = {"engine": engine, "lr": lr, "dim": dim, "dtype": TYPES[(i + j) % 2]}
            yield {"model": "murp", "curvature": c, **here, **common}
        yield {"model": "mure", "engine": engine, "lr": lr, "dim": dim, **common}


def outcome(graph: KnowledgeGraph, settings: Settings, out: Path) -> tuple[str, str]:
    """("finite", ""), ("stopped", the reason) or ("failure", what happened) of one training."""
    try:
        run = murp.train(graph, out=out, progress=Silent(), device="cpu", validate_every=0, save_every=1e9, **settings)
    except NotFiniteError as error:
        kept = murp.load(out)
        wrong = _wrong(kept)
        told = "learning rate" in str(error)
        return ("stopped", str(error).replace(str(out), "RUN")) if told and not wrong else ("failure", wrong)
    except Exception as error:
        return "failure", f"{type(error).__name__}: {error}"
    wrong = _wrong(run)
    return ("failure", wrong) if wrong else ("finite", "")


def _wrong(run: Run) -> str:
    """What is wrong with a run's numbers; nothing if they are finite and its points inside."""
    if broken := run.model.broken():
        return f"not in their space: {', '.join(broken)}"
    facts = torch.from_numpy(run.graph.train[:SAMPLE].astype(np.int64))
    scores = run.model.score(facts[:, 0], facts[:, 1], facts[:, 2])
    loss = run.metrics()[-1]["loss"] if run.metrics() else 0.0
    return "" if bool(scores.isfinite().all()) and np.isfinite(loss) else "a score or the loss is not finite"


def grid(
    make: Callable[[bool], KnowledgeGraph], cases: Callable[[bool], Iterator[Settings]]
) -> Callable[[bool], dict[str, Any]]:
    """What became of every case on one graph."""

    def measure(quick: bool) -> dict[str, Any]:
        graph = make(quick)
        said: list[tuple[Settings, str, str]] = []
        for settings in cases(quick):
            with tempfile.TemporaryDirectory() as path:
                said.append((settings, *outcome(graph, settings, Path(path) / "run")))
        counts = Counter(what for _, what, _ in said)
        ranges = {"learning rates": "lr", "curvatures": "curvature", "dimensions": "dim"}
        return {
            "entities": graph.num_entities,
            "relations": graph.num_relations,
            "triples": len(graph.train),
            **{many: sorted({case[one] for case, _, _ in said if one in case}) for many, one in ranges.items()},
            "cases": len(said),
            **{what: counts[what] for what in ("finite", "stopped", "failure")},
            "stopped with the reason": [{**s, "reason": why} for s, what, why in said if what == "stopped"],
            "failures": [{**s, "reason": why} for s, what, why in said if what == "failure"],
        }

    return measure


class Watch(Silent):
    """Looks at the model and at the memory every so many epochs."""

    def __init__(self, model: Model, every: int) -> None:
        self.model, self.every = model, every
        self.seen: list[dict[str, Any]] = []

    def epoch(self, record: dict[str, Any]) -> None:
        if record["epoch"] % self.every == 0:
            radii = torch.linalg.vector_norm(self.model.parameters["entity"].double(), dim=-1)
            looked = {"largest radius": float(radii.max()), "outside": self.model.broken()}
            self.seen.append({"epochs": record["epoch"], "loss": record["loss"], **looked, "resident MiB": _resident()})


def long_run(quick: bool) -> dict[str, Any]:
    """Training on the tree in one go, with what the memory and the points are ten times on the way."""
    settings: Settings = {"model": "murp", "dim": 10, "lr": 50.0, "epochs": 20 if quick else 10_000}
    graph, config = configure(tree(quick), {**settings, "engine": "numba", "device": "cpu", "validate_every": 0})
    model = new_model(config, graph)
    engine = engines.build(config.engine, [model])
    watch = Watch(model, config.epochs // 10)
    with tempfile.TemporaryDirectory() as path:
        job = Job(Path(path) / "run", config, graph, model, State())
        folder.create(job.path, config, graph, model, job.state.to_dict(), engine.name)
        fit([job], engine, watch)
    failure = sum(bool(look["outside"]) or not np.isfinite(look["loss"]) for look in watch.seen)
    # The first tenth fills what is filled once: caches, the allocator's pools.
    grown = round(watch.seen[-1]["resident MiB"] - watch.seen[0]["resident MiB"], 1)
    return {
        "settings": settings,
        "failure": failure,
        "MiB grown since the first tenth": grown,
        "on the way": watch.seen,
    }


def _resident() -> float:
    """Memory this process holds now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 2**20, 1)


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "long run": long_run,
    "one triple": grid(one_triple, small_cases),
    "tree": grid(tree, small_cases),
    "hub": grid(hub, large_cases),
    "relations": grid(relations, large_cases),
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--part", action="append", choices=PARTS, help="may be given several times; by default all")
    given = options.parse_args()
    torch.set_num_threads(1)
    done = given.out is not None and given.out.exists()
    before = json.loads(given.out.read_text(encoding="utf-8")) if done else {}
    figures, new = before.get("figures", {}), []
    settings = {"precisions": TYPES, "engines": ENGINES, "models": MODELS, "seed": 0}
    for name in given.part or PARTS:
        figures[name] = PARTS[name](given.quick)
        new.append(name)
        store({**result("edges", settings, figures), "parts": parts(before, figures, new)}, given.out)
    if failures := sum(part["failure"] for part in figures.values()):
        raise SystemExit(f"{failures} cases failed")


if __name__ == "__main__":
    main()
