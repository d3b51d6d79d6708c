"""All-entity objectives on CUDA: see :mod:`murp.kernels.all_entities`.

One kernel does both passes. The first has queries as rows and entities as columns, the second entities as rows and
queries as columns. A program has a block of rows and walks over tiles of columns. A tile of scores is made by a matrix
product, turned into weights, and multiplied with the tile's vectors; it never leaves the registers. The columns of the
first pass are split, so that all processors have work, and a small kernel combines what the splits have found, in a
fixed order: the same input has the same bits every time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# How a product of float32 numbers is computed; sums are float32 always, and float64 is computed in full.
# "half" rounds every factor to 11 bits, by 2.4e-4 of itself at most, as tf32 does: a score is off by about
# 2e-4 |q||v| / √d, a gradient by about 3e-4 of its length. A table is first multiplied by the power of two that brings
# its largest number to the top of float16, so that only numbers below 2e-9 of the largest lose further bits. On an H200
# this takes half the time of tf32, whose second product has to load its factor turned. "ieee" has all 24 bits and takes
# several times as long.
FLOAT32_PRODUCTS = "half"
_PROGRAMS = 2 * 132  # so many are at work at the same time on a large GPU
_SHARES = 512  # programs, at most, that look for the largest number of a table
_STEP = 1024  # numbers that they look at together

# What a tile of scores is turned into: weights of a softmax whose sums are found on the way, weights of a softmax whose
# sums are known, sigmoids and the sums of softplus, sigmoids alone.
_SEEK, _KNOWN, _SOFTPLUS, _SIGMOID = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
_TOP = tl.constexpr(14)  # the exponent that the largest number of a table is given
_WEIGHT = tl.constexpr(32768.0)  # weights are at most 1


def reduced(
    softmax: bool, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None, gradients: bool
) -> tuple[Tensor, ...]:
    """The mean and, if asked for, its gradients by q, v, a and c; all tensors are contiguous.

    ``shares`` (B) make a weighted mean of a softmax's logarithms.
    """
    tables = _rounded_tables(q, v) if _is_half(q.dtype) else (q, v, q)
    rows, shift, dq, da = _queries(softmax, q, tables, a, c, gradients)
    value = rows.mean() if shares is None else rows @ shares
    if not gradients:
        return (value,)
    if shares is None:
        dv, dc = _entities(softmax, v, tables, shift if softmax else a, c)
        return value, dq, dv, da, dc
    # The second pass rounds weights that are at most 1 (_WEIGHT): the largest share is taken out of them.
    most = shares.max()
    dv, dc = _entities(softmax, v, tables, shift + (shares / most).log(), c)
    own, back = len(q) * shares, len(q) * most
    return value, own[:, None] * dq, back * dv, own * da, back * dc


def _is_half(dtype: torch.dtype) -> bool:
    return dtype == torch.float32 and FLOAT32_PRODUCTS == "half"


def _options(softmax: bool, dim: int, dtype: torch.dtype) -> dict[str, Any]:
    """Blocks whose tiles fit into registers, and into 99 KiB of shared memory, which GPUs have since 2020.

    Those of float16 up to 256 numbers wide were the quickest of many on an H200. See ``WIDEST`` of
    :mod:`murp.kernels.all_entities` for rows that are too wide.
    """
    width = max(16, triton.next_power_of_2(dim))
    half = _is_half(dtype)
    if half and width <= 64:
        rows, columns, warps = 64, 128 if softmax else 64, 4  # softplus needs more registers
    elif half and width <= 256:
        rows, columns, warps = 64, 64, 4
    elif width <= (512 if half else 64):
        rows, columns, warps = 32, 32, 4
    else:
        rows, columns, warps = 16, 16, 4
    fixed = {"D": dim, "WIDTH": width, "HALF": half, "num_warps": warps, "num_stages": 1}
    return {"ROWS": rows, "COLUMNS": columns, **fixed}


def _rounded_tables(q: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both tables as float16, and the two numbers by which to multiply them to have them back."""
    halves = torch.empty_like(q, dtype=torch.float16), torch.empty_like(v, dtype=torch.float16)
    sizes = q.numel(), v.numel()
    steps = triton.cdiv(max(sizes), _STEP)
    shares = min(_SHARES, triton.next_power_of_2(steps))
    largest, back = q.new_empty(2, shares), q.new_empty(2)
    _largest[(shares, 2)](q, v, largest, *sizes, SHARES=shares, STEP=_STEP)
    _rounded[(steps, 2)](q, v, largest, *halves, back, *sizes, SHARES=shares, STEP=_STEP)
    return *halves, back


