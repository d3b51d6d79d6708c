"""Answers as tables and files: a file of questions into a file of answers, and columns of ids and names.

Files are written block by block as Parquet, CSV or JSON lines, the whole file or none. Questions are checked first,
and memory does not grow with their number.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from murp.errors import MurpError, why_not
from murp.files import replacing
from murp.graph import SPLITS, Indices, KnowledgeGraph, Vocabulary
from murp.graph.types import Types
from murp.models import Model
from murp.prediction.answers import Answers, Ranking
from murp.prediction.approximate import Index
from murp.prediction.calibration import Calibration
from murp.prediction.probability import sigmoid
from murp.prediction.queries import Queries, Row, given_queries, read_queries
from murp.prediction.search import Search
from murp.settings import whole_number

Advance = Callable[[int], None]

FORMATS_IN_WORDS = ".parquet, .csv or .jsonl"
_CELLS_AT_ONCE = 2**20


def count_queries(path: Path, graph: KnowledgeGraph) -> int:
    """How many questions a file has; each is checked, so that an error appears before the work and not after it."""
    return sum(len(queries) for queries in read_queries(path, graph))


def predict_file(
    model: Model,
    graph: KnowledgeGraph,
    queries: Path | Sequence[Row],
    out: Path,
    *,
    k: int = 10,
    new_only: bool = False,
    types: Types | None = None,
    calibration: Calibration | None = None,
    force: bool = False,
    memory: int | None = None,
    index: Index | None = None,
    search: Search | None = None,
    advance: Advance = lambda done: None,
) -> int:
    """Write the ``k`` best answers to every question of a file. Returns the number of rows.

    ``queries`` is a file :mod:`murp.prediction.queries` can read, or a list of (head, relation, tail) with None for
    what is asked; ``out`` ends in .parquet, .csv or .jsonl and must not exist unless ``force``. With ``new_only``
    answers that the graph states are left out; the entity asked about is no
    answer unless the relation has facts of an entity with itself. A row is one answer, best first: query (from 1, in
    the order of the file), head, relation and tail by id, which of them was asked for, the name of the answer, rank,
    score φ, probability σ(φ), the calibrated probability where there is a ``calibration``, and the split that states
    the fact, if one does. With an ``index`` answers are approximate. ``search`` is for a model on many ranks (see
    :func:`murp.prediction.search.top_objects`). Memory does not grow with the number of questions. ``advance`` is told
    how many more have been answered.
    """
    k = whole_number("k", k)
    check_output(out, force=force)
    answers = Answers(model, graph, types=types, index=index, search=search)
    block = max(1, _CELLS_AT_ONCE // min(k, graph.num_entities))
    first, rows = 1, 0
    with writing(out, schema(calibrated=calibration is not None)) as write:
        for asked in _asked(queries, graph, min(block, 2**15)):
            best = answers.best(asked.subjects, asked.relations, k, new_only=new_only, memory=memory)
            table = table_of(graph, asked, best, calibration, first)
            write(table)
            first, rows = first + len(asked), rows + len(table)
            advance(len(asked))
    return rows


def _asked(queries: Path | Sequence[Row], graph: KnowledgeGraph, block: int) -> Iterator[Queries]:
    """Questions in numbers, ``block`` at a time."""
    if isinstance(queries, Path):
        return read_queries(queries, graph, block=block)
    return (given_queries(queries[start : start + block], graph) for start in range(0, len(queries), block))


def schema(*, calibrated: bool) -> pa.Schema:
    """The columns of a file of answers."""
    text = pa.large_string()
    columns = {"query": pa.int64(), "head": text, "relation": text, "tail": text, "asked": text, "name": text}
    columns |= {"rank": pa.int64(), "score": pa.float64(), "probability": pa.float64()}
    if calibrated:
        columns["calibrated"] = pa.float64()
    return pa.schema({**columns, "known": text})


def table_of(
    graph: KnowledgeGraph, asked: Queries, best: Ranking, calibration: Calibration | None, first: int
) -> pa.Table:
    """The answers ``best`` to the questions ``asked``, whose first has the number ``first``, as rows."""
    there = best.entities >= 0
    row, place = np.nonzero(there)
    answer, score = best.entities[there], best.scores[there]
    given, heads = asked.subjects[row], asked.relations[row] >= graph.num_relations
    split = best.splits[there]
    columns = {
        "query": first + row,
        "head": ids(graph.entities, np.where(heads, answer, given)),
        "relation": ids(graph.relations, asked.relations[row] % graph.num_relations),
        "tail": ids(graph.entities, np.where(heads, given, answer)),
        "asked": pa.array(["tail", "head"], pa.large_string()).take(pa.array(heads.astype(np.int8))),
        "name": names(graph.entities, answer),
        "rank": place + 1,
        "score": score,
        "probability": sigmoid(score),
    }
    if calibration is not None:
        columns["calibrated"] = calibration.probability(score, best.places[there])
    columns["known"] = pa.array(list(SPLITS), pa.large_string()).take(pa.array(split, mask=split < 0))
    return pa.table(columns, schema=schema(calibrated=calibration is not None))


def ids(vocabulary: Vocabulary, indices: Indices) -> pa.Array:
    """Ids as the data files write them."""
    return vocabulary.ids.take(pa.array(indices))


def names(vocabulary: Vocabulary, indices: Indices) -> pa.Array:
    """Readable names, ids if there are none."""
    own = ids(vocabulary, indices)
    return own if vocabulary.names is None else pc.coalesce(vocabulary.names.take(pa.array(indices)), own)


def distinct_names(vocabulary: Vocabulary, indices: Indices) -> list[str]:
    """Readable names, with the id if another entry of the vocabulary has the same name."""
    own = names(vocabulary, indices)
    everyone = names(vocabulary, np.arange(len(vocabulary)))
    counts = everyone.filter(pc.is_in(everyone, value_set=own.unique())).value_counts()
    shared = set(pc.filter(counts.field("values"), pc.greater(counts.field("counts"), 1)).to_pylist())
    return [
        vocabulary.label(i) if name in shared else name
        for i, name in zip(indices.tolist(), own.to_pylist(), strict=True)
    ]


def check_output(path: Path, *, force: bool = False) -> None:
    """Raise, before any work is done, if :func:`writing` could not write."""
    if path.suffix.lower() not in (".parquet", ".csv", ".jsonl"):
        raise MurpError(f"{path}: the name must end in {FORMATS_IN_WORDS}, which says the format.")
    check_place(path, force=force)


def check_place(path: Path, *, force: bool) -> None:
    """Raise if the file exists and may not be replaced, or if it could not be made."""
    if path.is_dir():
        raise MurpError(f"{path} is a folder. Name a file in it.")
    if path.exists() and not force:
        raise MurpError(f"{path} exists already. Choose another --out, or replace it with --force.")
    if not path.parent.is_dir():
        raise MurpError(f"{path}: there is no folder {path.parent}. Make it first.")


@contextlib.contextmanager
def writing(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yield what takes tables of ``schema``; ``path`` appears when the block ends, and not at all if it raises."""
    form = path.suffix.lower()
    try:
        with replacing(path) as part:
            if form == ".parquet":
                with pq.ParquetWriter(part, schema, compression="zstd") as parquet:
                    yield parquet.write_table
            elif form == ".csv":
                with pacsv.CSVWriter(part, schema) as csv:
                    yield csv.write_table
            else:
                with part.open("wb") as file:
                    yield lambda table: _append(file, json_lines(table))
    except OSError as error:
        raise MurpError(f"{path} cannot be written: {why_not(error)}. Nothing was kept.") from error


def json_lines(table: pa.Table) -> bytes:
    """The rows as JSON objects, one line each, in UTF-8. Columns are strings and finite numbers, either may be null."""
    pieces: list[pa.Array | pa.Scalar] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        pieces += [_text(f"{', ' if pieces else '{'}{json.dumps(name)}: "), _json_values(column)]
    lines = pc.binary_join_element_wise(*pieces, _text("}\n"), _text(""))
    # The joined strings lie one after the other in one buffer, which is the file's content.
    return bytes(lines.buffers()[2]) if len(lines) else b""


def _json_values(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    if pa.types.is_large_string(values.type):
        coded = values.dictionary_encode()
        written = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
        values = pa.array(written, pa.large_string()).take(coded.indices)
    return pc.fill_null(values.cast(pa.large_string()), "null")


def _append(file: BinaryIO, content: bytes) -> None:
    file.write(content)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
