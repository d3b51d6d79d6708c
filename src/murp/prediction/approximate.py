"""An index of the entities for approximate answers: cells of near entities; a question searches only a few cells.

Libraries for such indexes support Euclidean distances and inner products. MuRP's score is neither: -d(x, v ⊕ r)² + b_v
is a function of ⟨x,v⟩, ⟨v,r⟩, their product, |v|² and a bias. So vectors are used only to put near entities into one
cell: FAISS clusters them in the tangent space at the origin (for a flat model, the points themselves), in two rounds,
first √C groups and then √C cells in each. Questions are answered with the model's own score:

1. the score of every cell's centre, a point of the model's space with the mean of its entities' biases;
2. all entities of the cells whose centres score best, each with its exact score.

Scores are the same as in the exact search, but answers in cells that are not searched are missed. The number of cells
to search is determined when the index is made: the smallest number that finds the ten best answers to some questions
often enough. The reported recall is measured on other questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import ConfigError
from murp.extras import need
from murp.graph import Indices, KnowledgeGraph
from murp.models import Model, MultiRelational
from murp.models.blocks import by_row
from murp.models.model import Query
from murp.prediction.packed_cells import CENTRES, Asked, PackedCells, asked, suits
from murp.prediction.search import Best, Floats, not_finite, top_objects
from murp.settings import whole_number
from murp.threads import count as thread_count
from murp.threads import torch_alone

RECALL = 0.98  # that the number of cells is chosen by
BEST = 10  # answers that recall is of
QUESTIONS = 200  # to choose by, and as many to judge by
TRAINED_ON = 256  # points for each centre
ROUNDS = 10
MORE = 4  # times as many nearest entities as wanted are measured exactly
MOST_LOOKED_INTO = 0.25  # of the cells: beyond, an exact search is the better way
MOST_CELLS = 1 << 16  # unless told otherwise: every question scores all centres
BLOCK = 1 << 18  # rows turned into vectors at a time


@dataclass(frozen=True, eq=False)
class Index:
    """Entities by cell: those of cell c are ``order[starts[c]:starts[c + 1]]``.

    ``tables`` are the model's tables of objects with their rows in that order, so that a cell lies in one piece; those
    of the published models are ``packed`` instead. ``centres`` are such rows for each cell. ``looks`` is the number of
    cells that a question searches, ``looks_near`` the same for nearest entities; ``recall`` and ``recall_near`` are the
    shares of the ten best that are found.
    """

    order: NDArray[np.int32]
    starts: NDArray[np.int64]
    tables: Mapping[str, Tensor]
    centres: Mapping[str, Tensor]
    looks: int
    looks_near: int
    recall: float
    recall_near: float
    packed: PackedCells | None = None

    @property
    def cells(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def best(self, model: Model, subject: int, relation: int, k: int, left_out: Indices) -> tuple[Indices, Floats]:
        """The ``k`` best objects, or as many as there are, with their scores; ``left_out`` ascend."""
        pair = (torch.tensor([of]) for of in (subject, relation))
        shared = model.rows("shared")
        with torch.no_grad(), torch_alone():
            query = model.query(*model.query_rows(*pair), shared)
            alone = Query(
                tuple(vector[:1] for vector in query.vectors), {name: of[:1] for name, of in query.numbers.items()}
            )
            if self.packed is not None:
                assert isinstance(model, MultiRelational)
                r = model.parameters["translation"][relation : relation + 1]
                entities, scores = self._by_loops(asked(model, alone.vectors[0], r), model, k, left_out, self.looks)
                return entities, scores + float(model.parameters["subject_bias"][subject])

            def score(rows: dict[str, Tensor]) -> Tensor:
                return model.meet(alone, model.candidate(rows, shared))[0]

            return self._by_tables(score, k, left_out, self.looks)

    def nearest(self, model: Model, entity: int, k: int) -> tuple[Indices, Floats]:
        """The ``k`` nearest entities, itself left out, with their distances."""
        points, itself = model.parameters["entity"], np.array([entity])

        def closeness(rows: dict[str, Tensor]) -> Tensor:
            return -by_row(lambda some: model.geometry.distance(points[entity], some), rows["entity"])

        with torch.no_grad():
            if self.packed is None:
                found, scores = self._by_tables(closeness, k, itself, self.looks_near)
                return found, -scores
            assert isinstance(model, MultiRelational)
            # Without a relation a score is -d², less the bias; so more are taken than needed, and measured exactly.
            point = points[entity : entity + 1]
            question = asked(model, point, torch.zeros_like(point))
            found, _ = self._by_loops(question, model, MORE * k, itself, self.looks_near, biased=False)
            distances = -closeness({"entity": points[torch.from_numpy(found)]}).double().numpy()
            order = np.lexsort((found, distances))[:k]
            return found[order], distances[order]

    def _by_loops(
        self, question: Asked, model: Model, k: int, left_out: Indices, looks: int, *, biased: bool = True
    ) -> tuple[Indices, Floats]:
        assert self.packed is not None
        centres = self._packed_centres(model)
        blocks = np.arange(len(centres.first))
        rows = np.minimum(CENTRES, self.cells - CENTRES * blocks)
        of_cells = centres.scores(question, blocks, rows)
        if not biased:
            of_cells = of_cells - self.centres["object_bias"].numpy()
        cells, entities, kept = self._looked_into(of_cells, k, left_out, looks)
        scores = self.packed.scores(question, cells, self._rows[cells])
        if not biased:
            width = self.packed.panels.shape[2]
            spans = zip(self.packed.first[cells] * width, self._rows[cells], strict=True)
            scores = scores - np.concatenate([self.packed.numbers[-1, at : at + count] for at, count in spans])
        return _first(entities, scores, kept, k)

    def _packed_centres(self, model: Model) -> PackedCells:
        if "_made" not in self.__dict__:
            self.__dict__["_made"] = PackedCells.of_centres(model, self.centres)
        made: PackedCells = self.__dict__["_made"]
        return made

    def _by_tables(
        self, score: Callable[[dict[str, Tensor]], Tensor], k: int, left_out: Indices, looks: int
    ) -> tuple[Indices, Floats]:
        cells, entities, kept = self._looked_into(score(dict(self.centres)).double().numpy(), k, left_out, looks)
        spans = [slice(self.starts[c], self.starts[c + 1]) for c in cells]
        rows = {name: torch.cat([table[span] for span in spans]) for name, table in self.tables.items()}
        return _first(entities, score(rows).double().numpy(), kept, k)

    def _looked_into(
        self, of_cells: Floats, k: int, left_out: Indices, looks: int
    ) -> tuple[NDArray[np.int64], Indices, NDArray[np.bool_]]:
        """The cells to search, their entities, and which of those may be answers: k or more, if there are as many."""
        if np.isnan(of_cells).any():
            raise not_finite()
        while True:
            cells = np.argpartition(-of_cells, looks - 1)[:looks] if looks < self.cells else np.arange(self.cells)
            cells.sort()
            entities = np.concatenate([self.order[self.starts[c] : self.starts[c + 1]] for c in cells]).astype(np.int64)
            kept = ~np.isin(entities, left_out)
            if kept.sum() >= k or looks >= self.cells:
                return cells, entities, kept
            looks = min(self.cells, 2 * looks)


def _first(entities: Indices, scores: Floats, kept: NDArray[np.bool_], k: int) -> tuple[Indices, Floats]:
    """The ``k`` best of those kept; of equal scores the first entity comes first, as in the exact search."""
    if not np.isfinite(scores).all():
        raise not_finite()
    scores = np.where(kept, scores, -np.inf)
    k = min(k, int(kept.sum()))
    some = np.argpartition(-scores, k - 1)[:k] if 0 < k < len(scores) else np.arange(len(scores))
    places = some[np.lexsort((entities[some], -scores[some]))][:k]
    return entities[places], scores[places]


def build(
    model: Model,
    graph: KnowledgeGraph,
    *,
    recall: float = RECALL,
    cells: int | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> Index:
    """Make an index that finds a share ``recall`` of the ten best answers, measured on some questions."""
    if not 0 < recall <= 1:
        raise ConfigError(f"recall must be above 0 and at most 1, not {recall!r}.")
    number = min(max(1, round(4 * model.num_entities**0.5)), model.num_entities, MOST_CELLS) if cells is None else cells
    if not 1 <= number <= model.num_entities:
        raise ConfigError(f"cells must be from 1 to {model.num_entities:,}, the number of entities, not {number}.")
    seed = whole_number("seed", seed, least=0)
    say(f"clustering {model.num_entities:,} entities into about {number:,} cells")
    cell = _clustered(model, number, seed)
    used, cell = np.unique(cell, return_inverse=True)
    order = np.argsort(cell, kind="stable").astype(np.int32)
    starts = np.searchsorted(cell[order], np.arange(len(used) + 1))
    tables = {name: values.cpu()[torch.from_numpy(order).long()] for name, values in model.rows("object").items()}
    made = Index(order, starts, tables, _centres(model, tables, starts), 1, 1, 0.0, 0.0)
    draw = np.random.default_rng(seed)
    say("measuring recall against exact answers")
    looks, reached = _chosen(made, _cells_of_answers(made, model, cell, _questions(graph, draw)), recall, "answers")
    near, reached_near = _chosen(made, _cells_of_neighbours(made, model, cell, draw), recall, "nearest entities")
    packed = PackedCells.of(model, tables, starts) if suits(model) else None
    kept = {} if packed is not None else tables
    return Index(order, starts, kept, made.centres, looks, near, reached, reached_near, packed)


def vectors(model: Model, start: int, stop: int) -> NDArray[np.float32]:
    """Points start … stop - 1 as vectors: of a flat space as they are, others in the tangent space at the origin."""
    with torch.no_grad():
        rows = {"entity": model.parameters["entity"][start:stop]}
        found: NDArray[np.float32] = model.vector(rows).float().flatten(1).cpu().numpy()
    return np.ascontiguousarray(found)


def _clustered(model: Model, cells: int, seed: int) -> NDArray[np.int64]:
    """The cell of each entity (N): groups first, cells within each of them then."""
    faiss = need("faiss", "index", "an index of entities", ConfigError)
    faiss.omp_set_num_threads(thread_count())
    everyone = [vectors(model, start, start + BLOCK) for start in range(0, model.num_entities, BLOCK)]
    points = np.concatenate(everyone)
    del everyone
    groups = max(1, round(cells**0.5))
    group = _k_means(faiss, points, groups, seed)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(groups + 1))
    cell = np.empty(len(points), np.int64)
    first = 0
    for g in range(groups):
        own = order[starts[g] : starts[g + 1]]
        if len(own) == 0:
            continue
        several = min(len(own), max(1, round(cells * len(own) / len(points))))
        cell[own] = first + _k_means(faiss, points[own], several, seed + 1 + g)
        first += several
    return cell


def _k_means(faiss: Any, points: NDArray[np.float32], cells: int, seed: int) -> NDArray[np.int64]:
    if cells == 1:
        return np.zeros(len(points), np.int64)
    options = {"niter": ROUNDS, "seed": seed % 2**31, "max_points_per_centroid": TRAINED_ON}
    made = faiss.Kmeans(points.shape[1], cells, min_points_per_centroid=1, **options)
    made.train(points)
    found: NDArray[np.int64] = made.index.search(points, 1)[1][:, 0]
    return found


def _centres(model: Model, tables: Mapping[str, Tensor], starts: NDArray[np.int64]) -> dict[str, Tensor]:
    """The centre of each cell: its entities' mean vector as a point of the space, and the means of other tables."""
    counts = torch.from_numpy(np.diff(starts))
    cell = torch.repeat_interleave(torch.arange(len(counts)), counts)
    found = {}
    for name, values in tables.items():
        means = values.new_zeros(len(counts), *values.shape[1:])
        for start in range(0, len(values), BLOCK):
            rows = values[start : start + BLOCK]
            means.index_add_(0, cell[start : start + BLOCK], model.vector({name: rows}) if name == "entity" else rows)
        means /= counts.view(-1, *(1,) * (values.dim() - 1))
        found[name] = model.geometry.exp0(means) if name == "entity" else means
    return found


