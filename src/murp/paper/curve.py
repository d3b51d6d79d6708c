"""A run that is stopped, evaluated and continued: the paper's figure 3b."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from murp.errors import RunError
from murp.evaluation import PROTOCOLS
from murp.files import fields, write_text
from murp.graph import Split
from murp.paper.experiments import Experiments, read, rounded
from murp.paper.planned_run import PlannedRun
from murp.runs import folder
from murp.training.start import resume, train

SPLITS: tuple[Split, ...] = ("train", "valid")


def curve(experiments: Experiments, planned: PlannedRun, epochs: list[int]) -> dict[str, Any]:
    """MRR on train and valid after each of ``epochs``; results are stored, so that it can be interrupted."""
    path = experiments.work(f"curve-{planned.name}")
    file = path.with_suffix(".json")
    config = experiments.config(planned).replace(validate_every=0)
    begun = experiments.begun(path, config, ignoring=("epochs",))
    points = _points(file) if begun and file.exists() else []
    if begun and [point["epoch"] for point in points] != epochs[: len(points)]:
        # The weights of an epoch that has passed are gone.
        shutil.rmtree(path)
        begun, points = False, []
    for epoch in epochs[len(points) :]:
        if begun:
            run = resume(path, epochs=epoch, progress=experiments.progress)
        else:
            settings = {**experiments.training, **planned.settings(), "validate_every": 0, "epochs": epoch}
            run = train(experiments.graph(planned.data), out=path, progress=experiments.progress, **settings)
            begun = True
        mrr = {f"{split}_{p}": run.evaluate(split, p).mrr for split in SPLITS for p in PROTOCOLS}
        points.append({"epoch": epoch, **rounded(mrr)})
        write_text(file, json.dumps({"points": points}) + "\n")
    return {"points": points, "environment": folder.read_environment(path)}


def _points(file: Path) -> list[dict[str, Any]]:
    try:
        return [fields(point, {"epoch": int}) for point in fields(read(file), {"points": list})["points"]]
    except ValueError as error:
        raise RunError(
            f"{file} does not hold the points of a curve: {error}. Remove it and run its item again."
        ) from error
