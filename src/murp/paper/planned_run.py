"""One run of the paper: what it is called, its settings, and whether a stored run has the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from murp.config import Config
from murp.models import Model
from murp.settings import current

MODELS = ("mure", "murp")
PUBLISHED = ("published", "both")
# Where a run's data lay and how it was computed; what it is does not depend on them. Its name holds the dataset's.
NOT_COMPARED = ("data", "data_dir", "columns", "no_header", "device", "engine", "save_every", "tensorboard")


@dataclass(frozen=True)
class PlannedRun:
    """One run of the paper: what distinguishes it from the others. ``parts`` are (transformation, bias)."""

    data: str
    model: str
    dim: int
    lr: float
    seed: int = 0
    parts: tuple[str, str] = PUBLISHED
    epochs: int | None = None  # None: as many as the paper's runs have
    initial_scale: float = Model.initial_scale

    @property
    def name(self) -> str:
        """``WN18RR-murp-d40-lr50-seed0``, and what is not as in the paper."""
        scale = [] if self.initial_scale == Model.initial_scale else [f"scale{self.initial_scale:g}"]
        own = [self.data, self.model, f"d{self.dim}", f"lr{self.lr:g}", f"seed{self.seed}"]
        return "-".join([*own, *self._others(), *scale])

    @property
    def shape(self) -> str:
        """``murp d=40, swapped, on WN18RR``: what runs that are trained side by side have in common."""
        return ", ".join([f"{self.model} d={self.dim}", *self._others(), f"on {self.data}"])

    def settings(self) -> dict[str, Any]:
        """As :class:`murp.Config` names them."""
        transformation, bias = self.parts
        chosen = {"model": self.model, "dim": self.dim, "lr": float(self.lr), "seed": self.seed}
        if self.epochs is not None:
            chosen["epochs"] = self.epochs
        return {**chosen, "transformation": transformation, "bias": bias, "initial_scale": self.initial_scale}

    def _others(self) -> list[str]:
        length = [] if self.epochs is None else [f"{self.epochs}epochs"]
        return [*(part for part in self.parts if part not in PUBLISHED), *length]


def differences(stored: Mapping[str, Any], planned: Config, ignoring: tuple[str, ...] = ()) -> list[str]:
    """The settings, ``epochs = 500, not 400``, in which a stored run is another than the one that is planned.

    A setting that the stored run does not know is newer than the run, which was trained as its default says.
    """
    known = {**Config().to_dict(), **stored}
    return [
        f"{name} = {known[name]!r}, not {value!r}"
        for name, value in planned.to_dict().items()
        if name not in (*NOT_COMPARED, *ignoring) and current(name, known.get(name, value)) != value
    ]
