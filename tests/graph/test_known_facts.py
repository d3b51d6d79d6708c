"""Known facts against a Python set of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.graph import SPLITS, KnowledgeGraph, KnownFacts, Vocabulary, split_names
from murp.graph.known_facts import _sorted_distinct

NUM_RELATIONS = 2
Fact = tuple[int, int, int]


def graph_of(train: list[Fact], valid: list[Fact], test: list[Fact]) -> KnowledgeGraph:
    """Five entities, two relations."""
    entities, relations = Vocabulary("entity", list("abcde")), Vocabulary("relation", ["r", "s"])
    splits = (np.array(rows, dtype=np.int32).reshape(-1, 3) for rows in (train, valid, test))
    return KnowledgeGraph("g", entities, relations, *splits)


def facts_among(entities: list[int], relations: list[int]) -> st.SearchStrategy[list[Fact]]:
    entity = st.sampled_from(entities)
    return st.lists(st.tuples(entity, st.sampled_from(relations), entity), max_size=30)


def known_facts(facts: list[Fact], num_relations: int) -> KnownFacts:
    return KnownFacts(np.array(facts, dtype=np.int32).reshape(-1, 3), num_relations)


LARGEST = 2**31 - 1
# Every index an int32 can hold: with the largest of them a fact no longer fits into one int64.
SMALL = ([0, 1, 2, 3, 4], [0, 1, 2, 3], NUM_RELATIONS)
HUGE = ([0, 1, LARGEST - 1, LARGEST], [0, 1, LARGEST - 2, LARGEST - 1], 2**30)


@pytest.mark.parametrize(("entities", "relations", "num_relations"), [SMALL, HUGE], ids=["small", "huge"])
@given(data=st.data())
def test_same_as_a_set_of_facts(
    entities: list[int], relations: list[int], num_relations: int, data: st.DataObject
) -> None:
    facts = data.draw(facts_among(entities, relations))
    asked = data.draw(facts_among(entities, relations))
    known = known_facts(facts, num_relations)

    subjects, wanted = [s for s, _, _ in asked], [r for _, r, _ in asked]
    rows, objects = known.objects_of(subjects, wanted)
    expected = [
        (row, o)
        for row, (subject, relation) in enumerate(zip(subjects, wanted, strict=True))
        for o in sorted({o for s, r, o in facts if (s, r) == (subject, relation)})
    ]
    assert list(zip(rows.tolist(), objects.tolist(), strict=True)) == expected


@given(facts=facts_among(SMALL[0], SMALL[1]))
def test_facts_lie_under_their_keys_in_order(facts: list[Fact]) -> None:
    """The layout that other readers of the columns rely on: the objects under s·2R + r, keys and objects ascending."""
    known = known_facts(facts, NUM_RELATIONS)
    expected = sorted({(s * 2 * NUM_RELATIONS + r, o) for s, r, o in facts})
    assert known.keys.tolist() == sorted({key for key, _ in expected})
    assert known.objects.tolist() == [o for _, o in expected]
    spans = zip(known.keys.tolist(), np.diff(known.offsets).tolist(), strict=True)
    assert [key for key, count in spans for _ in range(count)] == [key for key, _ in expected]


def test_nothing_is_known_of_an_empty_graph() -> None:
    known = known_facts([], 1)
    rows, objects = known.objects_of([0, 1], [0, 1])
    assert len(rows) == len(objects) == 0


def test_a_graph_is_known_in_both_directions_and_in_all_splits() -> None:
    graph = graph_of(train=[(0, 0, 1), (0, 0, 1)], valid=[(0, 0, 2)], test=[(3, 1, 1)])
    known = KnownFacts.of(graph)
    everything = [(s, r) for s in range(5) for r in range(4)]
    rows, objects = known.objects_of(*zip(*everything, strict=True))
    found = {(*everything[row], o) for row, o in zip(rows.tolist(), objects.tolist(), strict=True)}
    assert found == {(0, 0, 1), (0, 0, 2), (3, 1, 1), (1, 2, 0), (2, 2, 0), (1, 3, 3)}
    assert len(rows) == len(found)


def test_a_fact_that_fits_63_bits_by_its_key_alone() -> None:
    """The largest key is nearly 2⁶²; with objects 0 … 2 a pair of both would need more than 63 bits, less than 64."""
    facts = [(LARGEST, LARGEST - 1, 2), (0, 0, 1), (LARGEST, LARGEST - 1, 0), (0, 0, 1)]
    known = known_facts(facts, 2**30)
    rows, objects = known.objects_of([LARGEST, 0, 1], [LARGEST - 1, 0, 0])
    assert rows.tolist() == [0, 0, 1]
    assert objects.tolist() == [0, 2, 1]


@pytest.mark.parametrize("splits", [[0, 0, 0], [2, 1, 1]])
def test_pairs_stay_apart_where_one_number_just_overflows(splits: list[int]) -> None:
    """(3·key + 2)·4 is 2⁶³ exactly: one more than an int64 holds."""
    key = 2**61 // 3
    assert (3 * key + 2) * 4 == 2**63
    keys, objects = np.array([key, 0, key]), np.array([2, 1, 2], dtype=np.int32)
    found = _sorted_distinct(keys, objects, np.array(splits))
    assert [column.tolist() for column in found] == [[0, key], [1, 2], [splits[1], min(splits[0], splits[2])]]


@given(
    largest=st.integers(2**61 - 4, 2**61 + 4),
    most=st.sampled_from([0, 1, 2, 6]),
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 2)), max_size=8),
)
def test_distinct_pairs_about_the_largest_int64(largest: int, most: int, rows: list[tuple[int, int, int]]) -> None:
    """Whether the largest fact, as one number, just fits an int64 or just does not."""
    highest = (largest - most) // (most + 1)
    facts = [(highest, most, 2), *[(highest - below, min(o, most), split) for below, o, split in rows]]
    keys, objects, splits = (np.array(column) for column in zip(*facts, strict=True))
    found = _sorted_distinct(keys, objects.astype(np.int32), splits)
    first = {(k, o): min(s for *pair, s in facts if pair == [k, o]) for k, o, _ in facts}
    expected = [(k, o, first[k, o]) for k, o in sorted(first)]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


@given(facts=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)), max_size=30))
def test_states_is_membership(facts: list[Fact]) -> None:
    known = known_facts(facts, NUM_RELATIONS)
    subjects, relations = (a.ravel() for a in np.mgrid[:4, :4])
    objects = np.broadcast_to(np.arange(-1, 6), (16, 7))
    expected = [[(s, r, o) in facts for o in range(-1, 6)] for s, r in zip(subjects, relations, strict=True)]
    assert known.states(subjects, relations, objects).tolist() == expected


TRIPLES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4)), max_size=12)


@given(TRIPLES, TRIPLES, TRIPLES)
def test_the_split_that_states_a_fact_against_a_scan(train: list[Fact], valid: list[Fact], test: list[Fact]) -> None:
    splits = {"train": train, "valid": valid, "test": test}
    graph = graph_of(train, valid, test)
    known, everything = KnownFacts.of(graph), np.arange(5)[None]
    subjects, relations = (a.ravel() for a in np.mgrid[:5, :4])
    at_once = known.split_of(subjects, relations, np.broadcast_to(everything, (20, 5)))
    for row, (subject, relation) in enumerate(zip(subjects.tolist(), relations.tolist(), strict=True)):

        def says(rows: list[Fact], o: int, subject: int = subject, relation: int = relation) -> bool:
            return ((subject, relation, o) if relation < 2 else (o, relation - 2, subject)) in rows

        expected = [next((n for n, rows in splits.items() if says(rows, o)), None) for o in range(5)]
        assert split_names(at_once[row]) == expected
        for facts in (known, KnownFacts.of_question(graph, subject, relation)):
            asked = np.array([subject]), np.array([relation])
            assert split_names(facts.split_of(*asked, everything)[0]) == expected
            assert split_names(facts.splits_of(subject, relation, everything[0])) == expected
            assert facts.objects_of(*asked)[1].tolist() == [o for o in range(5) if expected[o]]


def test_known_are_the_facts_of_the_splits_named() -> None:
    graph = graph_of(train=[(0, 0, 1)], valid=[(0, 0, 2), (0, 0, 1)], test=[(0, 0, 3)])
    for splits, objects in ((SPLITS, [1, 2, 3]), (SPLITS[:2], [1, 2]), (SPLITS[:1], [1]), ((), [])):
        known = KnownFacts.of(graph, splits)
        assert known.objects_of([0], [0])[1].tolist() == objects
        assert known.objects_of([3], [2])[1].tolist() == ([0] if splits == SPLITS else [])
