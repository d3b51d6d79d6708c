"""The run folder: what a run leaves on disk.

config.toml        every setting; `murp train --config` repeats the run. Those that decided the weights stand in each
                   checkpoint too; see :mod:`murp.runs.settings`
environment.json   format of the folder, versions, digest of the code, device and time of start
graph/             the integer-coded graph with its names
metrics.jsonl      a line for every epoch
last.safetensors   newest weights, the optimizer's tables and the state of training
best.safetensors   weights of the best validation, where there was one
last.shards/, best.shards/
                   the same of a run of many ranks, one file per rank; see :mod:`murp.runs.shards`
last.previous.safetensors, best.previous.safetensors
                   the checkpoints before those, for when they are damaged
lock               held by the process that trains; see :mod:`murp.runs.lock`
snapshots/         where points were, epoch by epoch, if the training was watched; see :mod:`murp.explorer.snapshots`
calibration.json   calibrated probabilities, where `murp calibrate` made them
index/             for approximate answers, where `murp index` made it; see :mod:`murp.runs.index`

The format is 1. It grows when this version could not read a folder of the next, or read it wrongly; files that may be
missing do not count. A run of every format is kept in the tests. (The first versions that write format 1 open and
evaluate runs whose checkpoints hold settings, and refuse to continue them.)
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import murp
from murp.commands import command
from murp.config import Config
from murp.errors import ConfigError, RunError
from murp.files import fields, new_folder, parse_json, refuse_strangers, write_text
from murp.graph import KnowledgeGraph
from murp.models import Model, point_dtype
from murp.models.rounding import rounded
from murp.provenance import source_digest
from murp.runs import checkpoint
from murp.runs.settings import bind
from murp.runs.suggestions import runs_near

CONFIG, ENVIRONMENT, GRAPH, METRICS = "config.toml", "environment.json", "graph", "metrics.jsonl"
LAST, BEST, CALIBRATION, LOCK = "last.safetensors", "best.safetensors", "calibration.json", "lock"
INDEX = "index"
FORMAT = 1
IMPORTED, EXTENDED = "imported", "extended"  # in place of an engine
KNOWN = {"device": str, "torch": str, "murp": str, "started": str}  # of every environment
MAKE_ONE = " `murp train --out` makes one."


def create(
    path: Path,
    config: Config,
    graph: KnowledgeGraph,
    model: Model,
    state: dict[str, Any],
    engine: str,
    *,
    like: Path | None = None,
    trained: dict[str, Any] | None = None,
    recipe: str | None = None,
    extended: dict[str, Any] | None = None,
    optimizer: dict[str, Tensor] | None = None,
    write: Callable[[Path, dict[str, Tensor], dict[str, Any]], None] = checkpoint.write,
) -> None:
    """Make a new run folder with its first checkpoint, whole or not at all; one that exists is refused.

    ``like``: a run folder of the same graph, whose files are copied, which is quicker than coding them again.
    ``trained``: of an imported run, the environment it was trained in, where that is known. ``recipe``: why its
    settings are what they are, where recipe auto decided. ``extended``: what was added to which run. ``optimizer``: its
    tables, where it has some already. ``write``: how the checkpoint is written.
    """
    refuse_existing(path)
    with new_folder(path, RunError) as part:
        write_text(part / CONFIG, config.to_toml())
        about = {"format": FORMAT, **environment(model.device), "engine": engine}
        about |= {} if trained is None else {"trained": trained}
        about |= {} if recipe is None else {"recipe": recipe}
        about |= {} if extended is None else {"extended": extended}
        write_text(part / ENVIRONMENT, json.dumps(about, indent=2) + "\n")
        if like is None:
            graph.save(part / GRAPH)
        else:
            shutil.copytree(like / GRAPH, part / GRAPH)
        write(part / LAST, _as_stored(model, config) | (optimizer or {}), bind(state, config))
        (part / METRICS).touch()


def _as_stored(model: Model, config: Config) -> dict[str, Tensor]:
    """The tables of a model, with its points in the precision that the settings of the run say."""
    point = next(table for table in model.tables if table.name == "entity")
    values = rounded(model.parameters["entity"], point_dtype(config), point.geometry)
    return {**model.parameters, "entity": values}


def refuse_existing(path: Path) -> None:
    """Raise if ``path`` holds a run already."""
    if os.path.isfile(path / CONFIG):  # unlike Path.exists, False for a name the system refuses
        raise RunError(
            f"{path} exists already. Choose another folder, continue that run (`{command('train', '--resume', path)}`, "
            "murp.resume in Python), or remove it."
        )


def check(path: Path) -> None:
    """Raise unless ``path`` is a run folder of a format that is known here."""
    # Unlike Path.exists, these are False for a name the system refuses and a folder that may not be entered.
    if not os.path.exists(path):
        raise RunError(f"there is no run folder at {path}.{runs_near(path)}")
    if not os.path.isfile(path / CONFIG) or not os.path.isdir(path / GRAPH):
        raise RunError(f"{path} is not a run folder: it has no {CONFIG} and {GRAPH}/.{runs_near(path) or MAKE_ONE}")
    refuse_strangers(path, RunError)
    try:
        found = parse_json((path / ENVIRONMENT).read_text(encoding="utf-8"))["format"]
    except (OSError, ValueError, KeyError, TypeError):
        found = FORMAT  # the first runs of format 1 do not say; a missing environment harms nothing else
    if found != FORMAT:
        raise RunError(
            f"{path} is a run folder of format {found!r}; murp {murp.__version__} reads format {FORMAT}. Use a newer "
            "version of murp, or there `murp export` and here `murp import`."
        )


def read_config(path: Path) -> Config:
    """The settings of a run."""
    check(path)
    try:
        return Config.from_mapping(Config.read(path / CONFIG), str(path / CONFIG))
    except ConfigError as error:
        try:
            written_by = read_environment(path)["murp"]
        except RunError:
            raise error from None
        if written_by == murp.__version__:
            raise
        raise RunError(
            f"{path} is a run of murp {written_by}, which this version, {murp.__version__}, cannot read: {error} "
            f"Use murp {written_by}, or `murp export` there and `murp import` here."
        ) from error


def read_graph(path: Path) -> KnowledgeGraph:
    """The graph a run was trained on."""
    check(path)
    return KnowledgeGraph.load(path / GRAPH)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; a last line cut short by a crash is left out."""
    try:
        lines = (path / METRICS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path / METRICS} cannot be read: {error}.") from None
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = fields(parse_json(line), {"epoch": int, "loss": int | float})
            if "valid" in record:
                fields(record["valid"], {"mrr": int | float})
        except ValueError as error:
            if number == len(lines):
                break
            raise RunError(
                f"{path / METRICS}, line {number}: not a record of an epoch: {error}. Remove the line."
            ) from None
        records.append(record)
    return records


