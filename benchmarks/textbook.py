"""The textbook step and evaluation: a direct implementation of the paper, to compare with.

Dense float64: every candidate has its own row in batch × (1 + k) × d, distances use Möbius addition and artanh,
autograd computes gradients of whole tables, Riemannian SGD updates all rows, and evaluation scores and sorts one query
at a time.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def mobius_add(x: Tensor, y: Tensor) -> Tensor:
    xx = (x * x).sum(-1, keepdim=True)
    yy = (y * y).sum(-1, keepdim=True)
    xy = (x * y).sum(-1, keepdim=True)
    return ((1 + 2 * xy + yy) * x + (1 - xx) * y) / (1 + 2 * xy + xx * yy)


def artanh(x: Tensor) -> Tensor:
    return 0.5 * torch.log((1 + x) / (1 - x))


def norm(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(1e-10, 1 - 1e-5)


class TextbookMuRP:
    """MuRP with dense parameters and dense Riemannian SGD."""

    def __init__(
        self, num_entities: int, num_relations: int, dim: int, *, seed: int = 0, device: torch.device | str = "cpu"
    ) -> None:
        draw = torch.Generator(device).manual_seed(seed)
        given = {"dtype": torch.float64, "device": device}
        self.entity = 1e-3 * torch.randn(num_entities, dim, generator=draw, **given)
        self.translation = 1e-3 * torch.randn(num_relations, dim, generator=draw, **given)
        self.stretch = 2 * torch.rand(num_relations, dim, generator=draw, **given) - 1
        self.subject_bias = torch.zeros(num_entities, **given)
        self.object_bias = torch.zeros(num_entities, **given)
        self.on_ball = [self.entity, self.translation]
        self.flat = [self.stretch, self.subject_bias, self.object_bias]
        for table in self.on_ball + self.flat:
            table.requires_grad_()

    def score(self, s: Tensor, r: Tensor, o: Tensor) -> Tensor:
        u, v = self.entity[s], self.entity[o]
        tangent = artanh(norm(u)) * u / norm(u) * self.stretch[r]
        length = torch.linalg.vector_norm(tangent, dim=-1, keepdim=True).clamp(min=1e-10)
        moved_subject = torch.tanh(length) * tangent / length
        moved_object = mobius_add(v, self.translation[r])
        distance = 2 * artanh(norm(mobius_add(-moved_subject, moved_object)))
        return -(distance.squeeze(-1) ** 2) + self.subject_bias[s] + self.object_bias[o]

    def step(self, positives: Tensor, negatives: Tensor, lr: float) -> float:
        candidates = torch.cat([positives[:, 2:], negatives], dim=1)
        s = positives[:, :1].expand_as(candidates)
        r = positives[:, 1:2].expand_as(candidates)
        labels = torch.zeros(candidates.shape, dtype=torch.float64, device=candidates.device)
        labels[:, 0] = 1
        tables = self.on_ball + self.flat
        loss = binary_cross_entropy_with_logits(self.score(s, r, candidates), labels)
        gradients = torch.autograd.grad(loss, tables)
        with torch.no_grad():
            for table, gradient in zip(tables, gradients, strict=True):
                if any(table is t for t in self.flat):
                    table -= lr * gradient
                    continue
                factor = 2 / (1 - (table * table).sum(-1, keepdim=True))
                velocity = -lr * gradient / factor**2
                length = torch.linalg.vector_norm(velocity, dim=-1, keepdim=True).clamp(min=1e-10)
                table.copy_(mobius_add(table, torch.tanh(factor * length / 2) * velocity / length))
        return float(loss.detach())

    @torch.no_grad()
    def rank(self, s: int, r: int, o: int, known: np.ndarray) -> int:
        """The filtered rank of one query, by sorting all entities."""
        entities = torch.arange(len(self.entity), device=self.entity.device)
        scores = self.score(torch.full_like(entities, s), torch.full_like(entities, r), entities)
        target = scores[o].clone()
        scores[torch.from_numpy(known).to(scores.device)] = -torch.inf
        scores[o] = target
        order = torch.argsort(scores, descending=True)
        return int((order == o).nonzero()[0, 0]) + 1
