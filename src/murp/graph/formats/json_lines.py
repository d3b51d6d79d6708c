"""One JSON value a line: an object with head, relation and tail under any title that is known, or a list of the three.

What Neo4j's ``apoc.export.json`` writes is known by its ``"type": "node"`` and ``"type": "relationship"``: nodes give
names, relationships facts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from murp.errors import DataError
from murp.files import parse_json
from murp.graph.findings import noticed
from murp.graph.reading import apoc
from murp.graph.reading.columns import COLUMNS, Columns, left_out, not_understood
from murp.graph.reading.facts import Facts, Ids, names_of, triples_of
from murp.graph.reading.streams import text_lines
from murp.graph.reading.tables import further


def read(path: Path, columns: Columns) -> Facts:
    """The facts of the lines; blank lines and those that begin with # are passed over."""
    rows = _Rows(columns)
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        if line.lstrip().startswith("#"):
            rows.comments.append(line.strip())
            continue
        where = f"{path}, line {number}"
        try:
            line.encode()
            record = parse_json(line)
        except ValueError as error:
            raise DataError(f"{where}: not JSON in UTF-8 ({error}): {line.strip()[:100]!r}.") from None
        rows.add(record, number, where)
    lines = rows.lines
    findings = [
        *further(path.name, sorted(rows.other)),
        *noticed("comment_lines", path.name, len(rows.comments), "comment line{s} (#) passed over", rows.comments),
        *rows.entities.findings(path.name),
        *rows.relation_ids.findings(path.name),
    ]
    return Facts(
        triples_of(rows.heads, rows.relations, rows.tails),
        lambda row: f"{path}, line {lines[row]}",
        names_of(rows.names),
        findings=findings,
    )


class _Rows:
    """What was read so far. Objects with the same titles in the same order are looked through once."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.heads: list[str] = []
        self.relations: list[str] = []
        self.tails: list[str] = []
        self.lines: list[int] = []
        self.names: dict[str, tuple[str | None, str | None]] = {}
        self.other: set[str] = set()
        self.comments: list[str] = []
        self.entities, self.relation_ids = Ids(), Ids()
        self.known: dict[tuple[str, ...], tuple[str, str, str]] = {}

    def add(self, record: Any, number: int, where: str) -> None:
        """One line."""
        if isinstance(record, dict) and record.get("type") == "node" and "id" in record:
            properties = record.get("properties")
            name = apoc.name_of(properties) if isinstance(properties, dict) else None
            if name is not None:
                self.names[self.entities(record["id"], f"{where}: id")] = (name, None)
            return
        self.lines.append(number)
        columns = (self.heads, self.relations, self.tails)
        ids = (self.entities, self.relation_ids, self.entities)
        for column, as_id, role, value in zip(columns, ids, COLUMNS, self._fields(record, where), strict=True):
            column.append(as_id(value, f"{where}: the {role}"))

    def _fields(self, record: Any, where: str) -> tuple[object, object, object]:
        if isinstance(record, list):
            if len(record) != 3:
                raise DataError(f"{where}: a list of {len(record)} and not of 3 (head, relation, tail).")
            return record[0], record[1], record[2]
        if not isinstance(record, dict):
            raise DataError(
                f'{where}: neither an object like {{"head": …, "relation": …, "tail": …}} nor a list of three.'
            )
        if (
            record.get("type") == "relationship"
            and isinstance(record.get("start"), dict)
            and isinstance(record.get("end"), dict)
        ):
            return record["start"].get("id"), record.get("label"), record["end"].get("id")
        titles = tuple(record)
        if titles not in self.known:
            places = self.columns.find(titles, where)
            if places is None:
                raise not_understood(where, titles, "(the titles of the object) is not understood")
            self.other.update(left_out(titles, places))
            self.known[titles] = (titles[places[0]], titles[places[1]], titles[places[2]])
        head, relation, tail = self.known[titles]
        return record[head], record[relation], record[tail]
