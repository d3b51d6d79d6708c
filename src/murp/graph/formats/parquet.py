"""Parquet files, whose columns are found by their titles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from murp.graph.reading.columns import Columns, left_out
from murp.graph.reading.facts import Facts
from murp.graph.reading.parquet import read_table
from murp.graph.reading.tables import choose, further, table_facts


def read(path: Path, columns: Columns) -> Facts:
    """Only the three columns are read; whole numbers become their decimal digits."""
    other: list[str] = []

    def chosen(titles: Sequence[str]) -> list[str]:
        places = choose(titles, columns, str(path))
        other.extend(left_out(titles, places))
        return [titles[place] for place in places]

    table = read_table(path, chosen)
    facts = table_facts(table, Columns(header=False), str(path), path.name)
    facts.findings.extend(further(path.name, other))
    return facts
