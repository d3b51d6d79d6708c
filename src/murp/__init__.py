"""Multi-relational knowledge graphs in hyperbolic space: MuRP, MuRE and what to do with them.

import murp
graph = murp.KnowledgeGraph.load("wordnet-mini")
run = murp.train(graph, model="murp", dim=40, epochs=100, out="runs/first")
run.evaluate("test").mrr
run.predict(head="asia.n.01", relation="has_part", k=10)
run.discover(k=10); run.score([("asia.n.01", "has_part", "china.n.01")]); run.embedding("asia.n.01")
run.plot("disk"); run.export("vectors.npz"); run.explore()
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
    from murp import recipes as recipes
    from murp import threads as threads
    from murp.api.graphs import analyze as analyze
    from murp.api.graphs import audit as audit
    from murp.api.graphs import convert as convert
    from murp.api.graphs import dataset as dataset
    from murp.api.graphs import datasets as datasets
    from murp.api.graphs import hierarchy_split as hierarchy_split
    from murp.api.hierarchies import embed as embed
    from murp.api.run import Run as Run
    from murp.api.serving import serve as serve
    from murp.api.training import compare as compare
    from murp.api.training import evaluate as evaluate
    from murp.api.training import import_run as import_run
    from murp.api.training import load as load
    from murp.api.training import resume as resume
    from murp.api.training import sweep as sweep
    from murp.api.training import train as train
    from murp.api.tuning import tune as tune
    from murp.client import Client as Client
    from murp.config import Config as Config
    from murp.errors import MurpError as MurpError
    from murp.graph import KnowledgeGraph as KnowledgeGraph

_HOMES = {
    "Client": "murp.client",
    "Config": "murp.config",
    "KnowledgeGraph": "murp.graph",
    "MurpError": "murp.errors",
    "Run": "murp.api.run",
    "analyze": "murp.api.graphs",
    "audit": "murp.api.graphs",
    "compare": "murp.api.training",
    "convert": "murp.api.graphs",
    "dataset": "murp.api.graphs",
    "datasets": "murp.api.graphs",
    "embed": "murp.api.hierarchies",
    "evaluate": "murp.api.training",
    "hierarchy_split": "murp.api.graphs",
    "import_run": "murp.api.training",
    "load": "murp.api.training",
    "resume": "murp.api.training",
    "serve": "murp.api.serving",
    "sweep": "murp.api.training",
    "train": "murp.api.training",
    "tune": "murp.api.tuning",
}
# Modules that need no import of their own: error messages and explanations of settings name them.
_MODULES = ("recipes", "threads")
__all__ = [
    "Client",
    "Config",
    "KnowledgeGraph",
    "MurpError",
    "Run",
    "__version__",
    "analyze",
    "audit",
    "compare",
    "convert",
    "dataset",
    "datasets",
    "embed",
    "evaluate",
    "hierarchy_split",
    "import_run",
    "load",
    "resume",
    "serve",
    "sweep",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    # PyTorch takes a second to import; `murp --help` and `murp data` do without it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"murp.{name}")
    raise AttributeError(f"module 'murp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
