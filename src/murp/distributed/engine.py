"""The training step on many ranks, for any model and optimizer with an objective that uses negatives.

Every rank has some rows of the entities with their optimizer state, and all relations and shared tables. In a step

    1. the owners send the rows that a slice reads to the rank that computes it; where a batch names few entities, those
       that the step before does not move have travelled while that one was computed,
    2. the slice's loss and gradients are those of :mod:`murp.engines.step` on these rows, by autograd or by a fused
       kernel (:mod:`murp.engines.slices`); a row that occurs often has one gradient,
    3. one message to each rank has the gradients of its rows, and those of relations and shared tables, which all get,
    4. gradients are added up slice by slice, in their order, and rows, relations and shared tables move.

Nothing else of a batch is combined, so only the place of the rows depends on the number of ranks. On the CPU, PyTorch
rounds the end of a tensor differently from its middle. So rows are updated in whole blocks, padded at the end, unless
the optimizer has a compiled loop, which rounds every row alike.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.distributed.plan import OBJECT, SUBJECT, Message, Slice, Step, by_rank, own_part, plan
from murp.distributed.ranks import OnTheWay, Ranks
from murp.distributed.shares import Share, apart, joined, packed, side_by_side, unpacked, widths
from murp.engines.engine import Chunk
from murp.engines.memory import keep_freed
from murp.engines.slices import fused_gradients
from murp.engines.step import loss_of, row_gradients
from murp.engines.task import Task
from murp.engines.torch_engine import pieces
from murp.engines.updates import names_of, new_state, whole_gradient
from murp.models.blocks import filled
from murp.models.model import Rows, Table
from murp.models.rounding import rounded
from murp.negatives import Drawn

PLANNED = 16  # steps whose rows are asked for at once
AUTOGRAD = "sharded"  # the name of an engine whose gradients are those of autograd
WHOLE = 64  # rows of a block: a multiple of every processor's vectors


class ShardedEngine:
    """Steps of one model whose entities are divided among several ranks; ``model.parameters`` are those of this
    rank. ``engine``: whose gradients a slice has."""

    def __init__(self, task: Task, ranks: Ranks, slices: int, engine: str = "torch") -> None:
        self.fused = fused_gradients(engine, task)
        self.name = AUTOGRAD if self.fused is None else f"{AUTOGRAD} {self.fused.name}"
        self.task, self.model, self.ranks, self.slices = task, task.model, ranks, slices
        self.share = Share(self.model.num_entities, ranks.rank, ranks.size)
        self.columns = {of: widths(self.model, of) for of in ("entity", "relation", "shared")}
        self.width = {of: sum(columns.values()) for of, columns in self.columns.items()}
        # Rows travel as they are stored: as bytes, if not all tables are stored in the precision of a step.
        self.kinds = {table.name: self.model.dtype_of(table) for table in self.model.tables if table.of == "entity"}
        self.as_bytes = set(self.kinds.values()) != {self.model.dtype}
        sizes = {name: kind.itemsize if self.as_bytes else 1 for name, kind in self.kinds.items()}
        self.row_size = sum(width * sizes[name] for name, width in self.columns["entity"].items())
        self.state = new_state(task)
        keep_freed()
        # What a slice sees: a model of the rows that it reads, and of no others.
        self.seen = dataclasses.replace(task, model=copy.copy(self.model))
        self.seen.model.point_dtype = self.model.dtype

    @property
    def states(self) -> list[dict[str, Tensor]]:
        """The optimizer's tables; for entities only the rows of this rank."""
        return [self.state]

    @property
    def adds_at_once(self) -> bool:
        """Whether one operation adds the gradients of all slices: a GPU rather copies than starts one for each."""
        return self.model.device.type == "cuda"

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`; every rank gets its part of one chunk and returns the same
        losses."""
        (chunk,), (lr,) = chunks, rates
        total = torch.zeros((), dtype=self.model.dtype, device=self.model.device)
        part = own_part(chunk.batch, self.slices, self.ranks.rank, self.ranks.size)
        assert (chunk.first, chunk.positives.shape[1]) == (part.start, part.stop - part.start)
        every = self.model.num_relations if self.task.regularizer.reads_relations else None
        number = 0
        before = torch.get_num_threads()
        threads.use_torch(1)  # more would cut tensors, and round at the cuts
        try:
            for positives, drawn in pieces(self.task, chunk, part):
                for start in range(0, len(positives), PLANNED):
                    some = slice(start, start + PLANNED)
                    false = Drawn(drawn.objects[some], None if drawn.subjects is None else drawn.subjects[some])
                    steps = plan(self.ranks, self.share, self.slices, chunk.batch, positives[some], false, every)
                    early: OnTheWay | None = None
                    for step, following in itertools.zip_longest(steps, steps[1:]):
                        loss, early = self.step(step, lr, (chunk.seed, number), early, following)
                        total += loss
                        number += 1
        finally:
            threads.use_torch(before)
        return total[None]

    @torch.no_grad()
    def step(
        self, step: Step, lr: float, seed: tuple[int, int], early: OnTheWay | None, following: Step | None
    ) -> tuple[Tensor, OnTheWay | None]:
        """One step. Returns the mean loss of the batch before the step, and the rows of the ``following`` step that are
        sent early.

        ``early``: such rows of this step.
        """
        fetched = self._fetched(step, early)
        ahead = None if following is None or following.early is None else self._send(following.early)
        found = [self._gradients(one, rows, (*seed, one.number)) for one, rows in zip(step.own, fetched, strict=True)]
        of_rows, common = self._exchanged(step, found)
        self._move_entities(step, of_rows, lr)
        return self._move_common(step, common, lr), ahead

    def _send(self, message: Message) -> OnTheWay:
        """Start sending this rank's rows to the ranks that need them."""
        tables = {name: self._flat(name).index_select(0, message.rows) for name in self.columns["entity"]}
        rows = packed(tables) if self.as_bytes else side_by_side(tables)
        outgoing, incoming = ([self.row_size * n for n in counts] for counts in (message.outgoing, message.incoming))
        return self.ranks.begin(rows.flatten(), outgoing, incoming)

    def _fetched(self, step: Step, early: OnTheWay | None) -> list[Tensor]:
        """The rows of entities (n, …) that each of this rank's slices needs, as they travel."""
        parts = self._send(step.late).wait().view(-1, self.row_size)
        if early is not None:
            assert step.early is not None
            assert step.early.place is not None
            assert step.late.place is not None
            late, before = parts, early.wait().view(-1, self.row_size)
            parts = late.new_empty(len(late) + len(before), self.row_size)
            parts.index_copy_(0, step.late.place, late).index_copy_(0, step.early.place, before)
        lengths = [one.asked[rank] for rank in range(self.ranks.size) for one in step.own]
        pieces_ = torch.split(parts, lengths)
        slices = len(step.own)
        return [parts] if slices == 1 else [joined(pieces_[i::slices]) for i in range(slices)]

    def _gradients(self, one: Slice, rows: Tensor, seed: tuple[int, int, int]) -> tuple[list[Tensor], Tensor]:
        """The gradients of the entities' rows (n, …), table by table, and of relations and shared tables with the loss
        (m)."""
        model = self.seen.model
        relations = {name: self._flat(name).index_select(0, one.relations) for name in self.columns["relation"]}
        shared = {name: self._flat(name) for name in self.columns["shared"]}
        flat = {**self._in_full(rows), **relations, **shared}
        model.parameters = {
            table.name: flat[table.name].reshape(-1, *table.shape).contiguous() for table in model.tables
        }
        model.num_entities, model.num_relations = len(rows), len(one.relations)
        if self.fused is None:
            value, found = self._differentiated(one, flat, seed)
        else:
            value, found = self.fused(model, one.positives, one.drawn.objects, one.weight)
        of = {
            which: {name: found[name].reshape(flat[name].shape) for name in columns}
            for which, columns in self.columns.items()
        }
        common = [side_by_side(of[which]).flatten() for which in ("relation", "shared") if of[which]]
        return list(of["entity"].values()), torch.cat([*common, value.view(1)])

    def _in_full(self, rows: Tensor) -> Rows:
        """Rows that have travelled, table by table, in the precision that a step computes in."""
        if not self.as_bytes:
            return apart(rows, self.columns["entity"])
        found = unpacked(rows, self.columns["entity"], self.kinds)
        return {name: values.to(self.model.dtype) for name, values in found.items()}

    def _differentiated(self, one: Slice, flat: Rows, seed: tuple[int, int, int]) -> tuple[Tensor, Rows]:
        """By autograd: the loss, and the gradients (n, m) of every table."""

        def loss(task: Task, *given: object) -> Tensor:
            return loss_of(task, *given) * one.weight  # type: ignore[arg-type]

        with self._training(seed):
            value, touched = row_gradients(self.seen, one.positives, one.drawn, loss=loss)
        return value, {name: whole_gradient(flat[name], parts) for name, parts in touched.items()}

    def _lengths(self, step: Step) -> list[int]:
        """How many numbers each slice has for every rank: of relations and of shared tables, and the loss."""
        return [self.width["relation"] * n + self.width["shared"] + 1 for n in step.relation_counts]

    def _exchanged(self, step: Step, found: list[tuple[list[Tensor], Tensor]]) -> tuple[Rows, Tensor]:
        """Send the gradients of this rank's slices. Returns those of its rows (m, …) of each table, added up slice by
        slice, and what all slices have for every rank, slice after slice.

        The number of operations does not depend on the number of ranks: one joins all parts, and one cuts them.
        """
        size, columns = self.ranks.size, self.columns["entity"]
        nothing = torch.zeros(0, dtype=self.model.dtype, device=self.model.device)
        common = torch.cat([nothing, *(values for _, values in found)])
        outgoing = [
            len(common) + self.width["entity"] * sum(one.asked[rank] for one in step.own) for rank in range(size)
        ]
        parts = [
            torch.split(table, one.asked) for one, (tables, _) in zip(step.own, found, strict=True) for table in tables
        ]
        message = torch.cat([part for rank in range(size) for part in (common, *(of[rank].flatten() for of in parts))])
        everyone, own = (by_rank(counts, step.slices_of) for counts in (self._lengths(step), step.counts))
        incoming = [first + self.width["entity"] * n for first, n in zip(everyone, own, strict=True)]
        received = self.ranks.exchange(message, outgoing, incoming)
        lengths, slices = [], iter(step.counts)
        for first, count in zip(everyone, step.slices_of, strict=True):
            lengths.append(first)
            lengths += [width * rows for rows in itertools.islice(slices, count) for width in columns.values()]
        cut = iter(torch.split(received, lengths))
        for_all, of_rows = [], []
        for count in step.slices_of:
            for_all.append(next(cut))
            of_rows += [tuple(itertools.islice(cut, len(columns))) for _ in range(count)]
        totals = {}
        for (name, width), pieces_ in zip(columns.items(), zip(*of_rows, strict=True), strict=True):
            total = totals[name] = received.new_zeros(len(step.rows), width)
            places = [step.place] if self.adds_at_once else torch.split(step.place, step.counts)
            for place, piece in zip(places, [torch.cat(pieces_)] if self.adds_at_once else pieces_, strict=True):
                total.index_add_(0, place, piece.view(-1, width))
        return totals, torch.cat(for_all)

    def _move_entities(self, step: Step, gradients: Rows, lr: float) -> None:
        roles = {"subject": SUBJECT, "object": OBJECT}
        for table in self.model.tables:
            if table.of != "entity" or not table.trained:
                continue
            read = (step.roles & sum(roles[role] for role in table.roles if role in roles)) > 0
            where, own = step.rows, gradients[table.name]
            if not bool(read.all()):
                where, own = where[read], own[read]
            if len(where):
                self._move(table, where, own, lr)

    def _move_common(self, step: Step, common: Tensor, lr: float) -> Tensor:
        """Update relations and shared tables, in the same way on every rank. Returns the loss."""
        loss = common.new_zeros(())
        shared = common.new_zeros(self.width["shared"])
        of_relations = []
        of_slices = torch.split(common, self._lengths(step))
        for values, count in zip(of_slices, step.relation_counts, strict=True):
            first = self.width["relation"] * count
            of_relations.append(values[:first])
            shared += values[first:-1]
            loss += values[-1]
        rows, place = torch.unique(step.relations, return_inverse=True)
        width = self.width["relation"]
        every = torch.cat(of_relations).view(len(place), width)  # width: 0 of a model without tables of relations
        gradient = loss.new_zeros(len(rows), width).index_add_(0, place, every)
        parts = {**apart(gradient, self.columns["relation"]), **apart(shared[None], self.columns["shared"])}
        for table in self.model.tables:
            if table.of != "entity" and table.trained:
                self._move(table, rows if table.of == "relation" else rows.new_zeros(1), parts[table.name], lr)
        return loss

    def _move(self, table: Table, where: Tensor, gradient: Tensor, lr: float) -> None:
        """The optimizer's step on the rows ``where``, each named once: by its compiled loop, or by PyTorch."""
        count = len(where)
        values = self._flat(table.name)
        names = names_of(self.task, table)
        if self.model.device.type == "cpu" and values.dtype == gradient.dtype:
            own = {short: self.state[name] for short, name in names.items()}
            if self.task.optimizer.move(table.geometry, values, gradient, own, lr, where=where):
                return
        if table.of == "entity":  # how many rows there are depends on how many ranks there are
            places = filled(torch.arange(count, device=where.device), -(-count // WHOLE) * WHOLE)
            where, gradient = where[places], gradient[places]
        state: Rows = {short: self.state[name].index_select(0, where) for short, name in names.items()}
        rows = values.index_select(0, where).to(gradient.dtype)
        moved = self.task.optimizer.step(table.geometry, rows, gradient.contiguous(), state, lr)
        moved = rounded(moved, values.dtype, table.geometry)
        values.index_copy_(0, where[:count], moved[:count])
        for short, name in names.items():
            self.state[name].index_copy_(0, where[:count], state[short][:count])

    def _flat(self, name: str) -> Tensor:
        """A table as rows of vectors."""
        values = self.model.parameters[name]
        return values.view(len(values), next(width[name] for width in self.columns.values() if name in width))

    @contextmanager
    def _training(self, seed: tuple[int, int, int]) -> Iterator[None]:
        """The model in training mode; dropout's random numbers depend only on ``seed``, which is made of chunk, step
        and slice."""
        model = self.seen.model
        device = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.random.fork_rng(device, enabled=bool(model.uses_chance)):
            if model.uses_chance:
                torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1))
            model.training = True
            try:
                yield
            finally:
                model.training = False
