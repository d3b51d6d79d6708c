"""Regularizers against plain loops in float64; who may use them; trained runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from murp import Config, registry
from murp.engines import Task, TorchEngine
from murp.engines.step import row_gradients
from murp.errors import ConfigError
from murp.models import Model, MuRE, MuRP
from murp.models.rotate import RotatE
from murp.negatives import Drawn
from murp.objectives import Labels, Objective
from murp.objectives.bernoulli import Bernoulli
from murp.objectives.k_vs_all import KVsAll
from murp.objectives.one_vs_all import OneVsAll
from murp.regularizers import Regularizer
from murp.regularizers.dura import DURA
from murp.regularizers.l2 import L2
from murp.regularizers.n3 import N3
from murp.regularizers.none import Nothing
from murp.regularizers.relation_prediction import RelationPrediction
from runs_of_parts import assert_resumes_bit_for_bit, assert_same_bits, losses, tables, train
from small_models import Moduli, Products, TwoVectors, WithRelationBias
from trees import tree

FACTS = [(0, 1, 4), (2, 0, 5), (2, 3, 1), (0, 1, 6)]


def model_of(kind: type[Model]) -> Model:
    return kind(8, 4, 4, dtype=torch.float64).initialise(3, 0.2)


def added(model: Model, regularizer: Regularizer, objective: Objective) -> tuple[Tensor, dict[str, Tensor]]:
    """What a regularizer adds to the loss of a step on FACTS, and to the gradient of each table."""
    values, gradients = [], []
    for one in (regularizer, Nothing()):
        drawn = labels = None
        positives = torch.tensor(FACTS)
        if objective.sampled:
            drawn = Drawn(torch.tensor([[1, 2, 3]] * 4))
        if objective.grouped:  # (0, 1, ?) has two answers; a pair of weight 0 fills up
            positives = torch.tensor([(0, 1, 0), (2, 0, 1), (2, 3, 2)])
            objects = torch.tensor([4, 6, 5, 1, 7])
            labels = Labels(torch.tensor([0, 0, 1, 2, 2]), objects, torch.tensor([1.0, 1, 1, 1, 0]))
        loss, touched = row_gradients(Task(model, objective, regularizer=one), positives, drawn, labels)
        values.append(loss)
        gradients.append({name: dense(model, name, parts) for name, parts in touched.items()})
    return values[0] - values[1], {name: gradients[0][name] - gradients[1][name] for name in gradients[0]}


def dense(model: Model, name: str, parts: Any) -> Tensor:
    whole = torch.zeros_like(model.parameters[name]).flatten(1) if model.parameters[name].dim() > 1 else None
    whole = torch.zeros(len(model.parameters[name]), 1, dtype=torch.float64) if whole is None else whole
    for part in parts:
        whole += part.gradient if part.whole else torch.zeros_like(whole).index_add_(0, part.where, part.gradient)
    return whole


def vectors(model: Model) -> list[list[float]]:
    """The entities' vectors: on the ball artanh(|x|) x / |x|."""
    points = model.parameters["entity"].tolist()
    if not isinstance(model, MuRP):
        return points
    lengths = [math.sqrt(sum(x * x for x in point)) for point in points]
    return [[math.atanh(n) * x / n for x in point] for n, point in zip(lengths, points, strict=True)]


def power_sum(values: list[float], power: int) -> float:
    return sum(abs(x) ** power for x in values)


def relation_values(model: Model, r: int) -> list[float]:
    """Of its vectors: a bias counts for nothing."""
    tables = [table.name for table in model.tables if table.of == "relation" and table.shape]
    return [x for name in tables for x in model.parameters[name][r].tolist()]


OBJECTIVES = [Bernoulli(), OneVsAll(), KVsAll()]