def read_environment(path: Path) -> dict[str, Any]:
    """Versions and hardware of a run."""
    try:
        text = (path / ENVIRONMENT).read_text(encoding="utf-8")
        found = fields(parse_json(text), KNOWN)
        fields(found.get("trained", found), KNOWN)
    except (OSError, ValueError) as error:
        raise RunError(f"{path / ENVIRONMENT} cannot be read: {error}.") from None
    return found


def training_environment(path: Path) -> dict[str, Any] | None:
    """Versions and hardware that a run was trained with; None of an imported run whose export did not say."""
    found = read_environment(path)
    return found.get("trained") if found.get("engine") == IMPORTED else found


def imported(path: Path) -> bool:
    """Whether a run was made by `murp import`; one whose environment is lost is taken to have been trained."""
    try:
        return read_environment(path).get("engine") == IMPORTED
    except RunError:
        return False


def append_metrics(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Add a line for each record to metrics.jsonl, or leave it as it was."""
    file = path / METRICS
    length = file.stat().st_size if file.exists() else 0
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write("".join(json.dumps(record) + "\n" for record in records))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.truncate(file, length)
        raise unwritable(file, error) from error


def rewind_metrics(path: Path, epoch: int) -> None:
    """Drop the lines of epochs that the checkpoint to be resumed has not seen; a lost file begins anew."""
    records = read_metrics(path) if (path / METRICS).exists() else []
    kept = [record for record in records if record["epoch"] <= epoch]
    _rewrite(path / METRICS, "".join(json.dumps(record) + "\n" for record in kept))


def write_config(path: Path, config: Config) -> None:
    """Replace the settings of a run."""
    _rewrite(path / CONFIG, config.to_toml())


def unwritable(file: Path, error: OSError) -> RunError:
    """What to say when the system refuses to write a file of the run folder that it lies in."""
    if not file.parent.exists():
        return checkpoint.vanished(file.parent)
    return RunError(
        f"could not write {file}: {error.strerror}. The last checkpoint is kept. Free some space or repair the "
        f"folder, then continue with `{command('train', '--resume', file.parent)}`."
    )


def _rewrite(file: Path, text: str) -> None:
    try:
        write_text(file, text)
    except OSError as error:
        raise unwritable(file, error) from error


def environment(device: torch.device) -> dict[str, Any]:
    """What a reader needs to judge a run's metrics: versions, the code itself, hardware."""
    return {
        "murp": murp.__version__,
        "source": source_digest(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def processor(file: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the CPU, as the system tells it; a virtual machine's may not say which one it is, then with its
    numbers: ``AMD EPYC (family 26, model 2)``."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    fields = [line.partition(":")[::2] for line in lines]
    told = {name.strip(): value.strip() for name, value in reversed(fields)}  # the first processor's
    if name := told.get("model name"):
        unsaid = (
            not any(letter.isdecimal() for letter in name.partition("@")[0]) and {"cpu family", "model"} <= told.keys()
        )
        return f"{name} (family {told['cpu family']}, model {told['model']})" if unsaid else name
    return platform.processor() or platform.machine()
