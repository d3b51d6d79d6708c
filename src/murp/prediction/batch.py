"""A file of questions into a file of answers: streamed, checked first, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from murp.graph import SPLITS, KnowledgeGraph
from murp.models import Model
from murp.prediction.answers import Answers, Ranking
from murp.prediction.calibration import Calibration
from murp.prediction.probability import sigmoid
from murp.prediction.queries import Queries, read_queries
from murp.prediction.tables import ids, names
from murp.prediction.writing import check_output, writing

Advance = Callable[[int], None]

_CELLS_AT_ONCE = 2**20


def count_queries(path: Path, graph: KnowledgeGraph) -> int:
    """How many questions a file holds; each is checked, so that an error is met before an hour's work and not after."""
    return sum(len(queries) for queries in read_queries(path, graph))


def predict_file(
    model: Model,
    graph: KnowledgeGraph,
    queries: Path,
    out: Path,
    *,
    k: int = 10,
    new_only: bool = False,
    calibration: Calibration | None = None,
    force: bool = False,
    memory: int | None = None,
    advance: Advance = lambda done: None,
) -> int:
    """Write the ``k`` best answers to every question of a file; how many rows that were.

    ``queries`` is a file :mod:`murp.prediction.rows` can read, ``out`` ends in .parquet, .csv or .jsonl and must not
    exist unless ``force``. With ``new_only`` answers that the graph states are left out; the entity asked about is no
    answer unless the relation has facts of an entity with itself. A row is one answer, best first: query (from 1, in
    the order of the file), head, relation and tail by id, which of them was asked for, the name of the answer, rank,
    score φ, probability σ(φ), the calibrated probability where there is a ``calibration``, and the split that states
    the fact, if one does. Memory does not grow with the number of questions. ``advance`` is told how many more have
    been answered.
    """
    check_output(out, force=force)
    answers = Answers(model, graph)
    block = max(1, _CELLS_AT_ONCE // min(k, graph.num_entities))
    first, rows = 1, 0
    with writing(out, schema(calibrated=calibration is not None)) as write:
        for asked in read_queries(queries, graph, block=min(block, 2**15)):
            best = answers.best(asked.subjects, asked.relations, k, new_only=new_only, memory=memory)
            table = table_of(graph, asked, best, calibration, first)
            write(table)
            first, rows = first + len(asked), rows + len(table)
            advance(len(asked))
    return rows


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
