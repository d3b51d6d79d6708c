"""Optimizers: how parameters are updated, one file each. :mod:`murp.registry` has their names."""

from murp.optimizers.optimizer import Optimizer

__all__ = ["Optimizer"]
