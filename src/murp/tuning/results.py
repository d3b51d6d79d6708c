"""The results of a search: one row per trial."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from murp.errors import RunError
from murp.rows import Rows
from murp.tuning.study import ABOUT, beside, opened, optuna, run_of
from murp.tuning.trial import DIVERGED

State = Literal["complete", "stopped", "diverged", "failed", "unfinished"]


@dataclass(frozen=True)
class TrialRow:
    """One trial: its best MRR on valid so far, its last epoch, its time, and its settings.

    ``state``: trained to its end ("complete"), stopped since others were better ("stopped"), "diverged", "failed", or
    to be continued ("unfinished"). ``curve``: epoch → MRR on valid.
    """

    number: int
    state: State
    mrr: float | None
    epoch: int | None
    seconds: float | None
    settings: dict[str, Any]
    curve: dict[int, float]
    error: str | None = None


class Tuning(Rows[TrialRow]):
    """The trials of a search, in their order. ``storage`` is its file, ``report`` the folder with its report."""

    def __init__(self, storage: Path, about: dict[str, Any], trials: Iterable[TrialRow]) -> None:
        super().__init__(TrialRow, trials)
        self.storage, self.about = storage, about

    def __reduce__(self) -> tuple[Any, ...]:
        return Tuning, (self.storage, self.about, list(self))

    @property
    def report(self) -> Path:
        """Where the report is."""
        return beside(self.storage, "report")

    @property
    def best_trial(self) -> TrialRow:
        """The trial with the best MRR on valid among those that were trained to their end."""
        done = [trial for trial in self if trial.state == "complete"]
        if not done:
            raise RunError(f"no trial of {self.storage} was trained to its end yet. Let it go on: the same command.")
        return max(done, key=lambda trial: trial.mrr or 0.0)

    @property
    def best_mrr(self) -> float:
        """Its MRR on valid."""
        return self.best_trial.mrr or 0.0

    @property
    def best_settings(self) -> dict[str, Any]:
        """All its settings: those that were searched, and those with a fixed value."""
        return {**self.about["fixed"], "epochs": self.about["epochs"], **self.best_trial.settings}

    @property
    def best_run(self) -> Path:
        """Its run folder."""
        return run_of(self.storage, self.best_trial.number)

    def columns(self) -> dict[str, list[Any]]:
        """A column for each setting that a trial chose."""
        names = list(dict.fromkeys(name for trial in self for name in trial.settings))
        own = ("number", "state", "mrr", "epoch", "seconds")
        found: dict[str, list[Any]] = {name: [getattr(trial, name) for trial in self] for name in own}
        return {**found, **{name: [trial.settings.get(name) for trial in self] for name in names}}


def read(storage: Path) -> Tuning:
    """The search in a file, as far as it has come."""
    study = opened(storage, seed=0)
    trials = [_row(trial) for trial in study.get_trials(deepcopy=False) if trial.user_attrs.get("settings") is not None]
    return Tuning(storage, study.user_attrs.get(ABOUT, {}), trials)


def _row(trial: Any) -> TrialRow:
    states = optuna().trial.TrialState
    error = trial.user_attrs.get("error")
    names: dict[Any, State] = {states.COMPLETE: "complete", states.FAIL: "failed", states.PRUNED: "stopped"}
    state: State = names.get(trial.state, "unfinished")
    curve = dict(sorted(trial.intermediate_values.items()))
    if state == "stopped" and error is not None:
        state = "diverged"
        curve.pop(DIVERGED, None)
    return TrialRow(
        number=trial.number,
        state=state,
        mrr=max(curve.values(), default=None),
        epoch=max(curve, default=None),
        seconds=trial.user_attrs.get("seconds"),
        settings=trial.user_attrs["settings"],
        curve=curve,
        error=error,
    )
