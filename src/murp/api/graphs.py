"""Graphs without a model: ``murp.analyze``, ``audit``, ``convert``, ``datasets``, ``dataset``, ``hierarchy_split``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from murp.analysis.graph_report import DIMENSION, GraphReport, graph_report
from murp.analysis.hierarchy_split import Subset, made_by
from murp.graph import KnowledgeGraph
from murp.graph.auditing.audit import Audit, audit_source
from murp.graph.auditing.audit import audit as audit_graph
from murp.graph.convert import convert as write_graph
from murp.graph.datasets import dataset, datasets
from murp.graph.sources import code_source

Source = KnowledgeGraph | str | os.PathLike[str]

__all__ = ["analyze", "audit", "convert", "dataset", "datasets", "hierarchy_split"]


def analyze(graph: Source, *, relation: str | None = None, dim: int = DIMENSION, seed: int = 0) -> GraphReport:
    """How hierarchical a graph is, relation by relation, and whether hyperbolic space should help at dimension ``dim``.

    ``relation``: only this relation. ``seed`` is the seed of the sample for δ. :meth:`Run.analyze` analyses a trained
    run.
    """
    return graph_report(_loaded(graph), relation=relation, dim=dim, seed=seed)


def audit(graph: Source) -> Audit:
    """Look for flaws: duplicates, leaks, unseen entities, inverse relations, …

    A path or the name of a dataset is audited with its files, a graph in memory without files.
    """
    return audit_graph(graph) if isinstance(graph, KnowledgeGraph) else audit_source(graph)


def convert(graph: Source, out: str | os.PathLike[str], *, format: str = "tsv") -> Path:
    """Write a graph into the new folder ``out`` as tsv, csv or parquet, optionally with .gz, .xz or .zst (tsv.zst).

    ``format="graph"`` is murp's own format, which any command accepts as data and maps into memory. Files of any size
    are read in pieces for it. If it was interrupted, the same call continues.
    """
    if format.lower() == "graph" and not isinstance(graph, KnowledgeGraph):
        code_source(graph, Path(out))
        return Path(out)
    write_graph(_loaded(graph), Path(out), format)
    return Path(out)


def hierarchy_split(
    graph: Source,
    out: str | os.PathLike[str],
    *,
    shares: Sequence[int] = (100, 75, 50, 25),
    valid: int = 10_000,
    test: int = 10_000,
    seed: int = 0,
    hierarchical: Sequence[str] | None = None,
) -> list[Subset]:
    """Subsets with given shares of hierarchical relations, in percent, each in its own folder inside ``out``.

    ``hierarchical``: ids or names of these relations; None: by Krackhardt score and length of paths.
    """
    return made_by(
        _loaded(graph), Path(out), hierarchical=hierarchical, shares=shares, valid=valid, test=test, seed=seed
    )[0]


def _loaded(graph: Source) -> KnowledgeGraph:
    return graph if isinstance(graph, KnowledgeGraph) else KnowledgeGraph.load(graph)
