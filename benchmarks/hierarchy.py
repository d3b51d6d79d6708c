"""Embeddings of WordNet's nouns: how well they reconstruct the hierarchy, and pairs a second beside gensim's.

    python benchmarks/hierarchy.py --database WNdb-3.0.1.tgz --only speed --out results/cpu_hierarchy.json
    python benchmarks/hierarchy.py --database WNdb-3.0.1.tgz --only quality --models poincare \\
        --out results/hierarchy_poincare.json

The nouns are those of the database that ``tools/wordnet.py`` reads (82,115 with 743,241 pairs of the closure, as in the
papers). Each dimension is trained with the settings below and reconstructed, before training and after it. murp and
gensim run in turns on the same pairs with 10 negatives: with 50, gensim had not done 20,000 pairs after ten minutes. It
runs on one core, and is left out if it is not installed. ``--only speed`` or ``--only quality`` does one part.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from measure import parser, result, spread, store
from murp import threads
from murp.config import Config
from murp.geometry import PoincareBall
from murp.graph import Vocabulary
from murp.hierarchy import Taxonomy, embed, reconstruct, reconstruction, start
from murp.recipes import completed

# Nickel and Kiela 2017, table 1 (WordNet, reconstruction): dimension, mean rank, MAP.
PUBLISHED = {5: (4.9, 0.823), 10: (4.02, 0.851), 20: (3.84, 0.855)}
SETTINGS: dict[str, Any] = {
    "objective": "rank",
    "optimizer": "sgd",
    "lr": 100.0,
    "batch_size": 128,
    "lr_schedule": "linear",
    "corruption": "unrelated",
    "negatives": 30,
    "epochs": 10,
}
FEW = 5  # dimensions up to which caps have too little room, and the sectors of a tree are the better start
IN_FEW: dict[str, Any] = {"objective": "softmax", "lr": 384.0, "epochs": 30}
NEGATIVES, ROUNDS = 10, 5


def nouns(database: Path) -> Taxonomy:
    """Every noun under every noun it is a kind or an instance of."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
    import wordnet_database

    found = wordnet_database.read(database)
    place = {key: i for i, key in enumerate(key for key in found.synsets if key[0] == "n")}
    up = ("hypernym", "instance_hypernym")
    edges = [(place[a], place[b]) for a, r, b in found.facts if r in up and a in place and b in place]
    names = Vocabulary("entity", [found.synsets[key].id for key in place])
    return Taxonomy(names, np.unique(np.array(edges), axis=0), "hypernym")


