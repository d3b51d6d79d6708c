"""Many ranks rank drawn candidates, and answer questions, as one process does: bit for bit, ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from run_on_ranks import on_ranks

from murp import models
from murp.config import Config
from murp.distributed import Ranks, join
from murp.distributed.shares import Share
from murp.graph import KnowledgeGraph
from murp.testing import tree

DRAWN = [
    (model, candidates) for model in ("murp", "mure", "rotate", "conve", "hybonet", "mixed-curvature", "rescal")
    for candidates in (1, 30, 1000)
]  # fmt: skip


def test_ranks_among_drawn_candidates_are_those_of_one_process(small_tree: KnowledgeGraph) -> None:
    """Scores are equal on every processor, since blocks have whole vectors. So ranks are, ties included."""
    alone = [drawn(small_tree, *one) for one in DRAWN]
    assert any((ranks % 1 == 0.5).any() for ranks, _ in alone), "no ties: the test shows less than it should"
    for size in (2, 3):
        for found in on_ranks(all_drawn, size, small_tree):
            for many, one in zip(found, alone, strict=True):
                np.testing.assert_array_equal(many[0], one[0])
                assert many[1] == one[1]


def test_a_rank_without_rows_counts_no_candidates() -> None:
    graph = tree(2)
    assert Share(graph.num_entities, 4, 5).start == graph.num_entities
    alone = drawn(graph, "murp", 2)
    for found in on_ranks(drawn, 5, graph, "murp", 2):
        np.testing.assert_array_equal(found[0], alone[0])
        assert found[1] == alone[1]


def all_drawn(graph: KnowledgeGraph) -> list[Any]:
    from murp.evaluation import sampled

    sampled.CELLS = 500  # a few queries at a time
    return [drawn(graph, *one) for one in DRAWN]


def drawn(graph: KnowledgeGraph, model: str, candidates: int) -> tuple[Any, dict[str, Any]]:
    """The ranks and the report."""
    from murp.distributed.ranking import Counting
    from murp.evaluation import evaluate

    ranks = join()
    whole = with_ties(graph, model, ranks)
    counting = Counting(ranks, whole) if ranks.size > 1 else None
    report = evaluate(whole, graph, "valid", "sampled", candidates=candidates, seed=3, counting=counting)
    return np.concatenate([report.ranks.tail, report.ranks.head]), report.to_dict(by_relation=True)


def with_ties(graph: KnowledgeGraph, model: str, ranks: Ranks) -> models.Model:
    """This rank's rows of a model in which every fifth entity is equal to the first, so that scores tie."""
    share = Share(graph.num_entities, ranks.rank, ranks.size)
    config = Config(model=model, dim=40 if model == "conve" else 6)
    whole = models.from_config(config, graph.num_entities, graph.num_relations).initialise(1, 0.2)
    for table in whole.tables:
        if table.of == "entity":
            rows = whole.parameters[table.name]
            rows[1::5] = rows[0]
            whole.parameters[table.name] = rows[share.start : share.stop].clone()
    return whole


ASKED = [(model, k, new) for model in ("murp", "rotate", "hybonet") for k in (1, 7, 50, 1000) for new in (False, True)]


@pytest.mark.parametrize("size", [2, 3])
def test_answers_are_those_of_one_process(
    size: int, small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same scores from blocks of whole vectors, and of equal ones the first; so they are equal bit for bit."""
    monkeypatch.setattr("murp.evaluation.fused.kernel_for", lambda model: None)  # whose scores round differently
    alone = all_answered(small_tree)
    assert any((np.diff(scores) == 0).any() for _, scores in alone[4][:5]), "no ties: the test shows less"
    many, *helpers = on_ranks(all_answered, size, small_tree)
    assert helpers == [None] * (size - 1)
    for of_many, of_one in zip(many, alone, strict=True):
        for found, expected in zip(of_many, of_one, strict=True):
            np.testing.assert_equal(found, expected)


def test_a_rank_without_rows_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murp.evaluation.fused.kernel_for", lambda model: None)
    graph = tree(2)
    alone, many = answered(graph, "murp", 3, True), on_ranks(answered, 5, graph, "murp", 3, True)[0]
    for found, expected in zip(many, alone, strict=True):
        np.testing.assert_equal(found, expected)


def all_answered(graph: KnowledgeGraph) -> list[Any] | None:
    found = [answered(graph, *one) for one in ASKED]
    return None if found[0] is None else found


def answered(graph: KnowledgeGraph, model: str, k: int, new_only: bool) -> list[Any] | None:
    """Some single answers, then those to many questions, then new facts; None from a rank that helps."""
    from murp.distributed.searching import Searching
    from murp.evaluation.ranks import BYTES_PER_CELL
    from murp.prediction.answers import Answers
    from murp.prediction.discovery import discover

    ranks = join()
    whole = with_ties(graph, model, ranks)
    search = Searching(ranks, whole) if ranks.size > 1 else None
    if search is not None and not ranks.first:
        search.help()
        return None
    few = graph.num_entities * BYTES_PER_CELL  # questions at a time
    answers = Answers(whole, graph, search=search)
    singly = [answers.to_one(subject, subject % 4, k, new_only=new_only) for subject in range(5)]
    subjects, relations = graph.valid[:, 0].astype(np.int64), graph.valid[:, 1].astype(np.int64)
    many = answers.best(subjects, relations, k, new_only=new_only, memory=few)
    new = discover(whole, graph, 0, k, memory=few, search=search)
    if search is not None:
        search.end()
    found = [(one.entities, one.scores) for one in (*singly, many)]
    return [*found, (new.heads, new.tails, new.scores, new.places)]
