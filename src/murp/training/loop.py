"""The training loop: the paper's recipe, validation, early stopping, checkpoints.

murp train --data wordnet-mini --model murp --dim 40 --out runs/first
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import torch
from torch import Tensor

from murp.commands import command
from murp.config import Config
from murp.distributed.ranking import Counting
from murp.distributed.ranks import no_memory
from murp.engines import Chunk, Engine
from murp.errors import DivergedError, NotFiniteError, RunError, is_of_memory
from murp.evaluation import KnownFacts, Protocol, evaluate, known_answers
from murp.runs import checkpoint, folder
from murp.runs.lock import check_held
from murp.runs.settings import bind
from murp.schedules import PLATEAU
from murp.threads import torch_alone
from murp.training import tensorboard
from murp.training.interrupt import Interrupt
from murp.training.job import Job
from murp.training.memory import memory_of_a_step
from murp.training.progress import Silent
from murp.training.schedule import learning_rate
from murp.training.state import State

# Seconds in which a second Ctrl-C is the first one again: a terminal sends it to every rank, and torchrun does too.
ENOUGH = 5.0
# Checkpoints of runs side by side are written by so many threads.
WRITERS = 4
# Epochs of a small graph last milliseconds: their lines of metrics.jsonl go to the file once in so many seconds.
METRICS_EVERY = 1.0


class Interrupted(KeyboardInterrupt):
    """Training was interrupted and has written a checkpoint; the message says how to continue."""

    silent = False  # whether another process says it


class Work:
    """A chunk of every job that was given to the engine; a GPU may still be working on it."""

    def __init__(self, index: int, chunks: list[Chunk], sums: Tensor) -> None:
        self.index = index
        self.chunks = chunks
        # Reading a number on the GPU would wait for all that has been handed to it since.
        self.sums = sums.to("cpu", non_blocking=True)
        self.done = torch.cuda.Event() if sums.is_cuda else None  # type: ignore[no-untyped-call]
        if self.done is not None:
            self.done.record()

    def losses(self) -> list[float]:
        """The sum of each job's losses; waits until they are computed."""
        if self.done is not None:
            self.done.synchronize()
        return self.sums.tolist()


def fit(jobs: Sequence[Job], engine: Engine, progress: Silent) -> None:
    """Train every job in place to its last epoch, writing into its run folder.

    Jobs run side by side, step by step: they share the graph, the number of epochs and the shape of a batch, and are at
    the same step. A chunk's losses are read after the next chunk was given to the engine, so that a GPU does not wait
    for Python. If a job's parameters become infinite or NaN, it stops with ``failure`` set; if no job is left, the
    failure is raised.
    """
    lead = jobs[0]
    config, state, sampler, ranks = lead.config, lead.state, lead.sampler, lead.ranks
    # Searching a hundred million facts takes a while: only for those who validate.
    known = known_answers(lead.graph, "valid") if any(job.config.validate_every for job in jobs) else None
    for job, optimizer in zip(jobs, engine.states, strict=True):
        job.optimizer = optimizer
    boards = [tensorboard.writer(job.path) if job.config.tensorboard and ranks.first else None for job in jobs]
    saved = noted = time.monotonic()
    progress.watch(lead.path, lead.graph, lead.model)
    progress.start(state, sampler.steps_before(state.chunk), sampler.steps, config.epochs)
    try:
        # Leaving the pool waits for what is still being written.
        with (
            Interrupt(ENOUGH if ranks.size > 1 else 0.0) as interrupt,
            ThreadPoolExecutor(min(WRITERS, len(jobs)), "checkpoints") as disk,
            # An engine with threads of its own leaves PyTorch little to do, and nothing worth a spinning wait.
            contextlib.nullcontext() if engine.name == "torch" else torch_alone(),
        ):
            while not finished(config, state):
                rates = [learning_rate(job.config, job.state) for job in jobs]
                running: Work | None = None
                stop = False
                began = time.monotonic()
                for index in range(state.chunk, sampler.chunks):
                    with memory_of_a_step(lead.path, config):
                        chunks = [job.sampler.chunk(state.epoch, index) for job in jobs]
                        work = Work(index, chunks, engine.run(chunks, rates))
                        if sampler.device.type == "cuda":
                            # Drawn while the GPU is busy with this one.
                            for job in jobs:
                                job.sampler.prefetch(state.epoch, index + 1)
                    if running is not None:
                        began = _settle(jobs, running, began, progress)
                    running = work
                    stop, due = ranks.agreed(interrupt.requested, time.monotonic() - saved >= config.save_every)
                    if stop:
                        break
                    # An epoch of a large graph lasts longer than one would like to lose.
                    if index + 1 < sampler.chunks and due:
                        _settle(jobs, running, began, progress)
                        running = None
                        for job in jobs:
                            _save_last(job, disk)
                        _drop_failed(jobs)
                        began = saved = time.monotonic()
                if running is not None:
                    _settle(jobs, running, began, progress)
                (stop,) = ranks.agreed(stop or interrupt.requested)
                if stop:
                    for job in jobs:
                        _save_last(job, disk)
                        _wait(job)
                    raise Interrupted(f"stopped in epoch {state.epoch + 1}; {_how_to_go_on(jobs)}")

                last = state.epoch + 1 == config.epochs
                (due,) = ranks.agreed(last or time.monotonic() - saved >= config.save_every)
                for job, lr, board in zip(jobs, rates, boards, strict=True):
                    record = _finish_epoch(job, lr, known, disk)
                    if record is None:
                        continue
                    progress.epoch(record if len(jobs) == 1 else {"run": str(job.path), **record})
                    if board is not None:
                        tensorboard.write(board, record)
                _drop_failed(jobs)
                # After all validations: what those found best is being written meanwhile.
                for job in jobs:
                    if due or stopped_early(job.config, job.state):
                        _save_last(job, disk)
                _drop_failed(jobs)
                saved = time.monotonic() if due else saved
                if time.monotonic() - noted >= METRICS_EVERY:
                    for job in jobs:
                        _write_metrics(job)
                    noted = time.monotonic()
            for job in jobs:
                _wait(job)
    finally:
        progress.stop()
        for job in jobs:
            # Nothing is left here unless training failed, and that is what has to be told.
            with contextlib.suppress(RunError):
                _write_metrics(job)
        for board in boards:
            if board is not None:
                board.close()