@pytest.mark.parametrize("relations", [False, True])
@pytest.mark.parametrize(("kind", "power"), [(L2, 2), (N3, 3)])
@pytest.mark.parametrize("build", [MuRE, MuRP, WithRelationBias])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: type(one).__name__)
def test_l2_and_n3_are_sums_of_powers(
    objective: Objective, build: type[Model], kind: type[Regularizer], power: int, relations: bool
) -> None:
    model = model_of(build)
    points = vectors(model)
    total = 0.0
    for s, r, o in FACTS:
        total += power_sum(points[s], power) + power_sum(points[o], power)
        total += power_sum(relation_values(model, r), power) if relations else 0.0
    regularizer = kind(regularizer_weight=0.3, regularize_relations=relations)
    found, _ = added(model, regularizer, objective)
    assert float(found) == pytest.approx(0.3 * total / len(FACTS), rel=1e-9)


@pytest.mark.parametrize("name", [name for name in registry.REGULARIZERS if name != "none"])
def test_a_weight_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"regularizer_weight must be above 0, not 0\.0"):
        Config(regularizer=name, regularizer_weight=0.0)


def test_the_defaults_of_weights_and_whether_relations_count() -> None:
    assert (L2().regularize_relations, N3().regularize_relations) == (False, True)
    assert (L2().regularizer_weight, RelationPrediction().regularizer_weight) == (0.01, 1.0)


def test_n3_takes_the_moduli_of_complex_numbers() -> None:
    model = model_of(Moduli)
    entity, factor = model.parameters["entity"].tolist(), model.parameters["factor"].tolist()
    total = 0.0
    for s, r, o in FACTS:
        for row in (entity[s], factor[r], entity[o]):
            total += sum(abs(complex(row[j], row[j + 2])) ** 3 for j in range(2))
    found, _ = added(model, N3(regularizer_weight=2.0), OneVsAll())
    assert float(found) == pytest.approx(2 * total / len(FACTS), rel=1e-9)


def test_n3_takes_no_angles_for_factors() -> None:
    """RotatE's relations are angles: the numbers that they stand for have modulus 1."""
    model = model_of(RotatE)
    entity = model.parameters["entity"].tolist()
    total = sum(abs(complex(entity[x][j], entity[x][j + 2])) ** 3 for s, _, o in FACTS for x in (s, o) for j in (0, 1))
    found, gradients = added(model, N3(regularizer_weight=2.0), Bernoulli())
    assert float(found) == pytest.approx(2 * total / len(FACTS), rel=1e-9)
    assert not gradients["phase"].any()


@pytest.mark.parametrize("kind", [L2, N3])
def test_a_model_without_one_table_for_both_is_told_what_to_define(kind: type[Regularizer]) -> None:
    with pytest.raises(
        ConfigError, match=r"TwoVectors reads it as one of them only\. Use regularizer none, or .*factors"
    ):
        added(model_of(TwoVectors), kind(), Bernoulli())


@pytest.mark.parametrize("rho", [1.0, 2.0])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: type(one).__name__)
def test_dura_keeps_both_vectors_of_both_products_short(objective: Objective, rho: float) -> None:
    model = model_of(Products)
    entity, factor = model.parameters["entity"].tolist(), model.parameters["factor"].tolist()
    total = 0.0
    for s, r, o in FACTS:
        for x in (s, o):
            total += sum(rho * e * e + (e * f) ** 2 / rho for e, f in zip(entity[x], factor[r], strict=True))
    found, _ = added(model, DURA(regularizer_weight=0.1, dura_balance=rho), objective)
    assert float(found) == pytest.approx(0.1 * total / len(FACTS), rel=1e-9)


