"""Every model of the registry: the battery, and its score against a judge in plain Python with the same weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import pytest
import torch
from judges import JUDGES

from murp import recipes, registry
from murp.config import Config
from murp.engines.step import gather, loss_of, row_gradients
from murp.engines.task import Task
from murp.errors import ConfigError
from murp.models import Model
from murp.negatives import Drawn
from murp.testing import ENTITIES, RELATIONS, Subject, check_model, tree
from murp.training import train
from murp.training.progress import Silent

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in registry.MODELS),
    ("transe", {"norm": 2}),
    ("tucker", {"relation_dim": 5}),
    ("roth", {"learn_curvature": "all"}),
    ("roth", {"learn_curvature": "no", "curvature": 0.5}),
]


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_model_passes_the_battery(name: str) -> None:
    check_model(name)


@pytest.mark.parametrize(("name", "settings"), VARIANTS[len(registry.MODELS) :])
def test_a_variant_passes_the_battery(name: str, settings: dict[str, Any]) -> None:
    check_model(name, **settings)


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_the_score_is_the_formula_of_its_paper(name: str, settings: dict[str, Any], tmp_path: Any) -> None:
    model = scattered(name, settings, tmp_path)
    draw = torch.Generator().manual_seed(5)
    s, r, o = (torch.randint(high, (6,), generator=draw) for high in (ENTITIES, RELATIONS, ENTITIES))
    scores = model.score(s, r, o)
    with mpmath.workdps(30):
        for i in range(len(s)):
            rows = [row(model, role, places[i]) for role, places in (("subject", s), ("relation", r), ("object", o))]
            expected = float(JUDGES[name](*rows, row(model, "shared", None), model))
            assert scores[i].item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def scattered(name: str, settings: dict[str, Any], folder: Any) -> Model:
    """Far from the initial values, running means and variances too."""
    model = Subject(name, settings, folder).scattered()
    draw = torch.Generator().manual_seed(6)
    for table in model.tables:
        if not table.trained:
            values = model.parameters[table.name]
            values.add_(torch.rand(values.shape, dtype=values.dtype, generator=draw))
    return model


def row(model: Model, role: Any, place: torch.Tensor | None) -> dict[str, Any]:
    found = model.rows(role) if place is None else {k: v[0] for k, v in model.rows(role, place[None]).items()}
    return {name: digits(values.tolist()) for name, values in found.items()}


def digits(value: Any) -> Any:
    return [digits(one) for one in value] if isinstance(value, list) else mpmath.mpf(value)


def test_every_model_has_a_judge() -> None:
    assert set(JUDGES) == set(registry.MODELS)


@pytest.mark.parametrize("name", registry.MODELS)
def test_what_suits_a_model_names_settings_that_exist(name: str) -> None:
    usual = registry.find("model", name).usual
    config = Config(**recipes.completed({"model": name}))
    assert {key: getattr(config, key) for key in usual} == dict(usual)


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_model_trains_with_what_suits_it(name: str, tmp_path: Path) -> None:
    settings = {"model": name, "dim": 8, "epochs": 2, "validate_every": 1, "device": "cpu", "engine": "torch"}
    run = train(tree(3), out=tmp_path / "run", progress=Silent(), **settings)
    losses = [record["loss"] for record in run.metrics()]
    assert len(losses) == 2
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[0] != losses[1]


@pytest.mark.parametrize("name", ["transe", "tucker", "conve", "roth", "atth", "murp-matrix", "hybonet"])
def test_a_step_is_one_compiled_graph_with_the_same_gradients(name: str, tmp_path: Path) -> None:
    """No break in the graph, and what batch normalisation keeps moves in it too."""
    draw = torch.Generator().manual_seed(0)
    facts = torch.stack([torch.randint(high, (6,), generator=draw) for high in (ENTITIES, RELATIONS, ENTITIES)], 1)
    drawn = Drawn(torch.randint(ENTITIES, (6, 4), generator=draw))
    found = []
    ways: list[tuple[Any, Any]] = [(loss_of, gather)]
    ways.append(tuple(torch.compile(part, backend="aot_eager", fullgraph=True, dynamic=False) for part in ways[0]))
    for loss, gathering in ways:
        model = Subject(name, {}, tmp_path).scattered()
        model.training = True
        with torch.random.fork_rng():
            torch.manual_seed(0)
            value, touched = row_gradients(Task(model), facts, drawn, None, loss, gathering)
        gradients = [part.gradient for parts in touched.values() for part in parts]
        found.append([value, *gradients, *model.parameters.values()])
    for plain, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, plain)


@pytest.mark.parametrize("name", ["complex", "rotate", "rote", "atte", "roth", "roth-stretch"])
def test_an_odd_dimension_is_refused_where_numbers_are_paired(name: str) -> None:
    with pytest.raises(ConfigError, match=r"dim must be even, not 7\. Choose 6 or 8"):
        registry.find("model", name)(10, 4, 7)
    with pytest.raises(ConfigError, match="dim must be even"):
        Config(model=name, dim=7)


def test_a_dimension_that_makes_no_picture_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"dim = 7 numbers, and 1 by 7 is too small"):
        Config(model="conve", dim=7)


def test_the_curvature_begins_where_the_setting_says_and_follows_its_parameter() -> None:
    for learned in ("no", "all", "relation"):
        model = registry.find("model", "roth")(10, 4, 8, curvature=0.7, learn_curvature=learned).initialise(0)
        relation = model.rows("relation", torch.arange(4))
        torch.testing.assert_close(model.curvatures(relation, model.rows("shared")), torch.full((4,), 0.7))
        assert ("curvature" in model.parameters) == (learned != "no")
    relation["curvature"] = torch.tensor([-40.0, -1.0, 0.0, 3.0])
    found = model.curvatures(relation, {})
    assert (found > 0).all()
    assert found[1] < found[2] < found[3]


def test_the_running_mean_moves_in_training_alone_and_a_batch_of_one_leaves_it() -> None:
    model = registry.find("model", "tucker")(10, 4, 8).initialise(0)
    before = model.parameters["subject_norm_mean"].clone()

    def ask(count: int) -> torch.Tensor:
        where = torch.arange(count)
        query = model.query(model.rows("subject", where), model.rows("relation", where), model.rows("shared"))
        return query.vectors[0]

    ask(4)
    assert torch.equal(model.parameters["subject_norm_mean"], before)
    model.training = True
    assert ask(1).isfinite().all()
    assert torch.equal(model.parameters["subject_norm_mean"], before)
    ask(4)
    mean = model.parameters["entity"][:4].mean(0)
    torch.testing.assert_close(model.parameters["subject_norm_mean"][0], 0.1 * mean)
