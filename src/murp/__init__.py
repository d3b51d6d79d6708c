"""Multi-relational knowledge graphs in hyperbolic space: MuRP, MuRE and what to do with them.

import murp
graph = murp.KnowledgeGraph.load("wordnet-mini")
run = murp.train(graph, model="murp", dim=40, epochs=100, out="runs/first")
run.evaluate("test").mrr
run.predict(head="asia.n.01", relation="has_part", k=10)
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Large tables on large pages: a step reads rows all over them, and every small page costs a look-up of its own.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
# PyTorch's threads, where they are used, wait for each other spinning, by default for milliseconds: beside a busy
# neighbour a step took eighty times as long. So long a wait is as quick alone. Read when PyTorch is imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

if TYPE_CHECKING:
    from murp.config import Config as Config
    from murp.errors import MurpError as MurpError
    from murp.graph import KnowledgeGraph as KnowledgeGraph
    from murp.runs import Run as Run
    from murp.runs import compare as compare
    from murp.runs import load as load
    from murp.training import resume as resume
    from murp.training import train as train

_HOMES = {
    "Config": "murp.config",
    "KnowledgeGraph": "murp.graph",
    "MurpError": "murp.errors",
    "Run": "murp.runs",
    "compare": "murp.runs",
    "load": "murp.runs",
    "resume": "murp.training",
    "train": "murp.training",
}
__all__ = ["Config", "KnowledgeGraph", "MurpError", "Run", "__version__", "compare", "load", "resume", "train"]


def __getattr__(name: str) -> Any:
    # PyTorch takes a second to import; `murp --help` and `murp data` do without it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'murp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