def toy() -> Taxonomy:
    edges = np.array([(node, (node - 1) // 3) for node in range(1, 121)])
    return Taxonomy(Vocabulary("entity", [f"n{i}" for i in range(121)]), edges, "parent")


def quality(taxonomy: Taxonomy, model: str, dim: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Train, and reconstruct; ``untrained`` is what the points reach that training begins with."""
    config = Config(**completed({"model": model, "dim": dim, **settings}))
    first = reconstruct(PoincareBall(), start(taxonomy, config), taxonomy.closure())
    print(f"{model} d={dim}, untrained: mean rank {first.mean_rank:.2f}, MAP {first.map:.4f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run = embed(taxonomy, out=Path(folder) / "run", name="nouns", model=model, dim=dim, **settings)
        seconds = time.perf_counter() - began
        found = reconstruction(run)
    print(f"{model} d={dim}: mean rank {found.mean_rank:.2f}, MAP {found.map:.4f}, {seconds:.0f} s", flush=True)
    return {**asdict(found), "untrained": asdict(first), "seconds": seconds, "published": PUBLISHED.get(dim)}


def speed(taxonomy: Taxonomy, dim: int, quick: bool) -> dict[str, Any]:
    """Pairs a second of murp and of gensim, in turns, each after a first turn that does not count."""
    import torch

    from murp.engines import Chunk, Task, build
    from murp.models import from_config

    graph = taxonomy.graph("nouns")
    config = Config(**completed({"model": "poincare", "dim": dim, "corruption": "unrelated", "negatives": NEGATIVES}))
    model = from_config(config, graph.num_entities, graph.num_relations).initialise(0)
    task = Task.of(config, model)
    facts = torch.from_numpy(graph.train).long()
    task.negatives.prepare(facts, graph.num_entities, 2 * graph.num_relations)
    engine = build("numba", [task])
    many = 1 if quick else 800
    order = torch.randperm(len(facts), generator=torch.Generator().manual_seed(0))[: 128 * many]
    chunk = Chunk(facts[order].view(-1, 128, 3), graph.num_entities, NEGATIVES, 0)
    works: dict[str, Any] = {"murp": (lambda: engine.run([chunk], [1.0]), chunk.triples)}
    if importlib.util.find_spec("gensim") is not None:
        works["gensim"] = _gensim(taxonomy, dim, 20 if quick else 500)
    turns: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(2 if quick else 1 + ROUNDS):
        for name, (work, pairs) in works.items():
            began = time.perf_counter()
            work()
            if turn:
                turns[name].append(pairs / (time.perf_counter() - began))
    figures: dict[str, Any] = {name: spread(found) for name, found in turns.items()}
    if "gensim" in figures:
        figures["times gensim"] = float(np.median(turns["murp"]) / np.median(turns["gensim"]))
    print(f"d={dim}: {figures}", flush=True)
    return figures


def _gensim(taxonomy: Taxonomy, dim: int, batches: int) -> tuple[Any, int]:
    """gensim's own training on some batches of 10, its default."""
    from gensim.models.poincare import PoincareModel

    pairs = [(str(a), str(b)) for a, b in taxonomy.closure().tolist()]
    model = PoincareModel(pairs, size=dim, negative=NEGATIVES, burn_in=0, seed=0)
    order = np.random.default_rng(0).permutation(len(pairs))[: 10 * batches].tolist()

    def work() -> None:
        for first in range(0, len(order), 10):
            model._train_on_batch([model.all_relations[i] for i in order[first : first + 10]])

    return work, len(order)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--database", type=Path, help="folder or tarball of WordNet 3.0")
    options.add_argument("--only", choices=("speed", "quality"))
    options.add_argument("--models", nargs="+", default=["poincare", "lorentz"], choices=("poincare", "lorentz"))
    options.add_argument("--dims", nargs="+", type=int, default=[5, 10, 20])
    options.add_argument("--busy", action="store_true", help="the machine does other work too: say so of the seconds")
    for name, value in SETTINGS.items():
        options.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            type=type(value),
            help=f"{value} by default, or {IN_FEW[name]} up to d={FEW}" if name in IN_FEW else f"{value} by default",
        )
    chosen = options.parse_args(arguments)
    if not chosen.quick and chosen.database is None:
        options.error("--database names the folder or tarball of WordNet 3.0: see tools/wordnet.py")
    taxonomy = toy() if chosen.quick else nouns(chosen.database)
    given = {name: value for name in SETTINGS if (value := getattr(chosen, name)) is not None}
    if chosen.quick:
        given |= {"epochs": 2, "lr": 1.0}
    dims = [2] if chosen.quick else chosen.dims
    settings = {dim: SETTINGS | (IN_FEW if dim <= FEW else {}) | given for dim in dims}
    figures: dict[str, Any] = {"nodes": len(taxonomy), "pairs": len(taxonomy.closure()), "threads": threads.count()}
    figures["busy"] = chosen.busy
    if chosen.only != "quality":
        figures["pairs a second"] = {f"d={dim}": speed(taxonomy, dim, chosen.quick) for dim in dims}
    if chosen.only != "speed":
        figures["reconstruction"] = {
            f"{model} d={dim}": quality(taxonomy, model, dim, settings[dim]) for dim in dims for model in chosen.models
        }
    what = (
        "embeddings of WordNet's nouns: reconstruction, and pairs a second with 10 negatives beside gensim's, in turns"
    )
    training = {f"d={dim}": settings[dim] for dim in dims}
    store(result(what, {"training": training, "negatives of the speed": NEGATIVES}, figures), chosen.out)


if __name__ == "__main__":
    main()
