"""One cell of an item: its runs, their expected time, and their results."""

from __future__ import annotations

import difflib
import statistics
import time
from pathlib import Path
from typing import Any

from murp import engines
from murp.commands import command
from murp.config import Config
from murp.errors import ConfigError, RunError
from murp.paper.experiments import Experiments, published, stored_run
from murp.paper.planned_run import MODELS, PlannedRun
from murp.runs.run import resolve_device
from murp.training.job import Job
from murp.training.start import configure, new_model
from murp.training.state import State

# Items whose cells are runs of a dataset, a model and a dimension.
WITH_CELLS = ("table1", "figure3a", "table3", "figure4", "figure5", "nell")
WARM, TIMED = 8, 64  # steps before and within the measurement that the time is guessed by


def cells(experiments: Experiments, item: str) -> dict[str, PlannedRun]:
    """The runs of an item, of the first seed, by ``DATA/MODEL/DIM``."""
    if item not in WITH_CELLS:
        raise ConfigError(f"{item} has no cells that run by themselves; these items have: {', '.join(WITH_CELLS)}.")
    settings = experiments.settings[item]
    rates = experiments.settings["rates"].get(item, {})
    return {
        f"{data}/{model}/{dim}": PlannedRun(data, model, dim, rates.get(f"{data}/{model}", settings.get("lr")))
        for data in _several(settings["data"])
        for dim in settings.get("dims", [settings.get("dim")])
        for model in MODELS
    }


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def run_cell(experiments: Experiments, item: str, only: str) -> None:
    """Train the missing runs of one cell, with every seed; print the plan before and the result after it."""
    known = cells(experiments, item)
    if only not in known:
        raise ConfigError(f"{item} has no cell {only!r}: choose from {', '.join(known)}.")
    runs = experiments.seeded(known[only])
    config = experiments.config(runs[0])
    say = experiments.say
    say(
        f"{item}, {only}: {len(runs)} run{'s' * (len(runs) > 1)} of {config.epochs} epochs, learning rate {config.lr:g}"
    )
    missing = [run for run in runs if not experiments.is_stored(run)]
    if missing:
        alone = seconds_alone(experiments, missing[0])
        say(f"about {_in_words(alone * len(missing))}, validation apart; Ctrl-C stops, the same command goes on")
    else:
        say(f"stored already in {experiments.out}: to train it yourself, choose another --out")
    records = experiments.results(runs)
    for run, record in zip(runs, records, strict=True):
        took = "" if "failed" in record else f", {_in_words(record['training_seconds'])}"
        say(f"{run.name}: {_figures(record)}{took}; its settings: `{_config_command(experiments, run.name)}`")
    say(_mean(item, known[only], records))


def _config_command(experiments: Experiments, name: str) -> str:
    return command("paper", "config", name, "--out", experiments.out)


def _figures(record: dict[str, Any]) -> str:
    if "failed" in record:
        return f"diverged ({record['failed']})"
    test = record["metrics"]["test"]
    return f"MRR on test {test['standard']['mrr']:.3f} (standard), {test['paper']['mrr']:.3f} (paper)"


def _mean(item: str, planned: PlannedRun, records: list[dict[str, Any]]) -> str:
    """The cell itself, beside the one that the paper prints where it does."""
    found = [record["metrics"]["test"]["paper"]["mrr"] for record in records if "failed" not in record]
    if not found:
        return "every run diverged"
    printed = published().get(item, {}).get(planned.data, {}).get(planned.model, {}).get(str(planned.dim))
    beside = f"; the paper prints {printed[0]:.3f}" if printed else ""
    return f"mean of {len(found)}: MRR {statistics.mean(found):.3f} (test, protocol paper){beside}"


def seconds_alone(experiments: Experiments, planned: PlannedRun) -> float:
    """How long one run will take on this machine, by some steps of it; nothing is kept."""
    graph = experiments.graph(planned.data)
    _, config = configure(graph, {**experiments.training, **planned.settings()})
    model = new_model(config.replace(device=resolve_device(config.device).type), graph)
    job = Job(experiments.work(planned.name), config, graph, model, State())
    engine = engines.build(config.engine, [job.task])
    chunk = job.sampler.chunk(0, 0)
    engine.run([_part(chunk, WARM)], [config.lr]).cpu()
    timed = _part(chunk, TIMED)
    began = time.perf_counter()
    engine.run([timed], [config.lr]).cpu()
    return (time.perf_counter() - began) / timed.steps * job.sampler.steps * config.epochs


def _part(chunk: engines.Chunk, steps: int) -> engines.Chunk:
    return engines.Chunk(chunk.positives[:steps], chunk.num_entities, chunk.negatives, chunk.seed, None)


def _in_words(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"


def stored_config(out: Path, name: str) -> Config:
    """All settings of a stored run."""
    file = out / "runs" / f"{name}.json"
    if Path(name).name == name and not file.exists():
        there = sorted(each.stem for each in file.parent.glob("*.json"))
        close = difflib.get_close_matches(name, there, n=3, cutoff=0.0)
        hint = f"Closest: {', '.join(close)}" if close else "Give the folder with the stored results as --out"
        raise RunError(f"{out} has no stored run {name!r}. {hint}.")
    try:
        settings = stored_run(out, name)["settings"]
        return Config.from_mapping(settings, str(file))
    except (LookupError, TypeError) as error:
        raise RunError(f"{file} does not hold a run ({error!r}). Run its item again.") from error
