"""Ranks among sampled candidates: the protocol ``sampled``, for graphs on which ranking all entities is too expensive.

For each question (s, r, ?) with the answer o, n candidates are drawn without replacement from the entities that are
neither o nor another known answer, and o is ranked among them: 1 + better + equal / 2. If at most n are left, all of
them are candidates; then the rank is the same as under ``standard``.

The metrics are **no estimates of** ``standard``. With n of N entities as candidates, about (N - n)/N of the better
entities are missing, so ranks are lower and metrics higher, and the order of two models may change (Krichene and
Rendle, On Sampled Metrics for Item Recommendation, KDD 2020). Use them to compare models with the same number of
candidates, on the same facts. So n is part of the protocol's name.

Only the seed is stored. The candidates of a question are a function of the seed, the question, its answer, n and the
graph (:mod:`murp.kernels.numba_candidates`), computed with integers, so they can always be drawn again.

The interval is for the mean over all facts of which the split is a sample, and over all draws of candidates: a fact
with its two questions is one observation, and every question has its own candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.evaluation.comparison import bootstrap
from murp.evaluation.ranks import Counting, Ranks, Sample, queries_of, refuse_nan
from murp.graph import Indices, KnownFacts, Triples
from murp.models import Model
from murp.models.blocks import QUERIES, block_length, filled
from murp.models.model import Query, Rows
from murp.threads import torch_alone

CELLS = 2**22  # candidates that are drawn and scored at a time
NUMBERS = 2**25  # of the rows that queries are made of, at a time: a relation may have a matrix
BYTES_A_NUMBER = 8 * 4  # of a candidate on a GPU: float64, and what its score is made of
CUDA_MEMORY = 2**31
FEW = 2000  # facts: of more, the quantile of the bootstrap is that of the normal distribution
RESAMPLES = 2000
NORMAL = 1.959964

Interval = tuple[float, float]


@torch.no_grad()
def sampled_ranks(
    model: Model,
    triples: Triples,
    known: KnownFacts,
    *,
    num_relations: int,
    candidates: int,
    seed: int = 0,
    counting: Counting | None = None,
) -> Ranks:
    """The rank of every triple (s, r, o) among ``candidates`` drawn by ``seed``, as (s, r, ?) and as (o, r + R, ?).

    ``counting`` replaces the counting of this module, for a model on several processes.
    """
    subjects, asked, targets = queries_of(triples, num_relations)
    counted = np.empty(len(subjects))
    among = partial(_counted, model) if counting is None else counting.among
    with torch_alone():
        for batch, drawn in _drawn(model, known, subjects, asked, targets, candidates, seed):
            entities = np.concatenate([targets[batch, None], drawn], axis=1)
            counted[batch] = among(subjects[batch], asked[batch], entities).cpu().numpy()
    refuse_nan(np.isnan(counted), subjects, asked)
    tail, head = np.split(1 + counted, 2)
    return Ranks("sampled", triples, tail, head, Sample(candidates, seed))


def candidates_of(
    known: KnownFacts,
    subjects: Indices,
    relations: Indices,
    targets: Indices,
    entities: int,
    candidates: int,
    seed: int,
) -> NDArray[np.int32]:
    """The candidates (Q, n) of Q questions; -1 where fewer are left."""
    from murp.kernels import numba_candidates

    rows, objects = known.objects_of(subjects, relations)
    taken = np.unique(
        np.concatenate([rows, np.arange(len(targets))]) * entities + np.concatenate([objects, targets])
    )  # the answer too, where it is no known fact
    row, entity = np.divmod(taken, entities)
    starts = np.searchsorted(row, np.arange(len(subjects) + 1))
    keys = np.empty(len(subjects), np.uint64)
    numba_candidates.question_keys(np.uint64(seed), subjects, relations, targets, keys)
    drawn: NDArray[np.int32] = numba_candidates.draw(keys, starts, entity, entities, min(candidates, entities))
    return drawn


def _drawn(
    model: Model,
    known: KnownFacts,
    subjects: Indices,
    relations: Indices,
    targets: Indices,
    candidates: int,
    seed: int,
) -> Iterator[tuple[slice, NDArray[np.int32]]]:
    """Parts of the questions, each with its candidates."""
    count = min(candidates, model.num_entities)
    of_query = sum(prod(table.shape) for table in model.tables if {"subject", "relation"} & set(table.roles))
    size = max(1, min(CELLS // count, NUMBERS // max(1, of_query)))
    if model.device.type != "cpu":
        size = max(1, min(size, CUDA_MEMORY // (count * model.dim * BYTES_A_NUMBER)))
    for start in range(0, len(subjects), size):
        batch = slice(start, start + size)
        query = subjects[batch], relations[batch], targets[batch]
        yield batch, candidates_of(known, *query, model.num_entities, count, seed)


def _counted(model: Model, subjects: Indices, relations: Indices, entities: Indices) -> Tensor:
    """(Q), (Q), (Q, 1 + n), the answer first → (Q): better + equal / 2 among the candidates."""
    subject, relation = (torch.from_numpy(of).to(model.device) for of in (subjects, relations))
    scores = scores_among(model, model.rows("subject", subject), model.rows("relation", relation), entities)
    there = torch.from_numpy(entities[:, 1:] >= 0).to(model.device)
    return better_or_half(scores[:, 1:], scores[:, :1], there)


def scores_among(model: Model, subject: Rows, relation: Rows, entities: Indices) -> Tensor:
    """φ (B, n) of queries, given by their rows (B, …), and of the ``entities`` (B, n) of each; anything where these are
    -1.

    On the CPU queries are computed in blocks of one shape, and candidates as blocks of rows that one query meets: then
    a score is a function of its query and its object alone (:mod:`murp.models.blocks`), and equal entities tie as they
    do under ``standard``. On a GPU a score does not depend on the place of its row.
    """
    if model.device.type == "cpu":
        return _one_by_one(model, subject, relation, torch.from_numpy(entities))
    return _together(model, subject, relation, torch.from_numpy(entities).to(model.device))


def _one_by_one(model: Model, subject: Rows, relation: Rows, entities: Tensor) -> Tensor:
    scores, shared = torch.zeros(entities.shape, dtype=model.dtype), model.rows("shared")
    length, counts = block_length(entities.shape[1]), (entities >= 0).sum(1).tolist()
    for start in range(0, len(entities), QUERIES):
        block = range(start, min(start + QUERIES, len(entities)))
        which = filled(torch.arange(block.start, block.stop), QUERIES)
        s, r = ({name: rows.index_select(0, which) for name, rows in of.items()} for of in (subject, relation))
        asked = model.query(s, r, shared)
        for b in block:
            alone = Query(
                tuple(vector[b - start : b - start + 1] for vector in asked.vectors),
                {name: values[b - start : b - start + 1] for name, values in asked.numbers.items()},
            )
            for n in range(0, counts[b], length):
                chosen = entities[b, n : min(n + length, counts[b])]
                objects = model.rows("object", filled(chosen, length))
                found = model.meet(alone, model.candidate(objects, shared))
                scores[b, n : n + len(chosen)] = found[0, : len(chosen)]
    return scores


def _together(model: Model, subject: Rows, relation: Rows, entities: Tensor) -> Tensor:
    return model.score_rows(subject, relation, model.rows("object", entities.clamp(min=0)))


def better_or_half(scores: Tensor, own: Tensor, there: Tensor) -> Tensor:
    """(B, n), (B, 1) → (B), float64: better + equal / 2 among those that are ``there``; NaN where a score is NaN."""
    better = ((scores > own) & there).sum(1).double()
    equal = ((scores == own) & there).sum(1).double()
    unordered = own.isnan()[:, 0] | (scores.isnan() & there).any(1)
    return torch.where(unordered, torch.nan, better + equal / 2)


def intervals(ranks: Ranks, hits: tuple[int, ...]) -> dict[str, Interval | None]:
    """95 % intervals of the MRR and of each Hits@k; None if one fact, or equal ones, leave nothing to judge an MRR by.

    For the MRR of many facts mean ± 1.96 standard errors, of few the studentized bootstrap of
    :mod:`murp.evaluation.comparison`. For Hits@k, which may be 0 of all facts, Wilson's interval.
    """
    both = np.stack([ranks.tail, ranks.head], axis=1)
    found: dict[str, Interval | None] = {"mrr": _of_mean((1 / both).mean(axis=1))}
    return found | {f"hits@{k}": _of_share((both <= k).mean(axis=1)) for k in hits}


def _of_mean(values: NDArray[np.float64]) -> Interval | None:
    """Of the mean of a number in [0, 1] for each fact."""
    if len(values) > FEW:
        half = NORMAL * float(values.std(ddof=1)) / len(values) ** 0.5
        return max(float(values.mean()) - half, 0.0), min(float(values.mean()) + half, 1.0)
    low, high, *_ = bootstrap(values, RESAMPLES, np.random.default_rng(0))
    return None if low is None or high is None else (max(low, 0.0), min(high, 1.0))


def _of_share(values: NDArray[np.float64]) -> Interval:
    """Wilson's interval of a share p of questions, two of each of n facts: they count as n independent ones, and as up
    to 2n where the two of a fact differ: p(1 - p)/s² times n, with the variance s² of facts."""
    p, spread = float(values.mean()), float(values.var(ddof=1)) if len(values) > 1 else 0.0
    number = len(values) * (min(2.0, max(1.0, p * (1 - p) / spread)) if spread > 0 else 1.0)
    unit = NORMAL**2 / number
    centre, half = p + unit / 2, (unit * (p * (1 - p) + unit / 4)) ** 0.5
    return max((centre - half) / (1 + unit), 0.0), min((centre + half) / (1 + unit), 1.0)
