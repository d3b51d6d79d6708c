"""Dropout on queries and entities: in training alone, without bias, within the space, repeatable."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from murp import Config, engines, registry
from murp.engines import Chunk, Task
from murp.errors import ConfigError
from murp.geometry import Geometry, Hyperboloid, PoincareBall, Product, Sphere
from murp.models import Model, MuRE, MuRP, Table
from runs_of_parts import assert_resumes_bit_for_bit, assert_same_bits, train
from small_models import Products
from trees import tree


def model_of(build: type[Model], **settings: Any) -> Model:
    return build(30, 4, 6, dtype=torch.float64, **settings).initialise(0, 0.2)


@pytest.mark.parametrize("build", [MuRE, MuRP, Products])
def test_coordinates_are_dropped_in_training_alone(build: type[Model]) -> None:
    model = model_of(build, query_dropout=0.25, entity_dropout=0.25)
    rows = model.rows("object")
    assert model.read(rows) is rows
    point = rows["entity"]
    assert model.dropped(point) is point
    model.training = True
    torch.manual_seed(0)
    many = {**rows, "entity": point.repeat(400, 1)}
    for found in (model.read(many)["entity"], model.dropped(many["entity"])):
        assert bool(model.geometry.contains(found).all())
        gone = found == 0
        assert float(gone.double().mean()) == pytest.approx(0.25, abs=0.01)
        vectors, kept = model.vector({"entity": found}), model.vector(many)
        torch.testing.assert_close(vectors[~gone], kept[~gone] / 0.75, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("space", [Hyperboloid(), Sphere(), Product(((Hyperboloid(), 4), (PoincareBall(), 3)))])
def test_in_a_curved_space_a_point_stays_a_point(space: Geometry) -> None:
    """Coordinates of log₀(x) are dropped, in a space that has no coordinates of its own to set to 0."""

    class InSpace(Products):
        def declare(self) -> tuple[Table, ...]:
            entity, *others = super().declare()
            return (dataclasses.replace(entity, geometry=space), *others)

    model = InSpace(30, 4, 7, dtype=torch.float64, entity_dropout=0.25).initialise(0, 0.2)
    model.training = True
    torch.manual_seed(0)
    many = {**model.rows("object"), "entity": model.rows("object")["entity"].repeat(400, 1)}
    found = model.read(many)
    assert bool(space.contains(found["entity"]).all())
    vectors, kept = model.vector(found), model.vector(many)
    free = kept != 0  # in the direction of the origin a tangent vector has 0
    gone = free & (vectors.abs() < 1e-12)
    assert float(gone.double().sum() / free.double().sum()) == pytest.approx(0.25, abs=0.01)
    torch.testing.assert_close(vectors[~gone], kept[~gone] / 0.75, rtol=1e-6, atol=1e-9)


def test_the_numbers_of_a_query_are_those_of_the_dropped_vector() -> None:
    """|x|² and ⟨x,r⟩ of another vector would make distances of no two points, below 0 even."""
    model = model_of(MuRP, query_dropout=0.5)
    model.training = True
    everyone = torch.arange(30)
    torch.manual_seed(0)
    query = model.query(model.rows("subject", everyone), model.rows("relation", everyone % 4), {})
    x, r = query.vectors
    assert bool((x == 0).any())
    torch.testing.assert_close(query.numbers["xx"], x.square().sum(1))
    torch.testing.assert_close(query.numbers["xr"], (x * r).sum(1))


def test_other_rows_than_points_are_whole() -> None:
    model = model_of(MuRE, entity_dropout=0.5)
    model.training = True
    rows = model.rows("object")
    assert model.read(rows)["object_bias"] is rows["object_bias"]


@pytest.mark.parametrize("setting", ["query_dropout", "entity_dropout"])
def test_the_fused_engines_leave_dropout_to_torch(setting: str) -> None:
    model = model_of(MuRE, **{setting: 0.1})
    assert model.uses_chance
    assert not model_of(MuRE).uses_chance
    assert engines.build("auto", [Task(model)]).name == "torch"
    with pytest.raises(ConfigError, match="Engine torch can"):
        engines.build("numba", [Task(model)])


@pytest.mark.parametrize("name", registry.MODELS)
def test_every_model_drops_of_its_query_or_refuses_to(name: str) -> None:
    build = registry.find("model", name)
    if not build.drops_queries:
        with pytest.raises(ConfigError, match="has no dropout on its query"):
            Config(model=name, query_dropout=0.5)
        return
    others = {setting: 0.0 for setting in build.settings if "dropout" in setting}
    model = build(30, 4, 12, **{**others, "query_dropout": 0.5}).initialise(0, 0.2)
    model.training = True
    everyone = torch.arange(30)
    rows = model.rows("subject", everyone), model.rows("relation", everyone % 4), model.rows("shared")
    torch.manual_seed(0)
    first, second = (model.query(*rows).vectors[0] for _ in range(2))
    assert not torch.equal(first, second)


def test_a_model_without_dropout_on_its_query_says_which_have_it() -> None:
    with pytest.raises(ConfigError, match=r"small_models:Blocks has no dropout on its query.*murp, mure"):
        Config(model="small_models:Blocks", query_dropout=0.1)
    assert Config(model="small_models:Blocks", entity_dropout=0.1).entity_dropout == 0.1
    with pytest.raises(ConfigError, match="must be below 1"):
        Config(query_dropout=1.0)


CHOSEN: list[dict[str, Any]] = [
    {"query_dropout": 0.3, "model": "murp"},
    {"entity_dropout": 0.3, "model": "murp", "objective": "k-vs-all"},
    {"query_dropout": 0.3, "entity_dropout": 0.2, "corruption": "both-sides"},
]


@pytest.mark.parametrize("chosen", CHOSEN, ids=lambda chosen: " ".join(map(str, chosen.values())))
def test_runs_with_dropout_resume_bit_for_bit(chosen: dict[str, Any], tmp_path: Path) -> None:
    """Whatever drew random numbers before, and leaving PyTorch's own generator as it was."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert_resumes_bit_for_bit(tree(4), tmp_path, **chosen)
    assert torch.equal(torch.get_rng_state(), before)
    plain = {name: value for name, value in chosen.items() if "dropout" not in name}
    with pytest.raises(AssertionError):  # dropout did something
        assert_same_bits(
            train(tree(4), tmp_path / "a", **plain, epochs=1), train(tree(4), tmp_path / "b", **chosen, epochs=1)
        )


def test_a_model_is_out_of_training_after_a_step() -> None:
    model = model_of(MuRE, query_dropout=0.5)
    chunk = Chunk(torch.tensor([[[0, 1, 2]]]), 30, 3, seed=1)
    engines.build("torch", [Task(model)]).run([chunk], [0.1])
    assert not model.training
