"""Engines: how a training step is computed."""

from murp.engines.engine import Engine
from murp.engines.torch_engine import TorchEngine

__all__ = ["Engine", "TorchEngine"]
