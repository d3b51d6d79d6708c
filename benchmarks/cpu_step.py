"""A training step on the CPU: murp's engines, the textbook, geoopt's optimisers, PyKEEN's MuRE.

    MURP_DATA=… python benchmarks/cpu_step.py --out results/cpu_step.json

All run in turns on the same batches. The textbook and geoopt are MuRP; PyKEEN has only MuRE. Libraries that are not
installed are left out, and the result names them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any
from unittest import mock

# PyTorch's own setting for everyone: the large pages that murp asks for slow the textbook's large temporaries.
os.environ["THP_MEM_ALLOC_ENABLE"] = "0"

from measure import CPU, Works, in_turns, parser, ratio, result, store, toy_graph
from murp import engines, models
from murp.engines import Chunk
from murp.graph import KnowledgeGraph
from murp.training.sampler import Sampler
from textbook import TextbookMuRP

BATCH, NEGATIVES, LR = 128, 50, 50.0


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="WN18RR")
    options.add_argument("--dim", type=int, default=40)
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    steps, repeats = (2, 2) if chosen.quick else (256, 9)
    sampler = Sampler(
        graph.with_reciprocals(graph.train),
        graph.num_entities,
        batch_size=BATCH,
        negatives=NEGATIVES,
        seed=0,
        device=CPU,
    )
    chunk = sampler.chunk(0, 0)
    works, missing = others(graph, chosen.dim, chunk)
    parts = {"numba": first(chunk, steps), "torch": first(chunk, max(2, steps // 16))}
    if chosen.quick:
        del parts["numba"]  # it compiles for longer than a quick run takes
    # The same for memory that was freed: what murp keeps for its next step would be kept for the textbook's, too.
    with mock.patch("murp.engines.torch_engine.keep_freed"):
        for name in models.MODELS:
            for engine, part in parts.items():
                works[f"{name}, {engine}"] = ours(graph, name, chosen.dim, engine, part)

    times = in_turns(works, repeats=repeats)
    same_model = {"textbook": "murp", "geoopt, dense": "murp", "geoopt, sparse": "murp", "pykeen": "mure"}
    figures: dict[str, Any] = {
        "seconds_a_step": times,
        "steps_an_epoch": sampler.steps,
        "epoch_seconds": {name: times[name]["median"] * sampler.steps for name in times},
        "times_faster": {
            f"{engine} against {other}": ratio(times, f"{model}, {other}", f"{model}, {engine}")
            for other, model in same_model.items()
            if f"{model}, {other}" in times
            for engine in parts
        },
        "left_out": missing,
    }
    settings = {"seed": 0, "data": graph.name, "dim": chosen.dim, "batch_size": BATCH, "negatives": NEGATIVES, "lr": LR}
    what = "a training step; the textbook's is dense and in float64, all others are in float32"
    store(result(what, settings, figures), chosen.out)


def first(chunk: Chunk, steps: int) -> Chunk:
    return dataclasses.replace(chunk, positives=chunk.positives[:steps])


def ours(graph: KnowledgeGraph, name: str, dim: int, engine_name: str, chunk: Chunk) -> Any:
    model = models.MODELS[name](graph.num_entities, 2 * graph.num_relations, dim).initialise(0)
    engine = engines.build(engine_name, [model])
    return (lambda: engine.run([chunk], [LR])), chunk.steps


def others(graph: KnowledgeGraph, dim: int, chunk: Chunk) -> tuple[Works, dict[str, str]]:
    """What murp is compared with, and what could not be: name → why."""
    shape = (graph.num_entities, 2 * graph.num_relations, dim)
    positives, negatives = chunk.positives, chunk.draw()
    textbook = TextbookMuRP(*shape)
    works: Works = {"murp, textbook": (lambda: textbook.step(positives[0], negatives[0], LR), 1)}
    missing = {}
    try:
        from geoopt_murp import GeooptMuRP

        for kind in ("dense", "sparse"):
            model = GeooptMuRP(models.murp(*shape).initialise(0), LR, sparse=kind == "sparse")
            works[f"murp, geoopt, {kind}"] = (
                lambda m=model: [m.step(positives[i], negatives[i]) for i in range(2)],
                2,
            )
    except ImportError as error:
        missing["geoopt"] = str(error)
    try:
        from pykeen_mure import PykeenMuRE

        pykeen = PykeenMuRE(*shape, positives[:10].reshape(-1, 3), negatives=NEGATIVES)
        works["mure, pykeen"] = (lambda: pykeen.epoch(BATCH), min(10, chunk.steps))
    except ImportError as error:
        missing["pykeen"] = str(error)
    return works, missing


if __name__ == "__main__":
    main()
