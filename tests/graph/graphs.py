"""Strategies and helpers for tests of graph code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from murp.graph.formats.text import no_fact
from murp.graph.knowledge_graph import KnowledgeGraph
from murp.graph.names.tidy import BLANKS

Row = tuple[str, str, str]

# Any character but the ones that separate, and a byte-order mark, which a reader may take off the first name.
names = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\ufeff"), min_size=1, max_size=12).filter(
    lambda name: name.strip(BLANKS)
)
few_names = st.sampled_from(["a", "b", "c", 'd "e" f', " g h ", "ß→", "i,j", "#k", "NA", "null", "'"])
rows = st.lists(st.tuples(few_names | names, few_names | names, few_names | names), min_size=1, max_size=30)
plain_rows = rows.filter(lambda listed: no_fact(table(listed)) is None)


def table(listed: Sequence[Row]) -> pa.Table:
    columns = zip(*listed, strict=True) if listed else ((), (), ())
    return pa.table(
        {
            role: pa.array(column, pa.large_string())
            for role, column in zip(("head", "relation", "tail"), columns, strict=True)
        }
    )


def listed(triples: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in triples.columns), strict=True))


def coded(facts: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array(facts, dtype=np.int32).reshape(-1, 3)


def same(one: KnowledgeGraph, other: KnowledgeGraph) -> bool:
    return (
        one.entities == other.entities
        and one.relations == other.relations
        and all(np.array_equal(one.split(s), other.split(s)) for s in ("train", "valid", "test"))
    )


def write_dataset(folder: Path, **splits: str) -> Path:
    """``write_dataset(path, train="a b c; d e f", …)`` writes tab-separated rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in splits.items():
        lines = ["\t".join(row.split()) + "\n" for row in text.split(";") if row.strip()]
        (folder / f"{name}.txt").write_text("".join(lines))
    return folder
