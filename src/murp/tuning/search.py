"""The search: trials one after another, or by several processes that share the file and the machine."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murp import threads
from murp.display import aside
from murp.errors import MurpError
from murp.graph import KnowledgeGraph
from murp.tuning.space import Space
from murp.tuning.study import interrupted, opened, optuna, runs_of, tidy
from murp.tuning.trial import TimeOverError, run_trial

CONTEXT = multiprocessing.get_context("spawn")  # a fork would have none of PyTorch's threads
HOPELESS = 3  # trials that fail before any other: the rest would fail too


@dataclass(frozen=True)
class Task:
    """The task of every process of a search. ``ends``: when to stop, by the monotonic clock."""

    storage: Path
    space: Space
    common: dict[str, Any]
    seed: int
    first_rung: int
    ends: float | None


def search(task: Task, graph: KnowledgeGraph, trials: int, workers: int) -> None:
    """Run trials until ``trials`` have ended or time is over; interrupted trials first."""
    study = _open(task, 0)
    there = study.get_trials(deepcopy=False)
    if not there and trials:
        study.enqueue_trial(task.space.first())
    waiting = (optuna().trial.TrialState.WAITING,)
    if trials and study.get_trials(deepcopy=False, states=waiting):
        # Taken by one process. Of several workers two could take it: SQLite does not lock the trial that they read.
        study.ask()
    tickets: list[int | None] = [trial._trial_id for trial in interrupted(study)]
    tickets += [None] * (trials - len(study.get_trials(deepcopy=False)))
    if workers == 1 or len(tickets) < 2:
        _work(task, graph, iter(tickets), 0)
    else:
        _work_together(task, graph, tickets, min(workers, len(tickets)))


def _open(task: Task, worker: int) -> Any:
    """The study; a new sampler must not repeat the draws of earlier or other samplers."""
    study = opened(task.storage, seed=task.seed, first_rung=task.first_rung)
    drawn = len(study.get_trials(deepcopy=False))
    return opened(task.storage, seed=(task.seed + 1_000_003 * drawn + worker) % 2**32, first_rung=task.first_rung)


def _work(task: Task, graph: KnowledgeGraph, tickets: Iterator[int | None], worker: int) -> None:
    """One trial for each ticket: the number of a trial to continue, or None for a new one."""
    study = _open(task, worker)
    for ticket in tickets:
        if task.ends is not None and time.monotonic() >= task.ends:
            return
        trial = study.ask() if ticket is None else _continued(study, ticket)
        try:
            run_trial(study, trial, task.space, graph, task.storage, task.common, task.ends)
        except TimeOverError:
            return
        tidy(study, task.storage)
        _tell(study, trial.number)


def _continued(study: Any, ticket: int) -> Any:
    """A trial that has begun. It may not have chosen yet, and Optuna lets only those choose that it has read."""
    study.get_trials(deepcopy=False)
    return optuna().trial.Trial(study, ticket)


def _tell(study: Any, number: int) -> None:
    """A line about a trial that has ended. Raise if trials fail, and none has done anything else."""
    trials = study.get_trials(deepcopy=False)
    one, states = trials[number], optuna().trial.TrialState
    done = [trial for trial in trials if trial.state == states.COMPLETE]
    best = max(done, key=lambda trial: trial.value, default=None)
    if one.state == states.COMPLETE:
        what = f"MRR {one.value:.4f} on valid"
    elif one.state == states.FAIL:
        what = f"failed: {one.user_attrs['error']}"
    elif "error" in one.user_attrs:
        what = "diverged"
    else:
        what = f"stopped in epoch {one.last_step} with MRR {one.intermediate_values[one.last_step]:.4f}"
    so_far = "" if best is None else f" (best: {best.value:.4f}, trial {best.number})"
    shown = ", ".join(f"{name}={_short(value)}" for name, value in one.params.items())
    aside(f"trial {number}: {what}{so_far}; {shown}")
    failed = [trial for trial in trials if trial.state == states.FAIL]
    if len(failed) >= HOPELESS and len(failed) == sum(trial.state.is_finished() for trial in trials):
        raise MurpError(f"the first {len(failed)} trials failed, the last one: {one.user_attrs['error']}")


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _work_together(task: Task, graph: KnowledgeGraph, tickets: list[int | None], workers: int) -> None:
    """The same with several processes, which share one queue of tickets and the threads."""
    home = runs_of(task.storage)
    home.mkdir(parents=True, exist_ok=True)
    place = home / "graph"
    if not place.exists():
        graph.save(place)
    common = {"data": graph.source or graph.name, **task.common}
    told = Task(task.storage, task.space, common, task.seed, task.first_rung, None)
    seconds = None if task.ends is None else max(task.ends - time.monotonic(), 0.0)
    box = filled(tickets, workers)
    share = max(1, threads.count() // workers)
    given = (told, str(place), box, share, seconds)
    processes = [CONTEXT.Process(target=_worker, args=(number, *given)) for number in range(workers)]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join()
    except KeyboardInterrupt:
        for process in processes:  # the terminal has told them too; each writes a checkpoint
            process.join()
        raise
    if any(process.exitcode for process in processes):
        raise MurpError("a worker of the search ended with an error, which it has printed. The same command goes on.")


def filled(tickets: list[int | None], workers: int) -> Any:
    """A queue of tickets, with an end mark for each worker."""
    box = CONTEXT.Queue()  # a SimpleQueue would wait for workers when its pipe is full
    box.cancel_join_thread()  # workers that end early leave some of them
    for ticket in [*tickets, *["end"] * workers]:
        box.put(ticket)
    return box


def _worker(number: int, task: Task, graph: str, box: Any, share: int, seconds: float | None) -> None:
    """What a process does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threads.use(share)
    ends = None if seconds is None else time.monotonic() + seconds
    task = Task(task.storage, task.space, task.common, task.seed, task.first_rung, ends)
    try:
        _work(task, KnowledgeGraph.load(graph), iter(box.get, "end"), number + 1)
    except KeyboardInterrupt:
        raise SystemExit(0) from None  # told by the process that waits for this one
    except MurpError as error:
        aside(f"murp: {error}")
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    """End a worker whose parent was killed; otherwise it would continue and disturb the next search."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
