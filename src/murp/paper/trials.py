"""What else was tried where an ablation lies far from the paper's: other rates and initial values, for longer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from murp.paper.experiments import Experiments, valid_mrr
from murp.paper.planned_run import PlannedRun


def trials(experiments: Experiments) -> None:
    """Far cells of table 2 again: rates and initial values, for longer; the best on valid with several seeds."""
    items = experiments.settings["trials"]
    cells = []
    for cell in items["cells"]:
        tried = [_planned(items, cell, lr, scale) for scale, lr in itertools.product(cell["scale"], cell["lr"])]
        best = tried[int(np.argmax([valid_mrr(result) for result in experiments.results(tried)]))]
        runs = experiments.train_seeds(best)
        where = {name: cell[name] for name in ("kind", "part", "model")}
        cells.append({**where, "tried": [run.name for run in tried], "runs": runs})
    experiments.store("trials", {"settings": items, "cells": cells})


def _planned(items: dict[str, Any], cell: dict[str, Any], lr: float, scale: float) -> PlannedRun:
    parts = (cell["part"], "both") if cell["kind"] == "transformations" else ("published", cell["part"])
    epochs = items["training"]["epochs"]
    return PlannedRun(items["data"], cell["model"], items["dim"], lr, 0, parts, epochs, scale)