def finished(config: Config, state: State) -> bool:
    """Whether a run at ``state`` is finished."""
    return state.epoch >= config.epochs or stopped_early(config, state)


def stopped_early(config: Config, state: State) -> bool:
    """Whether ``patience`` validations have passed without a better one."""
    return config.patience > 0 and state.stale >= config.patience


def _settle(jobs: Sequence[Job], work: Work, began: float, progress: Silent) -> float:
    """Wait for a chunk's losses and count it in every job; its time is the time since ``began``. Returns the time
    now."""
    losses = work.losses()
    now = time.monotonic()
    for job, loss in zip(jobs, losses, strict=True):
        state = job.state
        if job.failure is None and not math.isfinite(loss):
            job.failure = _diverged(job, state.epoch + 1, "the loss")
        state.chunk, state.loss, state.seconds = work.index + 1, state.loss + loss, state.seconds + now - began
    _drop_failed(jobs)
    progress.advance(jobs[0].state, work.chunks[0], now - began, losses[0] / work.chunks[0].steps)
    return now


def _finish_epoch(job: Job, lr: float, known: KnownFacts | None, disk: ThreadPoolExecutor) -> dict[str, Any] | None:
    """Count the epoch, validate if it is due, and return the line for metrics.jsonl.

    A job that has failed returns none.
    """
    state, config = job.state, job.config
    record: dict[str, Any] = {"epoch": state.epoch + 1, "loss": state.loss / job.sampler.steps, "lr": lr}
    state.epoch, state.chunk, state.loss = state.epoch + 1, 0, 0.0
    if job.failure is not None:
        return None
    if config.validate_every and (state.epoch % config.validate_every == 0 or state.epoch == config.epochs):
        try:
            record["valid"] = _validate(job, known, disk)
        except NotFiniteError:
            job.failure = job.failure or _diverged(job, state.epoch, "a score")
            return None
    record["seconds"] = round(state.seconds, 3)
    job.records.append(record)
    return record


def _write_metrics(job: Job) -> None:
    """Write the new lines of metrics.jsonl; raises if the job's folder was replaced with another one."""
    if not job.ranks.first:
        return
    check_held(job.path)
    records, job.records = job.records, []
    if records:
        folder.append_metrics(job.path, records)


