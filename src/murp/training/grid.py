"""Many runs at once: a grid of settings, side by side on one GPU if their shapes allow it.

    murp sweep --data WN18RR --lr 10 20 50 --seed 0 1 2 --out runs/grid

Runs that differ only in learning rate, schedule, seed or initial values share one launch of the Triton kernels. The
others, and all runs on the CPU, run one after another. Every run has an ordinary run folder. The same command again
keeps the finished runs and continues those that were interrupted or failed.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from murp import engines
from murp.config import Config
from murp.errors import ConfigError, MurpError, RunError
from murp.files import write_text
from murp.graph import KnowledgeGraph
from murp.runs import Run, checkpoint, folder
from murp.runs.default_folder import data_name, difference, first_fitting
from murp.runs.lock import locked
from murp.runs.run import home, load
from murp.runs.settings import checked
from murp.training.job import Job
from murp.training.loop import WRITERS, finished, fit
from murp.training.progress import Named, Silent, usual
from murp.training.start import check_reading, configure, new_model, nothing_kept_of_nothing, resume
from murp.training.state import State
from murp.training.trials import Sweep, differing, ranked, run_names

# What runs in one launch may differ in.
FREE = ("lr", "lr_schedule", "seed", "initial_scale")
SUMMARY = "sweep.json"


def grid(values: dict[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the given values of the settings."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def sweep(
    graph: KnowledgeGraph | str | os.PathLike[str],
    settings: Sequence[dict[str, Any]],
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Silent | None = None,
    side_by_side: int = 16,
) -> list[Run | MurpError]:
    """:func:`try_all`; the runs, or why one failed, in the order of ``settings``."""
    found = try_all(graph, settings, out=out, progress=progress, side_by_side=side_by_side)
    results = {trial.name: trial.result for trial in found}
    return [results[name] for name in run_names(settings)]


def try_all(
    graph: KnowledgeGraph | str | os.PathLike[str],
    settings: Sequence[dict[str, Any]],
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Silent | None = None,
    side_by_side: int = 16,
) -> Sweep[Run]:
    """Train one run for each element of ``settings`` into ``out``: the runs, or why one failed, the best first.

    Without ``out`` it is a folder under ``runs/``, the same one for the same sweep. A run that is already there is not
    repeated; an unfinished run continues from its last checkpoint. ``side_by_side`` limits how many share a launch. The
    results are also in ``sweep.json``.
    """
    if not settings:
        raise ConfigError("a sweep needs at least one combination of settings.")
    _check_one_graph(settings)
    if len({chosen.get("validate_candidates", 0) for chosen in settings}) > 1:
        raise ConfigError(
            "a sweep compares the validations of its runs: give validate_candidates one value, since an MRR among few "
            "candidates is higher than one among many."
        )
    check_reading(graph, settings[0])
    loaded, config = configure(graph, settings[0], "sweep")
    configs = [config, *(configure(loaded, chosen, "sweep")[1] for chosen in settings[1:])]
    names = run_names(settings)
    home = _own_folder(settings, configs, names, loaded) if out is None else Path(out)
    paths = [home / name for name in names]
    runs = list(zip(paths, configs, strict=True))
    results = train_all(runs, loaded, progress or usual(), side_by_side=side_by_side)
    ordered = [results[path] for path in paths]
    _write_summary(home, names, settings, ordered)
    return ranked(home, names, settings, ordered)


def _check_one_graph(settings: Sequence[dict[str, Any]]) -> None:
    """Raise if settings name different data: it is read once."""
    for name in ("data", "data_dir", "split_seed", "columns", "no_header"):
        if len({chosen.get(name) for chosen in settings}) > 1:
            raise ConfigError(f"a sweep has one graph: give {name} one value, and each graph a sweep of its own.")


def _own_folder(
    settings: Sequence[dict[str, Any]], configs: Sequence[Config], names: Sequence[str], graph: KnowledgeGraph
) -> Path:
    """A folder under ``runs/`` named by the data and the settings of the sweep; it must not contain another run."""

    def fits(home: Path) -> bool:
        there = ((home / name, config) for name, config in zip(names, configs, strict=True) if (home / name).exists())
        return all(difference(path, config, graph) is None for path, config in there)

    return first_fitting("-".join([data_name(configs[0]), "sweep", *differing(settings)]), fits)


def train_all(
    runs: Sequence[tuple[Path, Config]], graph: KnowledgeGraph, progress: Silent, *, side_by_side: int = 16
) -> dict[Path, Run | MurpError]:
    """Train each configuration into its folder, those of one shape side by side; the runs, or why one failed.

    Finished runs are not repeated; unfinished runs continue one by one. Raises before training if a folder contains
    something else.
    """
    begun = [(path, config) for path, config in runs if os.path.exists(path)]
    for path, config in begun:
        _check_same(path, config, graph)
    results = {path: _go_on(path, config, graph, progress) for path, config in begun}
    for group in _groups([run for run in runs if run not in begun], side_by_side):
        results |= _train_group(group, graph, progress)
    return results


def _groups(runs: Iterable[tuple[Path, Config]], most: int) -> Iterable[list[tuple[Path, Config]]]:
    """Groups of runs of one shape, at most ``most`` each; runs that cannot share a launch are alone."""
    by_shape: dict[str, list[tuple[Path, Config]]] = {}
    for path, config in runs:
        shape = {k: v for k, v in config.to_dict().items() if k not in FREE}
        # Runs that may stop early need not stop together.
        key = str(path) if config.patience else json.dumps(shape, sort_keys=True)
        by_shape.setdefault(key, []).append((path, config))
    for group in by_shape.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def _train_group(
    group: Sequence[tuple[Path, Config]], graph: KnowledgeGraph, progress: Silent
) -> dict[Path, Run | MurpError]:
    results: dict[Path, Run | MurpError] = {}
    if len(group) > 1 and not _shares_a_launch(group[0][1], graph):
        for one in group:
            results |= _train_group([one], graph, progress)
        return results
    jobs = []
    for path, config in group:
        try:
            jobs.append(Job(path, config, graph, new_model(config, graph), State()))
        except MurpError as error:
            results[path] = _told(error)
    return results | (_train_together(jobs, graph, progress) if jobs else {})


def _shares_a_launch(config: Config, graph: KnowledgeGraph) -> bool:
    """Whether runs of one shape can share a launch; the model that is built for this check is freed before training."""
    try:
        return engines.side_by_side(config.engine, engines.Task.of(config, new_model(config, graph)))
    except MurpError:
        return False  # each of them will say why it cannot even be built


def _train_together(jobs: Sequence[Job], graph: KnowledgeGraph, progress: Silent) -> dict[Path, Run | MurpError]:
    try:
        engine = engines.build(jobs[0].config.engine, [job.task for job in jobs])

        def create(job: Job, like: Path | None = None) -> None:
            folder.create(job.path, job.config, graph, job.model, job.state.to_dict(), engine.name, like=like)

        create(jobs[0])
        with ThreadPoolExecutor(WRITERS) as disk:
            list(disk.map(create, jobs[1:], itertools.repeat(jobs[0].path)))
        with contextlib.ExitStack() as held:
            for job in jobs:
                held.enter_context(locked(job.path))
                held.enter_context(nothing_kept_of_nothing(job))
            fit(jobs, engine, progress if len(jobs) > 1 else Named(progress, jobs[0].path))
    except MurpError as error:
        return {job.path: _told(job.failure or error) for job in jobs}

    def result(job: Job) -> Run | MurpError:
        return _told(job.failure) if job.failure else _loaded(job.path, job.config, graph)

    with ThreadPoolExecutor(WRITERS) as disk:
        return {job.path: found for job, found in zip(jobs, disk.map(result, jobs), strict=True)}


def _go_on(path: Path, config: Config, graph: KnowledgeGraph, progress: Silent) -> Run | MurpError:
    """A run that is already in its folder, trained to its end if it is not finished; a run that diverged fails
    again."""
    last = path / folder.LAST
    try:
        state = checked(checkpoint.state_of(last), config, last, path / folder.CONFIG)
        if not finished(config, State.from_dict(state, last)):
            resume(path, progress=Named(progress, path))
    except MurpError as error:
        return _told(error)
    return _loaded(path, config, graph)


def _loaded(path: Path, config: Config, graph: KnowledgeGraph) -> Run | MurpError:
    try:
        return load(path, device=home(config), graph=graph)
    except MurpError as error:
        return _told(error)


def _told(error: MurpError) -> MurpError:
    """The same exception without its frames, which would keep the run's model in memory."""
    return copy.copy(error)


def _check_same(path: Path, config: Config, graph: KnowledgeGraph) -> None:
    """Raise unless the run folder at ``path`` holds a run with these settings on this graph."""
    if (other := difference(path, config, graph)) is not None:
        raise ConfigError(f"{path} holds {other}. Choose another --out, or remove it.")


def _write_summary(
    out: Path, names: Sequence[str], settings: Sequence[dict[str, Any]], results: Sequence[Run | MurpError]
) -> None:
    rows = []
    for name, chosen, result in zip(names, settings, results, strict=True):
        row: dict[str, Any] = {"run": name, "settings": chosen}
        if isinstance(result, Run):
            protocol = "sampled" if result.config.validate_candidates else "standard"
            row |= {f"valid_mrr_{protocol}": result.state["best_mrr"], "epoch": result.state["epoch"]}
        else:
            row |= {"failed": str(result)}
        rows.append(row)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / SUMMARY, json.dumps(rows, indent=1) + "\n")
    except OSError as error:
        raise RunError(f"could not write {out / SUMMARY}: {error.strerror}. Repeat the sweep to try again.") from error
