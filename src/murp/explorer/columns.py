"""What points can be coloured and sized by: a number or a category for every drawn entity, in at most eight steps."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.errors import DataError
from murp.explorer.collection import Collection, Exhibit
from murp.graph import KnowledgeGraph
from murp.web.encoding import packed

STEPS = 8
ROUNDS = 8  # of label propagation: later ones move few entities
Numbers = NDArray[np.float64]
Groups = tuple[NDArray[np.int64], Callable[[int], str]]  # a group (N,) of each entity, -1 for none; a group's name


def names(collection: Collection) -> list[str]:
    """The columns there are, the model's own first."""
    own = ["norm", "degree", "depth", "below", "relation", "branch", "community"]
    if collection.hierarchy.relation is None:
        own = [name for name in own if name not in ("depth", "below", "branch")]
    return [*own, *collection.columns]


def column(collection: Collection, run: int, name: str) -> dict[str, Any]:
    """A class 0 … 7 for every drawn entity, and what each class means."""
    exhibit = collection.exhibits[run - 1]
    if name in collection.columns:
        texts = collection.columns[name]
        found = _as_numbers(texts)
        part = _steps(collection, found) if found is not None else _groups(collection, *_grouped(texts))
    elif name in ("relation", "branch", "community"):
        make = {"relation": _main_relations, "branch": _branches, "community": _communities}[name]
        part = _groups(collection, *make(collection, exhibit))
    else:
        part = _steps(collection, _numbers(collection, exhibit, name))
    classes, labels = part
    is_category = name in ("relation", "branch", "community") or (
        name in collection.columns and _as_numbers(collection.columns[name]) is None
    )
    return {"run": run, "name": name, "classes": packed(classes, "uint8"), "labels": labels, "is_category": is_category}


def _numbers(collection: Collection, exhibit: Exhibit, name: str) -> Numbers:
    if name == "norm":
        return np.array(exhibit.norms)
    if name == "degree":
        return collection.entities.weights.astype(np.float64)
    if name == "below":
        return exhibit.tree.below.astype(np.float64)
    rank = collection.hierarchy.rank.astype(np.float64)
    return np.where(rank < 0, np.nan, rank)


def _steps(collection: Collection, values: Numbers) -> tuple[NDArray[np.int64], list[str]]:
    """Numbers in steps of about as many entities each, or a step each where they are few.

    What has no number is in the last step, of its own.
    """
    drawn = values[collection.shown]
    there = np.isfinite(drawn)
    steps = STEPS if there.all() else STEPS - 1
    distinct = np.unique(drawn[there])
    if len(distinct) <= steps:
        classes = np.searchsorted(distinct, np.where(there, drawn, -np.inf))
        labels = [f"{value:.4g}" for value in distinct]
    else:
        bounds = np.unique(np.quantile(drawn[there], np.arange(1, steps) / steps))
        bounds = bounds[bounds < distinct[-1]]
        classes = np.searchsorted(bounds, np.where(there, drawn, -np.inf), side="left")
        labels = [*(f"≤ {bound:.3g}" for bound in bounds), f"> {bounds[-1]:.3g}" if len(bounds) else "all"]
    if not there.all():
        classes = np.where(there, classes, len(labels))
        labels.append("none")
    return classes, labels


def _groups(
    collection: Collection, group: NDArray[np.int64], name: Callable[[int], str]
) -> tuple[NDArray[np.int64], list[str]]:
    """The seven largest groups, and the others together."""
    drawn = group[collection.shown]
    sizes = np.bincount(drawn[drawn >= 0]) if (drawn >= 0).any() else np.zeros(0, dtype=np.int64)
    largest = np.argsort(-sizes, kind="stable")[: STEPS - 1]
    largest = largest[sizes[largest] > 0]
    step = np.full(len(sizes) + 1, len(largest))
    step[largest] = np.arange(len(largest))
    classes = step[drawn]  # -1, none, is the last
    labels = [name(int(i)) for i in largest]
    return classes, [*labels, *(["others"] if (classes == len(largest)).any() else [])]


