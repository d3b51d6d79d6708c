"""Subsets of a graph with given shares of hierarchical relations, as the paper's NELL-995-h100 … h25 were made.

All facts are pooled and valid and test drawn from them at random. A subset of share s keeps the H hierarchical
relations and H (100 - s) / s others, rounded, drawn at random; the splits are those of the pool, without the facts
of other relations. Others are drawn once and taken from the front, so a subset holds those of larger shares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from murp.analysis.relations import LEAST_PATH, LEAST_SCORE, relation_profiles
from murp.errors import ConfigError, DataError
from murp.files import new_folder, write_text
from murp.graph import SPLITS, KnowledgeGraph, Triples
from murp.graph.convert import convert
from murp.graph.indexing import table_of
from murp.graph.keys import fact_keys

AUTO = f"Krackhardt score at least {LEAST_SCORE}, longest shortest path at least {LEAST_PATH} edges"


@dataclass(frozen=True, eq=False)
class Subset:
    """One share, in percent, with its graph and the relations it kept."""

    share: int
    graph: KnowledgeGraph
    hierarchical: tuple[str, ...]
    others: tuple[str, ...]


def hierarchical_relations(graph: KnowledgeGraph) -> list[int]:
    """The relations that :attr:`RelationProfile.hierarchical` picks: the rule ``AUTO``."""
    return [r for r, profile in enumerate(relation_profiles(graph)) if profile.hierarchical]


def hierarchy_split(
    graph: KnowledgeGraph,
    hierarchical: Sequence[int],
    *,
    shares: Sequence[int] = (100, 75, 50, 25),
    valid: int = 10_000,
    test: int = 10_000,
    seed: int = 0,
) -> list[Subset]:
    """A subset for each of ``shares``, named twice or not, the same for the same ``seed``; ``hierarchical`` are
    relations' numbers."""
    generator = np.random.default_rng(seed)
    parts = _draw(graph, valid, test, generator)
    kept = np.unique(np.asarray(hierarchical, dtype=np.int64))
    if not len(kept):
        raise DataError(f"{graph.name}: no relation is hierarchical ({AUTO}). Name them: --hierarchical relation,…")
    others = generator.permutation(np.setdiff1d(np.arange(graph.num_relations), kept))
    subsets = []
    for share in dict.fromkeys(shares):
        chosen = others[: _how_many(graph, len(kept), len(others), share)]
        wanted = np.isin(np.arange(graph.num_relations), np.concatenate([kept, chosen]))
        tables = [table_of(graph, part[wanted[part[:, 1]]]) for part in parts]
        name = f"{graph.name}-h{share}"
        for split, table in zip(SPLITS, tables, strict=True):
            if not len(table):
                raise DataError(f"{name}: {split} would be empty. Choose other numbers (--valid, --test).")
        names = {f"{v.kind}_names": v.table() for v in (graph.entities, graph.relations) if v.names is not None}
        subset = KnowledgeGraph.from_tables(name, *tables, **names)
        subsets.append(
            Subset(share, subset, *(tuple(graph.relations.id(r) for r in rs) for rs in (kept, np.sort(chosen))))
        )
    return subsets


def made_by(
    graph: KnowledgeGraph,
    out: Path,
    *,
    hierarchical: Sequence[str] | None = None,
    shares: Sequence[int] = (100, 75, 50, 25),
    valid: int = 10_000,
    test: int = 10_000,
    seed: int = 0,
) -> tuple[list[Subset], str]:
    """Draw and write subsets; ``hierarchical`` relations by id or name, or by the rule ``AUTO``; which rule it was."""
    if hierarchical is None:
        rule, chosen = f"auto: {AUTO}", hierarchical_relations(graph)
    else:
        rule, chosen = "named", [graph.relations.find(name) for name in hierarchical]
    subsets = hierarchy_split(graph, chosen, shares=shares, valid=valid, test=test, seed=seed)
    write(subsets, out, origin=graph.name, seed=seed, rule=rule)
    return subsets, rule


def write(subsets: Sequence[Subset], out: Path, *, origin: str, seed: int, rule: str) -> None:
    """Write each subset into a folder of its own within the new folder ``out``, all of them or nothing.

    ``split.json`` beside the three files says how they were made.
    """
    with new_folder(out, DataError) as part:
        for subset in subsets:
            folder = part / subset.graph.name
            convert(subset.graph, folder)
            made = {
                "origin": origin,
                "seed": seed,
                "share": subset.share,
                "rule": rule,
                "hierarchical": subset.hierarchical,
                "others": subset.others,
                "counts": {split: len(subset.graph.split(split)) for split in SPLITS},
            }
            write_text(folder / "split.json", json.dumps(made, indent=2, ensure_ascii=False) + "\n")


def _draw(graph: KnowledgeGraph, valid: int, test: int, generator: np.random.Generator) -> list[Triples]:
    """Train, valid and test of the distinct facts, each in the order of the files."""
    facts = graph.facts()
    first = np.unique(fact_keys(facts, graph.num_entities, graph.num_relations), return_index=True)[1]
    facts = facts[np.sort(first)]
    if valid < 1 or test < 1 or valid + test >= len(facts):
        raise ConfigError(
            f"{graph.name} has {len(facts):,} distinct facts: {valid:,} for valid and {test:,} for test leave none for "
            "train, or one of them is empty. Choose other numbers (--valid, --test)."
        )
    order: NDArray[np.int64] = generator.permutation(len(facts))
    parts = order[valid + test :], order[:valid], order[valid : valid + test]
    return [facts[np.sort(part)] for part in parts]


def _how_many(graph: KnowledgeGraph, kept: int, others: int, share: int) -> int:
    """H (100 - s) / s, rounded to the nearest."""
    if not 1 <= share <= 100:
        raise ConfigError(f"a share is a percentage from 1 to 100, not {share}.")
    wanted = round(kept * (100 - share) / share)
    if wanted > others:
        least = -(-100 * kept // (kept + others))
        raise ConfigError(
            f"{graph.name} has {kept} hierarchical relations and {others} others; a share of {share} % takes {wanted} "
            f"others. Choose --shares of {least} or more."
        )
    return wanted
