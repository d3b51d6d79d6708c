"""The fused gradients of a slice are those of autograd.

The Triton kernels run on the GPU where there is one, and through Triton's interpreter otherwise.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import at_most
from murp.config import Config
from murp.engines import Task
from murp.engines.step import loss_of, row_gradients
from murp.engines.updates import whole_gradient
from murp.errors import ConfigError
from murp.geometry import Euclidean
from murp.models import BIASES, MODELS, TRANSFORMATIONS, MultiRelational, from_config
from murp.models.model import Rows
from murp.negatives import Drawn

pytest.importorskip("numba", reason="needs numba: pip install numba")
pytest.importorskip("triton", reason="needs triton: pip install triton")

from murp.engines.numba_engine import NumbaSlices
from murp.engines.slices import SliceGradients, fused_gradients, unknown
from murp.engines.triton_slices import TritonSlices

pytestmark = pytest.mark.triton
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WEIGHT = 0.3  # the slice's share of a batch
# Of the weights of all candidates, which sum to WEIGHT, or of a table's gradient if that is larger. A gradient may be
# much smaller than the terms that it is the sum of.
ENDS = {torch.float64: 1e-10, torch.float32: 2e-5}


def slice_of(entities: int, relations: int, size: int, negatives: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Positives (b, 3) and negatives (b, k), numbered as a slice numbers them: every row is named at least once."""
    draw = torch.Generator().manual_seed(seed)
    columns = [torch.randint(high, (size,), generator=draw) for high in (entities, relations, entities)]
    false = torch.randint(entities, (size, negatives), generator=draw)
    _, where = torch.unique(torch.cat([columns[0], columns[2], false.flatten()]), return_inverse=True)
    _, relation = torch.unique(columns[1], return_inverse=True)
    return torch.stack([where[:size], relation, where[size : 2 * size]], 1), where[2 * size :].view(false.shape)


def model_of(
    name: str, positives: torch.Tensor, negatives: torch.Tensor, dim: int, dtype: torch.dtype, seed: int, **parts: str
) -> MultiRelational:
    """With the rows of a slice, points at a distance of about 1 from the origin, and biases of any sign."""
    rows = 1 + max(int(positives[:, [0, 2]].max()), int(negatives.max()))
    model: Any = MODELS[name](rows, 1 + int(positives[:, 1].max()), dim, dtype=dtype, **parts)
    model.initialise(seed)
    draw = torch.Generator().manual_seed(seed)
    for table in model.tables:
        values = model.parameters[table.name]
        if not isinstance(table.geometry, Euclidean) or table.name in ("entity", "translation"):
            tangent = torch.randn(values.shape, dtype=dtype, generator=draw) / (2 * dim**0.5)
            model.parameters[table.name] = model.geometry.exp0(tangent)
        elif table.of == "entity":
            values.normal_(generator=draw)
    return model


def by_autograd(model: MultiRelational, positives: torch.Tensor, negatives: torch.Tensor) -> tuple[torch.Tensor, Rows]:
    """The definition: :mod:`murp.engines.step`."""

    def loss(task: Task, *given: Any) -> torch.Tensor:
        return loss_of(task, *given) * WEIGHT

    value, touched = row_gradients(Task(model), positives, Drawn(negatives), loss=loss)
    flat = {name: values.view(len(values), -1) for name, values in model.parameters.items()}
    return value, {name: whole_gradient(flat[name], parts) for name, parts in touched.items()}


def assert_agrees(
    fused: SliceGradients, model: MultiRelational, positives: torch.Tensor, negatives: torch.Tensor
) -> None:
    """Against autograd in float64 on the same rows; ``model`` is used up."""
    exact: Any = type(model)(
        model.num_entities, model.num_relations, model.dim, dtype=torch.float64, bias=model.bias,
        transformation=model.transformation,
    )  # fmt: skip
    exact.parameters = {name: values.double() for name, values in model.parameters.items()}
    expected, wanted = by_autograd(exact, positives, negatives)
    device = DEVICE if fused.name == "triton" else "cpu"
    value, found = fused(model.to(device), positives.to(device), negatives.to(device), WEIGHT)
    end = ENDS[model.dtype]
    assert value.dtype == model.dtype
    assert float(value) == pytest.approx(float(expected), rel=end)
    assert set(found) == set(wanted) == set(model.parameters)
    for name, gradient in wanted.items():
        assert found[name].dtype == model.dtype
        bound = end * max(float(gradient.abs().max()), WEIGHT)
        torch.testing.assert_close(
            found[name].cpu().double().view(gradient.shape), gradient, rtol=0, atol=bound, msg=name
        )


SHAPES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.sampled_from(["murp", "mure"]),
    "dtype": st.sampled_from([torch.float64, torch.float32]),
    "entities": st.integers(1, 12),  # few: rows occur often, and subjects are their own objects
    "relations": st.integers(1, 3),
    "dim": st.integers(1, 9),
    "size": st.integers(1, 6),
    "negatives": st.integers(1, 9),
    "seed": st.integers(0, 2**16),
}


