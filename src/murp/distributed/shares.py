"""Which rows of the entities a rank has, and their initial values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from murp.models.model import Model, Rows, Table
from murp.models.rounding import rounded


@dataclass(frozen=True)
class Share:
    """Rows ``start`` … ``stop`` - 1 of ``rows``, the share of ``rank`` among ``size``: ``length`` each, the last fewer.

    torch.distributed divides a tensor in the same way, so its checkpoints know which rank has which rows.
    """

    rows: int
    rank: int = 0
    size: int = 1

    @property
    def length(self) -> int:
        return -(-self.rows // self.size)

    @property
    def start(self) -> int:
        return min(self.rows, self.rank * self.length)

    @property
    def stop(self) -> int:
        return min(self.rows, self.start + self.length)

    def __len__(self) -> int:
        return self.stop - self.start

    def starts(self) -> Tensor:
        """The first row of every rank, and the number of rows (size + 1)."""
        return (torch.arange(self.size + 1) * self.length).clamp(max=self.rows)


def initialise(model: Model, share: Share, seed: int, scale: float) -> None:
    """Give ``model`` the rows of its ``share``, with the values that :meth:`Model.initialise` draws for them.

    Every rank draws every number, since a random generator cannot skip, but keeps only one block at a time.
    """
    generator = torch.Generator().manual_seed(seed)
    model.first_row = share.start
    model.parameters = {
        table.name: _drawn(table, model, share, generator, scale)
        if table.of == "entity"
        else table.draw(model.rows_of(table), model.dtype, generator, scale)
        for table in model.tables
    }


def _drawn(table: Table, model: Model, share: Share, generator: torch.Generator, scale: float) -> Tensor:
    """The rows of a share of one table, as training stores them."""
    kind = model.dtype_of(table)
    kept = torch.empty(len(share), *table.shape, dtype=kind)
    for start, rows in table.draw_in_blocks(share.rows, model.dtype, generator, scale):
        first, last = max(start, share.start), min(start + len(rows), share.stop)
        if first < last:
            own = rounded(rows, kind, table.geometry)[first - start : last - start]
            kept[first - share.start : last - share.start] = own
    return kept


def widths(model: Model, of: str) -> dict[str, int]:
    """How many numbers a row has in each table: of entities, of relations, or shared by all."""
    return {table.name: math.prod(table.shape) for table in model.tables if table.of == of}


def side_by_side(rows: Rows) -> Tensor:
    """Rows (n, m) of several tables as rows of one (n, Σ m)."""
    values = list(rows.values())
    return values[0] if len(values) == 1 else torch.cat(values, 1)


def apart(values: Tensor, columns: dict[str, int]) -> Rows:
    """The inverse: rows (n, m) of each table."""
    return dict(zip(columns, torch.split(values, list(columns.values()), 1), strict=True))


def packed(rows: Rows) -> Tensor:
    """Rows of tables that may be of several types, as rows of bytes (n, b)."""
    return side_by_side({name: values.contiguous().view(torch.uint8) for name, values in rows.items()})


def unpacked(values: Tensor, columns: dict[str, int], kinds: dict[str, torch.dtype]) -> Rows:
    """The inverse: rows (n, m) of each table, of its kind."""
    parts = apart(values, {name: width * kinds[name].itemsize for name, width in columns.items()})
    # A copy, since numbers must begin at a multiple of their size.
    return {name: part.clone(memory_format=torch.contiguous_format).view(kinds[name]) for name, part in parts.items()}


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Concatenated; a single tensor is returned without a copy."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
