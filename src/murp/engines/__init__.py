"""Engines: how a training step is computed. ``torch`` defines it; the fused ones are tested against it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import cast

from murp.engines.engine import Chunk, Engine
from murp.engines.torch_engine import TorchEngine
from murp.errors import ConfigError
from murp.models import TRANSFORMATIONS, Model, MultiRelational

__all__ = ["Chunk", "Engine", "TorchEngine", "build", "side_by_side"]


FEW = 4  # models side by side, from which on two streams are worth while


def build(name: str, models: Sequence[Model]) -> Engine:
    """The engine called ``name`` for models on their device; ``auto`` is the fastest that can.

    Several models of one shape train side by side, which only the engine triton does.
    """
    if name == "auto":
        name = next(fused for fused in ("triton", "numba", "torch") if _cannot(fused, models[0]) is None)
    reason = _cannot(name, models[0])
    if reason is not None:
        raise ConfigError(f"engine {name} {reason}. Engine torch can: use --engine torch or auto.")
    if name == "triton":
        from murp.engines.triton_engine import TritonEngine, TritonSideBySide

        together = TritonSideBySide if len(models) >= FEW and models[0].device.type == "cuda" else TritonEngine
        return together(cast(Sequence[MultiRelational], models))
    (model,) = models
    if name == "numba":
        from murp.engines.numba_engine import NumbaEngine

        return NumbaEngine(cast(MultiRelational, model))
    return TorchEngine(model)


def side_by_side(name: str, model: Model) -> bool:
    """Whether several models like this one can share an engine."""
    return name in ("auto", "triton") and _cannot("triton", model) is None


def _cannot(name: str, model: Model) -> str | None:
    """Why the engine cannot train this model where it is; None if it can."""
    if name == "torch":
        return None
    device = {"numba": "cpu", "triton": "cuda"}[name]
    if model.device.type != device:
        return f"runs on {device}, and the model is on {model.device.type}"
    if importlib.util.find_spec(name) is None:
        return f"needs the package {name}, which is not installed"
    if not isinstance(model, MultiRelational):
        return "knows MuRP and MuRE, no other model"
    published = model.transformation == TRANSFORMATIONS["published"] and model.bias == "both"
    if name == "numba" and not published:
        return "knows MuRP and MuRE as published, not their other transformations and biases (triton, on cuda, does)"
    return None
