"""The best objects of many queries against sorting all scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from examples import at_most
from murp.errors import ConfigError, NotFiniteError
from murp.evaluation.ranks import BYTES_PER_CELL
from murp.graph import KnownFacts
from murp.models import MODELS, MultiRelational
from murp.prediction import search, top_objects

RELATIONS = 3


def drawn_model(name: str, entities: int, seed: int, **parts: Any) -> MultiRelational:
    """Points and biases anywhere; entities two by two the same, so that there are ties."""
    model = MODELS[name](entities, 2 * RELATIONS, 4, dtype=torch.float64, **parts)
    draw = torch.Generator().manual_seed(seed)
    for table in model.tables:
        values = torch.randn(model.rows_of(table), *table.shape, dtype=torch.float64, generator=draw)
        model.parameters[table.name] = table.geometry.exp0(0.5 * values)
        if table.of == "entity" and entities > 1:
            model.parameters[table.name][1::2] = model.parameters[table.name][: entities - 1 : 2]
    return model


def drawn_facts(entities: int, seed: int, number: int = 60) -> np.ndarray[Any, np.dtype[np.int32]]:
    draw = np.random.default_rng(seed)
    columns = [draw.integers(0, high, number) for high in (entities, 2 * RELATIONS, entities)]
    return np.stack(columns, axis=1).astype(np.int32)


parts = st.sampled_from([{}, {"transformation": "stretch-only"}, {"bias": "norm"}])


@settings(max_examples=at_most(40))
@given(
    name=st.sampled_from(list(MODELS)),
    parts=parts,
    entities=st.sampled_from([1, 2, 9, 257, 300]),
    k=st.sampled_from([1, 3, 10, 128, 129, 400]),
    known=st.booleans(),
    without_subject=st.booleans(),
    one_at_a_time=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_best_are_the_best_of_all_scores(
    name: str,
    parts: dict[str, Any],
    entities: int,
    k: int,
    known: bool,
    without_subject: bool,
    one_at_a_time: bool,
    seed: int,
) -> None:
    model = drawn_model(name, entities, seed, **parts)
    facts = drawn_facts(entities, seed)
    without = KnownFacts(facts, RELATIONS) if known else None
    draw = np.random.default_rng(seed)
    subjects, relations = draw.integers(0, entities, 12), draw.integers(0, 2 * RELATIONS, 12)
    memory = entities * BYTES_PER_CELL if one_at_a_time else None
    apart = without_subject & (relations > 0)
    best = top_objects(model, subjects, relations, k, without=without, without_subject=apart, memory=memory)
    assert best.entities.shape == best.scores.shape == (12, min(k, entities))
    scores = model.score_objects(torch.from_numpy(subjects), torch.from_numpy(relations)).numpy()
    stated = {tuple(fact) for fact in facts.tolist()} if known else set()
    for i, (s, r) in enumerate(zip(subjects.tolist(), relations.tolist(), strict=True)):
        allowed = [o for o in range(entities) if (s, r, o) not in stated and not (apart[i] and o == s)]
        expected = sorted((scores[i, o] for o in allowed), reverse=True)[:k]
        found = best.entities[i][best.entities[i] >= 0]
        assert set(found) <= set(allowed)
        assert len(set(found)) == len(found) == len(expected)
        np.testing.assert_allclose(best.scores[i, : len(found)], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(scores[i, found], expected, rtol=1e-9, atol=1e-9)
        assert (best.scores[i, len(found) :] == -math.inf).all()


def test_equal_scores_stand_in_the_order_of_the_entities() -> None:
    model = drawn_model("murp", 300, 0)
    best = top_objects(model, np.arange(40), np.zeros(40, np.int64), 6)
    # Equal entities have equal scores to the bit: see tests/kernels.
    assert (best.entities[:, ::2] + 1 == best.entities[:, 1::2]).all()


@pytest.mark.parametrize("parts", [{}, {"bias": "tail"}])
def test_nan_is_an_error_that_names_the_query(parts: dict[str, Any]) -> None:
    model = drawn_model("murp", 300, 0, **parts)
    model.parameters["translation"][4] = math.nan
    asked = np.array([7, 8, 9]), np.array([0, 4, 1])
    with pytest.raises(NotFiniteError, match=r"entity 8, relation 4\)"):
        top_objects(model, *asked, 5)
    with pytest.raises(ConfigError, match="k must be at least 1"):
        top_objects(model, *asked, 0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("entity", [0, 299])
def test_one_nan_among_all_scores_is_an_error(name: str, entity: int) -> None:
    model = drawn_model(name, 300, 0)
    model.parameters["object_bias"][entity] = math.nan
    with pytest.raises(NotFiniteError, match=r"entity 7, relation 0\)"):
        top_objects(model, np.array([7]), np.array([0]), 5)


@given(
    values=arrays(np.float32, (3, 40), elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0])), k=st.integers(0, 40)
)
def test_of_equal_scores_the_first_are_kept(values: NDArray[np.float32], k: int) -> None:
    found, places = search.largest(torch.from_numpy(values), k)
    expected = np.argsort(-values, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(values, expected, 1))
    there = found.numpy() > -np.inf
    np.testing.assert_array_equal(places.numpy()[there], expected[there])
