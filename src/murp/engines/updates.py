"""How the rows that a step has read move: the optimizer's step on them, and its state."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from murp import threads
from murp.engines.step import FEW_ROWS, Part, Touched
from murp.engines.task import Task
from murp.errors import MurpError, first_line
from murp.geometry import Geometry
from murp.models.model import Rows, Table
from murp.models.rounding import rounded
from murp.optimizers.optimizer import TABLES, State

# Bits of a position among the rows of a batch, which every row of a table has. With 64 they would be a third of what
# row-wise Adagrad needs beside the parameters; batches with more rows than 16 bits count have 32.
NARROW = torch.int16
A_BLOCK = 2**16  # numbers of a table that are updated at a time on the CPU: they stay in the cache


@dataclass
class Updater:
    """The optimizer's step on the touched rows of one model, and its state.

    Repeated rows are merged without sorting: every occurrence writes its position into
    ``claim[row]``, one of them stays, and all occurrences add their gradient at that position.
    Every shape is fixed by the batch, so that the step can be captured in a CUDA graph. The optimizer
    steps every occurrence, and what it made of the one that holds the sum becomes row and state;
    a compiled loop steps only that one.
    """

    task: Task
    state: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = self.task.model
        sizes = {"entity": model.num_entities, "relation": model.num_relations}
        self.claim = {of: torch.zeros(rows, dtype=NARROW, device=model.device) for of, rows in sizes.items()}
        self.names = {table.name: names_of(self.task, table) for table in model.tables}
        self.blocked = model.device.type == "cpu"
        self.state |= new_state(self.task)

    def tables(self) -> Rows:
        """Every table as rows of vectors (n, m).

        Made apart from what is compiled: a view that is made and changed within it costs a copy of the table.
        """
        model = self.task.model
        return {table.name: model.parameters[table.name].view(model.rows_of(table), -1) for table in model.tables}

    def prepare(self, touched: Touched) -> None:
        """What a step needs and must not be compiled.

        Every claim is made wide enough for a position among the rows that a batch has read. Gradients that are added
        to in place have memory of their own: autograd may hand out one tensor for two tables, or a number of a row
        that stands for several.
        """
        seen = set()
        for table in self.task.model.tables:
            parts = touched[table.name]
            rows = sum(len(part.where) for part in parts if part.where is not None)
            if table.of in self.claim and rows > torch.iinfo(self.claim[table.of].dtype).max:
                self.claim[table.of] = self.claim[table.of].to(torch.int32)
            for part in parts:
                if part.whole and ((place := part.gradient.data_ptr()) in seen or 0 in part.gradient.stride()):
                    part.gradient = part.gradient.clone()
                elif part.whole:
                    seen.add(place)

    @torch.no_grad()
    def update(self, tables: Rows, touched: Touched, lr: float | Tensor) -> None:
        """Move every touched row of :meth:`tables` by one step."""
        kinds = {t.of for t in self.task.model.tables if any(part.whole for part in touched[t.name])}
        marked: dict[tuple[int, ...], Tensor | None] = {}
        for table in self.task.model.tables:
            values, parts = tables[table.name], touched[table.name]
            if not parts:
                continue
            # Rows of a kind of which another table is read as a whole are cheaper to move all at once, too.
            read = sum(0 if part.where is None else len(part.where) for part in parts)
            if table.of in kinds or len(values) <= FEW_ROWS * read:
                gradient = whole_gradient(values, parts)
                if self.blocked:
                    same = tuple(id(part.where) for part in parts)  # tables of which the same rows are read
                    if same not in marked:
                        marked[same] = _marks(values, parts)
                    self._move_in_blocks(table.name, values, gradient, marked[same], lr)
                else:
                    whole = self._state(table.name, slice(None))
                    self._move(table.name, values, gradient, _marks(values, parts), whole, lr)
            else:
                self._move_rows(table, values, parts, lr)

    def _move_rows(self, table: Table, values: Tensor, parts: list[Part], lr: float | Tensor) -> None:
        """A step on the rows of a table that are read, and on no other."""
        where = _joined(*(part.where for part in parts if part.where is not None))
        gradient = _joined(*(part.gradient for part in parts))
        claim = self.claim[table.of]
        claim[where] = torch.arange(len(where), dtype=claim.dtype, device=where.device)
        owner = claim.index_select(0, where).long()  # sums by 32-bit indices take four times as long on the CPU
        summed = torch.zeros_like(gradient).index_add_(0, owner, gradient)
        if self.blocked:
            first = owner == torch.arange(len(owner))
            if self._moved_by_loop(table.name, values, summed, lr, where=where, marks=first):
                return
        state = {short: self.state[name].index_select(0, where) for short, name in self.names[table.name].items()}
        moved = self._step(table.name, values.index_select(0, where), summed, state, lr)
        # Every occurrence of a row writes its owner's value: the same bits, whatever the order.
        values.index_copy_(0, where, moved.index_select(0, owner))
        for short, name in self.names[table.name].items():
            self.state[name].index_copy_(0, where, state[short].index_select(0, owner))

    def _move_in_blocks(
        self, name: str, values: Tensor, gradient: Tensor, marks: Tensor | None, lr: float | Tensor
    ) -> None:
        """By the optimizer's compiled loop, or :meth:`_move` on some rows at a time, which stay in the cache."""
        if self._moved_by_loop(name, values, gradient, lr, marks=None if marks is None else marks[:, 0]):
            return
        length = max(1, A_BLOCK // values.shape[1])
        blocks = iter([slice(start, start + length) for start in range(0, len(values), length)])

        @torch.no_grad()
        def move() -> None:
            for block in blocks:
                rows = None if marks is None else marks[block]
                self._move(name, values[block], gradient[block], rows, self._state(name, block), lr)

        threads.share_torch(move, min(threads.count(), -(-len(values) // length)))

    def _moved_by_loop(
        self, name: str, values: Tensor, gradient: Tensor, lr: float | Tensor, **which: Tensor | None
    ) -> bool:
        """Whether the optimizer has a compiled loop for a table, which then has moved the rows."""
        optimizer, geometry, whole = self.task.optimizer, self._geometry(name), self._state(name, slice(None))
        return values.dtype == gradient.dtype and optimizer.move(geometry, values, gradient, whole, float(lr), **which)

    def _state(self, name: str, rows: slice) -> State:
        return {short: self.state[long][rows] for short, long in self.names[name].items()}

    def _move(
        self, name: str, values: Tensor, gradient: Tensor, marks: Tensor | None, kept: State, lr: float | Tensor
    ) -> None:
        """A step on rows (n, m) in place, where they are marked, and on their state."""
        state = dict(kept)
        moved = self._step(name, values, gradient, state, lr)
        values.copy_(moved if marks is None else torch.where(marks, moved, values))
        for short, old in kept.items():
            old.copy_(state[short] if marks is None else torch.where(marks, state[short], old))

    def _step(self, name: str, rows: Tensor, gradient: Tensor, state: State, lr: float | Tensor) -> Tensor:
        """Stored rows (n, m) after a step, as they are stored; it computes in the precision of the gradient."""
        geometry = self._geometry(name)
        moved = self.task.optimizer.step(geometry, rows.to(gradient.dtype), gradient, state, lr)
        return rounded(moved, rows.dtype, geometry)

    def _geometry(self, name: str) -> Geometry:
        return next(table.geometry for table in self.task.model.tables if table.name == name)


def names_of(task: Task, table: Table) -> dict[str, str]:
    """What the optimizer keeps of a table's rows, and how a checkpoint calls it."""
    shapes = task.optimizer.state_shapes(table) if table.trained else {}
    return {name: f"{TABLES}{table.name}.{name}" for name in shapes}


def new_state(task: Task) -> dict[str, Tensor]:
    """All that the optimizer keeps, 0 at first: a row for each that the model holds."""
    found = {}
    for table in task.model.tables:
        shapes = task.optimizer.state_shapes(table) if table.trained else {}
        for short, name in names_of(task, table).items():
            found[name] = _zeros(task, len(task.model.parameters[table.name]), *shapes[short])
    return found


def _zeros(task: Task, *shape: int) -> Tensor:
    try:
        return torch.zeros(shape, dtype=task.model.dtype, device=task.model.device)
    except (MemoryError, RuntimeError) as error:
        raise MurpError(
            f"no memory for a table of {' × '.join(f'{size:,}' for size in shape)} numbers that the optimizer "
            f"{type(task.optimizer).__name__} keeps: choose a smaller --dim, or --optimizer row-adagrad, "
            f"which keeps one number a row, or sgd, which keeps none ({first_line(error)})."
        ) from error


def whole_gradient(values: Tensor, parts: list[Part]) -> Tensor:
    """The gradient (n, m) of a table: the sum of its parts."""
    whole = [part.gradient for part in parts if part.whole]
    gradient = whole[0] if whole else torch.zeros_like(values, dtype=parts[0].gradient.dtype)
    for further in whole[1:]:
        gradient += further
    for part in parts:
        if not part.whole:
            assert part.where is not None
            gradient.index_add_(0, part.where, part.gradient)
    return gradient


def _marks(values: Tensor, parts: list[Part]) -> Tensor | None:
    """Which rows (n, 1) of a table a batch has read; None: all."""
    read = [part.where for part in parts if part.where is not None]
    if len(read) < len(parts):
        return None
    if values.device.type == "cpu":
        from murp.kernels.numba_optimizers import marked

        return marked(len(values), read)[:, None]
    # Not of single bytes: on a GPU, marks that lie in one sector of the memory are written one after another.
    found = torch.zeros(len(values), 1, dtype=torch.int32, device=values.device)
    for where in read:
        found.index_fill_(0, where, 1)
    return found.bool()


def _joined(first: Tensor, *others: Tensor) -> Tensor:
    """One after the other; a single one as it is, since joining would copy it."""
    return torch.cat([first, *others]) if others else first
