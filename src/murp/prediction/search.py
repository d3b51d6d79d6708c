"""The search for the best objects of a query among all entities: for many queries, or one after another.

:func:`top_objects` takes many queries at once, in batches whose memory is bounded. :class:`Scores` takes one question
after another and keeps ready what they share. :mod:`murp.prediction.answers` decides which entities both leave out.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import MurpError, NotFiniteError
from murp.evaluation import fused
from murp.evaluation.ranks import batch_size, default_memory
from murp.geometry.poincare import set_back_radius
from murp.graph import Indices, KnownFacts
from murp.graph.types import Types
from murp.models import Model, MultiRelational
from murp.settings import whole_number
from murp.threads import torch_alone

# The compiled loop sorts by insertion: beyond so many it would be slower than a partial sort.
MOST_KEPT = 128
_TRIPLES = 2**14  # scored at once
OBJECTS = 2**20  # that meet queries at a time: packed, and with the numbers of a query's relation, they fit into memory
MOST_QUERIES = 96  # at a time: enough for several threads
READY = 256 * 2**20  # bytes of products that single questions keep ready

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Best:
    """Entities (Q, k) and their scores (Q, k), best first; where fewer than k are left, entity -1 and score -∞."""

    entities: Indices
    scores: Floats


class Search(typing.Protocol):
    """How a model on several processes is searched; ``length``: entities that a process scores at most."""

    length: int

    def __call__(self, subjects: Indices, relations: Indices, left_out: Indices, k: int) -> Floats:
        """(B), (B), cells (2, m) that are no answers → (B, k, 2), as :func:`best_objects` gives them."""
        ...


@torch.no_grad()
def top_objects(
    model: Model,
    subjects: Indices,
    relations: Indices,
    k: int,
    *,
    without: KnownFacts | None = None,
    without_subject: bool | NDArray[np.bool_] = False,
    types: Types | None = None,
    memory: int | None = None,
    search: Search | None = None,
) -> Best:
    """The ``k`` best-scored objects of Q queries (subject, relation), relations 0 … 2R-1; (Q), (Q) → (Q, k).

    Left out are the objects of the facts in ``without`` and, if ``without_subject`` (of all, or of each), the subject
    itself, and what ``types`` refuse (as new facts, if ``without`` is given). ``memory`` bounds the bytes of batch ×
    entities work, as in :func:`murp.evaluation.ranks.rank`. ``search`` replaces that of this module, for a model on
    several processes; it knows no ``types``.
    """
    k = min(whole_number("k", k), model.num_entities)
    scored = model.num_entities if search is None else search.length
    if memory is None:
        memory = default_memory(scored, model.device)
    size = batch_size(scored, model.device, memory)
    apart = np.where(without_subject, subjects, -1)
    entities, scores = np.empty((len(subjects), k), np.int64), np.empty((len(subjects), k), np.float64)
    # Queries of one relation stand together, so that a batch of the fused path needs few products.
    order = np.argsort(relations, kind="stable")
    query = subjects[order], relations[order], apart[order]
    fits = types is None and search is None and model.device.type == "cpu" and k <= MOST_KEPT
    with torch_alone():
        if fits and fused.kernel_for(model) is not None:
            assert isinstance(model, MultiRelational)
            best = _fused(model, *query, k, without, memory)
        else:
            best = np.empty((len(order), k, 2))
            for start in range(0, len(order), size):
                of = slice(start, start + size)
                subject, relation = query[0][of], query[1][of]
                left_out = _left_out(subject, relation, query[2][of], without)
                if search is not None:
                    best[of] = search(subject, relation, left_out, k)
                    continue
                may = None if types is None else types.masks(subject, relation, new_only=without is not None)
                best[of] = _scored(model, subject, relation, left_out, k, may)
    _refuse_unsought(best)
    entities[order], scores[order] = best[..., 0], best[..., 1]
    unordered = (entities == -2) | ((entities >= 0) & ~np.isfinite(scores))
    if unordered.any():
        row = int(unordered.any(1).argmax())
        raise NotFiniteError(
            f"the model gives NaN or infinite scores to (entity {subjects[row]}, relation {relations[row]}): "
            "its training diverged. Train again with a lower learning rate, or use another checkpoint."
        )
    return Best(entities, scores)


def _refuse_unsought(best: Floats) -> None:
    """Raise if the search did not run: its result must not become an answer."""
    if np.isnan(best[..., 0]).any():
        raise MurpError(
            "a part of the search did not run. This is a fault of murp or of a library below it; please report it. "
            "Try again with --threads 1."
        )


def _fused(
    model: MultiRelational,
    subjects: Indices,
    relations: Indices,
    apart: Indices,
    k: int,
    without: KnownFacts | None,
    memory: int,
) -> Floats:
    """(Q, k, 2) of Q queries by the compiled loop, a part of the objects after the other.

    A part is packed once for all queries, and memory does not grow with the number of entities. The loop leaves out the
    subject's bias, which a row shares.
    """
    from murp.prediction.numba_top import Top

    starts, ends = without.ranges(subjects, relations) if without else (np.zeros_like(subjects),) * 2
    objects = torch.from_numpy(without.objects if without else np.zeros(0, np.int32))
    table = torch.from_numpy(np.stack([subjects, relations, apart, apart, starts, ends]))
    best, positions = np.full((len(subjects), k, 2), np.nan), starts.copy()
    part = min(OBJECTS, model.num_entities)
    size = max(1, min(memory // (part * fused.MATRICES * model.dtype.itemsize), MOST_QUERIES))
    for first in range(0, model.num_entities, part):
        rows = fused.Rows(Top(k), model, size, slice(first, first + part))
        for start in range(0, len(subjects), size):
            of = slice(start, start + size)
            rows.kernel = Top(k, first, best[of], positions[of])
            rows.through_kernel(table[:, of], relations[of], objects)
    best[..., 1] += model.parameters["subject_bias"].numpy()[subjects][:, None]
    return best


def _left_out(subjects: Indices, relations: Indices, apart: Indices, without: KnownFacts | None) -> Indices:
    """Cells (2, m) of a batch, row and entity, that are no answers: ``apart`` where it is no -1, and known facts."""
    own = np.stack([np.flatnonzero(apart >= 0), apart[apart >= 0]])
    return own if without is None else np.concatenate([own, np.stack(without.objects_of(subjects, relations))], axis=1)


def _scored(
    model: Model,
    subjects: Indices,
    relations: Indices,
    left_out: Indices,
    k: int,
    may: NDArray[np.bool_] | None,
) -> Floats:
    """The same by the model's own scores, for any model on any device; ``may`` (B, N): what types do not refuse."""
    query = (torch.from_numpy(of).to(model.device) for of in (subjects, relations))
    refused = None if may is None else torch.from_numpy(~may).to(model.device)
    return best_objects(model.score_objects(*query), torch.from_numpy(left_out).to(model.device), k, refused)


