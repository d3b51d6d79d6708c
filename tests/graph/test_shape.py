"""The shape of a graph: what is counted, and what is not looked at."""

from __future__ import annotations

import numpy as np

from murp.graph import KnowledgeGraph, Vocabulary
from murp.graph.shape import Shape, shape

Facts = list[tuple[int, int, int]]


def graph_of(entities: int, relations: int, train: Facts, test: Facts) -> KnowledgeGraph:
    names = (
        Vocabulary(kind, [f"{kind}{i}" for i in range(n)])
        for kind, n in (("entity", entities), ("relation", relations))
    )
    parts = (np.array(facts, dtype=np.int32).reshape(-1, 3) for facts in (train, [], test))
    return KnowledgeGraph("it", *names, *parts)


def test_the_shape_of_a_graph_is_that_of_its_training_facts() -> None:
    """A chain e0 → e1 → e2 → e3 under r0, both ways between e0 and e4 and a loop under r1; one fact is given twice."""
    train = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 1, 4), (4, 1, 0), (3, 1, 3), (0, 0, 1)]
    graph = graph_of(7, 3, train=train, test=[(5, 2, 6)])
    assert shape(graph) == Shape(entities=5, relations=2, facts=6, density=6 / 5, chained=2 / 6)
    assert shape(graph_of(2, 1, train=[], test=[(0, 0, 1)])) == Shape(0, 0, 0, 0.0, 0.0)
