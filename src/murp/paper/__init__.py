"""The paper, item by item: run its experiments, store their evidence, report them beside its figures."""

from murp.paper.experiments import Experiments
from murp.paper.items import ITEMS

__all__ = ["ITEMS", "Experiments"]
