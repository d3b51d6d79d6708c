"""φ(s, r, ·) for one question after another."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from murp.evaluation import fused
from murp.explorer import numba_scores
from murp.explorer.encoding import not_finite
from murp.geometry.poincare import set_back_radius
from murp.kernels.elementary import FORMATS
from murp.models import MultiRelational
from murp.prediction.numba_top import clear, keep_best

KEPT = 256 * 2**20  # bytes of products held ready
MOST_KEPT = 128  # best objects that one pass keeps; more are sorted out of all
NO_OBJECTS = np.zeros(0, np.int32)

Array = NDArray[np.floating]
Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


class Scores:
    """The scores of :meth:`Model.score_objects`, several times as fast for single questions of the published model.

    What questions share is computed once, |v|² of every object v, and ⟨v,r⟩ once a relation; the rest is one
    compiled pass. Other choices of parts are scored by the model itself.
    """

    def __init__(self, model: MultiRelational) -> None:
        self._model = model
        self._tables: dict[str, Array] = {name: values.numpy() for name, values in model.parameters.items()}
        kernel = fused.kernel_for(model)
        self._compiled = kernel is not None
        if kernel is None:
            return
        self._columns = np.ascontiguousarray(self._tables["entity"].T)
        self._entities = fused.Rows(kernel, model, 1).entities.numpy()
        size = model.num_entities * model.dtype.itemsize
        self._with_relation = lru_cache(maxsize=max(8, KEPT // size))(self._relation_products)

    def __call__(self, subject: int, relation: int) -> Numbers:
        """Indices s and r, reciprocals included → scores (N)."""
        if not self._compiled:
            scores = self._model.score_objects(torch.tensor([subject]), torch.tensor([relation]))[0]
            return scores.double().numpy()
        return self._with_bias(self._without_bias(subject, relation), subject)

    def best(self, subject: int, relation: int, k: int, *, without_subject: bool = False) -> tuple[Indices, Numbers]:
        """The ``k`` best objects (k) with their scores (k), best first; k counts no subject that is left out."""
        if not self._compiled or not 0 < k <= MOST_KEPT:
            scores = self(subject, relation)
            if without_subject:
                scores[subject] = -np.inf
            found = torch.topk(torch.from_numpy(scores), k)  # takes a NaN for the largest
            return found.indices.numpy(), found.values.numpy()
        best = np.empty((k, 2))
        query = np.array([0, subject if without_subject else -1, 0, 0])
        clear(best)
        keep_best(self._without_bias(subject, relation), 0, query, NO_OBJECTS, 0, best)
        if best[-1, 0] < 0:
            raise not_finite()
        return best[:, 0].astype(np.int64), self._with_bias(best[:, 1], subject)

    def _with_bias(self, scores: Array, subject: int) -> Numbers:
        with np.errstate(over="ignore"):  # what is made of the answer refuses infinity
            return scores + np.float64(self._tables["subject_bias"][subject])

    def _without_bias(self, subject: int, relation: int) -> Array:
        """Scores less the subject's bias, which all objects share."""
        tables, geometry = self._tables, self._model.geometry
        point, stretch = tables["entity"][subject], tables["subject_stretch"][relation]
        r = tables["translation"][relation]
        if geometry.is_flat:
            scores: Array = numba_scores.flat(point, stretch, r, self._columns, self._entities)
            return scores
        set_back, form = set_back_radius(self._model.dtype), FORMATS[self._columns.dtype]
        vr = self._with_relation(relation)
        scores = numba_scores.ball(point, stretch, r, vr, self._columns, self._entities, geometry.c, set_back, form)
        return scores

    def _relation_products(self, relation: int) -> Array:
        """⟨v,r⟩ of every object (N)."""
        found: Array = numba_scores.products(self._tables["translation"][relation], self._columns)
        return found
