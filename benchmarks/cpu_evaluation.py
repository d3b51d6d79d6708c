"""Filtered evaluation of a test set on the CPU, compared with ranking one query at a time as in a textbook.

    MURP_DATA=… python benchmarks/cpu_evaluation.py --out results/cpu_evaluation.json

Both run in turns. The textbook version ranks some queries, and its time is scaled to all queries.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

# PyTorch's own setting for everyone: the large pages that murp asks for slow the textbook's large temporaries.
os.environ["THP_MEM_ALLOC_ENABLE"] = "0"

from measure import Works, in_turns, parser, result, store, toy_graph
from murp import models
from murp.evaluation import KnownFacts, evaluate
from murp.graph import KnowledgeGraph
from textbook import TextbookMuRP


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="WN18RR")
    options.add_argument("--dim", type=int, default=40)
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    some, repeats = (2, 2) if chosen.quick else (10, 7)
    shape = (graph.num_entities, 2 * graph.num_relations, chosen.dim)
    queries = 2 * len(graph.test)

    known = KnownFacts.of(graph)
    works: Works = {"preparing the filter": (lambda: KnownFacts.of(graph), 1)}
    for name, build in models.MODELS.items():
        model = build(*shape).initialise(0)
        # Spread out as a trained model is, so that scores differ.
        model.parameters["entity"].mul_(50)
        works[name] = (lambda m=model: evaluate(m, graph, "test", known=known)), 1
    textbook = TextbookMuRP(*shape)
    asked = [(s, r, o, known.objects_of([s], [r])[1]) for s, r, o in graph.test[:some].tolist()]
    works["murp, one query at a time"] = (lambda: [textbook.rank(*query) for query in asked]), len(asked) / queries

    times = in_turns(works, repeats=repeats)
    figures: dict[str, Any] = {
        "seconds": times,
        "times_faster": times["murp, one query at a time"]["median"] / times["murp"]["median"],
    }
    settings = {
        "seed": 0,
        "data": graph.name,
        "split": "test",
        "queries": queries,
        "dim": chosen.dim,
        "protocol": "standard",
    }
    what = "filtered evaluation of a test set, both directions, float32; one query at a time: float64"
    store(result(what, settings, figures), chosen.out)


if __name__ == "__main__":
    main()
