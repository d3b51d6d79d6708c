"""One trial: a training that reports its MRR on valid, and is stopped if others were better at that point."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from murp import training
from murp.errors import MurpError, NotFiniteError
from murp.graph import KnowledgeGraph
from murp.runs import Run
from murp.settings import Search, Setting, Span
from murp.training.progress import Silent
from murp.training.state import State
from murp.tuning.space import Space
from murp.tuning.study import optuna, run_of

DIVERGED = 0  # an epoch that has no validation: trials that came farther are better


class TimeOverError(Exception):
    """The search has no time left; the trial continues the next time."""


class Reported(Silent):
    """Reports every validation to a trial, and stops the training if it is pruned or time is over."""

    def __init__(self, trial: Any, ends: float | None) -> None:
        self.trial, self.ends = trial, ends
        self.told = set(trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values)

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        super().start(state, done, steps, epochs)
        self.epochs = epochs

    def advance(self, state: State, chunk: Any, seconds: float, loss: float) -> None:
        if self.ends is not None and time.monotonic() >= self.ends:
            raise TimeOverError

    def epoch(self, record: dict[str, Any]) -> None:
        if "valid" not in record:
            return
        epoch = record["epoch"]
        if epoch not in self.told:  # of a trial that goes on from a checkpoint, some are known
            self.trial.report(record["valid"]["mrr"], epoch)
        self.trial.set_user_attr("seconds", record["seconds"])
        if epoch < self.epochs and self.trial.should_prune():  # who has come to the end is not stopped
            raise optuna().TrialPruned


def suggested(trial: Any) -> Any:
    """How a trial chooses the value of a setting."""

    def suggest(called: str, one: Setting, search: Search) -> Any:
        if not isinstance(search, Span):
            return trial.suggest_categorical(called, list(search))
        if one.kind is int:
            return trial.suggest_int(called, int(search.low), int(search.high), log=search.log)
        return trial.suggest_float(called, search.low, search.high, log=search.log)

    return suggest


def run_trial(
    study: Any,
    trial: Any,
    space: Space,
    graph: KnowledgeGraph,
    storage: Path,
    common: dict[str, Any],
    ends: float | None,
) -> None:
    """Train one trial, or go on with it, and tell the study the result; raises if time is over.

    A training that diverges counts as the worst result, and the search learns from it. A training that cannot run at
    all, for example because memory is too small, has failed; the search continues.
    """
    states = optuna().trial.TrialState
    settings = space.settings(suggested(trial))
    trial.set_user_attr("settings", {name: value for name, value in settings.items() if name not in space.fixed})
    place = run_of(storage, trial.number)
    try:
        run: Run = training.train(graph, out=place, progress=Reported(trial, ends), **{**common, **settings})
    except optuna().TrialPruned:
        study.tell(trial, state=states.PRUNED)
    except NotFiniteError as error:
        trial.set_user_attr("error", str(error))
        trial.report(0.0, DIVERGED)
        study.tell(trial, state=states.PRUNED)
    except MurpError as error:
        trial.set_user_attr("error", str(error))
        study.tell(trial, state=states.FAIL)
    else:
        trial.set_user_attr("epoch", run.state["best_epoch"])
        study.tell(trial, run.state["best_mrr"])
