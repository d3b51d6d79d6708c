"""The paper, item by item: run its experiments, store their evidence, report them beside its figures."""

from murp.paper.items import ITEMS
from murp.paper.lab import Lab

__all__ = ["ITEMS", "Lab"]