@pytest.mark.parametrize("build", [MuRE, MuRP, Products])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: type(one).__name__)
def test_relation_prediction_is_cross_entropy_over_relations(objective: Objective, build: type[Model]) -> None:
    model = model_of(build)
    total = 0.0
    for s, r, o in FACTS:
        same = torch.ones(4, dtype=torch.long)
        scores = model.score(s * same, torch.arange(4), o * same).tolist()
        total += math.log(sum(map(math.exp, scores))) - scores[r]
    found, gradients = added(model, RelationPrediction(regularizer_weight=0.7), objective)
    assert float(found) == pytest.approx(0.7 * total / len(FACTS), rel=1e-8)
    relation = next(table.name for table in model.tables if table.of == "relation")
    assert bool(gradients[relation][2].any())  # no fact has relation 2, and it moves


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("regularizer", "build"),
    [(L2(regularize_relations=True), MuRP), (N3(), MuRP), (DURA(), Products), (RelationPrediction(), MuRP)],
    ids=["l2", "n3", "dura", "relation-prediction"],
)
def test_gradients_are_finite_differences(objective: Objective, regularizer: Regularizer, build: type[Model]) -> None:
    """Along one direction in all tables at once; central differences of step h are wrong by h²."""
    model = model_of(build)
    _, gradients = added(model, regularizer, objective)
    before = dict(model.parameters)
    draw = torch.Generator().manual_seed(0)
    along = {name: torch.randn(v.shape, dtype=v.dtype, generator=draw) for name, v in before.items()}
    ends = []
    for h in (1e-5, -1e-5):
        model.parameters = {name: values + h * along[name] for name, values in before.items()}
        ends.append(float(added(model, regularizer, objective)[0]))
    slope = sum(float((gradients[name] * along[name].view_as(gradients[name])).sum()) for name in before)
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-9)
    assert slope != 0


def test_a_strong_regularizer_shortens_what_a_batch_reads_and_nothing_else() -> None:
    model = model_of(MuRE)
    before = model.parameters["entity"].clone()
    task = Task(model, OneVsAll(), regularizer=L2(regularizer_weight=50.0))
    with_it = TorchEngine(task)
    with_it.step(torch.tensor(FACTS), None, 0.01)
    after = model.parameters["entity"]
    read = [0, 2, 4, 5, 1, 6]
    assert bool((after[read].norm(dim=1) < before[read].norm(dim=1)).all())
    torch.testing.assert_close(after[[3, 7]], before[[3, 7]], rtol=0, atol=0.01)


def test_the_weight_is_a_setting_of_regularizers_that_have_one() -> None:
    for name in registry.REGULARIZERS:
        config = Config(model="small_models:Products", regularizer=name)
        assert ("regularizer_weight" in config.to_dict()) == (name != "none")
    with pytest.raises(ConfigError, match=r"regularizer_weight is a setting of regularizer .*l2, .* and not of none"):
        Config(regularizer="none", regularizer_weight=0.1)


def test_what_a_model_cannot_do_is_refused_with_what_can() -> None:
    with pytest.raises(ConfigError, match=r"dura needs a model .* murp is not such a model\. Use one of .*l2, n3"):
        Config(model="murp", regularizer="dura")
    with pytest.raises(ConfigError, match=r"no meaning for small_models:Statistics.*Models that can: .*murp, mure"):
        Config(model="small_models:Statistics", regularizer="relation-prediction")


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_model_that_keeps_something_itself_says_so(name: str) -> None:
    model = registry.find("model", name)(5, 4, 12)
    assert model.keeps_statistics == any(not table.trained for table in model.tables)


# With what each is tried, where it is not the usual run.
WITH: dict[str, dict[str, Any]] = {
    "l2": {"model": "murp"},
    "n3": {"objective": "k-vs-all"},
    "dura": {"model": "small_models:Products", "objective": "one-vs-all"},
    "relation-prediction": {"regularizer_weight": 1.0, "lr": 0.2},
}
CHOSEN: list[dict[str, Any]] = [
    {"regularizer": name, "regularizer_weight": 0.1, **WITH.get(name, {})}
    for name in registry.REGULARIZERS
    if name != "none"
]


@pytest.mark.parametrize("chosen", CHOSEN, ids=lambda chosen: chosen["regularizer"])
def test_a_regularized_run_falls_and_resumes_bit_for_bit(chosen: dict[str, Any], tmp_path: Path) -> None:
    assert_resumes_bit_for_bit(tree(4), tmp_path, **chosen)
    first, *_, last = losses(tmp_path / "whole")
    assert last < first
    plain = {name: value for name, value in chosen.items() if "regularizer" not in name}
    without = train(tree(4), tmp_path / "without", **plain)
    with pytest.raises(AssertionError):  # the regularizer did something
        assert_same_bits(without, tables(tmp_path / "whole"))