def _questions(graph: KnowledgeGraph, draw: np.random.Generator) -> tuple[Indices, Indices]:
    """Questions that facts of the graph answer, both directions; (2Q)."""
    facts = graph.train if len(graph.train) else graph.facts()
    if len(facts) == 0:
        raise ConfigError(f"{graph.name} has no facts to measure the recall of an index by.")
    some = facts[draw.integers(len(facts), size=QUESTIONS)]
    asked = graph.with_reciprocals(some)[draw.permutation(2 * QUESTIONS)].astype(np.int64)
    return asked[:, 0], asked[:, 1]


def _cells_of_answers(
    index: Index, model: Model, cell: NDArray[np.int64], questions: tuple[Indices, Indices]
) -> NDArray[np.int64]:
    """How many cells must be searched to find each of the best answers (Q, ten)."""
    exact: Best = top_objects(model, *questions, min(BEST, model.num_entities))
    found = np.empty(exact.entities.shape, np.int64)
    with torch.no_grad():
        for row, (s, r) in enumerate(zip(*questions, strict=True)):
            rows = model.rows("subject", torch.tensor([s])), model.rows("relation", torch.tensor([r]))
            found[row] = _place_of(model.score_rows(*rows, dict(index.centres))[0])[cell[exact.entities[row]]]
    return found


