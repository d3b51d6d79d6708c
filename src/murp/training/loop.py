"""The training loop: the paper's recipe, validation, early stopping, checkpoints.

murp train --data wordnet-mini --model murp --dim 40 --out runs/first
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from murp.commands import command
from murp.config import Config
from murp.engines import Chunk, Engine
from murp.errors import DivergedError, NotFiniteError, RunError
from murp.evaluation import KnownFacts, evaluate
from murp.runs import checkpoint, folder
from murp.runs.lock import check_held
from murp.runs.settings import bind
from murp.threads import torch_alone
from murp.training import tensorboard
from murp.training.interrupt import Interrupt
from murp.training.lane import Lane
from murp.training.memory import memory_of_a_step
from murp.training.progress import Silent
from murp.training.schedule import learning_rate
from murp.training.state import State

# Checkpoints of runs side by side are written by so many threads.
WRITERS = 4
# Epochs of a small graph last milliseconds: their lines of metrics.jsonl go to the file once in so many seconds.
METRICS_EVERY = 1.0


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and has written a checkpoint; the message says how to go on."""


class Work:
    """A chunk of every lane that was handed to the engine; a GPU may still be busy with it, and reads the chunks."""

    def __init__(self, index: int, chunks: list[Chunk], sums: Tensor) -> None:
        self.index = index
        self.chunks = chunks
        # Reading a number on the GPU would wait for all that has been handed to it since.
        self.sums = sums.to("cpu", non_blocking=True)
        self.done = torch.cuda.Event() if sums.is_cuda else None  # type: ignore[no-untyped-call]
        if self.done is not None:
            self.done.record()

    def losses(self) -> list[float]:
        """The sum of each lane's losses, as soon as they are there."""
        if self.done is not None:
            self.done.synchronize()
        return self.sums.tolist()


def fit(lanes: Sequence[Lane], engine: Engine, progress: Silent) -> None:
    """Train every lane in place to its last epoch, writing into its run folder.

    Lanes run side by side, step by step: they share the graph, the number of epochs and the shape of a
    batch, and stand at the same step. A chunk's losses are read when the next one has been handed to the engine, so
    that a GPU need not wait for Python between them. A lane whose numbers stop being finite drops out with its
    ``failure`` set; if none is left, the failure is raised.
    """
    lead = lanes[0]
    config, state, sampler = lead.config, lead.state, lead.sampler
    known = KnownFacts.of(lead.graph)
    boards = [tensorboard.writer(lane.path) if lane.config.tensorboard else None for lane in lanes]
    saved = noted = time.monotonic()
    progress.start(state, sampler.steps_before(state.chunk), sampler.steps, config.epochs)
    try:
        # Leaving the pool waits for what is still being written.
        with (
            Interrupt() as interrupt,
            ThreadPoolExecutor(min(WRITERS, len(lanes)), "checkpoints") as disk,
            # An engine with threads of its own leaves PyTorch little to do, and nothing worth a spinning wait.
            contextlib.nullcontext() if engine.name == "torch" else torch_alone(),
        ):
            while not finished(config, state):
                rates = [learning_rate(lane.config, state.epoch) for lane in lanes]
                running: Work | None = None
                began = time.monotonic()
                for index in range(state.chunk, sampler.chunks):
                    chunks = [lane.sampler.chunk(state.epoch, index) for lane in lanes]
                    with memory_of_a_step(lead.path, config):
                        work = Work(index, chunks, engine.run(chunks, rates))
                    if sampler.device.type == "cuda":
                        # Drawn while the GPU is busy with this one.
                        for lane in lanes:
                            lane.sampler.prefetch(state.epoch, index + 1)
                    if running is not None:
                        began = _settle(lanes, running, began, progress)
                    running = work
                    if interrupt.requested:
                        break
                    # An epoch of a large graph lasts longer than one would like to lose.
                    if index + 1 < sampler.chunks and time.monotonic() - saved >= config.save_every:
                        _settle(lanes, running, began, progress)
                        running = None
                        for lane in lanes:
                            _save_last(lane, disk)
                        _drop_failed(lanes)
                        began = saved = time.monotonic()
                if running is not None:
                    _settle(lanes, running, began, progress)
                if interrupt.requested:
                    for lane in lanes:
                        _save_last(lane, disk)
                        _wait(lane)
                    raise Interrupted(f"stopped in epoch {state.epoch + 1}; {_how_to_go_on(lanes)}")

                last = state.epoch + 1 == config.epochs
                due = last or time.monotonic() - saved >= config.save_every
                for lane, lr, board in zip(lanes, rates, boards, strict=True):
                    record = _finish_epoch(lane, lr, known, disk)
                    if record is None:
                        continue
                    progress.epoch(record if len(lanes) == 1 else {"run": str(lane.path), **record})
                    if board is not None:
                        tensorboard.write(board, record)
                _drop_failed(lanes)
                # After all validations: what those found best is being written meanwhile.
                for lane in lanes:
                    if due or stopped_early(lane.config, lane.state):
                        _save_last(lane, disk)
                _drop_failed(lanes)
                saved = time.monotonic() if due else saved
                if time.monotonic() - noted >= METRICS_EVERY:
                    for lane in lanes:
                        _write_metrics(lane)
                    noted = time.monotonic()
            for lane in lanes:
                _wait(lane)
    finally:
        progress.stop()
        for lane in lanes:
            # Nothing is left here unless training failed, and that is what has to be told.
            with contextlib.suppress(RunError):
                _write_metrics(lane)
        for board in boards:
            if board is not None:
                board.close()