def _main_relations(collection: Collection, _: Exhibit) -> Groups:
    """The relation that an entity has most facts of."""
    facts = collection.graph.facts().astype(np.int64)
    pairs = np.concatenate([facts[:, [0, 1]], facts[:, [2, 1]]])
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    main = np.full(len(collection.entities), -1)
    rarest_first = np.argsort(counts, kind="stable")  # the last one written stays
    main[distinct[rarest_first, 0]] = distinct[rarest_first, 1]
    return main, lambda relation: collection.relations.names[relation]


def _branches(collection: Collection, exhibit: Exhibit) -> Groups:
    """The largest branches of the tree: where one holds more than half of all, the branches below it."""
    tree, rank = exhibit.tree, collection.hierarchy.rank
    tops = [int(i) for i in np.flatnonzero((tree.parent < 0) & (rank >= 0))]
    children: dict[int, list[int]] = {}
    for child, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            children.setdefault(parent, []).append(child)
    for _ in range(STEPS - 1):
        tops.sort(key=lambda i: -tree.below[i])
        if not tops or not children.get(tops[0]) or tree.below[tops[0]] < 0.15 * (rank >= 0).sum():
            break
        tops[:1] = children[tops[0]]
    branch = np.full(len(rank), -1)
    branch[tops] = tops
    for level in range(int(rank.max(initial=0)) + 1):
        members = np.flatnonzero((rank == level) & (tree.parent >= 0) & (branch < 0))
        branch[members] = branch[tree.parent[members]]
    return branch, lambda entity: collection.entities.names[entity]


def _communities(collection: Collection, _: Exhibit) -> Groups:
    """Entities that many facts join, by label propagation; a community is called by its most important member."""
    label = communities(collection.graph)
    order = np.argsort(collection.importance, kind="stable")
    leader = np.zeros(int(label.max(initial=0)) + 1, dtype=np.int64)
    leader[label[order]] = order  # the last one written stays
    return label, lambda group: collection.entities.names[int(leader[group])]


def communities(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """(N,) a community each: in every round an entity takes the label that most of its neighbours have.

    Of labels as frequent the smallest counts, so that the same graph gives the same communities. Half of the entities
    move in a round: were it all, two could exchange their labels for ever.
    """
    facts = graph.facts()[:, [0, 2]].astype(np.int64)
    ends = np.concatenate([facts, facts[:, ::-1]])
    ends = ends[ends[:, 0] != ends[:, 1]]
    label = np.arange(graph.num_entities)
    for number in range(2 * ROUNDS):
        moving = ends[ends[:, 0] % 2 == number % 2]
        pairs = moving[:, 0] * graph.num_entities + label[moving[:, 1]]
        distinct, counts = np.unique(pairs, return_counts=True)
        entity, found = np.divmod(distinct, graph.num_entities)
        order = np.lexsort((-found, counts, entity))  # the last of an entity: most frequent, then smallest
        last = np.flatnonzero(np.diff(entity[order], append=-1))
        label[entity[order][last]] = found[order][last]
    return label


def _as_numbers(texts: list[str | None]) -> Numbers | None:
    """The texts as numbers, NaN where there is none; None where one of them is no number."""
    try:
        return np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError:
        return None


def _grouped(texts: list[str | None]) -> Groups:
    values = sorted({text for text in texts if text is not None})
    index = {text: i for i, text in enumerate(values)}
    return np.array([-1 if text is None else index[text] for text in texts], dtype=np.int64), lambda i: values[i]


def read_columns(path: Path, graph: KnowledgeGraph) -> dict[str, list[str | None]]:
    """A tab-separated file whose first row names its columns, the first of them ids or names of entities."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(f"{path}: cannot be read: {why}.") from error
    if not rows or len(rows[0]) < 2:
        raise DataError(
            f"{path}, line 1: a file of columns is tab-separated, and its first row is id and the names of the columns."
        )
    heads = rows[0][1:]
    columns: dict[str, list[str | None]] = {head: [None] * graph.num_entities for head in heads}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise DataError(f"{path}, line {number}: {len(row)} columns, and the first row has {len(rows[0])}.")
        at = graph.entities.find(row[0])
        for head, text in zip(heads, row[1:], strict=True):
            columns[head][at] = text or None
    return columns
