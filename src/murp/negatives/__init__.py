"""Negatives: how false triples are made from true ones, one file each. :mod:`murp.registry` has their names.

The setting ``corruption`` chooses among them.
"""

from murp.negatives.negatives import Drawn, Negatives

__all__ = ["Drawn", "Negatives"]
