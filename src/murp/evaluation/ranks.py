"""Filtered ranks of true triples among all entities, in both directions."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import ConfigError, MurpError, NotFiniteError
from murp.evaluation import fused
from murp.graph import Indices, KnownFacts, Triples
from murp.models import MultiRelational
from murp.threads import torch_alone

# types: see murp.evaluation.constrained; sampled: see murp.evaluation.sampled.
Protocol = Literal["standard", "paper", "types", "sampled"]
PROTOCOLS: tuple[Protocol, ...] = ("standard", "paper")  # those that rank among all entities, whatever their types

# What one (query, entity) cell may cost at most: twelve float64 temporaries, the scorer's own included.
BYTES_PER_CELL = 12 * 8
CPU_MEMORY = 512 * 2**20
CUDA_MEMORY = 4 * 2**30
# On a CPU larger batches are slower: their temporaries leave the cache and are paged in anew each time.
CPU_CELLS = 2**20


class Scorer(typing.Protocol):
    """The interface that a model needs for ranking; heads are predicted with reciprocal relations."""

    @property
    def num_entities(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def score_objects(self, subjects: Tensor, relations: Tensor) -> Tensor:
        """(B), (B) → (B, num_entities): the score of every entity as the object of each query."""
        ...


@dataclass(frozen=True)
class Sample:
    """The candidates of protocol ``sampled``: how many for each question, the seed that drew them, and their digest
    (:mod:`murp.evaluation.candidates`); no seed if they are from elsewhere."""

    candidates: int
    seed: int | None
    digest: str

    def __str__(self) -> str:
        which = f"digest {self.digest}" if self.seed is None else f"seed {self.seed}"
        return f"sampled: {self.candidates:,} candidates a question, {which}; no estimate of standard"


class Counting(typing.Protocol):
    """How a model on several processes counts the entities that score above the target of a query, and the same."""

    def __call__(
        self, known: KnownFacts, subjects: Indices, relations: Indices, targets: Indices, protocol: Protocol
    ) -> tuple[Tensor, Tensor]:
        """Better and equal entities (Q) each of queries; NaN better where a score is."""
        ...

    def among(self, subjects: Indices, relations: Indices, entities: Indices) -> Tensor:
        """Better + equal / 2 (Q) among drawn candidates: ``entities`` (Q, 1 + n), the target first, -1 where fewer are
        left; NaN where a score is."""
        ...


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rank of the tail (n) and of the head (n) of each triple (n, 3).

    ``sample`` describes the candidates, if these are not all entities.
    """

    protocol: Protocol
    triples: Triples
    tail: NDArray[np.float64]
    head: NDArray[np.float64]
    sample: Sample | None = None

    @property
    def protocol_in_words(self) -> str:
        """The protocol as metrics name it: with the candidates, where they were drawn."""
        return self.protocol if self.sample is None else str(self.sample)


@torch.no_grad()
def rank(
    model: Scorer,
    triples: Triples,
    known: KnownFacts,
    *,
    num_relations: int,
    protocol: Protocol = "standard",
    memory: int | None = None,
    counting: Counting | None = None,
) -> Ranks:
    """The realistic filtered rank of every triple (s, r, o), asked as (s, r, ?) and as (o, r + R, ?).

    The rank is 1 + better + equal / 2, where better and equal count the entities that score above and the same as the
    target: the mean of the ranks the target has over all orders of the ties. The target itself, the other known answers
    and, under ``paper``, the entity of the question (unless it is the target) are not counted. Target and candidates
    are scored with the same arithmetic.

    Infinite scores are ordered like any others; NaN has no order and raises :class:`NotFiniteError`. ``memory`` bounds
    the bytes of batch × entities work, scoring included (by default 512 MiB on a CPU, 4 GiB on a GPU, and never less
    than one query needs). ``counting`` replaces the counting of this module, for a model on several processes.
    """
    if protocol == "sampled":
        raise ConfigError(
            "protocol sampled ranks among sampled candidates, and its metrics must not be mixed with those of all "
            "entities. Choose standard or paper here; `murp evaluate` has sampled."
        )
    if protocol not in PROTOCOLS:
        raise ConfigError(f"unknown protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}.")
    if memory is None:
        memory = default_memory(model.num_entities, model.device)
    size = batch_size(model.num_entities, model.device, memory)
    subjects, asked, targets = queries_of(triples, num_relations)
    kernel = fused.kernel_for(model) if counting is None else None
    with torch_alone():
        if counting is not None:
            better, equal = counting(known, subjects, asked, targets, protocol)
            ranks = 1 + better + equal / 2
        elif kernel is None:
            better, equal = _counted(model, known, subjects, asked, targets, protocol, size)
            ranks = 1 + better + equal / 2
        else:
            assert isinstance(model, MultiRelational)
            apart = np.where((subjects != targets) & (protocol == "paper"), subjects, -1)
            size = fused.batch_size(model, memory)
            ranks = fused.fused_ranks(kernel, model, known, subjects, asked, targets, apart, size)
    of_queries = ranks.cpu().numpy()
    refuse_nan(np.isnan(of_queries), subjects, asked)
    _refuse_impossible(of_queries, model.num_entities)
    tail, head = np.split(of_queries, 2)
    return Ranks(protocol, triples, tail, head)


