"""Which triples a step uses: a pure function of seed, epoch and position, so that resuming is exact."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from murp.engines import Chunk
from murp.graph import Triples
from murp.objectives import Labels

# Small enough for Ctrl-C to be answered soon, large enough that a GPU seldom waits for Python.
STEPS_A_CHUNK = {"cpu": 256, "cuda": 2048}
# On the CPU, where a chunk's false objects lie in memory at once (64 MiB of them), and a large step takes its time:
# as long as there are coordinates of them. Where a batch shares them, scores are products of matrices, and a step takes
# as long as there are scores.
OBJECTS_A_CHUNK, COORDINATES_A_CHUNK, SCORES_A_CHUNK = 2**23, 2**27, 2**25
NARROW = 2**31  # an order of fewer triples has 32 bits for each


def fewer_steps(batch_size: int, negatives: int, dim: int, device: torch.device, *, shared: bool = False) -> int | None:
    """How many steps a chunk of a new run has, if fewer than ``STEPS_A_CHUNK``; otherwise None.

    ``shared``: whether a batch shares its negatives.
    """
    scores = batch_size * (1 + negatives)
    fitting = SCORES_A_CHUNK // scores if shared else min(OBJECTS_A_CHUNK, COORDINATES_A_CHUNK // dim) // scores
    fitting = max(1, fitting)
    return fitting if device.type == "cpu" and fitting < STEPS_A_CHUNK["cpu"] else None


class Answers:
    """Questions (s, r) with all their answers among the training triples, for objectives that use all answers at
    once."""

    def __init__(self, triples: Triples, device: torch.device) -> None:
        facts = np.unique(triples, axis=0).astype(np.int64)  # sorted by subject, relation, object
        fresh = np.ones(len(facts), dtype=bool)
        fresh[1:] = (facts[1:, :2] != facts[:-1, :2]).any(1)
        starts = np.flatnonzero(fresh)
        questions = np.column_stack([facts[starts, :2], np.arange(len(starts))])
        self.questions = torch.from_numpy(questions).to(device)
        self.objects = torch.from_numpy(facts[:, 2].copy()).to(device)
        self.starts = torch.from_numpy(starts).to(device)
        self.counts = torch.from_numpy(np.diff(np.append(starts, len(facts)))).to(device)

    def labels(self, asked: Tensor) -> Labels:
        """The labels (S, L) of questions (S, B), given by number; padded with weight 0.

        L is the length of the longest step, rounded up to one of a few lengths, since a GPU captures each shape.
        """
        counts = self.counts[asked]
        before = counts.cumsum(1) - counts
        length = _rounded_up(int(counts.sum(1).max()))
        place = torch.arange(length, device=asked.device).expand(len(asked), -1).contiguous()
        rows = torch.searchsorted(before, place, right=True) - 1
        within = place - before.gather(1, rows)
        real = within < counts.gather(1, rows)
        found = (self.starts[asked.gather(1, rows)] + within).clamp(max=len(self.objects) - 1)
        return Labels(rows, self.objects[found], real.to(torch.get_default_dtype()))


def _rounded_up(length: int) -> int:
    """To three binary digits, which adds a quarter at most."""
    step = 1 << max(0, length.bit_length() - 3)
    return -(-length // step) * step


class Sampler:
    """Positive triples (N, 3) in a new random order every epoch, and a seed for their negatives.

    Memory: 12 bytes for each triple, and 4 for its place in the order (8 from 2³¹ triples on).

    Returned in chunks of steps. Nothing is stored between chunks: the order depends only on (seed, epoch), and the
    negatives only on (seed, epoch, chunk) and the size of the chunks. A negative may be true by chance, as in the
    paper.
    """

    def __init__(
        self,
        triples: Triples,
        num_entities: int,
        *,
        batch_size: int,
        negatives: int,
        seed: int,
        device: torch.device,
        steps_a_chunk: int | None = None,
        grouped: bool = False,
    ) -> None:
        self.answers = Answers(triples, device) if grouped else None
        self.triples = torch.from_numpy(triples).to(device) if self.answers is None else self.answers.questions
        self.count = len(self.triples)
        self.num_entities = num_entities
        self.batch_size = batch_size
        self.negatives = negatives
        self.seed = seed
        self.device = device
        self.steps_a_chunk = steps_a_chunk or STEPS_A_CHUNK[device.type]
        self.order: tuple[int, Tensor] | None = None
        self.ahead: tuple[int, int, Chunk] | None = None
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    @property
    def steps(self) -> int:
        """Steps per epoch; the last batch may be smaller."""
        return math.ceil(self.count / self.batch_size)

    def steps_before(self, index: int) -> int:
        """Steps of an epoch in the chunks before ``index``."""
        return min(index * self.steps_a_chunk, self.steps)

    @property
    def chunks(self) -> int:
        """Chunks per epoch: the full batches, then the smaller last batch if there is one."""
        full, rest = divmod(self.count, self.batch_size)
        return math.ceil(full / self.steps_a_chunk) + (rest > 0)

    def chunk(self, epoch: int, index: int) -> Chunk:
        """One chunk of an epoch, on the sampler's device."""
        ahead, self.ahead = self.ahead, None
        if ahead is None or ahead[:2] != (epoch, index):
            ahead = self._drawn(epoch, index)
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
        return ahead[2]

    def prefetch(self, epoch: int, index: int) -> None:
        """Draw a chunk in advance; an index beyond the last is the first of the next epoch."""
        self.ahead = self._drawn(epoch + 1, 0) if index == self.chunks else self._drawn(epoch, index)

    def _drawn(self, epoch: int, index: int) -> tuple[int, int, Chunk]:
        """On a GPU in a separate stream, so that it overlaps with the steps of the chunk before."""
        with torch.cuda.stream(self.stream):
            if self.order is None or self.order[0] != epoch:
                self.order = None  # before the next one needs its memory
                self.order = (epoch, self._ordered(self._permutation(epoch)))
            full, rest = divmod(self.count, self.batch_size)
            first = index * self.steps_a_chunk
            if first < full:
                steps, size = min(self.steps_a_chunk, full - first), self.batch_size
            else:
                first, steps, size = full, 1, rest
            chunk = self._chunk(self.order[1], first, steps, size, self._seed(epoch, 1 + index))
        return epoch, index, chunk

    def _ordered(self, order: Tensor) -> Tensor:
        """What is kept for an epoch of its ``order`` (N)."""
        return order

    def _chunk(self, order: Tensor, first: int, steps: int, size: int, seed: int) -> Chunk:
        """``steps`` batches of ``size`` triples, after ``first`` full ones; ``order`` is that of :meth:`_ordered`."""
        start = first * self.batch_size
        chosen = order[start : start + steps * size]
        positives = self.triples.index_select(0, chosen).long().view(steps, size, 3)
        labels = None if self.answers is None else self.answers.labels(positives[..., 2])
        return Chunk(positives, self.num_entities, self.negatives, seed, labels)

    def _permutation(self, epoch: int) -> Tensor:
        """The order of an epoch (N); of both types of numbers PyTorch makes the same one."""
        generator = torch.Generator(self.device).manual_seed(self._seed(epoch, 0))
        dtype = torch.int32 if self.count < NARROW else torch.int64
        return torch.randperm(self.count, generator=generator, device=self.device, dtype=dtype)

    def _seed(self, *position: int) -> int:
        state = np.random.SeedSequence([self.seed, *position]).generate_state(1, np.uint64)
        return int(state[0] >> 1)