def best_objects(scores: Tensor, left_out: Tensor, k: int, refused: Tensor | None = None) -> Floats:
    """The ``k`` best of scores (B, N): (B, k, 2), entity and score. What is left out becomes -∞ in ``scores``.

    That are the cells ``left_out`` (2, m) and those that are true in ``refused`` (B, N). Where fewer than k are left,
    entity -1 and score -∞; the entities of a row with NaN are -2.
    """
    unordered = scores.amax(1).isnan()
    scores[left_out[0], left_out[1]] = -torch.inf
    if refused is not None:
        scores[refused] = -torch.inf
    values, entities = largest(scores, k)
    entities = torch.where(values == -torch.inf, -1, entities)
    entities[unordered] = -2
    found: Floats = torch.stack([entities.double(), values.double()], -1).cpu().numpy()
    return found


def largest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest scores of each row, (B, N) → (B, k), and their places; of equal ones the first, as in the
    compiled loops. (``torch.topk`` says nothing about equal ones.)"""
    values, places = torch.topk(scores, min(k + 1, scores.shape[1]))
    if 0 < k < scores.shape[1]:
        least = values[:, k - 1]
        for row in torch.nonzero((values[:, k] == least) & (least > -torch.inf))[:, 0].tolist():
            above = places[row, values[row] > least[row]]
            equal = torch.nonzero(scores[row] == least[row])[: k - len(above), 0]
            places[row, :k] = torch.cat([above, equal])
    places = places[:, :k].sort(1).values
    sorted_values = scores.gather(1, places).sort(dim=1, descending=True, stable=True)
    return sorted_values.values, places.gather(1, sorted_values.indices)


def score(model: Model, triples: Indices) -> Floats:
    """φ of triples (n, 3), a batch at a time."""
    scores = np.empty(len(triples))
    for start in range(0, len(triples), _TRIPLES):
        batch = torch.from_numpy(triples[start : start + _TRIPLES].copy()).to(model.device)
        scores[start : start + _TRIPLES] = model.score(*batch.T).double().cpu().numpy()
    return scores


class Scores:
    """φ(s, r, ·) for one question after another: the scores of :meth:`Model.score_objects`.

    With ``ready`` the published model answers several times as fast: what questions share is computed once, |v|² of
    every object v, and ⟨v,r⟩ once a relation; the rest is one compiled pass. Other models, and all models without
    ``ready``, use their own scores, which needs no compiler and no preparation.
    """

    def __init__(self, model: Model, *, ready: bool) -> None:
        self._model = model
        kernel = fused.kernel_for(model) if ready and model.device.type == "cpu" else None
        self._compiled: Any = None
        if kernel is None:
            return
        from murp.kernels.elementary import FORMATS
        from murp.prediction import numba_scores, numba_top

        assert isinstance(model, MultiRelational)
        self._compiled, self._top = numba_scores, numba_top
        self._tables: dict[str, Any] = {name: values.numpy() for name, values in model.parameters.items()}
        self._geometry, self._set_back = model.geometry, set_back_radius(model.dtype)
        self._columns = np.ascontiguousarray(self._tables["entity"].T)
        self._form = FORMATS[self._columns.dtype]
        self._entities = fused.Rows(kernel, model, 1).entities.numpy()
        size = model.num_entities * model.dtype.itemsize
        self._with_relation = lru_cache(maxsize=max(8, READY // size))(self._relation_products)

    def __call__(self, subject: int, relation: int) -> Floats:
        """Indices s and r, reciprocals included → scores (N)."""
        if self._compiled is None:
            query = (torch.tensor([index], device=self._model.device) for index in (subject, relation))
            return self._model.score_objects(*query)[0].double().cpu().numpy()
        return self._with_bias(self._without_bias(subject, relation), subject)

    def best(self, subject: int, relation: int, k: int, left_out: NDArray[np.int32]) -> tuple[Indices, Floats]:
        """The ``k`` best objects (k) with their scores (k), best first; ``left_out`` ascend and leave k or more."""
        if self._compiled is None or not 0 < k <= MOST_KEPT:
            scores = self(subject, relation)
            if not np.isfinite(scores).all():
                raise not_finite()
            scores[left_out] = -np.inf
            values, entities = largest(torch.from_numpy(scores[None]), k)
            return entities[0].numpy(), values[0].numpy()
        best = np.empty((k, 2))
        query = np.array([0, -1, 0, len(left_out)])
        self._top.clear(best)
        self._top.keep_best(self._without_bias(subject, relation), 0, query, left_out, 0, best)
        if best[-1, 0] < 0:
            raise not_finite()
        return best[:, 0].astype(np.int64), self._with_bias(best[:, 1], subject)

    def _with_bias(self, scores: Any, subject: int) -> Floats:
        with np.errstate(over="ignore"):  # what is made of the answer refuses infinity
            found: Floats = scores + np.float64(self._tables["subject_bias"][subject])
        return found

    def _without_bias(self, subject: int, relation: int) -> Any:
        """Scores less the subject's bias, which all objects share."""
        tables, geometry = self._tables, self._geometry
        point, stretch = tables["entity"][subject], tables["subject_stretch"][relation]
        r = tables["translation"][relation]
        if geometry.is_flat:
            return self._compiled.flat(point, stretch, r, self._columns, self._entities)
        vr = self._with_relation(relation)
        return self._compiled.ball(
            point, stretch, r, vr, self._columns, self._entities, geometry.c, self._set_back, self._form
        )

    def _relation_products(self, relation: int) -> Any:
        """⟨v,r⟩ of every object (N)."""
        return self._compiled.products(self._tables["translation"][relation], self._columns)


def not_finite() -> NotFiniteError:
    """The error for an answer with NaN or infinity."""
    return NotFiniteError(
        "the model answers with NaN or infinity. Its training diverged: train again with a lower learning rate, or use "
        "another --checkpoint."
    )
