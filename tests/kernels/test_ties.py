"""Equal entities have equal scores, wherever they stand, by every path; and the tests would notice if they had not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ties import PATHS, Shape, check_shape, drawn_shapes  # reliability/ties.py
from torch import Tensor

from examples import at_most
from murp.geometry import poincare
from murp.kernels import numba_products
from murp.models.blocks import by_row
from murp.prediction import numba_scores


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=pytest.mark.triton if path == "triton" else ()) for path in PATHS]
)
def test_equal_entities_tie(path: str) -> None:
    for shape in drawn_shapes(path, 1, at_most(12 if path == "triton" else 40)):
        check_shape(path, shape)


@pytest.mark.parametrize("path", [path for path in PATHS if path != "triton"])
def test_no_path_of_the_cpu_uses_the_products_of_gpus(path: str, no_triton_products: None) -> None:
    check_shape(path, Shape("murp", entities=7, copies=3, dim=5, queries=3, dtype="float32", seed=0))


def by_place(points: Tensor, rows: Tensor, out: Tensor, panels: object = None) -> None:
    """A product whose rounding depends on where a row stands: the sum goes up for even rows and down for odd ones."""
    x, v = points.numpy(), rows.numpy()
    total = np.zeros(out.shape, x.dtype)
    for j in range(x.shape[1]):
        total[:, ::2] += x[:, j, None] * v[None, ::2, j]
        total[:, 1::2] += x[:, -1 - j, None] * v[None, 1::2, -1 - j]
    out.numpy()[:] = total


# The other paths do without that product; what they do is broken below.
@pytest.mark.parametrize("path", ["torch", "triton", "generic ranks"])
def test_a_product_that_rounds_by_place_is_noticed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_products, "inner_products", by_place)
    noticed = 0
    for seed in range(5):
        try:
            check_shape(path, Shape("mure", entities=7, copies=3, dim=120, queries=8, dtype="float32", seed=seed))
        except AssertionError:
            noticed += 1
    assert noticed > 0


def test_functions_that_round_by_place_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def uneven(x: Tensor, y: Tensor, *, c: float) -> Tensor:
        found = torch.linalg.vector_norm(x - y, dim=-1)
        found[1::2] = torch.nextafter(found[1::2], torch.tensor(torch.inf, dtype=found.dtype))
        return found

    monkeypatch.setattr(poincare, "distance", uneven)
    with pytest.raises(AssertionError):
        check_shape("nearest", Shape("murp", entities=7, copies=3, dim=40, queries=2, dtype="float32", seed=0))


@pytest.mark.parametrize("path", ["numba", "best answers"])
def test_entities_that_are_packed_unevenly_are_noticed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second entity off by a bit in one coordinate: what a kernel makes of it is off by a bit now and then."""

    def uneven(rows: Tensor) -> Any:
        moved = rows.clone()
        moved[1::2, 0] = torch.nextafter(moved[1::2, 0], torch.tensor(torch.inf, dtype=rows.dtype))
        return exact(moved)

    exact = numba_products.packed
    monkeypatch.setattr(numba_products, "packed", uneven)
    noticed = 0
    for seed in range(5):
        try:
            check_shape(path, Shape("mure", entities=7, copies=3, dim=2, queries=8, dtype="float32", seed=seed))
        except AssertionError:
            noticed += 1
    assert noticed > 0


def test_an_explorer_that_rounds_by_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def uneven(*arguments: Any) -> Any:
        scores = exact(*arguments)
        scores[1::2] = np.nextafter(scores[1::2], np.inf)
        return scores

    exact = numba_scores.ball
    monkeypatch.setattr(numba_scores, "ball", uneven)
    with pytest.raises(AssertionError):
        check_shape("explorer", Shape("murp", entities=7, copies=3, dim=40, queries=2, dtype="float32", seed=0))


@pytest.mark.parametrize("count", [1, 5, 7, 33, 64, 65, 1000])
def test_rows_are_given_to_torch_in_whole_blocks(count: int) -> None:
    """A function that rounds the end of a tensor differently from its middle, as PyTorch's do on some processors."""

    def rounds_the_end(rows: Tensor) -> Tensor:
        return rows[:, 0] + (torch.arange(len(rows)) >= len(rows) // 16 * 16)

    rows = torch.full((count, 3), 2.0)
    assert by_row(rounds_the_end, rows).tolist() == [2.0] * count
