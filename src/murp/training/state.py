"""Where a training run stands: all that a checkpoint must know beside the weights."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from murp.errors import RunError
from murp.files import fields

_KINDS = {
    "epoch": int,
    "chunk": int,
    "loss": int | float,
    "seconds": int | float,
    "best_mrr": int | float | None,
    "best_epoch": int | None,
    "stale": int,
}


@dataclass
class State:
    """Epochs completed, and how far the next one has come.

    Random numbers are a function of seed, epoch and chunk, and SGD remembers nothing, so that these
    few figures and the weights continue a run bit for bit.
    """

    epoch: int = 0
    chunk: int = 0
    loss: float = 0.0  # summed over the steps of the unfinished epoch
    seconds: float = 0.0  # spent training, validation included
    best_mrr: float | None = None  # protocol standard, on valid
    best_epoch: int | None = None
    stale: int = 0  # validations since the best one

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> State:
        """From a checkpoint's state."""
        try:
            state = cls(**values)
            fields(state.to_dict(), _KINDS)
        except (TypeError, ValueError) as error:
            raise RunError(f"the checkpoint's state is not one this version knows: {error}.") from None
        return state
