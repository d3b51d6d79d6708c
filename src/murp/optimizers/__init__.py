"""Optimizers: how parameters follow the gradient, a file each. :mod:`murp.registry` has their names."""

from murp.optimizers.optimizer import Optimizer

__all__ = ["Optimizer"]
