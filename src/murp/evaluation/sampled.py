"""Ranks among sampled candidates: the protocol ``sampled``, for graphs on which ranking all entities is too expensive.

For each question (s, r, ?) with the answer o, n candidates are drawn without replacement from the entities that are
neither o nor another known answer, and o is ranked among them: 1 + better + equal / 2. If at most n are left, all of
them are candidates; then the rank is the same as under ``standard``.

The metrics are **no estimates of** ``standard``. With n of N entities as candidates, about (N - n)/N of the better
entities are missing, so ranks are lower and metrics higher, and the order of two models may change (Krichene and
Rendle, On Sampled Metrics for Item Recommendation, KDD 2020). Use them to compare models with the same number of
candidates, on the same facts. So n is part of the protocol's name.

Candidates are drawn by a seed (:mod:`murp.evaluation.candidates`) or read from a file
(:mod:`murp.evaluation.candidate_files`). Metrics have intervals: :mod:`murp.evaluation.intervals`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod

import numpy as np
import torch
from torch import Tensor

from murp.evaluation.candidates import Part
from murp.evaluation.ranks import Counting, Ranks, queries_of, refuse_nan
from murp.graph import Indices, Triples
from murp.models import Model
from murp.models.blocks import QUERIES, block_length, filled
from murp.models.model import Query, Rows
from murp.threads import torch_alone

CELLS = 2**22  # candidates that are drawn and scored at a time
NUMBERS = 2**25  # of the rows that queries are made of, at a time: a relation may have a matrix
BYTES_A_NUMBER = 8 * 4  # of a candidate on a GPU: float64, and what its score is made of
CUDA_MEMORY = 2**31


@torch.no_grad()
def sampled_ranks(
    model: Model, triples: Triples, parts: Iterable[Part], *, num_relations: int, counting: Counting | None = None
) -> Ranks:
    """The rank of every triple (s, r, o) among the candidates of ``parts``, as (s, r, ?) and as (o, r + R, ?).

    ``parts`` have the questions in the order of :func:`murp.evaluation.ranks.queries_of`. ``counting`` replaces the
    counting of this module, for a model on several processes.
    """
    subjects, asked, targets = queries_of(triples, num_relations)
    counted = np.empty(len(subjects))
    among = partial(_counted, model) if counting is None else counting.among
    with torch_alone():
        for which, candidates in parts:
            entities = np.concatenate([targets[which, None], candidates], axis=1)
            counted[which] = among(subjects[which], asked[which], entities).cpu().numpy()
    refuse_nan(np.isnan(counted), subjects, asked)
    tail, head = np.split(1 + counted, 2)
    return Ranks("sampled", triples, tail, head)


def batch_size(model: Model, candidates: int) -> int:
    """How many questions with so many candidates each to draw and to score at once."""
    of_query = sum(prod(table.shape) for table in model.tables if {"subject", "relation"} & set(table.roles))
    size = max(1, min(CELLS // max(1, candidates), NUMBERS // max(1, of_query)))
    if model.device.type == "cpu":
        return size
    return max(1, min(size, CUDA_MEMORY // (max(1, candidates) * model.dim * BYTES_A_NUMBER)))


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
