"""What points can be coloured and sized by: a number or a category for every drawn entity, in at most eight steps."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.errors import DataError
from murp.explorer.collection import Collection, PreparedRun
from murp.graph import KnowledgeGraph
from murp.web.encoding import packed
from murp.web.names import Names

STEPS = 8
TYPING = frozenset(("type", "has_type", "instance_of", "is_instance_of", "instance_hypernym", "p31"))
NAMING = ("name", "gloss")  # columns of a file of names: no two entities have the same, so that they are no colours
ROUNDS = 8  # of label propagation: later ones move few entities
Numbers = NDArray[np.float64]
Groups = tuple[NDArray[np.int64], Callable[[int], str]]  # a group (N,) of each entity, -1 for none; a group's name


def names(collection: Collection) -> list[str]:
    """The columns there are, the model's own first."""
    own = ["norm", "degree", "depth", "below", "relation", "branch", "community", "type"]
    if collection.hierarchy.relation is None:
        own = [name for name in own if name not in ("depth", "below", "branch")]
    if not typing_relations(collection.graph):
        own.remove("type")
    return [*own, *(name for name in collection.columns if name not in own)]


def column(collection: Collection, run: int, name: str) -> dict[str, Any]:
    """A class 0 … 7 for every drawn entity, and what each class means."""
    prepared = collection.prepared[run - 1]
    if name in collection.columns:
        texts = collection.columns[name]
        found = _as_numbers(texts)
        part = _steps(collection, found) if found is not None else _groups(collection, *_grouped(texts))
    elif name in _CATEGORIES:
        part = _groups(collection, *_CATEGORIES[name](collection, prepared))
    else:
        part = _steps(collection, _numbers(collection, prepared, name))
    classes, labels = part
    is_category = name in _CATEGORIES or (name in collection.columns and _as_numbers(collection.columns[name]) is None)
    return {"run": run, "name": name, "classes": packed(classes, "uint8"), "labels": labels, "is_category": is_category}


def _numbers(collection: Collection, prepared: PreparedRun, name: str) -> Numbers:
    if name == "norm":
        return np.array(prepared.norms)
    if name == "degree":
        return collection.entities.weights.astype(np.float64)
    if name == "below":
        return prepared.tree.below.astype(np.float64)
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


def _main_relations(collection: Collection, _: PreparedRun) -> Groups:
    """The relation that an entity has most facts of."""
    facts = collection.graph.facts().astype(np.int64)
    pairs = np.concatenate([facts[:, [0, 1]], facts[:, [2, 1]]])
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    main = np.full(len(collection.entities), -1)
    rarest_first = np.argsort(counts, kind="stable")  # the last one written stays
    main[distinct[rarest_first, 0]] = distinct[rarest_first, 1]
    return main, lambda relation: collection.relations.names[relation]


def _branches(collection: Collection, prepared: PreparedRun) -> Groups:
    """The largest branches of the tree: where one holds more than half of all, the branches below it."""
    tree, rank = prepared.tree, collection.hierarchy.rank
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


def _communities(collection: Collection, _: PreparedRun) -> Groups:
    """Entities that many facts join, by label propagation; a community is called by its most important member."""
    label = communities(collection.graph)
    order = np.argsort(collection.importance, kind="stable")
    leader = np.zeros(int(label.max(initial=0)) + 1, dtype=np.int64)
    leader[label[order]] = order  # the last one written stays
    return label, lambda group: collection.entities.names[int(leader[group])]


def typing_relations(graph: KnowledgeGraph) -> list[int]:
    """The relations that say what kind of thing their head is, known by what they are called."""

    def word(text: str) -> str:
        return re.split(r"[/#:]", text.lower().replace(" ", "_").replace("-", "_"))[-1].strip("_")

    relations = graph.relations
    return [r for r in range(len(relations)) if {word(relations.id(r)), word(relations.name(r))} & TYPING]


def _types(collection: Collection, _: PreparedRun) -> Groups:
    """What an entity is an instance of; of several types the one with most instances."""
    facts = collection.graph.facts()
    facts = facts[np.isin(facts[:, 1], typing_relations(collection.graph))].astype(np.int64)
    sizes = np.bincount(facts[:, 2], minlength=len(collection.entities))
    found = np.full(len(collection.entities), -1)
    smallest_first = np.argsort(sizes[facts[:, 2]], kind="stable")  # the last one written stays
    found[facts[smallest_first, 0]] = facts[smallest_first, 2]
    return found, lambda entity: collection.entities.names[entity]


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


_CATEGORIES = {"relation": _main_relations, "branch": _branches, "community": _communities, "type": _types}


def _as_numbers(texts: list[str | None]) -> Numbers | None:
    """The texts as numbers, NaN if there is none; None if one of them is no number."""
    try:
        return np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError:
        return None


def _grouped(texts: list[str | None]) -> Groups:
    values = sorted({text for text in texts if text is not None})
    index = {text: i for i, text in enumerate(values)}
    return np.array([-1 if text is None else index[text] for text in texts], dtype=np.int64), lambda i: values[i]


def read_columns(path: Path, graph: KnowledgeGraph) -> dict[str, list[str | None]]:
    """A tab-separated file whose first row names its columns, the first of them ids or names of entities.

    A file of names (``entity_names.tsv``) will do, where its first row says what its columns are: its names and glosses
    are passed over, and so are rows of entities that the graph does not have, as when it is read for their names.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(f"{path}: cannot be read: {why}.") from error
    heads = rows[0][1:] if rows else []
    if not [head for head in heads if head not in NAMING]:
        raise DataError(
            f"{path}, line 1: a file of columns is tab-separated. Its first row has id and the names of the columns, "
            "at least one of them neither name nor gloss."
        )
    columns: dict[str, list[str | None]] = {head: [None] * graph.num_entities for head in heads if head not in NAMING}
    known = Names(graph.entities, np.zeros(graph.num_entities, dtype=np.int64))
    passed = 0
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise DataError(f"{path}, line {number}: {len(row)} columns, and the first row has {len(rows[0])}.")
        at = known.known(row[0])
        if at is None:
            passed += 1
            continue
        for head, text in zip(heads, row[1:], strict=True):
            if head in columns:
                columns[head][at] = text or None
    if passed == len(rows) - 1:
        raise DataError(
            f"{path}: none of its {passed} rows begins with an entity of {graph.name}, such as "
            f"{graph.entities.label(0)}. Give ids or names that only one entity has."
        )
    return columns
