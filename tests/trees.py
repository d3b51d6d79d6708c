"""A graph whose shape is known."""

from __future__ import annotations

import numpy as np

from murp.graph import KnowledgeGraph, Vocabulary


def tree(levels: int = 5, seed: int = 0) -> KnowledgeGraph:
    """A binary tree with its edges as one relation and a ring of its leaves as another."""
    parents = np.arange(2**levels - 1)
    edges = [(child, 0, parent) for parent in parents for child in (2 * parent + 1, 2 * parent + 2)]
    leaves = np.arange(2**levels - 1, 2 ** (levels + 1) - 1)
    ring = [(int(a), 1, int(b)) for a, b in zip(leaves, np.roll(leaves, -1), strict=True)]
    facts = np.array(edges + ring, dtype=np.int32)
    order = np.random.default_rng(seed).permutation(len(facts))
    facts = facts[order]
    held = len(facts) // 10
    return KnowledgeGraph(
        name="tree",
        entities=Vocabulary("entity", [f"n{i}" for i in range(2 ** (levels + 1) - 1)]),
        relations=Vocabulary("relation", ["parent", "next"]),
        train=facts[2 * held :],
        valid=facts[:held],
        test=facts[held : 2 * held],
    )