def _validate(job: Job, known: KnownFacts | None, disk: ThreadPoolExecutor) -> dict[str, Any]:
    """Evaluate on valid (never test) and keep the weights if they are the best so far."""
    state = job.state
    began = time.monotonic()
    if job.saver is not None and not _is_finite(job):
        raise NotFiniteError("some rank's parameters are not finite")
    # Points in host memory are ranked there: on the GPU there may be no room for them.
    model = (job.model.on_cpu() if job.model.on_host else job.model).in_full()
    counting = None if job.saver is None else Counting(job.ranks, model)
    protocol: Protocol = "sampled" if job.config.validate_candidates else "standard"
    report = evaluate(
        model,
        job.graph,
        "valid",
        protocol=protocol,
        candidates=job.config.validate_candidates or None,
        seed=job.config.seed,
        known=known,
        counting=counting,
    )
    state.seconds += time.monotonic() - began
    if state.best_mrr is None or report.mrr > state.best_mrr:
        state.best_mrr, state.best_epoch, state.stale = report.mrr, state.epoch, 0
        state.reduced_at = 0
        _save(job, folder.BEST, disk)
    else:
        state.stale += 1
        if job.config.lr_schedule == "plateau" and state.stale - state.reduced_at >= PLATEAU:
            state.reductions, state.reduced_at = state.reductions + 1, state.stale
    return report.to_dict()


def _save_last(job: Job, disk: ThreadPoolExecutor) -> None:
    if _is_finite(job):
        _save(job, folder.LAST, disk)


def _save(job: Job, name: str, disk: ThreadPoolExecutor) -> None:
    """Write a checkpoint in a thread while training continues; in order, one at a time for each job.

    Tables on a GPU must be copied to be written, and the copy can wait for the disk. A copy of tables on the CPU
    doubles their memory: so a process that has all tables writes them at once, and a rank, which has few rows, copies
    them. Points in host memory are written at once too: no step may change them meanwhile, and all earlier steps are
    finished. New lines of metrics.jsonl are written first.
    """
    _write_metrics(job)
    _wait(job)
    # What is evaluated needs no optimizer; what is continued does.
    kept = job.model.parameters | (job.optimizer if name == folder.LAST else {})
    state = bind(job.state.to_dict(), job.config)
    many, copied = job.saver is not None, True
    try:
        tables = {table: values.detach().to("cpu", copy=many) for table, values in kept.items()}
    except (MemoryError, RuntimeError):
        if job.model.device.type != "cpu":
            raise
        tables, copied = kept, False  # no room for a copy: training waits until they are written
    save = checkpoint.save if job.saver is None else job.saver.save
    try:
        job.written = disk.submit(save, job.path / name, tables, state)
    except RuntimeError as error:
        if not is_of_memory(error):
            raise
        raise no_memory(error) from error
    if not copied:
        wait([job.written])  # what went wrong is told when the other ranks ask too
    elif not many and any(values.device.type == "cpu" for values in kept.values()):
        _wait(job)


def _wait(job: Job) -> None:
    """Wait until the job's checkpoint is on disk; raises its error on every rank."""
    written, job.written = job.written, None
    if written is not None:
        with job.ranks.together():
            written.result()


def _is_finite(job: Job) -> bool:
    """Whether all parameters and the optimizer state are finite; if not, the job fails."""
    if job.failure is None:
        infinite = [name for name, values in job.optimizer.items() if not bool(values.isfinite().all())]
        found = [f"the optimizer's table {name}" for name in infinite] + [f"parameter {n}" for n in job.model.broken()]
        said = [what for one in job.ranks.gathered(found) for what in one]
        if said:
            epoch = max(job.state.epoch + bool(job.state.chunk), 1)
            job.failure = _diverged(job, epoch, said[0])
    return job.failure is None


def _how_to_go_on(jobs: Sequence[Job]) -> str:
    """How to resume the jobs that were saved; the reason if all have failed."""
    saved = [f"`{command('train', '--resume', job.path)}`" for job in jobs if job.failure is None]
    return f"go on with {' and '.join(saved)}" if saved else str(jobs[0].failure)


def _drop_failed(jobs: Sequence[Job]) -> None:
    failures = [job.failure for job in jobs if job.failure is not None]
    if len(failures) == len(jobs):
        raise failures[0]


def _diverged(job: Job, epoch: int, noticed: str) -> DivergedError:
    broken = job.model.broken()
    what = f"parameter {', '.join(broken)}" if broken else noticed
    lr = job.config.lr
    precise = "" if job.config.dtype == "float64" else ", or --dtype float64"
    kept = f"The last good checkpoint in {job.path} is kept; a run with other settings needs another folder."
    advice = f"Try a learning rate of {lr / 5:g}{precise}. {kept}"
    return DivergedError(what, epoch, lr, advice)
