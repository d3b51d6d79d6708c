"""Ranks against their definition, and the laws they obey.

Ranks are compared exactly: they are halves of whole numbers, counted from scores that a table gives, not computed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from brute_force import Case, TableScorer, brute_force_ranks, cases, graph_of, tuples
from hypothesis import assume, given
from hypothesis import strategies as st

from murp.errors import ConfigError, MurpError, NotFiniteError
from murp.evaluation import PROTOCOLS, KnownFacts, Protocol, Ranks, known_answers, rank
from murp.evaluation.ranks import BYTES_PER_CELL, _counts, batch_size, better_and_equal, default_memory, queries_of
from murp.graph import SPLITS, KnowledgeGraph, Split

protocols = st.sampled_from(PROTOCOLS)


def rank_test(case: Case, protocol: Protocol, memory: int | None = None) -> Ranks:
    graph = case.graph
    return rank(
        case.scorer,
        graph.test,
        KnownFacts.of(graph),
        num_relations=graph.num_relations,
        protocol=protocol,
        memory=memory,
    )


@given(case=cases(), split=st.sampled_from(SPLITS))
def test_the_known_answers_of_a_split_are_those_of_all_facts(case: Case, split: Split) -> None:
    """Of its own questions, in both directions; a split may be empty."""
    graph = case.graph
    subjects, relations, _ = queries_of(graph.split(split), graph.num_relations)
    some, every = known_answers(graph, split), KnownFacts.of(graph)
    for own, all_of_them in zip(
        some.objects_of(subjects, relations), every.objects_of(subjects, relations), strict=True
    ):
        np.testing.assert_array_equal(own, all_of_them)
    if split != "train":
        assert len(some.keys) == len({*zip(subjects.tolist(), relations.tolist(), strict=True)})


@given(case=cases(), protocol=protocols)
def test_same_as_the_definition(case: Case, protocol: Protocol) -> None:
    ranks = rank_test(case, protocol)
    tail, head = brute_force_ranks(case.table, tuples(case.graph.test), tuples(case.graph.facts()), protocol)
    assert ranks.tail.tolist() == tail
    assert ranks.head.tolist() == head
    assert ranks.tail.dtype == ranks.head.dtype == np.float64
    assert ranks.protocol == protocol


@given(case=cases(), protocol=protocols)
def test_the_best_and_the_worst_place_are_those_of_the_definition(case: Case, protocol: Protocol) -> None:
    graph = case.graph
    known = KnownFacts.of(graph)
    better, equal = better_and_equal(
        case.scorer, graph.test, known, num_relations=graph.num_relations, protocol=protocol
    )
    for found, share in ((1 + better, 0.0), (1 + better + equal, 1.0)):
        tail, head = brute_force_ranks(case.table, tuples(graph.test), tuples(graph.facts()), protocol, share)
        assert found.tolist() == tail + head


@given(case=cases(), protocol=protocols, queries=st.integers(1, 20))
def test_memory_bounds_the_batch_and_changes_no_rank(case: Case, protocol: Protocol, queries: int) -> None:
    graph, scorer = case.graph, case.scorer
    bound = queries * graph.num_entities * BYTES_PER_CELL
    known = KnownFacts.of(graph)
    ranks = rank(scorer, graph.test, known, num_relations=graph.num_relations, protocol=protocol, memory=bound)
    assert scorer.largest_batch == min(queries, 2 * len(graph.test))
    unbounded = rank_test(case, protocol)
    assert ranks.tail.tolist() == unbounded.tail.tolist()
    assert ranks.head.tolist() == unbounded.head.tolist()


@given(
    num_entities=st.integers(1, 10**8),
    memory=st.integers(0, 2**40),
    device=st.sampled_from(["cpu", "cuda"]),
)
def test_a_batch_fits_its_memory_or_the_need_is_told(num_entities: int, memory: int, device: str) -> None:
    needed = num_entities * BYTES_PER_CELL
    if memory < needed:
        with pytest.raises(ConfigError, match=f"needs {needed:,} bytes"):
            batch_size(num_entities, torch.device(device), memory)
    else:
        assert 1 <= batch_size(num_entities, torch.device(device), memory) <= memory // needed
    assert batch_size(num_entities, torch.device(device)) >= 1


@pytest.mark.parametrize(("device", "promised"), [("cpu", 512 * 2**20), ("cuda", 4 * 2**30)])
def test_the_memory_without_a_bound_is_what_is_promised(device: str, promised: int) -> None:
    assert default_memory(10, torch.device(device)) == promised
    assert default_memory(10**8, torch.device(device)) == 10**8 * BYTES_PER_CELL


@given(case=cases(), protocol=protocols, data=st.data())
def test_numbering_of_entities_does_not_matter(case: Case, protocol: Protocol, data: st.DataObject) -> None:
    graph = case.graph
    order = np.array(data.draw(st.permutations(range(graph.num_entities))))
    renumbered = {
        name: np.stack([order[triples[:, 0]], triples[:, 1], order[triples[:, 2]]], axis=1)
        for name in ("train", "valid", "test")
        for triples in [graph.split(name)]
    }
    table = np.empty_like(case.table)
    table[order[:, None], :, order] = case.table.transpose(0, 2, 1)
    other = Case(graph_of(graph.num_entities, graph.num_relations, **renumbered), table)
    ranks, again = rank_test(case, protocol), rank_test(other, protocol)
    assert ranks.tail.tolist() == again.tail.tolist()
    assert ranks.head.tolist() == again.head.tolist()


@given(case=cases(), protocol=protocols, constant=st.sampled_from([0.0, -3.5, math.inf, -math.inf]))
def test_equal_scores_give_the_middle_rank(case: Case, protocol: Protocol, constant: float) -> None:
    graph = case.graph
    ranks = rank_test(Case(graph, np.full_like(case.table, constant)), protocol)
    facts = set(tuples(graph.facts()))
    for (head, relation, tail), by_tail, by_head in zip(tuples(graph.test), ranks.tail, ranks.head, strict=True):
        asked_out = protocol == "paper"
        tails = {e for e in range(graph.num_entities) if (head, relation, e) not in facts}
        heads = {e for e in range(graph.num_entities) if (e, relation, tail) not in facts}
        if asked_out:
            tails, heads = tails - {head}, heads - {tail}
        assert by_tail == (len(tails | {tail}) + 1) / 2
        assert by_head == (len(heads | {head}) + 1) / 2


@given(case=cases(), protocol=protocols)
def test_a_model_that_knows_the_facts_ranks_them_first(case: Case, protocol: Protocol) -> None:
    graph = case.graph
    table = np.zeros_like(case.table)
    subjects, relations, objects = graph.with_reciprocals(graph.facts()).T
    table[subjects, relations, objects] = 1
    ranks = rank_test(Case(graph, table), protocol)
    assert set(ranks.tail) | set(ranks.head) == {1.0}


def graph_of_one_question(tail: int) -> KnowledgeGraph:
    return graph_of(3, 1, test=[(0, 0, tail)])


def test_the_paper_takes_out_the_entity_asked_about() -> None:
    table = np.zeros((3, 2, 3), dtype=np.float32)
    table[0, 0] = [5, 4, 3]
    case = Case(graph_of_one_question(tail=2), table)
    assert rank_test(case, "standard").tail.tolist() == [3.0]
    assert rank_test(case, "paper").tail.tolist() == [2.0]


def test_the_paper_keeps_the_entity_asked_about_where_it_is_the_answer() -> None:
    table = np.zeros((3, 2, 3), dtype=np.float32)
    table[0, 0] = [4, 5, 3]
    case = Case(graph_of_one_question(tail=0), table)
    assert rank_test(case, "standard").tail.tolist() == rank_test(case, "paper").tail.tolist() == [2.0]


@given(case=cases(), protocol=protocols, data=st.data())
def test_nan_is_an_error_that_names_the_query(case: Case, protocol: Protocol, data: st.DataObject) -> None:
    graph = case.graph
    queries = tuples(graph.with_reciprocals(graph.test))
    subject, relation, _ = data.draw(st.sampled_from(queries))
    case.table[subject, relation, data.draw(st.integers(0, graph.num_entities - 1))] = math.nan
    with pytest.raises(NotFiniteError, match=rf"entity {subject}, relation {relation}\)"):
        rank_test(case, protocol)


@given(case=cases(), protocol=protocols, data=st.data())
def test_nan_that_no_query_meets_is_no_error(case: Case, protocol: Protocol, data: st.DataObject) -> None:
    graph = case.graph
    asked = {(s, r) for s, r, _ in tuples(graph.with_reciprocals(graph.test))}
    every = {(s, r) for s in range(graph.num_entities) for r in range(2 * graph.num_relations)}
    assume(every - asked)
    before = rank_test(case, protocol)
    for subject, relation in every - asked:
        case.table[subject, relation] = math.nan
    assert rank_test(case, protocol).tail.tolist() == before.tail.tolist()


def test_counts_stay_exact_beyond_the_integers_of_float32() -> None:
    entities = 2**24 + 1
    counts = _counts(torch.zeros(1, 1).expand(1, entities), torch.tensor([7]), torch.empty(2, 0, dtype=torch.int64))
    assert counts.tolist() == [[0], [entities - 1]]


def test_an_unknown_protocol_names_the_known_ones() -> None:
    case = Case(graph_of_one_question(tail=1), np.zeros((3, 2, 3), dtype=np.float32))
    with pytest.raises(MurpError, match="'papre': choose one of standard, paper"):
        rank_test(case, "papre")  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cuda_gives_the_ranks_of_the_cpu(protocol: Protocol) -> None:
    draw = np.random.default_rng(0)
    triples = np.stack([draw.integers(0, n, 500) for n in (200, 3, 200)], axis=1).astype(np.int32)
    graph = graph_of(200, 3, train=triples[:300], test=triples[300:])
    table = draw.integers(0, 20, (200, 6, 200)).astype(np.float32)
    known = KnownFacts.of(graph)
    cpu, cuda = (
        rank(TableScorer(table, device), graph.test, known, num_relations=3, protocol=protocol)
        for device in ("cpu", "cuda")
    )
    assert cpu.tail.tolist() == cuda.tail.tolist()
    assert cpu.head.tolist() == cuda.head.tolist()
    table[graph.test[0, 0], graph.test[0, 1], 7] = math.nan
    with pytest.raises(NotFiniteError, match=f"entity {graph.test[0, 0]}, relation {graph.test[0, 1]}"):
        rank(TableScorer(table, "cuda"), graph.test[:1], known, num_relations=3, protocol=protocol)