def finished(config: Config, state: State) -> bool:
    """Whether a run that stands at ``state`` has nothing left to do."""
    return state.epoch >= config.epochs or stopped_early(config, state)


def stopped_early(config: Config, state: State) -> bool:
    """Whether ``patience`` validations have passed without a better one."""
    return config.patience > 0 and state.stale >= config.patience


def _settle(lanes: Sequence[Lane], work: Work, began: float, progress: Silent) -> float:
    """Wait for a chunk's losses and count it in every lane; what it took is the time since ``began``. The time now."""
    losses = work.losses()
    now = time.monotonic()
    for lane, loss in zip(lanes, losses, strict=True):
        state = lane.state
        if lane.failure is None and not math.isfinite(loss):
            lane.failure = _diverged(lane, state.epoch + 1, "the loss")
        state.chunk, state.loss, state.seconds = work.index + 1, state.loss + loss, state.seconds + now - began
    _drop_failed(lanes)
    progress.advance(lanes[0].state, work.chunks[0], now - began, losses[0] / work.chunks[0].steps)
    return now


def _finish_epoch(lane: Lane, lr: float, known: KnownFacts, disk: ThreadPoolExecutor) -> dict[str, Any] | None:
    """Count the epoch, validate where that is due, and note the line for metrics.jsonl, which is returned.

    A lane that has failed has none.
    """
    state, config = lane.state, lane.config
    record: dict[str, Any] = {"epoch": state.epoch + 1, "loss": state.loss / lane.sampler.steps, "lr": lr}
    state.epoch, state.chunk, state.loss = state.epoch + 1, 0, 0.0
    if lane.failure is not None:
        return None
    if config.validate_every and (state.epoch % config.validate_every == 0 or state.epoch == config.epochs):
        try:
            record["valid"] = _validate(lane, known, disk)
        except NotFiniteError:
            lane.failure = _diverged(lane, state.epoch, "a score")
            return None
    record["seconds"] = round(state.seconds, 3)
    lane.records.append(record)
    return record


def _write_metrics(lane: Lane) -> None:
    """What has been noted since the last time; raises where another folder has taken the place of the lane's."""
    check_held(lane.path)
    records, lane.records = lane.records, []
    if records:
        folder.append_metrics(lane.path, records)


def _validate(lane: Lane, known: KnownFacts, disk: ThreadPoolExecutor) -> dict[str, Any]:
    """Evaluate on valid (never test) and keep the weights if they are the best so far."""
    state = lane.state
    began = time.monotonic()
    report = evaluate(lane.model, lane.graph, "valid", known=known)
    state.seconds += time.monotonic() - began
    if state.best_mrr is None or report.mrr > state.best_mrr:
        state.best_mrr, state.best_epoch, state.stale = report.mrr, state.epoch, 0
        _save(lane, folder.BEST, disk)
    else:
        state.stale += 1
    return report.to_dict()


def _save_last(lane: Lane, disk: ThreadPoolExecutor) -> None:
    if _is_finite(lane):
        _save(lane, folder.LAST, disk)


def _save(lane: Lane, name: str, disk: ThreadPoolExecutor) -> None:
    """Write a checkpoint; of a model on the GPU behind the training's back, in order, one at a time for each lane.

    A GPU's tables have to be copied to be written, and the copy can wait for the disk. A copy of a CPU's tables
    would double the memory, so those are written at once. The lines of metrics.jsonl that were noted before go first.
    """
    _write_metrics(lane)
    _wait(lane)
    tables = {table: values.detach().cpu() for table, values in lane.model.parameters.items()}
    state = bind(lane.state.to_dict(), lane.config)
    lane.written = disk.submit(checkpoint.save, lane.path / name, tables, state)
    if lane.model.device.type == "cpu":
        _wait(lane)


def _wait(lane: Lane) -> None:
    """Until the lane's checkpoint is on the disk; raises what went wrong there."""
    written, lane.written = lane.written, None
    if written is not None:
        written.result()


def _is_finite(lane: Lane) -> bool:
    """Whether every parameter is; if not, the lane fails."""
    if lane.failure is None and lane.model.broken():
        lane.failure = _diverged(lane, max(lane.state.epoch + bool(lane.state.chunk), 1), "a parameter")
    return lane.failure is None


def _how_to_go_on(lanes: Sequence[Lane]) -> str:
    """How to resume the lanes that were saved; why none was, if they all have failed."""
    saved = [f"`{command('train', '--resume', lane.path)}`" for lane in lanes if lane.failure is None]
    return f"go on with {' and '.join(saved)}" if saved else str(lanes[0].failure)


def _drop_failed(lanes: Sequence[Lane]) -> None:
    failures = [lane.failure for lane in lanes if lane.failure is not None]
    if len(failures) == len(lanes):
        raise failures[0]


def _diverged(lane: Lane, epoch: int, noticed: str) -> DivergedError:
    broken = lane.model.broken()
    what = f"parameter {', '.join(broken)}" if broken else noticed
    lr = lane.config.lr
    precise = "" if lane.config.dtype == "float64" else ", or --dtype float64"
    advice = f"Try a learning rate of {lr / 5:g}{precise}. The last good checkpoint in {lane.path} is kept."
    return DivergedError(what, epoch, lr, advice)
