"""The best objects of many queries, in batches whose memory is bounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import MurpError, NotFiniteError
from murp.evaluation import fused
from murp.evaluation.ranks import batch_size, default_memory
from murp.graph import Indices, KnownFacts
from murp.models import Model, MultiRelational
from murp.prediction.arguments import count
from murp.threads import torch_alone

# The compiled loop sorts by insertion: beyond so many it would be slower than a partial sort.
_FUSED_K = 128


@dataclass(frozen=True, eq=False)
class Best:
    """Entities (Q, k) and their scores (Q, k), best first; where fewer than k are left, entity -1 and score -∞."""

    entities: Indices
    scores: NDArray[np.float64]


@torch.no_grad()
def top_objects(
    model: Model,
    subjects: Indices,
    relations: Indices,
    k: int,
    *,
    without: KnownFacts | None = None,
    without_subject: bool | NDArray[np.bool_] = False,
    memory: int | None = None,
) -> Best:
    """The ``k`` best-scored objects of Q queries (subject, relation), relations 0 … 2R-1; (Q), (Q) → (Q, k).

    Left out are the objects of the facts in ``without`` and, if ``without_subject`` (of all, or of each), the subject
    itself. ``memory`` bounds the bytes of batch × entities work, as in :func:`murp.evaluation.ranks.rank`.
    """
    k = min(count("k", k), model.num_entities)
    if memory is None:
        memory = default_memory(model.num_entities, model.device)
    size = batch_size(model.num_entities, model.device, memory)
    apart = np.where(without_subject, subjects, -1)
    entities, scores = np.empty((len(subjects), k), np.int64), np.empty((len(subjects), k), np.float64)
    # Queries of one relation stand together, so that a batch of the fused path needs few products.
    order = np.argsort(relations, kind="stable")
    rows: fused.Rows | None = None
    if model.device.type == "cpu" and fused.kernel_for(model) is not None and k <= _FUSED_K:
        from murp.prediction.numba_top import Top

        assert isinstance(model, MultiRelational)
        size = fused.batch_size(model, memory)
        rows = fused.Rows(Top(k), model, min(size, len(order)))
    with torch_alone():
        for start in range(0, len(order), size):
            places = order[start : start + size]
            query = (subjects[places], relations[places], apart[places])
            best = _scored(model, *query, k, without) if rows is None else _fused(rows, *query, without)
            _refuse_unsought(best)
            entities[places], scores[places] = best[..., 0], best[..., 1]
    unordered = (entities == -2) | ((entities >= 0) & ~np.isfinite(scores))
    if unordered.any():
        row = int(unordered.any(1).argmax())
        raise NotFiniteError(
            f"the model gives NaN or infinite scores to (subject {subjects[row]}, relation {relations[row]}): "
            "its training diverged. Train again with a lower learning rate, or use another checkpoint."
        )
    return Best(entities, scores)


def _refuse_unsought(best: NDArray[np.float64]) -> None:
    """What was never looked for must not become an answer."""
    if np.isnan(best[..., 0]).any():
        raise MurpError(
            "a part of the search did not run. This is a fault of murp or of a library below it; please report it. "
            "Try again with --threads 1."
        )


def _fused(
    rows: fused.Rows, subjects: Indices, relations: Indices, apart: Indices, without: KnownFacts | None
) -> NDArray[np.float64]:
    """(B, k, 2) of B queries by the compiled loop; it leaves out the subject's bias, which a row shares."""
    starts, ends = without.ranges(subjects, relations) if without else (np.zeros_like(subjects),) * 2
    objects = without.objects if without else np.zeros(0, np.int32)
    table = torch.from_numpy(np.stack([subjects, relations, apart, apart, starts, ends]))
    best: NDArray[np.float64] = rows.through_kernel(table, relations, torch.from_numpy(objects)).numpy()
    best[..., 1] += rows.model.parameters["subject_bias"].numpy()[subjects][:, None]
    return best


def _scored(
    model: Model, subjects: Indices, relations: Indices, apart: Indices, k: int, without: KnownFacts | None
) -> NDArray[np.float64]:
    """The same by the model's own scores, for any model on any device."""
    query = (torch.from_numpy(of).to(model.device) for of in (subjects, relations))
    scores = model.score_objects(*query)
    unordered = scores.amax(1).isnan()
    left_out: list[tuple[Indices, Indices]] = [(np.flatnonzero(apart >= 0), apart[apart >= 0])]
    if without is not None:
        left_out.append(without.objects_of(subjects, relations))
    for cells in left_out:
        row, entity = (torch.from_numpy(of).to(model.device) for of in cells)
        scores[row, entity] = -torch.inf
    found = torch.topk(scores, k)
    entities: Tensor = torch.where(found.values == -torch.inf, -1, found.indices)
    entities[unordered] = -2
    return torch.stack([entities.double(), found.values.double()], -1).cpu().numpy()
