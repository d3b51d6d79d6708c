"""What Neo4j's library APOC exports: nodes and relationships in one file of rows, or in one of JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.reading.columns import COLUMNS
from murp.graph.reading.delimited import read_columns
from murp.graph.reading.facts import Facts
from murp.graph.reading.tables import further

_ROLES = {"_start": "head", "_type": "relation", "_end": "tail"}
NAMES = ("name", "title", "label", "prefLabel", "fullName", "full_name", "displayName", "display_name", "username")
"""Properties of a node that name it, the first one that there is."""


def is_export(titles: Sequence[str]) -> bool:
    """Whether a header is that of ``apoc.export.csv``."""
    return {"_id", *_ROLES} <= set(titles)


def read(path: Path, titles: Sequence[str], delimiter: str) -> Facts:
    """Rows with a start are relationships; those without are nodes, whose property ``name`` (or so) names them."""
    names = [_ROLES.get(title, f"{title}\t{place}") for place, title in enumerate(titles)]
    node, name = names[titles.index("_id")], next((names[titles.index(t)] for t in NAMES if t in titles), None)
    kept = [*COLUMNS, node, *([name] if name else [])]
    table = read_columns(path, names, delimiter, may_be_empty=names, kept=kept).slice(1)
    given = [pc.not_equal(table[role], "") for role in COLUMNS]
    related = pc.or_(pc.or_(given[0], given[1]), given[2])
    facts = table.filter(related)
    lines = pc.indices_nonzero(related).to_numpy()
    for role in COLUMNS:
        if (row := pc.index(facts[role], "").as_py()) >= 0:
            raise DataError(f"{path}, row {int(lines[row]) + 2}: the {role} is empty. Fill it in or remove the row.")
    nodes = table.filter(pc.invert(related))
    named = None
    if name is not None:
        nodes = nodes.filter(pc.not_equal(nodes[name], ""))
        named = pa.table({"id": nodes[node], "name": nodes[name]}) if len(nodes) else None
    used = {"_id", "_labels", *_ROLES, name.split("\t")[0] if name else ""}
    other = [title for title in titles if title not in used]
    findings = further(path.name, other)
    return Facts(
        facts.select(list(COLUMNS)), lambda row: f"{path}, row {int(lines[row]) + 2}", named, findings=findings
    )


def name_of(properties: Mapping[str, Any]) -> str | None:
    """The property of a node that names it."""
    return next(
        (str(properties[key]) for key in NAMES if isinstance(properties.get(key), str) and properties[key]), None
    )