@torch.no_grad()
def better_and_equal(
    model: Scorer, triples: Triples, known: KnownFacts, *, num_relations: int, protocol: Protocol = "standard"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The counts behind :func:`rank`: (2n) each, first for tails, then for heads.

    How many entities score above the target, and how many the same. 1 + better is the rank if ties are in the model's
    favour, 1 + better + equal if they are against it.
    """
    subjects, asked, targets = queries_of(triples, num_relations)
    size = batch_size(model.num_entities, model.device)
    with torch_alone():
        counted = _counted(model, known, subjects, asked, targets, protocol, size)
    better, equal = (counts.cpu().numpy() for counts in counted)
    refuse_nan(np.isnan(better), subjects, asked)
    return better, equal


def queries_of(triples: Triples, num_relations: int) -> tuple[Indices, Indices, Indices]:
    """Subjects, relations and targets (2n) of triples (n, 3): tails are asked for, then heads."""
    heads, relations, tails = triples.astype(np.int64).T
    asked = np.concatenate([relations, relations + num_relations])
    return np.concatenate([heads, tails]), asked, np.concatenate([tails, heads])


def _counted(
    model: Scorer,
    known: KnownFacts,
    subjects: Indices,
    relations: Indices,
    targets: Indices,
    protocol: Protocol,
    size: int,
) -> tuple[Tensor, Tensor]:
    """Better and equal entities (Q) each of any model's queries, ``size`` at a time; NaN better where a score is."""
    on_device = torch.from_numpy(np.stack([subjects, relations, targets])).to(model.device)
    counts = torch.zeros(2, len(subjects), dtype=torch.float64, device=model.device)
    for start in range(0, len(subjects), size):
        batch = slice(start, start + size)
        scores = model.score_objects(on_device[0, batch], on_device[1, batch])
        removed = removed_cells(known, subjects[batch], relations[batch], targets[batch], protocol)
        counts[:, batch] = _counts(scores, on_device[2, batch], removed.to(model.device))
    return counts[0], counts[1]


def default_memory(num_entities: int, device: torch.device) -> int:
    """512 MiB on a CPU, 4 GiB on a GPU, and never less than one query needs."""
    return max(num_entities * BYTES_PER_CELL, CPU_MEMORY if device.type == "cpu" else CUDA_MEMORY)


def batch_size(num_entities: int, device: torch.device, memory: int | None = None) -> int:
    """How many queries to score against all entities at once within ``memory`` bytes."""
    needed = num_entities * BYTES_PER_CELL
    if memory is None:
        memory = default_memory(num_entities, device)
    if memory < needed:
        raise ConfigError(
            f"memory: ranking one query against {num_entities:,} entities needs {needed:,} bytes, "
            f"and the bound is {memory:,}. Give at least {needed:,}."
        )
    size = memory // needed
    return min(size, max(1, CPU_CELLS // num_entities)) if device.type == "cpu" else size


def removed_cells(
    known: KnownFacts, subjects: Indices, relations: Indices, targets: Indices, protocol: Protocol
) -> Tensor:
    """Cells (2, m) of a batch, row and entity, that are no candidates; each once, the targets apart."""
    rows, objects = known.objects_of(subjects, relations)
    kept = objects != targets[rows]
    if protocol == "standard":
        return torch.from_numpy(np.stack([rows[kept], objects[kept]]))
    kept &= objects != subjects[rows]
    others = np.flatnonzero(subjects != targets)
    cells = [np.append(rows[kept], others), np.append(objects[kept], subjects[others])]
    return torch.from_numpy(np.stack(cells))


def _counts(scores: Tensor, targets: Tensor, removed: Tensor) -> Tensor:
    """(B, N), (B), (2, m) → (2, B), float64: better and equal entities; NaN are better where a score is NaN."""
    better, no_worse = count(scores, scores.gather(1, targets[:, None]), removed)
    return torch.stack([better, no_worse - better.nan_to_num() - 1])  # the target equals itself


def count(scores: Tensor, own: Tensor, removed: Tensor) -> Tensor:
    """(B, N), (B, 1), (2, m) → (2, B), float64: entities that score above ``own``, and those that score no worse.

    The cells ``removed`` do not count. NaN are above where a score is NaN.
    """
    # Marks of 1.0 and 0.0 are several times faster to write and to add than booleans, and their sums are
    # exact as long as every count has its own float.
    marks = torch.empty_like(scores, dtype=torch.float32 if scores.shape[1] < 2**24 else torch.float64)
    better = torch.gt(scores, own, out=marks).sum(1).double()
    no_worse = torch.ge(scores, own, out=marks).sum(1).double()
    rows, objects = removed
    threshold, score = own[rows, 0], scores[rows, objects]
    better -= torch.bincount(rows[score > threshold], minlength=len(scores))
    no_worse -= torch.bincount(rows[score >= threshold], minlength=len(scores))
    if not scores.shape[1]:
        return torch.stack([better, no_worse])
    # The largest of some numbers is NaN where any of them is: one fast pass, right for infinities too.
    return torch.stack([torch.where(scores.amax(1).isnan(), torch.nan, better), no_worse])


def refuse_nan(bad: NDArray[np.bool_], subjects: Indices, relations: Indices) -> None:
    """Raise if one of the queries (Q) has a NaN score."""
    if bad.any():
        row = int(bad.argmax())
        raise NotFiniteError(
            f"the model gives NaN scores to the query (entity {subjects[row]}, relation {relations[row]}), "
            "and NaN cannot be ranked. Its training diverged: train again with a lower learning rate, "
            "or use an earlier checkpoint."
        )


def _refuse_impossible(ranks: NDArray[np.float64], num_entities: int) -> None:
    """Raise for an impossible rank, which must not become a metric."""
    wrong = ~((ranks >= 1) & (ranks <= num_entities))
    if wrong.any():
        raise MurpError(
            f"{int(wrong.sum()):,} of {len(ranks):,} ranks do not lie between 1 and {num_entities:,}, so a part of the "
            "evaluation did not run. This is a fault of murp or of a library below it; please report it. Try again "
            "with --threads 1."
        )
