"""Means over all entities of scores that are a formula, on CUDA: see :mod:`murp.kernels.formula_means`.

Two kernels are written for each :class:`murp.kernels.formulas.Formula`: their source is a text that is made here,
since how many products and numbers there are, and what is done with them, differs between models. The first has queries
as rows and entities as columns, the second entities as rows and queries as columns. A program has a block of rows and
walks over tiles of columns. The products of a tile, the formula and its derivatives stay in the registers; the
derivatives are multiplied with the tile's vectors at once. The columns of the first kernel are split, so that all
processors have work; what the splits have found is added in a fixed order.

Distances in curved spaces are differences of products that nearly cancel. So float32 numbers are multiplied as three
products of tf32 (``tf32x3``), which keeps all but the last bit or two, and never with fewer bits.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from murp.kernels import triton_functions
from murp.kernels.formulas import Formula, Operand

KINDS = {"log_sum_exp": 0, "softplus": 1, "mean": 2}
_PROGRAMS = 8 * 132  # so many are at work at the same time on a large GPU
# Numbers, at most, that a vector has, and all vectors of a query: more do not fit into registers and shared memory.
WIDEST, TOGETHER = {torch.float32: 256, torch.float64: 128}, 2

Counts = tuple[int, int, int, int]  # of a query's vectors and numbers, of a candidate's vectors and numbers

_FUNCTIONS = (
    "at_least", "at_most", "maximum", "minimum", "expm1", "log1p", "sigmoid", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "asin", "acos", "sign",
)  # fmt: skip
_WRITTEN: dict[str, str] = {
    **{name: f"{name}({{}}, {{}})" for name in _FUNCTIONS[:4]},
    **{name: f"{name}({{}})" for name in _FUNCTIONS[4:]},
    **{name: f"tl.{name}({{}})" for name in ("exp", "log", "sqrt", "sin", "cos", "abs")},
    "neg": "-{}",
    "rsqrt": "1.0 / tl.sqrt({})",
    "reciprocal": "1.0 / {}",
    "square": "{0} * {0}",
    "relu": "at_least({}, 0.0)",
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "where": "tl.where({}, {}, {})",
    "logical_and": "{} & {}",
    "logical_or": "{} | {}",
    "logical_not": "{} == 0",
    **{name: f"{{}} {by} {{}}" for name, by in
       (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"), ("eq", "=="), ("ne", "!="))},
}  # fmt: skip
_PLAIN = ("add", "sub", "mul", "div", "ge", "gt", "le", "lt", "eq", "ne")


class Kernels(NamedTuple):
    """The compiled kernels of a formula."""

    of_queries: Any
    of_entities: Any


def fits(formula: Formula, queries: Sequence[Tensor]) -> bool:
    """Whether the kernels know all operations of a formula, and vectors of this length."""
    like, dim = queries[0], max(query.shape[-1] for query in queries)
    known = all(
        name in _WRITTEN and (not name.startswith("logical") or all(of_value for of_value, _ in operands))
        for name, operands in formula.steps
    )
    widest = WIDEST.get(like.dtype, 0)
    return known and _width(dim) <= widest and len(queries) * _width(dim) <= TOGETHER * widest


def reduced(
    formula: Formula,
    kind: str,
    groups: Sequence[Sequence[Tensor]],
    shares: Tensor | None,
    gradients: bool,
) -> tuple[Tensor, list[Tensor | None]]:
    """The mean and, if asked for, its gradients by all that was given, in that order.

    ``groups``: the queries' vectors and numbers, the candidates' vectors and numbers.
    """
    queries, query_numbers, vectors, numbers = groups
    counts = len(queries), len(query_numbers), len(vectors), len(numbers)
    made = kernels(formula, counts)
    like, dim = queries[0], max(query.shape[-1] for query in queries)
    size, entities = len(like), len(vectors[0])
    x, y = (_stacked([_padded(one, dim) for one in of], like) for of in (queries, vectors))
    own, theirs = _stacked(query_numbers, like), _stacked(numbers, like)
    options = _options(formula, counts, dim, like.dtype)
    tiles = triton.cdiv(entities, options["COLUMNS"])
    of_split = triton.cdiv(tiles, max(1, min(tiles, _PROGRAMS // triton.cdiv(size, options["ROWS"]))))
    splits = triton.cdiv(tiles, of_split)
    found = like.new_empty(2 + counts[1], splits, size)
    part = like.new_empty(splits, counts[0], size, dim) if gradients else found
    made.of_queries[(triton.cdiv(size, options["ROWS"]), splits)](
        x, y, own, theirs, found, part, size, entities, of_split, KIND=KINDS[kind], GRADIENTS=gradients, **options
    )
    largest, total = found[0].amax(0), found[1].sum(0)
    if kind == "log_sum_exp":
        finite = torch.where(largest == -math.inf, 0.0, largest)
        kept = (found[0] - finite).exp()
        total = (kept * found[1]).sum(0)
        logs = finite + total.log()
        shares = like.new_full((size,), 1 / size) if shares is None else shares
        value, factor = logs @ shares, shares / total
    else:
        logs, shares = total, like.new_full((size,), 1 / (size * entities))
        kept, value, factor = found.new_ones(splits, size), total @ shares, shares
    if not gradients:
        return value, [None] * sum(counts)
    dx = (kept[:, None, :, None] * part).sum(0) * factor[:, None]
    down = (kept * found[2:]).sum(1) * factor
    dy, dtheirs = torch.empty_like(y), torch.empty_like(theirs)
    made.of_entities[(triton.cdiv(entities, options["ROWS"]),)](
        x, y, own, theirs, logs, shares, dy, dtheirs, size, entities, triton.cdiv(size, options["COLUMNS"]),
        KIND=KINDS[kind], **options,
    )  # fmt: skip
    by_queries = [of[:, : query.shape[-1]] for of, query in zip(dx, queries, strict=True)]
    by_vectors = [of[:, : vector.shape[-1]] for of, vector in zip(dy, vectors, strict=True)]
    return value, [*by_queries, *down, *by_vectors, *dtheirs]


def _padded(vectors: Tensor, dim: int) -> Tensor:
    """Vectors (n, d) with zeros to a length of ``dim``: the spaces of a product may differ in theirs."""
    return vectors if vectors.shape[-1] == dim else torch.nn.functional.pad(vectors, (0, dim - vectors.shape[-1]))


def _stacked(tensors: Sequence[Tensor], like: Tensor) -> Tensor:
    """Tensors of one shape as one."""
    if not tensors:
        return like.new_empty(0, 1)
    return tensors[0].contiguous()[None] if len(tensors) == 1 else torch.stack([*tensors])


def _width(dim: int) -> int:
    return max(16, 1 << (dim - 1).bit_length())


def _options(formula: Formula, counts: Counts, dim: int, dtype: torch.dtype) -> dict[str, Any]:
    """Blocks whose tiles, with all that a formula holds, fit into registers and shared memory.

    They were the quickest of several on an H200. What does not fit into registers is most of the time otherwise: an
    ending of three spaces took 47 ms with 16 × 32 cells and 7 with 16 × 16.
    """
    single, width = dtype == torch.float32, _width(dim)
    rows, columns, warps = 16, 32, 4
    if counts[0] * width <= (128 if single else 64):
        if len(formula.steps) <= 125:
            rows = 32
        elif len(formula.steps) > 200:
            columns, warps = 16, 1  # a product of more warps would have each of them compute all cells
    fixed = {"D": dim, "WIDTH": width, "PRECISION": "tf32x3" if single else "ieee", "num_stages": 1}
    return {"ROWS": rows, "COLUMNS": columns, "num_warps": warps, **fixed}


@cache
def kernels(formula: Formula, counts: Counts) -> Kernels:
    """The kernels of a formula of so many vectors and numbers; Triton compiles them when they are first launched."""
    source = _source(formula, counts)
    name = f"<kernels of the formula {formula.digest} {counts}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # where Triton looks for it
    room: dict[str, Any] = {
        "__name__": __name__,
        "triton": triton,
        "tl": tl,
        "softplus": triton_functions.softplus,
        **{each: getattr(triton_functions, each) for each in _FUNCTIONS},
    }
    exec(compile(source, name, "exec"), room)
    return Kernels(room["of_queries"], room["of_entities"])


def _source(formula: Formula, counts: Counts) -> str:
    """The text of both kernels."""
    queries, own, vectors, theirs = counts
    of = [p if vectors > 1 else 0 for p in range(queries)]  # the candidate's vector of each product
    fixed = "D: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PRECISION: tl.constexpr"
    head = '@triton.jit(do_not_specialize=["B", "N", "tiles"])'

    def vector(name: str, count: int, size: str, at: str) -> list[str]:
        """Lines that load some vectors each of rows or columns ``at``."""
        place = f"+ {at})[:, None].to(tl.int64) * D + j[None, :], mask=({at} < {size})[:, None] & (j < D)[None, :]"
        return [f"{name}{i} = tl.load({name} + ({i} * {size} {place}, other=0.0)" for i in range(count)]

    def number(name: str, count: int, size: str, at: str, turned: str) -> list[str]:
        load = f"* {size} + {at}, mask={at} < {size}, other=0.0){turned}"
        return [f"{name}{i} = tl.load({name} + {i} {load}" for i in range(count)]

    def product(rows: str, columns: str) -> list[str]:
        """Lines that make the tile of each product; ``rows``, ``columns``: x or y."""
        names = [{"x": f"x{p}", "y": f"y{of[p]}"} for p in range(queries)]
        return [
            f"p{p} = tl.dot({name[rows]}, tl.trans({name[columns]}), input_precision=PRECISION, out_dtype=real)"
            for p, name in enumerate(names)
        ]

    def gradients(wanted: Sequence[tuple[str | None, str]]) -> list[str]:
        """Lines that add up derivatives with their weights."""
        return [line.format(f"tl.where(inside, weight * {slope}, 0.0)") for slope, line in wanted if slope is not None]

    def added(name: str, vector: str) -> str:
        return f"{name} = tl.dot({{}}, {vector}, {name}, input_precision=PRECISION, out_dtype=real)"

    steps, value, slopes = _steps(formula, (queries, own, theirs))
    by_products, by_own, by_theirs = slopes[:queries], slopes[queries : queries + own], slopes[queries + own :]
    first = [
        "real: tl.constexpr = x.dtype.element_ty",
        "b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)",
        "split = tl.program_id(1)",
        "splits = tl.num_programs(1)",
        "j = tl.arange(0, WIDTH)",
        "here = b < B",
        "zero = tl.zeros([ROWS, COLUMNS], real)",
        *vector("x", queries, "B", "b"),
        *number("own", own, "B", "b", "[:, None]"),
        'largest = tl.full([ROWS], float("-inf"), real)',
        "total = tl.zeros([ROWS], real)",
        *[f"dx{i} = tl.zeros([ROWS, WIDTH], real)" for i in range(queries)],
        *[f"down{i} = tl.zeros([ROWS], real)" for i in range(own)],
        "for tile in range(tiles):",
        *_inside(
            "n = (split * tiles + tile) * COLUMNS + tl.arange(0, COLUMNS)",
            "inside = (n < N)[None, :]",
            *vector("y", vectors, "N", "n"),
            *number("theirs", theirs, "N", "n", "[None, :]"),
            *product("x", "y"),
            *steps,
            f"value = {value} + zero",
            "if KIND == 0:",
            *_inside(
                'score = tl.where(inside, value, float("-inf"))',
                "before = largest",
                "largest = tl.maximum(largest, tl.max(score, 1))",
                'finite = tl.where(largest == float("-inf"), 0.0, largest)',
                "weight = tl.exp(score - finite[:, None])",
                "kept = tl.exp(before - finite)",
                "total = total * kept + tl.sum(weight, 1)",
                *[f"dx{i} = dx{i} * kept[:, None]" for i in range(queries)],
                *[f"down{i} = down{i} * kept" for i in range(own)],
            ),
            "elif KIND == 1:",
            *_inside("weight = sigmoid(value)", "total += tl.sum(tl.where(inside, softplus(value), 0.0), 1)"),
            "else:",
            *_inside("weight = zero + 1.0", "total += tl.sum(tl.where(inside, value, 0.0), 1)"),
            "if GRADIENTS:",
            *_inside(
                "pass",
                *gradients(
                    [(slope, added(f"dx{i}", f"y{of[i]}")) for i, slope in enumerate(by_products)]
                    + [(slope, f"down{i} += tl.sum({{}}, 1)") for i, slope in enumerate(by_own)],
                ),
            ),
        ),
        "tl.store(found + split * B + b, largest, mask=here)",
        "tl.store(found + (splits + split) * B + b, total, mask=here)",
        *[f"tl.store(found + (({i} + 2) * splits + split) * B + b, down{i}, mask=here)" for i in range(own)],
        "if GRADIENTS:",
        *_inside(
            "mask = here[:, None] & (j < D)[None, :]",
            *[
                f"tl.store(part + ((split * {queries} + {i}) * B + b)[:, None].to(tl.int64) * D + j[None, :], "
                f"dx{i}, mask=mask)"
                for i in range(queries)
            ],
        ),
    ]
    second = [
        "real: tl.constexpr = x.dtype.element_ty",
        "n = tl.program_id(0) * ROWS + tl.arange(0, ROWS)",
        "j = tl.arange(0, WIDTH)",
        "here = n < N",
        "zero = tl.zeros([ROWS, COLUMNS], real)",
        *vector("y", vectors, "N", "n"),
        *number("theirs", theirs, "N", "n", "[:, None]"),
        *[f"dy{i} = tl.zeros([ROWS, WIDTH], real)" for i in range(vectors)],
        *[f"dtheirs{i} = tl.zeros([ROWS], real)" for i in range(theirs)],
        "for tile in range(tiles):",
        *_inside(
            "b = tile * COLUMNS + tl.arange(0, COLUMNS)",
            "inside = (b < B)[None, :]",
            *vector("x", queries, "B", "b"),
            *number("own", own, "B", "b", "[None, :]"),
            "share = tl.load(shares + b, mask=b < B, other=0.0)[None, :]",
            *product("y", "x"),
            *steps,
            f"value = {value} + zero",
            "if KIND == 0:",
            *_inside("weight = tl.exp(value - tl.load(logs + b, mask=b < B, other=0.0)[None, :]) * share"),
            "elif KIND == 1:",
            *_inside("weight = sigmoid(value) * share"),
            "else:",
            *_inside("weight = zero + share"),
            *gradients(
                [(slope, added(f"dy{of[i]}", f"x{i}")) for i, slope in enumerate(by_products)]
                + [(slope, f"dtheirs{i} += tl.sum({{}}, 1)") for i, slope in enumerate(by_theirs)],
            ),
        ),
        "mask = here[:, None] & (j < D)[None, :]",
        *[
            f"tl.store(dy + ({i} * N + n)[:, None].to(tl.int64) * D + j[None, :], dy{i}, mask=mask)"
            for i in range(vectors)
        ],
        *[f"tl.store(dtheirs + {i} * N + n, dtheirs{i}, mask=here)" for i in range(theirs)],
    ]
    return "\n".join(
        [
            head,
            "def of_queries(x, y, own, theirs, found, part, B, N, tiles, KIND: tl.constexpr, GRADIENTS: tl.constexpr, "
            f"{fixed}):",
            *_inside(*first),
            "",
            head,
            f"def of_entities(x, y, own, theirs, logs, shares, dy, dtheirs, B, N, tiles, KIND: tl.constexpr, {fixed}):",
            *_inside(*second),
            "",
        ]
    )


def _inside(*lines: str) -> list[str]:
    return [f"    {line}" for line in lines]


def _steps(formula: Formula, counts: tuple[int, int, int]) -> tuple[list[str], str, list[str | None]]:
    """The lines that compute a formula of p0, own0, theirs0 and so on; y, and the derivatives by its inputs.

    Nothing else than names of ours and numbers comes into them: an operation that is not in the table is an error.
    """
    names = [f"{of}{i}" for of, count in zip(("p", "own", "theirs"), counts, strict=True) for i in range(count)]

    def written(operand: Operand, tile: bool = False) -> str:
        of_value, number = operand
        if of_value:
            return names[int(number)]
        number = float(number)
        text = f"({number!r})" if math.isfinite(number) else f'float("{number}")'
        return f"(zero + {text})" if tile else text

    lines = []
    for name, operands in formula.steps:
        # Most functions want tensors of the type of all others, and not a number that is the same for all cells.
        plain = name in _PLAIN and any(of_value for of_value, _ in operands)
        made = _WRITTEN[name].format(*(written(operand, not plain) for operand in operands))
        names.append(f"v{len(names)}")
        lines.append(f"{names[-1]} = {made}")
    value, *slopes = (None if of is None else written(of) for of in formula.outputs)
    assert value is not None
    return lines, value, slopes
