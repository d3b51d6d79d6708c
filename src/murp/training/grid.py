"""Many runs at once: a grid of settings, side by side on one GPU where their shapes allow it.

    murp sweep --data WN18RR --lr 10 20 50 --seed 0 1 2 --out runs/grid

Runs that differ only in learning rate, schedule or seed share one launch of the Triton kernels; the
others, and all on the CPU, run one after another. Every run leaves an ordinary run folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from murp import engines
from murp.config import Config
from murp.errors import ConfigError, MurpError
from murp.files import write_text
from murp.graph import KnowledgeGraph
from murp.runs import Run, folder
from murp.runs.lock import locked
from murp.runs.run import load
from murp.training.loop import WRITERS, Lane, fit
from murp.training.progress import Silent, for_terminal
from murp.training.start import configure, new_model
from murp.training.state import State

# What runs in one launch may differ in.
FREE = ("lr", "lr_schedule", "seed")
SUMMARY = "sweep.json"


def grid(values: dict[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values given for each setting."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def sweep(
    graph: KnowledgeGraph | str,
    settings: Sequence[dict[str, Any]],
    *,
    out: str | Path,
    progress: Silent | None = None,
    side_by_side: int = 16,
) -> list[Run | MurpError]:
    """Train one run for each element of ``settings`` into ``out``; the runs, or why one failed, in that order.

    A run that ``out`` holds already, finished, is not repeated. ``side_by_side`` bounds how many share a launch.
    """
    if not settings:
        raise ConfigError("a sweep needs at least one combination of settings.")
    out, shown = Path(out), progress or for_terminal()
    loaded, config = configure(graph, settings[0])
    configs = [config, *(configure(loaded, chosen)[1] for chosen in settings[1:])]
    names = run_names(settings)
    paths = [out / name for name in names]
    results = train_all(list(zip(paths, configs, strict=True)), loaded, shown, side_by_side=side_by_side)
    ordered = [results[path] for path in paths]
    _write_summary(out, names, settings, ordered)
    return ordered


def train_all(
    runs: Sequence[tuple[Path, Config]], graph: KnowledgeGraph, progress: Silent, *, side_by_side: int = 16
) -> dict[Path, Run | MurpError]:
    """Train each configuration into its folder, those of one shape side by side; finished ones are not repeated."""
    results: dict[Path, Run | MurpError] = {p: load(p) for p, config in runs if _finished(p, config)}
    left = [(path, config) for path, config in runs if path not in results]
    for group in _groups(left, side_by_side):
        results |= _train_group(group, graph, progress)
    return results


def run_names(settings: Sequence[dict[str, Any]]) -> list[str]:
    """A folder name for each run, from the settings in which they differ: ``lr10-seed1``."""
    differing = [name for name in settings[0] if len({str(chosen.get(name)) for chosen in settings}) > 1]
    names = ["-".join(f"{name}{chosen[name]}" for name in differing).replace("/", "_") or "run" for chosen in settings]
    if len(set(names)) < len(names):
        raise ConfigError("two combinations of the sweep are the same.")
    return names


def _groups(runs: Iterable[tuple[Path, Config]], most: int) -> Iterable[list[tuple[Path, Config]]]:
    """Runs of one shape together, at most ``most`` at a time; what cannot share a launch alone."""
    by_shape: dict[str, list[tuple[Path, Config]]] = {}
    for path, config in runs:
        shape = {k: v for k, v in dataclasses.asdict(config).items() if k not in FREE}
        # Runs that may stop early need not stop together.
        key = str(path) if config.patience else json.dumps(shape, sort_keys=True)
        by_shape.setdefault(key, []).append((path, config))
    for group in by_shape.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def _train_group(
    group: Sequence[tuple[Path, Config]], graph: KnowledgeGraph, progress: Silent
) -> dict[Path, Run | MurpError]:
    models = [new_model(config, graph) for _, config in group]
    if len(group) > 1 and not engines.side_by_side(group[0][1].engine, models[0]):
        results: dict[Path, Run | MurpError] = {}
        for one in group:
            results |= _train_group([one], graph, progress)
        return results
    engine = engines.build(group[0][1].engine, models)
    lanes = [Lane(path, config, graph, model, State()) for (path, config), model in zip(group, models, strict=True)]

    def create(lane: Lane, like: Path | None = None) -> None:
        folder.create(lane.path, lane.config, graph, lane.model, lane.state.to_dict(), engine.name, like=like)

    create(lanes[0])
    with ThreadPoolExecutor(WRITERS) as disk:
        list(disk.map(create, lanes[1:], itertools.repeat(lanes[0].path)))
    try:
        with contextlib.ExitStack() as locks:
            for lane in lanes:
                locks.enter_context(locked(lane.path))
            fit(lanes, engine, progress)
    except MurpError:
        if not all(lane.failure for lane in lanes):
            raise

    def result(lane: Lane) -> Run | MurpError:
        return lane.failure or load(lane.path, device=lane.config.device, graph=graph)

    with ThreadPoolExecutor(WRITERS) as disk:
        return {lane.path: found for lane, found in zip(lanes, disk.map(result, lanes), strict=True)}


def _finished(path: Path, config: Config) -> bool:
    if not path.exists():
        return False
    stored = folder.read_config(path)
    if dataclasses.replace(stored, device=config.device, engine=config.engine) != config:
        raise ConfigError(f"{path} holds a run with other settings. Choose another --out, or remove it.")
    records = folder.read_metrics(path)
    if not records or records[-1]["epoch"] < config.epochs:
        raise ConfigError(f"{path} holds an unfinished run. Continue it with `murp train --resume {path}` first.")
    return True


def _write_summary(
    out: Path, names: Sequence[str], settings: Sequence[dict[str, Any]], results: Sequence[Run | MurpError]
) -> None:
    rows = []
    for name, chosen, result in zip(names, settings, results, strict=True):
        row: dict[str, Any] = {"run": name, "settings": chosen}
        if isinstance(result, Run):
            row |= {"valid_mrr_standard": result.state["best_mrr"], "epoch": result.state["epoch"]}
        else:
            row |= {"failed": str(result)}
        rows.append(row)
    write_text(out / SUMMARY, json.dumps(rows, indent=1) + "\n")
