"""Folders of CSV files as Neo4j's import tool takes them: nodes (``:ID``) and relationships (``:START_ID``, …)."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from murp.errors import DataError
from murp.graph.formats.text import read as read_text
from murp.graph.reading.apoc import NAMES
from murp.graph.reading.columns import Columns
from murp.graph.reading.delimited import first_row, read_columns
from murp.graph.reading.facts import Facts
from murp.graph.reading.streams import split_endings


@dataclass(frozen=True)
class Export:
    """The files of a folder with their headers."""

    nodes: dict[Path, list[str]]
    relationships: list[Path]


def find(folder: Path) -> Export | None:
    """The files of an export; None if no file has relationships."""
    headers: dict[Path, list[str]] = {}
    for path in sorted(folder.iterdir()):
        if split_endings(path)[0] == ".csv" and path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            first = first_row(path, ",")
            headers |= {path: first[1]} if first else {}
    related = [path for path, titles in headers.items() if _marked(titles, "START_ID") and _marked(titles, "END_ID")]
    nodes = {path: titles for path, titles in headers.items() if _marked(titles, "ID")}
    return Export(nodes, related) if related else None


def read(export: Export) -> Facts:
    """The relationships of all files, with names where the nodes have some."""
    parts = [read_text(path, Columns()) for path in export.relationships]
    ends = list(itertools.accumulate(len(part.triples) for part in parts))

    def place(row: int) -> str:
        number = bisect_right(ends, row)
        return parts[number].place(row - (ends[number - 1] if number else 0))

    names: list[pa.Table] = []
    spaces: dict[str, set[str]] = {}
    for path, titles in export.nodes.items():
        table = _nodes(path, titles)
        space = _space(titles)
        ids = set(table["id"].to_pylist())
        if other := [one for one, known in spaces.items() if one != space and not ids.isdisjoint(known)]:
            raise DataError(f"{path}: has ids that the nodes of {other[0]!r} have too. Give every node its own id.")
        spaces.setdefault(space, set()).update(ids)
        names += [table] if "name" in table.column_names else []
    findings = [finding for part in parts for finding in part.findings]
    triples = pa.concat_tables([part.triples for part in parts])
    return Facts(triples, place, pa.concat_tables(names) if names else None, findings=findings)


def _nodes(path: Path, titles: list[str]) -> pa.Table:
    """Columns id and, if there is one, name."""
    columns = [f"column {i + 1}" for i in range(len(titles))]
    columns[_place(titles, "ID")] = "id"
    plain = [title.split(":")[0].strip() for title in titles]
    name = next((plain.index(word) for word in NAMES if word in plain and columns[plain.index(word)] != "id"), None)
    if name is not None:
        columns[name] = "name"
    kept = [column for column in columns if column in ("id", "name")]
    return read_columns(path, columns, ",", may_be_empty=[c for c in columns if c != "id"], kept=kept).slice(1)


def _marked(titles: list[str], mark: str) -> bool:
    return any(re.search(rf":{mark}(\(.*\))?(\{{.*\}})?$", title.strip()) for title in titles)


def _place(titles: list[str], mark: str) -> int:
    return next(i for i, title in enumerate(titles) if _marked([title], mark))


def _space(titles: list[str]) -> str:
    found = re.search(r":ID\((.*?)\)", titles[_place(titles, "ID")])
    return found[1] if found else ""
