"""The score: against its definition, against itself, and without a batch × entities × dimension tensor."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from murp import models
from murp.models import BIASES, MODELS, TRANSFORMATIONS, MultiRelational

VARIANTS = list(itertools.product(MODELS, TRANSFORMATIONS, BIASES))


def scattered(name: str, transformation: str = "published", bias: str = "both", dim: int = 6) -> MultiRelational:
    """A model far from its initial values: points spread over the space, biases of any sign."""
    model = MODELS[name](30, 8, dim, transformation=transformation, bias=bias, dtype=torch.float64)
    model.initialise(0)
    draw = torch.Generator().manual_seed(1)
    for table in model.tables:
        values = torch.randn(model.parameters[table.name].shape, dtype=torch.float64, generator=draw)
        if table.shape and table.geometry.name == "poincare":
            values = table.geometry.exp0(0.6 * values)
        model.parameters[table.name] = values
    return model


def queries(n: int = 40) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(2)
    s, r, o = (torch.randint(high, (n,), generator=draw) for high in (30, 8, 30))
    o[:5] = s[:5]  # a subject may be its own object
    return s, r, o


@pytest.mark.parametrize(("name", "transformation", "bias"), VARIANTS)
def test_scores_of_triples_are_the_definition(name: str, transformation: str, bias: str) -> None:
    """φ = -d(e_s^(r), e_o^(r))² + biases, composed from the points themselves."""
    model = scattered(name, transformation, bias)
    s, r, o = queries()
    entity, relation = model.parameters["entity"], model.rows("relation", r)
    subject, object_ = model.move_subject(entity[s], relation), model.move_object(entity[o], relation)
    expected = -model.geometry.squared_distance(subject, object_)
    if bias in ("both", "head"):
        expected = expected + model.parameters["subject_bias"][s]
    if bias in ("both", "tail"):
        expected = expected + model.parameters["object_bias"][o]
    if bias == "norm":
        expected = expected + entity[s].square().sum(-1) + entity[o].square().sum(-1)
    if bias == "transformed-norm":
        expected = expected + subject.square().sum(-1) + object_.square().sum(-1)
    torch.testing.assert_close(model.score(s, r, o), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "transformation", "bias"), VARIANTS)
def test_scores_against_all_entities_agree_with_triples(name: str, transformation: str, bias: str) -> None:
    model = scattered(name, transformation, bias)
    s, r, o = queries()
    every = model.score_objects(s, r)
    assert every.shape == (len(s), 30)
    torch.testing.assert_close(every[torch.arange(len(s)), o], model.score(s, r, o), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("transformation", "sides"),
    [
        ("published", "Rs  o+r"),
        ("translation-only", "s  o+r"),
        ("stretch-only", "Rs  o"),
        ("stretch-both", "Rs  Ro+r"),
        ("swapped", "s+r  Ro"),
    ],
)
def test_each_transformation_moves_the_sides_its_row_of_the_paper_names(transformation: str, sides: str) -> None:
    """Table 2 read literally, in Euclidean space where it is plain arithmetic."""
    model = scattered("mure", transformation)
    x = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    row = model.rows("relation", torch.tensor([1, 2, 3, 4]))
    for side, moved, stretch in zip(
        sides.split(),
        (model.move_subject(x, row), model.move_object(x, row)),
        ("subject", "object"),
        strict=True,
    ):
        expected = x * row[f"{stretch}_stretch"] if "R" in side else x
        expected = expected + row["translation"] if "+r" in side else expected
        # To the bit: one multiplication and one addition, each rounded as IEEE 754 has it; PyTorch does not fuse calls.
        torch.testing.assert_close(moved, expected, rtol=0, atol=0)


def test_murp_is_equation_5_in_arbitrary_precision() -> None:
    """The paper's formula as printed, in 50 digits, for a few triples."""
    model = scattered("murp", dim=3)
    s, r, o = (t[:8] for t in queries())
    scores = model.score(s, r, o)
    mpmath.mp.dps = 50

    def vector(values: torch.Tensor) -> Any:
        return [mpmath.mpf(v) for v in values.tolist()]

    def dot(x: Any, y: Any) -> Any:
        return mpmath.fsum(a * b for a, b in zip(x, y, strict=True))

    def add(x: Any, y: Any) -> Any:
        xx, yy, xy = dot(x, x), dot(y, y), dot(x, y)
        below = 1 + 2 * xy + xx * yy
        return [((1 + 2 * xy + yy) * a + (1 - xx) * b) / below for a, b in zip(x, y, strict=True)]

    for i in range(len(s)):
        h_s, h_o = vector(model.parameters["entity"][s[i]]), vector(model.parameters["entity"][o[i]])
        stretch = vector(model.parameters["subject_stretch"][r[i]])
        translation = vector(model.parameters["translation"][r[i]])
        norm = mpmath.sqrt(dot(h_s, h_s))
        tangent = [m * mpmath.atanh(norm) / norm * x for m, x in zip(stretch, h_s, strict=True)]
        length = mpmath.sqrt(dot(tangent, tangent))
        moved = [mpmath.tanh(length) / length * x for x in tangent]
        between = add([-x for x in moved], add(h_o, translation))
        distance = 2 * mpmath.atanh(mpmath.sqrt(dot(between, between)))
        biases = model.parameters["subject_bias"][s[i]] + model.parameters["object_bias"][o[i]]
        expected = float(-(distance**2) + mpmath.mpf(float(biases)))
        assert scores[i].item() == pytest.approx(expected, rel=1e-10)


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest tensor any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.elements = max(self.elements, result.numel())
        return result


