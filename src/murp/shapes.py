"""The form of questions and answers, of a model and of a server (``murp serve``).

The server's documentation is made from these classes, and its client (:mod:`murp.client`) returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

Split = Literal["train", "valid", "test"]


class Question(TypedDict):
    """(head, relation, ?) or (?, relation, tail), with options for its answers."""

    relation: str
    head: NotRequired[str]
    tail: NotRequired[str]
    k: NotRequired[int]
    new_only: NotRequired[bool]
    types: NotRequired[bool]
    candidates: NotRequired[Sequence[str]]


@dataclass(frozen=True)
class Reference:
    """An entity or a relation."""

    id: str
    name: str


@dataclass(frozen=True)
class Prediction:
    """One answer: the entity, its score φ, the probability σ(φ), and the split that contains the fact.

    ``calibrated`` is the calibrated probability, if the run has a calibration.
    """

    rank: int
    id: str
    name: str
    score: float
    probability: float
    known: Split | None
    calibrated: float | None = None


@dataclass(frozen=True)
class Answer:
    """A question with its answers, best first; the missing ``head`` or ``tail`` is None."""

    relation: Reference
    head: Reference | None
    tail: Reference | None
    predictions: list[Prediction]


@dataclass(frozen=True)
class Scored:
    """A triple's score φ, the probability σ(φ), and the split that contains it."""

    score: float
    probability: float
    known: Split | None


@dataclass(frozen=True)
class Health:
    """Which run is served. ``reload_error``: why the run that is now in the folder cannot be loaded."""

    status: Literal["ok"]
    murp: str
    run: str
    model: str
    dim: int
    graph: str
    entities: int
    relations: int
    epoch: int
    best_mrr: float | None
    loaded: str
    reloads: int
    reload_error: str | None = None
