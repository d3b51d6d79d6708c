"""The results of a sweep: one row per run, the best first."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from murp.config import Config
from murp.errors import ConfigError, MurpError, RunError
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


@dataclass(frozen=True)
class OverSeeds:
    """Runs that differ in their seed alone: their MRR on valid at the best epoch, its mean and standard deviation.

    ``deviation`` is that of a sample (n - 1), None of one run. Runs that failed or were never validated have no MRR and
    are not among ``mrr``; ``seeds`` are those that are.
    """

    run: str  # named as its runs are, without their seeds
    seeds: tuple[int, ...]
    mrr: tuple[float, ...]
    mean: float | None
    deviation: float | None


class Sweep(Rows[Trial[R]], Generic[R]):
    """The runs of a sweep, the best first, those that failed last; ``out`` is their folder."""

    def __init__(self, out: Path, trials: Iterable[Trial[R]]) -> None:
        self.asked = tuple(trials)  # in the order of their settings
        super().__init__(Trial, sorted(self.asked, key=lambda one: 1.0 if one.run is None else -(one.mrr or 0.0)))
        self.out = out

    def __reduce__(self) -> tuple[Any, ...]:
        return Sweep, (self.out, self.asked)

    @property
    def best(self) -> R:
        """The run with the best validation MRR."""
        found = next((trial.run for trial in self if trial.run is not None), None)
        if found is None:
            raise RunError(f"every run of {self.out} failed; the first: {self[0].error}")
        return found

    def over_seeds(self) -> Rows[OverSeeds]:
        """Mean and deviation over the seeds, a group for each combination of the other settings."""
        groups: dict[str, dict[int, float | None]] = {}
        others = [tuple((k, v) for k, v in one.settings.items() if k != "seed") for one in self.asked]
        distinct = list(dict.fromkeys(others))
        names = dict(zip(distinct, run_names([dict(one) for one in distinct]), strict=True))
        for one, other in zip(self.asked, others, strict=True):
            groups.setdefault(names[other], {})[one.settings.get("seed", Config.seed)] = one.mrr
        return Rows(OverSeeds, (_over_seeds(name, group) for name, group in groups.items()))

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
    return Sweep(out, trials)


def _over_seeds(name: str, by_seed: dict[int, float | None]) -> OverSeeds:
    found = {seed: mrr for seed, mrr in by_seed.items() if mrr is not None}
    mrr = tuple(found.values())
    mean = statistics.fmean(mrr) if mrr else None
    return OverSeeds(name, tuple(found), mrr, mean, statistics.stdev(mrr) if len(mrr) > 1 else None)


def run_names(settings: Sequence[dict[str, Any]]) -> list[str]:
    """A folder name for each run, from the settings in which they differ: ``lr10-seed1``."""
    tried = differing(settings)
    names = ["-".join(f"{name}{chosen[name]}" for name in tried).replace("/", "_") or "run" for chosen in settings]
    if len(set(names)) < len(names):
        raise ConfigError("two combinations of the sweep are the same.")
    return names


def differing(settings: Sequence[dict[str, Any]]) -> list[str]:
    """The settings that have more than one value."""
    return [name for name in settings[0] if len({str(chosen.get(name)) for chosen in settings}) > 1]
