"""Every model of the registry: the battery, and its score against a judge in plain Python with the same weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import pytest
import torch
from judges import JUDGES
from scattered import scattered
from torch import Tensor
from torch.nn.functional import pad

from murp import recipes, registry
from murp.config import Config
from murp.engines.step import gather, loss_of, row_gradients
from murp.engines.task import Task
from murp.errors import ConfigError
from murp.geometry import Euclidean, PoincareBall, Product, Sphere
from murp.models import Model
from murp.models.model import Candidate, Query
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

# What changes numbers and no shape: the formula is enough.
OTHER_NUMBERS: list[tuple[str, dict[str, Any]]] = [
    ("stranse", {"norm": 2}),
    ("riemannian-transe", {"curvature": 0.5}),
    ("mixed-curvature", {"learn_curvature": "no", "curvature": 0.5, "spherical_dim": 4, "flat_dim": 1}),
    ("mixed-curvature", {"learn_curvature": "all"}),
]


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_model_passes_the_battery(name: str) -> None:
    check_model(name)


@pytest.mark.parametrize(("name", "settings"), VARIANTS[len(registry.MODELS) :])
def test_a_variant_passes_the_battery(name: str, settings: dict[str, Any]) -> None:
    check_model(name, **settings)


@pytest.mark.parametrize(("name", "settings"), [*VARIANTS, *OTHER_NUMBERS])
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


def row(model: Model, role: Any, place: torch.Tensor | None) -> dict[str, Any]:
    found = model.rows(role) if place is None else {k: v[0] for k, v in model.rows(role, place[None]).items()}
    return {name: digits(values.tolist()) for name, values in found.items()}


def digits(value: Any) -> Any:
    return [digits(one) for one in value] if isinstance(value, list) else mpmath.mpf(value)


@pytest.mark.parametrize("name", ["rotate", "stranse", "transe"])
@pytest.mark.parametrize("asked", [0, 1, 7])
def test_a_score_by_tiles_does_not_depend_on_their_size(
    name: str, asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of queries as of candidates: with room for one cell, for some of both, and for all of them."""
    model = scattered(name, {}, tmp_path)
    assert not model.products
    subject, relation = torch.arange(asked) % ENTITIES, torch.arange(asked) % RELATIONS
    rows = model.rows("subject", subject), model.rows("relation", relation)
    found = []
    for cells, together in ((1, 1), (6, 2), (ENTITIES * 7, 256)):
        monkeypatch.setattr("murp.models.model.TILE", cells * model.dim)
        monkeypatch.setattr("murp.models.model.TOGETHER", together)
        found.append(model.score_rows(*rows, model.rows("object")))
    assert found[0].shape == (asked, ENTITIES)
    for other in found[1:]:
        torch.testing.assert_close(found[0], other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["rotate", "stranse", "transe"])
def test_all_tiles_of_a_query_have_one_shape(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch may round in another way in a smaller tile, and equal entities would no longer tie."""
    model = scattered(name, {}, tmp_path)
    shapes: list[tuple[int, ...]] = []
    tile = type(model).tile

    def noted(self: Model, query: Query, candidate: Candidate) -> Tensor:
        found = tile(self, query, candidate)
        shapes.append(tuple(found.shape))
        return found

    monkeypatch.setattr(type(model), "tile", noted)
    few = next(n for n in range(2, ENTITIES) if ENTITIES % n)
    monkeypatch.setattr("murp.models.model.TILE", 3 * few * model.dim)
    monkeypatch.setattr("murp.models.model.TOGETHER", few)
    rows = model.rows("subject", torch.arange(4)), model.rows("relation", torch.arange(4) % RELATIONS)
    model.score_rows(*rows, model.rows("object"))
    assert shapes == [(3, few)] * -(-ENTITIES // few) + [(1, few)] * -(-ENTITIES // few)


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


# A tiled score, batch normalisation, a ball of learned curvature. The battery shows of all that none looks at values.
COMPILED = ["transe", "conve", "atth"]


@pytest.mark.parametrize("name", COMPILED)
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


@pytest.mark.parametrize("name", ["complex", "rotate", "rote", "atte", "roth", "roth-stretch", "murp-rotation"])
def test_an_odd_dimension_is_refused_where_numbers_are_paired(name: str) -> None:
    with pytest.raises(ConfigError, match=r"dim must be even, not 7\. Choose 6 or 8"):
        registry.find("model", name)(10, 4, 7)
    with pytest.raises(ConfigError, match="dim must be even"):
        Config(model=name, dim=7)


def test_a_dimension_that_makes_no_picture_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"dim = 7 numbers, and 1 by 7 is too small"):
        Config(model="conve", dim=7)


def test_a_dimension_that_cannot_be_cut_in_three_is_refused() -> None:
    for settings in ({"dim": 2}, {"dim": 8, "spherical_dim": 4, "flat_dim": 4}):
        with pytest.raises(ConfigError, match=r"each needs 1 or more\. Choose a larger --dim"):
            Config(model="mixed-curvature", **settings)


def test_stranse_begins_as_transe() -> None:
    """The same seed draws entities and translations first; the matrices are 1."""
    one, other = (registry.find("model", name)(20, 4, 8).initialise(3) for name in ("stranse", "transe"))
    asked = torch.arange(20), torch.arange(20) % 4
    torch.testing.assert_close(one.score_objects(*asked), other.score_objects(*asked))


def test_a_mixed_distance_is_that_of_the_product_space() -> None:
    """Without a translation: exp at the origin of geometry's own product, and its distance."""
    model = registry.find("model", "mixed-curvature")(
        30, 4, 8, dtype=torch.float64, learn_curvature="no", curvature=0.7
    )
    model.initialise(0, 0.8)
    model.parameters["translation"].zero_()
    ball, round_, flat = model.parts(model.parameters["entity"])
    space = Product(
        ((PoincareBall(0.7), ball.shape[1]), (Sphere(0.7), round_.shape[1] + 1), (Euclidean(), flat.shape[1]))
    )
    on_sphere = Sphere(0.7).exp(Sphere(0.7).origin(round_.shape[1] + 1, torch.float64), pad(round_, (1, 0)))
    points = torch.cat([PoincareBall(0.7).exp0(ball), on_sphere, flat], -1)
    expected = -space.squared_distance(points[:, None], points)
    found = model.score_objects(torch.arange(30), torch.zeros(30, dtype=torch.int64))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


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