def _queries(
    softmax: bool, q: Tensor, tables: tuple[Tensor, ...], a: Tensor | None, c: Tensor | None, gradients: bool
) -> tuple[Tensor, ...]:
    """The value of each row, a less that value, and the gradients of the mean by q and a."""
    x, y, back = tables
    (size, dim), number = x.shape, len(y)
    options = _options(softmax, dim, q.dtype)
    blocks, tiles = triton.cdiv(size, options["ROWS"]), triton.cdiv(number, options["COLUMNS"])
    of_split = triton.cdiv(tiles, max(1, min(tiles, _PROGRAMS // blocks)))
    splits = triton.cdiv(tiles, of_split)
    found = q.new_empty(3, splits, size)
    part = q.new_empty(splits, size, dim) if gradients else found
    nothing = found
    _scores[(blocks, splits)](
        x, y, back, nothing if a is None else a, nothing if c is None else c, found, part, size, number, 1,
        KIND=_SEEK if softmax else _SOFTPLUS, TILES=of_split, GRADIENTS=gradients, ROW=a is not None,
        COLUMN=c is not None, **options,
    )  # fmt: skip
    value, shift, da, dq = q.new_empty(size), q.new_empty(size), q.new_empty(size), torch.empty_like(q)
    _combined[(triton.cdiv(size, 8),)](
        found, part, nothing if a is None else a, value, shift, da, dq, size, number,
        D=dim, WIDTH=options["WIDTH"], SPLITS=splits, SOFTMAX=softmax, GRADIENTS=gradients, ROW=a is not None, ROWS=8,
    )  # fmt: skip
    return value, shift, dq, da


def _entities(
    softmax: bool, v: Tensor, tables: tuple[Tensor, ...], shift: Tensor | None, c: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The gradients by v and c; ``shift`` is added to the scores of each query."""
    y, x, back = tables
    options = _options(softmax, v.shape[1], v.dtype)
    dv, dc = torch.empty_like(v), v.new_empty(len(v))
    _scores[(triton.cdiv(len(x), options["ROWS"]), 1)](
        x, y, back, dc if c is None else c, dc if shift is None else shift, dc, dv, len(x), len(y),
        len(y) if softmax else len(x) * len(y),
        KIND=_KNOWN if softmax else _SIGMOID, TILES=triton.cdiv(len(y), options["COLUMNS"]), GRADIENTS=True,
        ROW=c is not None, COLUMN=shift is not None, **options,
    )  # fmt: skip
    return dv, dc


@triton.jit(do_not_specialize=["of_q", "of_v"])
def _largest(q, v, largest, of_q, of_v, SHARES: tl.constexpr, STEP: tl.constexpr):
    """The largest |number| of each share of each table: ``largest`` (2, SHARES)."""
    if tl.program_id(1) == 0:
        _largest_of(q, largest, of_q, SHARES, STEP)
    else:
        _largest_of(v, largest + SHARES, of_v, SHARES, STEP)


@triton.jit
def _largest_of(table, largest, size, SHARES: tl.constexpr, STEP: tl.constexpr):
    found = tl.zeros([STEP], tl.float32)
    start = tl.program_id(0).to(tl.int64) * STEP
    while start < size:
        at = start + tl.arange(0, STEP)
        found = tl.maximum(found, tl.abs(tl.load(table + at, mask=at < size, other=0.0)))
        start += SHARES * STEP
    tl.store(largest + tl.program_id(0), tl.max(found, 0))


@triton.jit(do_not_specialize=["of_q", "of_v"])
def _rounded(q, v, largest, half_q, half_v, back, of_q, of_v, SHARES: tl.constexpr, STEP: tl.constexpr):
    """Both tables times a power of two, rounded to float16; ``back`` (2) has the inverse powers."""
    if tl.program_id(1) == 0:
        _rounded_of(q, largest, half_q, back, of_q, SHARES, STEP)
    else:
        _rounded_of(v, largest + SHARES, half_v, back + 1, of_v, SHARES, STEP)


@triton.jit
def _rounded_of(table, largest, half, back, size, SHARES: tl.constexpr, STEP: tl.constexpr):
    whole = tl.max(tl.load(largest + tl.arange(0, SHARES)), 0)
    # Built from its bits, so that it is exact. A table of zeros, or of numbers below 1e-30, is not brought to the top.
    exponent = tl.maximum((whole.to(tl.int32, bitcast=True) >> 23) - 127, -100) - _TOP
    power = ((127 - exponent) << 23).to(tl.float32, bitcast=True)
    at = tl.program_id(0).to(tl.int64) * STEP + tl.arange(0, STEP)
    numbers = tl.load(table + at, mask=at < size, other=0.0)
    tl.store(half + at, (numbers * power).to(tl.float16), mask=at < size)
    if tl.program_id(0) == 0:
        tl.store(back, ((127 + exponent) << 23).to(tl.float32, bitcast=True))


@triton.jit(do_not_specialize=["R", "C", "count"])
def _scores(
    x, y, back, of_row, of_column, found, gradient, R, C, count,
    KIND: tl.constexpr, TILES: tl.constexpr, GRADIENTS: tl.constexpr, ROW: tl.constexpr, COLUMN: tl.constexpr,
    D: tl.constexpr, WIDTH: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Scores ⟨x,y⟩ + row + column of a block of rows with TILES tiles of columns; see the kinds above.

    ``found`` (3, splits, R) takes maxima, sums and the sums of weights in the first pass, (R) the sums of weights in
    the second. ``gradient`` (splits, R, D) takes the sums of the columns' vectors with their weights.
    """
    real: tl.constexpr = gradient.dtype.element_ty
    first: tl.constexpr = KIND % 2 == 0  # the first pass: _SEEK and _SOFTPLUS
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    split = tl.program_id(1)
    j = tl.arange(0, WIDTH)
    here = r < R
    rows = tl.load(x + r[:, None].to(tl.int64) * D + j[None, :], mask=here[:, None] & (j < D)[None, :], other=0.0)
    if HALF:
        of_y = tl.load(back + 1) if first else tl.load(back)
        scale = tl.load(back) * tl.load(back + 1)
    if ROW:
        shift = tl.load(of_row + r, mask=here, other=0.0)
    largest = tl.full([ROWS], float("-inf"), real)
    total = tl.zeros([ROWS], real)
    weights = tl.zeros([ROWS], real)
    result = tl.zeros([ROWS, WIDTH], real)
    for tile in range(TILES):
        n = (split * TILES + tile) * COLUMNS + tl.arange(0, COLUMNS)
        inside = n < C
        columns = tl.load(
            y + n[:, None].to(tl.int64) * D + j[None, :], mask=inside[:, None] & (j < D)[None, :], other=0.0
        )
        if COLUMN:
            beside = tl.load(of_column + n, mask=inside, other=float("-inf"))
        else:
            beside = tl.where(inside, 0.0, float("-inf")).to(real)
        score = tl.dot(rows, tl.trans(columns), input_precision="ieee", out_dtype=real)
        score = score * scale + beside[None, :] if HALF else score + beside[None, :]
        if KIND == _SEEK:  # a row's own number changes nothing of its weights
            before = largest
            largest = tl.maximum(largest, tl.max(score, 1))
            finite = tl.where(largest == float("-inf"), 0.0, largest)
            weight = tl.exp(score - finite[:, None])
            kept = tl.exp(before - finite)
            total = total * kept + tl.sum(weight, 1)
            result = result * kept[:, None]
        else:
            if ROW:
                score += shift[:, None]
            if KIND == _KNOWN:
                weight = tl.exp(score)
            else:
                decay = tl.exp(-tl.abs(score))
                over = 1.0 + decay
                inverse = 1.0 / over
                weight = tl.where(score >= 0.0, 1.0, decay) * inverse
                if KIND == _SOFTPLUS:
                    # log(1 + y) with what the rounding of 1 + y has left out, which is all there is of a small y.
                    log = tl.log(over) + (decay - (over - 1.0)) * inverse
                    total += tl.sum(tl.where(score > 0.0, score, 0.0) + log, 1)
            weights += tl.sum(weight, 1)
        if GRADIENTS:
            if HALF:
                weight = (weight * _WEIGHT).to(tl.float16)
            result = tl.dot(weight, columns, result, input_precision="ieee", out_dtype=real)
    if HALF:
        result = result * (of_y / _WEIGHT)
    if first:
        splits = tl.num_programs(1)
        at = split * R + r
        tl.store(found + at, largest, mask=here)
        tl.store(found + splits * R + at, total, mask=here)
        tl.store(found + 2 * splits * R + at, weights, mask=here)
    else:
        tl.store(found + r, weights / count.to(real), mask=here)
        result = result / count.to(real)
    if GRADIENTS:
        at = (split.to(tl.int64) * R + r) * D
        tl.store(gradient + at[:, None] + j[None, :], result, mask=here[:, None] & (j < D)[None, :])


@triton.jit(do_not_specialize=["B", "N"])
def _combined(
    found, part, a, value, shift, da, dq, B, N,
    D: tl.constexpr, WIDTH: tl.constexpr, SPLITS: tl.constexpr, SOFTMAX: tl.constexpr, GRADIENTS: tl.constexpr,
    ROW: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The value (B) of each row, what a softmax adds to it (B), and the gradients by q (B, D) and a (B)."""
    real: tl.constexpr = value.dtype.element_ty
    b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = b < B
    j = tl.arange(0, WIDTH)
    mask = here[:, None] & (j < D)[None, :]
    largest = tl.full([ROWS], float("-inf"), real)
    for split in range(SPLITS):
        largest = tl.maximum(largest, tl.load(found + split * B + b, mask=here, other=0.0))
    finite = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.zeros([ROWS], real)
    weights = tl.zeros([ROWS], real)
    gradient = tl.zeros([ROWS, WIDTH], real)
    for split in range(SPLITS):
        at = split * B + b
        kept = tl.exp(tl.load(found + at, mask=here, other=0.0) - finite) if SOFTMAX else tl.full([ROWS], 1.0, real)
        total += kept * tl.load(found + SPLITS * B + at, mask=here, other=0.0)
        weights += tl.load(found + 2 * SPLITS * B + at, mask=here, other=0.0)
        if GRADIENTS:
            rows = tl.load(part + at[:, None].to(tl.int64) * D + j[None, :], mask=mask, other=0.0)
            gradient += kept[:, None] * rows
    if SOFTMAX:
        total = tl.where(here, total, 1.0)
        own = tl.load(a + b, mask=here, other=0.0) if ROW else tl.zeros([ROWS], real)
        total += own - own  # a row's own number changes nothing of its weights, unless it is none
        log = finite + tl.log(total)
        tl.store(shift + b, -log, mask=here)
        row = log + own
        weights = total / total  # 1, or NaN
        gradient = gradient / total[:, None]
    else:
        row = total / N.to(real)
        weights = weights / N.to(real)
        gradient = gradient / N.to(real)
    tl.store(value + b, row, mask=here)
    if GRADIENTS:
        tl.store(da + b, weights / B.to(real), mask=here)
        tl.store(dq + b[:, None].to(tl.int64) * D + j[None, :], gradient / B.to(real), mask=mask)