def _cells_of_neighbours(
    index: Index, model: Model, cell: NDArray[np.int64], draw: np.random.Generator
) -> NDArray[np.int64]:
    """The same for the nearest entities of some."""
    from murp.prediction.nearest import nearest_to

    few = min(2 * QUESTIONS, model.num_entities) if model.num_entities < 1 << 20 else 40
    entities = draw.choice(model.num_entities, few, replace=False)
    found = np.zeros((few, min(BEST, model.num_entities - 1)), np.int64)
    with torch.no_grad():
        for row, entity in enumerate(entities.tolist()):
            near = [other for other, _ in nearest_to(model, entity, BEST)]
            point = model.parameters["entity"][entity]
            distances = model.geometry.distance(point, index.centres["entity"])
            found[row] = _place_of(-distances)[cell[near]]
    return found


def _place_of(scores: Tensor) -> NDArray[np.int64]:
    """The place of each cell among all, the best first: 0, 1, …"""
    places = np.empty(len(scores), np.int64)
    places[np.argsort(-scores.numpy(), kind="stable")] = np.arange(len(scores))
    return places


def _chosen(index: Index, needed: NDArray[np.int64], recall: float, what: str) -> tuple[int, float]:
    """How many cells to search, chosen on half of the questions, and the recall on the other half."""
    half = (len(needed) + 1) // 2
    places = np.sort(needed[:half].ravel())
    looks = int(places[max(0, int(np.ceil(recall * len(places))) - 1)]) + 1
    judged = needed[half:] if len(needed) > half else needed
    reached = float((judged < looks).mean())
    if looks > max(16, MOST_LOOKED_INTO * index.cells):
        raise ConfigError(
            f"an index does not help here: the best {what} lie scattered, and {looks:,} of {index.cells:,} cells must "
            f"be looked into to find {recall:.0%} of them. Ask exactly (without --approximate), or lower --recall."
        )
    return looks, reached
