"""Regularizers: what keeps parameters small, a file each. :mod:`murp.registry` has their names."""

from murp.regularizers.regularizer import Batch, Regularizer

__all__ = ["Batch", "Regularizer"]
