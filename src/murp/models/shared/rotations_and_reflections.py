"""How a relation turns its subject: rotations of pairs of numbers, reflections of them, or a choice of both.

The flat models (:mod:`murp.models.rotations`) and those on a ball (:mod:`murp.models.hyperbolic_rotations`) share them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from murp.models.model import Rows, Table
from murp.models.shared.complex_numbers import Paired, conjugate, times, unit

# Settings of a run that suit models with turns on a ball, and with turns and stretches.
USUAL = {
    "objective": "self-adversarial",
    "temperature": 0.5,
    "negatives": 250,
    "optimizer": "adam",
    "lr": 0.003,
    "lr_schedule": "linear",
    "batch_size": 500,
}


def rotated(x: Tensor, turn: Tensor) -> Tensor:
    """Each pair of x turned by the angle of the same pair of ``turn``, whose length does not count."""
    return times(unit(turn), x)


def reflected(x: Tensor, turn: Tensor) -> Tensor:
    """Each pair of x reflected at the line of half the angle of the same pair of ``turn``."""
    return times(unit(turn), conjugate(x))


class Turn(Paired):
    """A relation's turn and translation."""

    def turn_tables(self) -> tuple[Table, ...]:
        """The relations' parameters of the turn."""
        self.half()
        return (Table("turn", "relation", (self.dim,), initial="uniform"),)

    def relation_tables(self) -> tuple[Table, ...]:
        """The turn and the translation."""
        return (*self.turn_tables(), Table("translation", "relation", (self.dim,)))


class Rotation(Turn):
    """Pairs are rotated."""

    def turned(self, x: Tensor, relation: Rows) -> Tensor:
        """Subjects (B, d) under their relations."""
        return rotated(x, relation["turn"])


class Reflection(Turn):
    """Pairs are reflected."""

    def turned(self, x: Tensor, relation: Rows) -> Tensor:
        """Subjects (B, d) under their relations."""
        return reflected(x, relation["turn"])


class Attention(Turn):
    """α · rotated + (1 - α) · reflected: α from how well each agrees with a vector a of the relation,

    (α, 1 - α) = softmax(⟨a, rotated⟩/√d, ⟨a, reflected⟩/√d).
    """

    def turn_tables(self) -> tuple[Table, ...]:
        self.half()
        size = (self.dim,)
        return (
            Table("turn", "relation", size, initial="uniform"),
            Table("mirror", "relation", size, initial="uniform"),
            Table("attention", "relation", size),
        )

    def turned(self, x: Tensor, relation: Rows) -> Tensor:
        """Subjects (B, d) under their relations."""
        one, other = rotated(x, relation["turn"]), reflected(x, relation["mirror"])
        agree = (relation["attention"] * (one - other)).sum(-1, keepdim=True)
        return torch.lerp(other, one, torch.sigmoid(agree / self.dim**0.5).expand_as(one))
