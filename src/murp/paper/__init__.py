"""The paper, item by item: run its experiments, store their evidence, report them beside its values.

In Python: ``murp.paper.running.items()``, ``murp.paper.running.run(["table1"], quick=True)`` and
``murp.paper.report.write(out, folder)``.
"""

from murp.paper.experiments import Experiments
from murp.paper.items import ITEMS

__all__ = ["ITEMS", "Experiments"]
