from __future__ import annotations

from collections import Counter

import graphs
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from murp.graph.splitting import split

facts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 9)), max_size=60)
seeds = st.integers(0, 2**32)


def mentions(rows):
    return {("e", h) for h, _, _ in rows} | {("r", r) for _, r, _ in rows} | {("e", t) for _, _, t in rows}


@given(facts, seeds, st.sampled_from([0.05, 0.3]))
def test_every_row_goes_to_one_split_and_train_covers_the_rest(rows, seed, share):
    train, valid, test = (
        [tuple(row) for row in part.tolist()] for part in split(graphs.coded(rows), seed=seed, valid=share, test=share)
    )
    assert Counter(train + valid + test) == Counter(rows)
    assert not set(train) & set(valid)
    assert not set(train) & set(test)
    assert not set(valid) & set(test)
    assert mentions(train) == mentions(rows)
    wanted = max(1, round(share * len(set(rows))))
    assert len(set(valid)) <= wanted
    assert len(set(test)) <= wanted
    if len(set(valid)) + len(set(test)) < 2 * wanted:  # then not one more could have been held out
        for fact in set(train):
            assert mentions(set(train) - {fact}) != mentions(rows)
    places = {id: [i for i, row in enumerate(rows) if row in set(part)] for id, part in enumerate((train, valid, test))}
    assert [rows[i] for i in places[0]] == train
    assert [rows[i] for i in places[1]] == valid
    assert [rows[i] for i in places[2]] == test


@given(facts, seeds)
def test_the_same_seed_gives_the_same_split(rows, seed):
    one, other = (split(graphs.coded(rows), seed=seed) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_shares_and_seeds_on_a_graph_with_room():
    random = np.random.default_rng(0)
    triples = random.integers(0, [50, 4, 50], size=(2000, 3)).astype(np.int32)
    distinct = len(np.unique(triples, axis=0))
    parts = split(triples, seed=1)
    assert [len(np.unique(part, axis=0)) for part in parts[1:]] == [round(0.05 * distinct)] * 2
    assert not np.array_equal(parts[1], split(triples, seed=2)[1])


def test_a_tree_has_nothing_to_spare():
    train, valid, test = split(graphs.coded([(0, 0, i) for i in range(1, 9)]), seed=0)
    assert (len(train), len(valid), len(test)) == (8, 0, 0)
