"""A search for settings: ``murp.tune``."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from murp.api.settings import Settings
from murp.api.training import with_settings
from murp.config import Config
from murp.errors import ConfigError
from murp.graph import KnowledgeGraph
from murp.recipes import completed
from murp.runs.default_folder import HOME, data_name
from murp.settings import whole_number
from murp.training.start import configure, decided
from murp.tuning import report, results
from murp.tuning.results import Tuning
from murp.tuning.search import Task, search
from murp.tuning.space import Space, given
from murp.tuning.study import FACTOR, RUNGS, about, alone, check_same, opened, optuna

__all__ = ["tune"]


def tune(
    graph: KnowledgeGraph | str | os.PathLike[str],
    *,
    trials: int = 50,
    storage: str | os.PathLike[str] | None = None,
    space: Mapping[str, Any] | None = None,
    workers: int = 1,
    timeout: float | None = None,
    **settings: Unpack[Settings],
) -> Tuning:
    """Search for settings with a better MRR on valid: TPE proposes them, ASHA stops trials that fall behind.

    ``trials``: the total number of trials; the first has the default settings. ``storage``: the file that stores them,
    by default one under ``runs/``. The same call again continues where the last one stopped, also with a trial that was
    interrupted. ``space``: what is searched, by setting: a list of values, a text like ``"1..50"``, or a
    :class:`murp.settings.Span`; other settings are searched in the range that they declare, unless you give them a
    value. ``workers``: trials at the same time, each in its own process; they share the cores or the GPU. Then the call
    must be under ``if __name__ == "__main__"``. ``timeout``: seconds after which the search stops.

    Returns the trials in their order; ``best_run`` is the run folder of the best, ``report`` a folder with a report.

    Settings with one fixed value for all trials:
    """
    trials, workers = whole_number("trials", trials, least=0), whole_number("workers", workers)
    if timeout is not None and not timeout > 0:
        raise ConfigError(f"timeout must be above 0, not {timeout!r}.")
    optuna()  # told before anything is loaded, if it is not installed
    graph, fixed, _ = decided(graph, dict(settings))
    fixed = {name: value for name, value in fixed.items() if name != "data"}
    searched = Space.of(fixed, given(space or {}))
    graph, config = configure(graph, {**fixed, **next(searched.combinations())}, "tune")
    file = Path(storage) if storage is not None else HOME / f"{data_name(config)}-tune.db"
    epochs = completed(fixed).get("epochs", Config.epochs)
    first = max(1, epochs // FACTOR**RUNGS)
    common = {"epochs": epochs, "validate_every": first, "data": config.data, "data_dir": config.data_dir}
    ends = None if timeout is None else time.monotonic() + timeout
    with alone(file):
        study = opened(file, seed=config.seed, make=True)
        check_same(study, file, about(graph, config.data, searched, epochs))
        rung = fixed.get("validate_every", first)
        search(Task(file, searched, common, config.seed, rung, ends), graph, trials, workers)
        found = results.read(file)
        report.write(found)
    return found


with_settings(tune, Settings)
