"""The fused engines in the small: a step on the ball to the last digits, each row once, nothing to do.

Laws that a step of training hides: what is right to eight digits there must be right to thirteen here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from murp.engines import Chunk, TorchEngine
from murp.geometry import poincare
from murp.kernels.elementary import FORMATS
from murp.models import MODELS, MultiRelational

numba_math: Any = pytest.importorskip("murp.engines.numba_math", reason="needs numba: pip install numba")

from murp.engines.numba_engine import NumbaEngine  # noqa: E402

RADII = poincare.limit_radius(torch.float64), poincare.set_back_radius(torch.float64)


@pytest.mark.parametrize("c", [1.0, 0.3, 2.0])
@pytest.mark.parametrize("reach", [0.0, 1e-8, 0.1, 0.3, 0.55, 0.599, 0.601, 0.7, 1.5, 4.0, 15.0])
def test_numba_steps_on_the_ball_to_the_last_digits(reach: float, c: float) -> None:
    """``reach`` is h = √c lr p|g|/4; the step is as long as tanh(h), a quotient of polynomials up to h = 0.6."""
    draw = torch.Generator().manual_seed(0)
    for _ in range(5):
        x, g = (torch.randn(3, dtype=torch.float64, generator=draw) for _ in range(2))
        x *= 0.5 / c**0.5 / x.norm()
        g *= reach / float(c**0.5 * 0.7 * poincare.gap(x, c=c) / 4 * g.norm())
        expected = poincare.step(x[None], g[None], 0.7, c=c)[0]
        moved = x.numpy().copy()
        numba_math.ball_step(moved, g.numpy(), 0.7, c, *RADII)
        np.testing.assert_allclose(moved, expected.numpy(), rtol=2e-13, atol=1e-15)


def test_numba_sets_back_what_steps_out_of_the_ball() -> None:
    for c in (1.0, 0.3):
        moved = np.array([0.9, 0.0]) / c**0.5
        numba_math.ball_step(moved, np.array([-1e6, 0.0]), 1e3, c, *RADII)
        assert moved[0] * c**0.5 == pytest.approx(RADII[1], abs=3e-16)
        narrow = np.array([0.1, 0.2]) / c**0.5
        numba_math.ball_step(narrow, np.array([-1.0, -2.0]), 1.0, c, 0.3, 0.25)
        assert np.linalg.norm(narrow) * c**0.5 == pytest.approx(0.25)


def test_numba_softplus_and_sigmoid() -> None:
    phi = np.array([-800.0, -40.0, -1.0, -1e-9, 0.0, 0.5, 30.0, 800.0])
    soft, probability, scratch = np.empty_like(phi), np.empty_like(phi), np.empty((2, len(phi)))
    form = FORMATS[phi.dtype]
    numba_math.softplus_and_sigmoid(phi, soft, probability, scratch, scratch.view(form.dtype)[0], form)
    value = torch.from_numpy(phi)
    expected = torch.logaddexp(value, torch.zeros_like(value)).numpy()
    np.testing.assert_allclose(soft, expected, rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(probability, torch.sigmoid(value).numpy(), rtol=1e-14, atol=1e-300)


def occurrences(positives: np.ndarray, negatives: np.ndarray) -> dict[int, list[int]]:
    """Where each entity occurs, by the definition of :func:`murp.engines.numba_math.link`."""
    size, candidates = len(positives), 1 + negatives.shape[1]
    found: dict[int, list[int]] = {}
    for i in range(size):
        for j, entity in enumerate([positives[i, 2], *negatives[i]]):
            found.setdefault(int(entity), []).append(i * candidates + j)
        found.setdefault(int(positives[i, 0]), []).append(size * candidates + i)
    return found


@pytest.mark.parametrize("entities", [1, 3, 1000])
def test_chains_have_every_occurrence_once(entities: int) -> None:
    draw = np.random.default_rng(entities)
    positives, negatives = draw.integers(0, entities, (4, 3)), draw.integers(0, entities, (4, 2))
    expected = occurrences(positives, negatives)
    head, following = np.full(entities, -1, np.int32), np.full(16, -1, np.int32)
    rows = np.full(16, -1, np.int64)
    distinct = numba_math.link(positives, negatives, head, following, rows)
    assert sorted(rows[:distinct]) == sorted(expected)
    for entity, places in expected.items():
        chain, at = [], int(head[entity])
        while at >= 0:
            chain.append(at)
            at = int(following[at])
        assert sorted(chain) == sorted(places)
    relations = np.array([[0, r, 0] for r in (2, 0, 2, 2)])
    relation_head = np.full(3, -1, np.int32)
    distinct = numba_math.link_relations(relations, relation_head, following, rows)
    assert rows[:distinct].tolist() == [2, 0]
    assert relation_head.tolist() == [1, -1, 3]
    assert following[:4].tolist() == [-1, -1, 0, 2]


def two_alike(name: str, dtype: torch.dtype, spread: float) -> list[MultiRelational]:
    made: list[Any] = [MODELS[name](30, 4, 3, dtype=dtype).initialise(0) for _ in range(2)]
    draw = torch.Generator().manual_seed(1)
    points = torch.randn(30, 3, dtype=dtype, generator=draw) * spread
    for model in made:
        model.parameters["entity"] = model.geometry.exp0(points.clone())
    return made


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("bias", [0.0, 25.0, 30.0, 45.0, 1000.0, -60.0])
def test_numba_takes_scores_of_any_size(name: str, bias: float) -> None:
    """Probabilities near 0 and 1, and many that are lost in rounding; also that a workspace serves again."""
    ours, theirs = two_alike(name, torch.float64, 0.6)
    for model in (ours, theirs):
        model.parameters["object_bias"].fill_(bias)
    draw = torch.Generator().manual_seed(2)
    positives = torch.stack([torch.randint(n, (3, 4), generator=draw) for n in (30, 4, 30)], dim=-1)
    work = Chunk(positives, 30, 3, 5)
    loss = NumbaEngine(ours).run([work], [0.5])
    expected = TorchEngine(theirs).run([work], [0.5])
    torch.testing.assert_close(loss, expected, rtol=1e-11, atol=1e-12)
    for table, values in ours.parameters.items():
        torch.testing.assert_close(values, theirs.parameters[table], rtol=1e-10, atol=1e-12, msg=table)


@pytest.mark.parametrize("name", MODELS)
def test_numba_in_float32_lets_tiny_gradients_move_biases_alone(name: str) -> None:
    """With a bias of -60 a false object's gradient is e⁻⁶⁰, too little to move a point in float32."""
    ours, theirs = two_alike(name, torch.float32, 0.3)
    for model in (ours, theirs):
        model.parameters["object_bias"].fill_(-60.0)
    positives = torch.tensor([[[0, 0, 1], [2, 1, 3]]])
    work = Chunk(positives, 30, 6, 3)
    before = ours.parameters["entity"].clone()
    NumbaEngine(ours).run([work], [1.0])
    TorchEngine(theirs).run([work], [1.0])
    only_false = sorted(set(work.draw().flatten().tolist()) - {0, 1, 2, 3})
    # To the bit: a change of 10⁻²⁶ is below half a step of every coordinate, fused or not.
    assert torch.equal(ours.parameters["entity"][only_false], before[only_false])
    for table, values in ours.parameters.items():
        torch.testing.assert_close(values, theirs.parameters[table], rtol=1e-5, atol=1e-6, msg=table)
