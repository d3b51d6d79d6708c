"""Regularizers: terms that keep parameters small, one file each. :mod:`murp.registry` has their names."""

from murp.regularizers.regularizer import Batch, Regularizer

__all__ = ["Batch", "Regularizer"]
