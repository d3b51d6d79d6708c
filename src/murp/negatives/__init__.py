"""Negatives: how false triples are made of true ones, a file each. :mod:`murp.registry` has their names."""

from murp.negatives.negatives import Drawn, Negatives

__all__ = ["Drawn", "Negatives"]
