"""Known facts against a Python set of them."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import Fact, graph_of
from hypothesis import given
from hypothesis import strategies as st

from murp.evaluation import KnownFacts
from murp.evaluation.filter import _sorted_distinct

NUM_RELATIONS = 2


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
    graph = graph_of(4, 2, train=[(0, 0, 1), (0, 0, 1)], valid=[(0, 0, 2)], test=[(3, 1, 1)])
    known = KnownFacts.of(graph)
    everything = [(s, r) for s in range(4) for r in range(4)]
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


def test_pairs_stay_apart_where_one_number_just_overflows() -> None:
    """3·key + 2 is 2⁶³ exactly: one more than an int64 holds."""
    key = 2**63 // 3
    keys, objects = np.array([key, 0, key]), np.array([2, 1, 2], dtype=np.int32)
    found = _sorted_distinct(keys, objects)
    assert [column.tolist() for column in found] == [[0, key], [1, 2]]


@given(
    largest=st.integers(2**63 - 4, 2**63 + 4),
    most=st.sampled_from([0, 1, 2, 6]),
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=8),
)
def test_distinct_pairs_about_the_largest_int64(largest: int, most: int, rows: list[tuple[int, int]]) -> None:
    """Whether the largest pair, as one number, just fits an int64 or just does not."""
    highest = min((largest - most) // (most + 1), 2**63 - 1)
    pairs = [(highest, most), *[(highest - below, min(o, most)) for below, o in rows]]
    found = _sorted_distinct(np.array([k for k, _ in pairs]), np.array([o for _, o in pairs], dtype=np.int32))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == sorted(set(pairs))
