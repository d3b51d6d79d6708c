"""What came of a sweep: a row a run, the best first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from murp.errors import MurpError, RunError
from murp.rows import Rows
from murp.runs import Run

R = TypeVar("R", bound=Run)  # the kind of run that is given


@dataclass(frozen=True)
class Trial(Generic[R]):
    """One run of a sweep: its name, its settings, its best validation and itself; ``error`` where it failed."""

    name: str
    settings: dict[str, Any]
    mrr: float | None
    epoch: int | None
    run: R | None = field(repr=False)
    error: MurpError | None = None

    @property
    def result(self) -> R | MurpError:
        """The run, or why it failed."""
        if self.run is not None:
            return self.run
        assert self.error is not None, "a run that is not there has failed"
        return self.error


class Sweep(Rows[Trial[R]], Generic[R]):
    """The runs of a sweep, the best first, those that failed last; ``out`` is their folder."""

    def __init__(self, out: Path, trials: Iterable[Trial[R]]) -> None:
        super().__init__(Trial, trials)
        self.out = out

    def __reduce__(self) -> tuple[Any, ...]:
        return Sweep, (self.out, list(self))

    @property
    def best(self) -> R:
        """The run with the best validation MRR."""
        found = next((trial.run for trial in self if trial.run is not None), None)
        if found is None:
            raise RunError(f"every run of {self.out} failed; the first: {self[0].error}")
        return found

    def columns(self) -> dict[str, list[Any]]:
        """The run, a column for each setting that was given, the best MRR on valid, its epoch, and why it failed."""
        given = {name: [trial.settings[name] for trial in self] for name in self[0].settings}
        figures: dict[str, list[Any]] = {"mrr": [one.mrr for one in self], "epoch": [one.epoch for one in self]}
        failed = [None if trial.error is None else str(trial.error) for trial in self]
        return {"run": [trial.name for trial in self], **given, **figures, "failed": failed}


def ranked(
    out: Path, names: Sequence[str], settings: Sequence[dict[str, Any]], results: Sequence[Run | MurpError]
) -> Sweep[Run]:
    """What :func:`sweep` gave, the best validation MRR first."""
    trials: list[Trial[Run]] = [
        Trial(name, chosen, None, None, None, result)
        if isinstance(result, MurpError)
        else Trial(name, chosen, result.state["best_mrr"], result.state["best_epoch"], result)
        for name, chosen, result in zip(names, settings, results, strict=True)
    ]
    return Sweep(out, sorted(trials, key=lambda trial: 1.0 if trial.run is None else -(trial.mrr or 0.0)))
