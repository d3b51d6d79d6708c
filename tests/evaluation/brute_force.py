"""The definition of a filtered rank in plain Python, and small graphs to try it on."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as stnp

from murp.graph import KnowledgeGraph, Triples, Vocabulary

Fact = tuple[int, int, int]


def realistic_rank(scores: list[float], target: int, excluded: Collection[int], share: float = 0.5) -> float:
    """Between the best and the worst place of ``target`` among the entities that are not excluded: by default midway.

    ``share``: 0 for the best, 1 for the worst.
    """
    rivals = [scores[entity] for entity in range(len(scores)) if entity != target and entity not in excluded]
    best = 1 + sum(score > scores[target] for score in rivals)
    worst = 1 + sum(score >= scores[target] for score in rivals)
    return best + share * (worst - best)


def brute_force_ranks(
    table: np.ndarray, triples: list[Fact], facts: list[Fact], protocol: str, share: float = 0.5
) -> tuple[list[float], list[float]]:
    """Tail ranks and head ranks; ``table`` (N, 2R, N) has the score of every query and entity."""
    num_relations = table.shape[1] // 2
    tail_ranks, head_ranks = [], []
    for head, relation, tail in triples:
        other_tails = {t for (h, r, t) in facts if (h, r) == (head, relation)}
        other_heads = {h for (h, r, t) in facts if (r, t) == (relation, tail)}
        if protocol == "paper":
            other_tails.add(head)
            other_heads.add(tail)
        tail_ranks.append(realistic_rank(table[head, relation].tolist(), tail, other_tails, share))
        head_ranks.append(realistic_rank(table[tail, relation + num_relations].tolist(), head, other_heads, share))
    return tail_ranks, head_ranks


class TableScorer:
    """A model that knows every score by heart; ``largest_batch`` is the most it was asked at once."""

    def __init__(self, table: np.ndarray, device: str = "cpu") -> None:
        self.num_entities = table.shape[0]
        self.device = torch.device(device)
        self.table = torch.from_numpy(table).to(device)
        self.largest_batch = 0

    def score_objects(self, subjects: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        self.largest_batch = max(self.largest_batch, len(subjects))
        return self.table[subjects, relations]


@dataclass
class Case:
    graph: KnowledgeGraph
    table: np.ndarray

    @property
    def scorer(self) -> TableScorer:
        return TableScorer(self.table)


def graph_of(num_entities: int, num_relations: int, **splits: list[Fact] | Triples) -> KnowledgeGraph:
    arrays = {
        name: np.array(splits.get(name, []), dtype=np.int32).reshape(-1, 3) for name in ("train", "valid", "test")
    }
    entities = Vocabulary("entity", [f"e{i}" for i in range(num_entities)])
    relations = Vocabulary("relation", [f"r{i}" for i in range(num_relations)])
    return KnowledgeGraph("random", entities, relations, **arrays)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few entities and fewer scores: ties, repeated facts, facts in several splits and self-loops abound."""
    num_entities, num_relations = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    entity = st.integers(0, num_entities - 1)
    facts = st.lists(st.tuples(entity, st.integers(0, num_relations - 1), entity), max_size=8)
    graph = graph_of(
        num_entities,
        num_relations,
        train=draw(facts),
        valid=draw(facts),
        test=draw(facts.filter(len)),
    )
    table = draw(
        stnp.arrays(
            draw(st.sampled_from([np.float32, np.float64])),
            (num_entities, 2 * num_relations, num_entities),
            elements=st.sampled_from([0.0, 1.0, 2.0, -1.0, math.inf, -math.inf]),
        )
    )
    return Case(graph, table)


def tuples(triples: Triples) -> list[Fact]:
    return [(int(h), int(r), int(t)) for h, r, t in triples]
