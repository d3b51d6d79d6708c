"""Stored results made by hand: as many runs with as many MRRs as a test wants, and nothing trained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from murp.paper.evidence import METRICS, Evidence


class StoredResults:
    """A folder of stored results under construction; ``None`` for an MRR is a run that diverged in its third epoch."""

    def __init__(self, out: Path) -> None:
        self.out = out
        (out / "runs").mkdir(parents=True)

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.out)

    def cell(self, scores: Sequence[float | None], valid: Sequence[float] = (), **which: Any) -> dict[str, Any]:
        """A run for each score, every metric the same; ``which`` is the cell's own and goes into the settings too."""
        settings = {"data": "WN18RR", "model": "murp", "dim": 40, "lr": 50.0, "epochs": 500, "validate_every": 20}
        settings |= {"transformation": "published", "bias": "both", "batch_size": 128, "negatives": 50}
        settings |= {"dtype": "float32", "initial_scale": 1e-3}
        settings |= {key: value for key, value in which.items() if key in settings}
        if "part" in which:
            settings["transformation" if which["kind"] == "transformations" else "bias"] = which["part"]
        first, last = (20, 40) if settings["epochs"] == 500 else (500, settings["epochs"])
        names = []
        for seed, score in enumerate(scores):
            kind = [
                settings[key]
                for key in ("data", "model", "dim", "lr", "transformation", "bias", "epochs", "initial_scale")
            ]
            name = "-".join(map(str, [*kind, seed]))
            run: dict[str, Any] = {"name": name, "settings": {**settings, "seed": seed}, "murp": "0", "source": "a"}
            if score is None:
                run["failed"] = "parameter entity became NaN in epoch 3 (learning rate 50)."
            else:
                on_valid = valid[seed] if valid else score
                run |= {
                    "environment": {"device": "a GPU"},
                    "selected_epoch": 480,
                    "metrics": {"test": self._metrics(score), "valid": self._metrics(on_valid)},
                    "valid_curve": [[first, on_valid / 2], [last, on_valid]],
                }
            (self.out / "runs" / f"{name}.json").write_text(json.dumps(run))
            names.append(name)
        return {**which, "runs": names}

    def _metrics(self, score: float) -> dict[str, Any]:
        return {protocol: dict.fromkeys(METRICS, score) for protocol in ("standard", "paper")}

    def item(self, name: str, **content: Any) -> dict[str, Any]:
        """Store an item."""
        stored = {"item": name, "quick": False, "date": "2026-01-01", "murp": "0", "source": "a", **content}
        (self.out / f"{name}.json").write_text(json.dumps(stored))
        return stored
