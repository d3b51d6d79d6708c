"""How the learning rate changes during a training: one entry for each schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

PLATEAU = 3  # validations without a better MRR, after which the schedule plateau divides
DIVISOR = 10.0
MOST = 300  # divisions that a float holds


@dataclass(frozen=True)
class Schedule:
    """``rate(η, t, n)``: the learning rate η when a share t of the epochs is done and n plateaus were reached.

    ``by_epochs``: it depends on t, so the number of epochs cannot change in a run that has begun.
    """

    rate: Callable[[float, float, int], float]
    by_epochs: bool = False


SCHEDULES = {
    "constant": Schedule(lambda lr, t, n: lr),
    "linear": Schedule(lambda lr, t, n: lr * (1 - t), by_epochs=True),
    "cosine": Schedule(lambda lr, t, n: lr * (1 + math.cos(math.pi * t)) / 2, by_epochs=True),
    "plateau": Schedule(lambda lr, t, n: lr / DIVISOR ** min(n, MOST)),
}