@pytest.mark.parametrize(("name", "transformation", "bias"), VARIANTS)
def test_scoring_all_entities_never_makes_a_batch_by_entities_by_dimension_tensor(
    name: str, transformation: str, bias: str
) -> None:
    batch, entities, dim = 50, 300, 40
    model = MODELS[name](entities, 4, dim, transformation=transformation, bias=bias).initialise(0)
    with LargestTensor() as largest:
        model.score_objects(torch.arange(batch), torch.zeros(batch, dtype=torch.int64))
    assert largest.elements <= batch * entities


@pytest.mark.parametrize(("name", "transformation", "bias"), VARIANTS)
def test_gradients_are_finite_at_the_initial_values_and_at_zero(name: str, transformation: str, bias: str) -> None:
    from murp.engines import Task
    from murp.engines.step import row_gradients
    from murp.negatives import Drawn

    model = MODELS[name](5, 2, 4, transformation=transformation, bias=bias).initialise(0)
    positives, false = torch.tensor([[0, 0, 0], [1, 1, 1], [2, 0, 3]]), torch.tensor([[1], [1], [2]])
    for _ in ("initial", "zero"):
        _, touched = row_gradients(Task(model), positives, Drawn(false))
        assert all(part.gradient.isfinite().all() for parts in touched.values() for part in parts)
        for values in model.parameters.values():
            values.zero_()


def test_initial_values_are_the_papers() -> None:
    """N(0, 10⁻³) for points and translations, uniform in (-1, 1) for stretches, 0 for biases.

    Within four standard errors: a mean of n numbers is off by σ/√n, their deviation by σ√((κ - 1)/4n), where the
    kurtosis κ is 3 of a normal and 9/5 of a uniform distribution.
    """
    model = models.murp(4000, 200, 40).initialise(0)
    for name in ("entity", "translation"):
        values = model.parameters[name]
        assert values.std().item() == pytest.approx(1e-3, rel=4 * (2 / 4 / values.numel()) ** 0.5)
        assert abs(values.mean().item()) < 4 * 1e-3 / values.numel() ** 0.5
    stretch = model.parameters["subject_stretch"]
    assert stretch.min() >= -1
    assert stretch.max() <= 1
    assert stretch.std().item() == pytest.approx(3**-0.5, rel=4 * (0.8 / 4 / stretch.numel()) ** 0.5)
    assert not model.parameters["subject_bias"].any()
    assert not model.parameters["object_bias"].any()
