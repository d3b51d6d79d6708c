"""A query in a file: what ``SELECT`` gives is read like a table, by the titles of its columns.

DuckDB runs it. Files that it names (``FROM 'edges.csv'``) lie in the folder of the query, and nothing outside that
folder, no network and no extension can be reached; nothing can be written. Where ``facts.duckdb`` lies beside
``facts.sql``, its tables are there.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pyarrow as pa

from murp.errors import DataError
from murp.extras import need
from murp.graph.reading.columns import Columns
from murp.graph.reading.facts import Facts
from murp.graph.reading.streams import open_input, split_endings
from murp.graph.reading.tables import table_facts

_LONGEST = 1 << 20
_FILES = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")


def read(path: Path, columns: Columns) -> Facts:
    """The facts of the one ``SELECT`` that the file holds."""
    duckdb = need("duckdb", "sql", f"{path}: a query", DataError)
    with open_input(path) as stream:
        data = bytes(stream.read(_LONGEST + 1))
    if len(data) > _LONGEST:
        raise DataError(f"{path}: is longer than {_LONGEST >> 20} MiB. Is it a query?")
    try:
        query = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}. Save it in the encoding UTF-8.") from error
    form, packed = split_endings(path)
    database = path.with_name(path.name[: -len(form + packed)] + ".duckdb")
    folder = path.resolve().parent
    try:
        with contextlib.closing(
            duckdb.connect(str(database), read_only=True) if database.is_file() else duckdb.connect()
        ) as connection:
            table = _result(duckdb, connection, query, path, folder)
    except (duckdb.Error, pa.ArrowException, ValueError, MemoryError) as error:
        said = " ".join(str(error).split())[:400].rstrip(".")
        raise DataError(f"{path}: the query cannot be run: {said}.") from error
    return table_facts(table, columns, str(path), path.name)


def _result(duckdb: object, connection: object, query: str, path: Path, folder: Path) -> pa.Table:
    statements = connection.extract_statements(query)  # type: ignore[attr-defined]
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:  # type: ignore[attr-defined]
        raise DataError(f"{path}: is not a single SELECT. Write one query that returns head, relation and tail.")
    run = connection.execute  # type: ignore[attr-defined]
    run("SET allowed_directories = [?]", [f"{folder}{os.sep}"])
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access"):
        run(f"SET {setting} = false")
    run("SET lock_configuration = true")
    for file in sorted(folder.iterdir()):
        # DuckDB looks for files in the working folder: those of the query's folder become tables under their names.
        if file.name in query and file.suffix.lower() in _FILES and file.resolve().parent == folder:
            name, place = file.name.replace('"', '""'), str(file).replace("'", "''")
            run(f"CREATE TEMP VIEW \"{name}\" AS SELECT * FROM '{place}'")
    return connection.sql(query).to_arrow_table()  # type: ignore[attr-defined]
