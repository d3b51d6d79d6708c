"""Engines: how a training step is computed. ``torch`` defines it; the fused ones are tested against it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from murp.engines.engine import Chunk, Engine
from murp.engines.torch_engine import TorchEngine
from murp.errors import ConfigError
from murp.models import TRANSFORMATIONS, MultiRelational

__all__ = ["Chunk", "Engine", "TorchEngine", "build"]


def build(name: str, model: MultiRelational) -> Engine:
    """The engine called ``name`` for ``model`` on its device; ``auto`` is the fastest that can."""
    if name == "auto":
        for fused in ("triton", "numba"):
            if _cannot(fused, model) is None:
                return _MAKERS[fused](model)
        return TorchEngine(model)
    reason = _cannot(name, model)
    if reason is not None:
        raise ConfigError(f"engine {name} {reason}. Engine torch can: use --engine torch or auto.")
    return _MAKERS[name](model)


def _cannot(name: str, model: MultiRelational) -> str | None:
    """Why the engine cannot train this model where it is; None if it can."""
    if name == "torch":
        return None
    device = {"numba": "cpu", "triton": "cuda"}[name]
    if model.device.type != device:
        return f"runs on {device}, and the model is on {model.device.type}"
    if importlib.util.find_spec(name) is None:
        return f"needs the package {name}, which is not installed"
    if model.transformation != TRANSFORMATIONS["published"] or model.bias != "both":
        return "knows the published transformation with both biases, no other choice of parts"
    return None


def _numba(model: MultiRelational) -> Engine:
    from murp.engines.numba_engine import NumbaEngine

    return NumbaEngine(model)


def _triton(model: MultiRelational) -> Engine:
    from murp.engines.triton_engine import TritonEngine

    return TritonEngine(model)


_MAKERS: dict[str, Callable[[MultiRelational], Engine]] = {"torch": TorchEngine, "numba": _numba, "triton": _triton}
