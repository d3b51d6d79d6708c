"""Negatives of one part of the entities: which ones, how often, and how many rows ranks then need from each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_negatives import QUANTILE, chi_square

import murp
from murp import Config, KnowledgeGraph
from murp.distributed.plan import own_part
from murp.distributed.shares import Share
from murp.errors import ConfigError
from murp.negatives.local import Local


def drawn(entities: int, parts: int, batch: int, *, negatives: int, steps: int = 1) -> torch.Tensor:
    source = Local(negatives=negatives, entity_parts=parts)
    source.prepare(torch.zeros(0, 3), entities, 1)
    return source.draw(torch.zeros(steps, batch, 3), torch.Generator().manual_seed(3)).objects


def window(entities: int, parts: int, batch: int, place: int) -> range:
    """The entities of a triple, from its place in the batch: the parts of a batch are counted one by one."""
    (part,) = (p for p in range(parts) if batch * p // parts <= place < batch * (p + 1) // parts)
    first = entities * part // parts
    return range(first, first + -(-entities // parts))


@given(entities=st.integers(1, 60), parts=st.integers(1, 9), more=st.integers(0, 30))
def test_each_triple_draws_from_its_part_and_all_of_it(entities: int, parts: int, more: int) -> None:
    batch = parts + more
    found = drawn(entities, parts, batch, negatives=400)[0]
    expected = [set(window(entities, parts, batch, place)) for place in range(batch)]
    assert all(set(row.tolist()) <= own for row, own in zip(found, expected, strict=True))
    assert set().union(*expected) == set(range(entities))
    least = min(range(batch), key=lambda place: len(expected[place]))
    if len(expected[least]) <= 20:  # one is missing among 400 with a probability below 1e-7
        assert set(found[least].tolist()) == expected[least]


def test_where_parts_fit_every_entity_is_as_likely() -> None:
    assert chi_square(drawn(20, 5, 30, negatives=20, steps=100), list(range(20))) < QUANTILE


@given(length=st.integers(1, 9), ranks=st.integers(1, 4), times=st.integers(1, 3), slices=st.integers(1, 3))
def test_ranks_have_the_negatives_of_their_slices(length: int, ranks: int, times: int, slices: int) -> None:
    """If the parts are a multiple of the ranks, and divide batch and entities."""
    entities, parts = length * times * ranks, times * ranks
    batch = 5 * slices * ranks * times
    found = drawn(entities, parts, batch, negatives=30)[0]
    for rank in range(ranks):
        share = Share(entities, rank, ranks)
        own = found[own_part(batch, slices * ranks, rank, ranks)]
        assert bool(((own >= share.start) & (own < share.stop)).all())


@pytest.mark.parametrize(("entities", "parts", "batch"), [(41, 8, 128), (40, 8, 12), (41, 8, 15)])
def test_otherwise_the_probability_of_an_entity_is_that_of_its_parts(entities: int, parts: int, batch: int) -> None:
    """The sum over the triples in whose window it is, one by one."""
    found = torch.bincount(drawn(entities, parts, batch, negatives=500, steps=20).flatten(), minlength=entities)
    windows = [window(entities, parts, batch, place) for place in range(batch)]
    expected = torch.tensor([sum(e in own for own in windows) for e in range(entities)]) * 500 * 20 / len(windows[0])
    assert float(((found - expected) ** 2 / expected.clamp(min=1)).sum()) < 2 * QUANTILE + 2 * entities
    assert bool((found[expected == 0] == 0).all())


def test_more_parts_than_triples_are_refused(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    assert Config(corruption="local", entity_parts=20, batch_size=20).entity_parts == 20
    with pytest.raises(ConfigError, match=r"a batch of 20 triples cannot be cut into 21 parts.*smaller entity_parts"):
        Config(corruption="local", entity_parts=21, batch_size=20)
    train_facts = 2 * len(small_tree.train)
    with pytest.raises(ConfigError, match=f"batches of {train_facts} triples, which cannot be cut into 200 parts"):
        murp.train(small_tree, out=tmp_path / "no", corruption="local", entity_parts=200, batch_size=500)
    assert not (tmp_path / "no").exists()
