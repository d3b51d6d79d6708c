"""An epoch and a test evaluation on the CPU against their textbook forms, in one run.

    MURP_DATA=… python benchmarks/core_cpu.py --out results/core_cpu.json

Steps of both kinds take turns, so that a busy neighbour slows both; ratios count, not seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from murp import models
from murp.engines import TorchEngine
from murp.evaluation import KnownFacts, evaluate
from murp.files import write_text
from murp.graph import KnowledgeGraph
from murp.runs.folder import environment
from murp.training.sampler import Sampler
from textbook import TextbookMuRP

ROUNDS = 7


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def summary(times: list[float]) -> dict[str, float]:
    return {"median": statistics.median(times), "least": min(times), "most": max(times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="WN18RR")
    parser.add_argument("--dim", type=int, default=40)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    cpu = torch.device("cpu")
    graph = KnowledgeGraph.load(options.data)
    shape = (graph.num_entities, 2 * graph.num_relations, options.dim)
    sampler = Sampler(
        graph.with_reciprocals(graph.train), graph.num_entities, batch_size=128, negatives=50, seed=0, device=cpu
    )
    positives, negatives = sampler.chunk(0, 0)
    model = models.murp(*shape).initialise(0)
    engine, textbook = TorchEngine(model), TextbookMuRP(*shape)

    engine.run(positives[:10], negatives[:10], 50.0)
    textbook.step(positives[0], negatives[0], 50.0)
    ours, theirs = [], []
    for turn in range(ROUNDS):
        ours.append(seconds(lambda: engine.run(positives[:100], negatives[:100], 50.0)) / 100)
        theirs.append(seconds(lambda t=turn: textbook.step(positives[t], negatives[t], 50.0)))

    def epoch() -> None:
        for index in range(sampler.chunks):
            engine.run(*sampler.chunk(1, index), 50.0)

    whole_epoch = seconds(epoch)

    known = KnownFacts.of(graph)
    queries = 2 * len(graph.test)
    evaluate(model, graph, "valid", known=known)
    ranked, single = [], []
    for turn in range(3):
        ranked.append(seconds(lambda: evaluate(model, graph, "test", known=known)) / queries)
        for s, r, o in graph.test[10 * turn : 10 * turn + 10].tolist():
            objects = known.objects_of([s], [r])[1]
            single.append(seconds(lambda q=(s, r, o), k=objects: textbook.rank(*q, k)))

    result = {
        "what": f"murp d={options.dim} on {options.data}, batch 128, 50 negatives; seconds, interleaved rounds",
        "environment": environment(cpu),
        "step": {"ours_float32": summary(ours), "textbook_float64": summary(theirs)},
        "step_ratio": statistics.median(theirs) / statistics.median(ours),
        "epoch_seconds": whole_epoch,
        "epoch_seconds_textbook": statistics.median(theirs) * sampler.steps,
        "evaluation_a_query": {"ours_float32": summary(ranked), "textbook_float64": summary(single)},
        "evaluation_seconds": statistics.median(ranked) * queries,
        "evaluation_ratio": statistics.median(single) / statistics.median(ranked),
    }
    print(json.dumps(result, indent=1))
    if options.out is not None:
        write_text(options.out, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