@settings(max_examples=at_most(60))
@given(**SHAPES)
def test_numba_gradients_of_a_slice_are_those_of_autograd(
    name: str, dtype: torch.dtype, entities: int, relations: int, dim: int, size: int, negatives: int, seed: int
) -> None:
    cut = slice_of(entities, relations, size, negatives, seed)
    assert_agrees(NumbaSlices(), model_of(name, *cut, dim, dtype, seed), *cut)


# Only the norms of what was transformed depend on the transformation: the other biases are tried with one.
CHOICES = [(part, bias) for part in TRANSFORMATIONS for bias in ("both", "transformed-norm")]
CHOICES += [("published", bias) for bias in BIASES if ("published", bias) not in CHOICES]


@pytest.mark.parametrize("name", ["murp", "mure"])
@pytest.mark.parametrize(("transformation", "bias"), CHOICES)
def test_triton_gradients_of_a_slice_are_those_of_autograd(name: str, transformation: str, bias: str) -> None:
    """Of two to four triples over three entities: chains are long. Every third choice has one triple."""
    turn = list(TRANSFORMATIONS).index(transformation) + BIASES.index(bias)
    dtype = (torch.float64, torch.float32)[turn % 2]
    cut = slice_of(3, 2, (1, 2, 4)[turn % 3], (1, 2, 5)[turn % 3], turn)
    model = model_of(name, *cut, (1, 3, 40)[turn % 3], dtype, turn, transformation=transformation, bias=bias)
    assert_agrees(TritonSlices(), model, *cut)


@pytest.mark.parametrize("fused", [NumbaSlices, TritonSlices])
@pytest.mark.parametrize("name", ["murp", "mure"])
def test_what_one_slice_leaves_does_not_reach_the_next(fused: Any, name: str) -> None:
    """Of one shape, with fewer and with more rows: buffers are used again, and no row may keep its chain."""
    gradients = fused()
    for entities, seed in ((12, 0), (1, 1), (5, 2)):
        cut = slice_of(entities, 2, 2, 4, seed)
        assert_agrees(gradients, model_of(name, *cut, 3, torch.float64, seed), *cut)


def test_candidates_that_are_given_may_need_several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven candidates in tiles of two."""
    from murp.engines import triton_slices

    whole = triton_slices.options

    def narrow(*given: Any, **further: Any) -> Any:
        gradient, update = whole(*given, **further)
        return {**gradient, "KT": 2}, update

    monkeypatch.setattr(triton_slices, "options", narrow)
    cut = slice_of(6, 1, 2, 6, 0)
    assert_agrees(TritonSlices(), model_of("murp", *cut, 3, torch.float64, 0), *cut)


def task(**settings_: Any) -> Task:
    config = Config(dim=3, **settings_)
    return Task.of(config, from_config(config, 5, 2).initialise(0))


class TestChoice:
    """Whose gradients a slice has, and what is said of an engine that cannot."""

    def test_auto_takes_the_fused_ones_with_any_optimizer_where_it_can(self) -> None:
        for settings_ in ({}, {"model": "mure", "optimizer": "adam"}, {"corruption": "with-head", "clip": 1.0}):
            found = fused_gradients("auto", task(**settings_))
            assert found is not None
            assert found.name == "numba"
        assert fused_gradients("torch", task()) is None
        for settings_ in ({"model": "distmult"}, {"bias": "norm"}, {"corruption": "shared"}, {"objective": "softmax"}):
            assert fused_gradients("auto", task(**settings_)) is None

    @pytest.mark.parametrize(
        ("settings_", "reason"),
        [
            ({"model": "distmult"}, "knows MuRP and MuRE, no other model"),
            ({"transformation": "swapped"}, r"as published.*triton, on cuda"),
            ({"query_dropout": 0.1}, "knows no dropout"),
            ({"objective": "softmax"}, "knows the objective bernoulli without a regularizer"),
            ({"regularizer": "l2"}, "knows the objective bernoulli without a regularizer"),
            ({"corruption": "both-sides"}, "knows the corruptions uniform, with-head, local, by-relation and checked"),
            ({"corruption": "shared"}, "knows the corruptions"),
        ],
    )
    def test_it_says_what_it_does_not_know(self, settings_: dict[str, Any], reason: str) -> None:
        with pytest.raises(ConfigError, match=rf"engine numba .*{reason}.* Use --engine auto or torch"):
            fused_gradients("numba", task(**settings_))

    def test_triton_knows_every_transformation_but_runs_on_cuda(self) -> None:
        assert unknown("triton", task(transformation="swapped", bias="norm")) is None
        with pytest.raises(ConfigError, match="engine triton runs on cuda, and the model is on cpu"):
            fused_gradients("triton", task())
