"""The run folder: what a run leaves on disk.

config.toml        every setting; `murp train --config` repeats the run
environment.json   versions, device and time of start
graph/             the integer-coded graph with its names
metrics.jsonl      a line for every epoch
last.safetensors   newest weights and the state of training
best.safetensors   weights of the best validation, where there was one
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import murp
from murp.config import Config
from murp.errors import RunError
from murp.files import new_folder, write_text
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.runs import checkpoint

CONFIG, ENVIRONMENT, GRAPH, METRICS = "config.toml", "environment.json", "graph", "metrics.jsonl"
LAST, BEST = "last.safetensors", "best.safetensors"


def create(path: Path, config: Config, graph: KnowledgeGraph, model: Model, state: dict[str, Any], engine: str) -> None:
    """Make a new run folder with its first checkpoint, whole or not at all; one that exists is refused."""
    if os.path.isfile(path / CONFIG):  # unlike Path.exists, False for a name the system refuses
        raise RunError(
            f"{path} exists already. Choose another --out, continue that run with `murp train --resume {path}`, "
            "or remove it."
        )
    with new_folder(path, RunError) as part:
        write_text(part / CONFIG, config.to_toml())
        write_text(part / ENVIRONMENT, json.dumps({**environment(model.device), "engine": engine}, indent=2) + "\n")
        graph.save(part / GRAPH)
        checkpoint.write(part / LAST, model.parameters, state)
        (part / METRICS).touch()


def check(path: Path) -> None:
    """Raise unless ``path`` is a run folder."""
    if not path.exists():
        raise RunError(f"there is no run folder at {path}.")
    if not (path / CONFIG).is_file() or not (path / GRAPH).is_dir():
        raise RunError(f"{path} is not a run folder: it has no {CONFIG} and {GRAPH}/. `murp train --out` makes one.")


def read_config(path: Path) -> Config:
    """The settings of a run."""
    check(path)
    return Config.from_mapping(Config.read(path / CONFIG), str(path / CONFIG))


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
            record = json.loads(line)
            record["epoch"], record["loss"]
        except (ValueError, KeyError, TypeError):
            if number == len(lines):
                break
            raise RunError(f"{path / METRICS}, line {number}: not a record of an epoch. Remove the line.") from None
        records.append(record)
    return records


def read_environment(path: Path) -> dict[str, Any]:
    """Versions and hardware of a run."""
    try:
        values: dict[str, Any] = json.loads((path / ENVIRONMENT).read_text(encoding="utf-8"))
        values["device"], values["torch"], values["murp"], values["started"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path / ENVIRONMENT} cannot be read: {error!r}.") from None
    return values


def append_metrics(path: Path, record: dict[str, Any]) -> None:
    """Add one line to metrics.jsonl, or leave it as it was."""
    file = path / METRICS
    length = file.stat().st_size if file.exists() else 0
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
    except OSError as error:
        if file.exists():
            os.truncate(file, length)
        raise RunError(
            f"could not write {file}: {error.strerror}. The last checkpoint is kept. Free some space or repair the "
            f"folder, then continue with `murp train --resume {path}`."
        ) from error


def rewind_metrics(path: Path, epoch: int) -> None:
    """Drop the lines of epochs that the checkpoint to be resumed has not seen."""
    kept = [record for record in read_metrics(path) if record["epoch"] <= epoch]
    write_text(path / METRICS, "".join(json.dumps(record) + "\n" for record in kept))


def environment(device: torch.device) -> dict[str, Any]:
    """What a reader needs to judge a run's figures: versions and hardware."""
    return {
        "murp": murp.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def processor() -> str:
    """The name of the CPU, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
