from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.errors import UnknownNameError
from murp.graph import Vocabulary

VOCABULARY = Vocabulary(
    "entity", ["1", "2", "3", "4"], ["armchair", "chair", "chair", None], ["soft", None, None, None]
)


def test_ids_names_labels_and_glosses():
    assert [VOCABULARY.label(i) for i in range(4)] == ["armchair [1]", "chair [2]", "chair [3]", "4"]
    assert VOCABULARY.gloss(0) == "soft"
    assert VOCABULARY.gloss(3) is None


def test_things_are_found_by_id_and_by_name():
    assert VOCABULARY.find("3") == 2
    assert VOCABULARY.find("armchair") == 0
    with pytest.raises(UnknownNameError, match=r"'chair' is ambiguous: 2 ids share it \(2, 3\)"):
        VOCABULARY.find("chair")
    with pytest.raises(UnknownNameError, match=r"unknown entity 'amrchair'. Closest: armchair \[1\]"):
        VOCABULARY.find("amrchair")
    with pytest.raises(UnknownNameError, match=r"unknown entity ''\. Choose from armchair \[1\], .*, 4\.$"):
        VOCABULARY.find("")
    for count in (0, 21):  # nothing to choose from, and too much
        with pytest.raises(UnknownNameError, match=r"unknown relation '\?'\.$"):
            Vocabulary("relation", [f"r{i}" for i in range(count)]).find("?")


@given(st.lists(st.tuples(st.text(max_size=5), st.none() | st.text(max_size=5)), unique_by=lambda row: row[0]))
def test_a_table_holds_all_of_it_and_every_id_is_found(rows):
    vocabulary = Vocabulary("entity", [id for id, _ in rows], [name for _, name in rows])
    assert Vocabulary.from_table("entity", vocabulary.table()) == vocabulary
    assert [vocabulary.find(id) for id, _ in rows] == list(range(len(rows)))


def test_a_digest_tells_ids_and_their_order_apart_however_they_are_stored(monkeypatch):
    import pyarrow as pa

    lists = [[], ["a"], ["a", "b"], ["b", "a"], ["ab", ""], ["", "ab"], ["a", "b", "c"], ["\u6728", "b"]]
    assert len({Vocabulary("entity", ids).digest() for ids in lists}) == len(lists)
    whole = pa.array(["x", "\u6728", "b", "", "cd"], pa.large_string())
    for part in (whole.slice(1, 3), pa.chunked_array([["\u6728"], ["b", ""]], pa.large_string())):
        for at_once in (2**20, 2):
            monkeypatch.setattr("murp.graph.names.vocabulary.HASHED", at_once)
            assert Vocabulary("entity", part).digest() == Vocabulary("entity", ["\u6728", "b", ""]).digest()
