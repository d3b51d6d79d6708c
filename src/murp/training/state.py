"""Where a training run stands: all that a checkpoint must know beside the weights."""

from __future__ import annotations

import dataclasses
import reprlib
from dataclasses import dataclass
from pathlib import Path
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
    "steps_a_chunk": int | None,
    "reductions": int,
    "reduced_at": int,
}
_LEAST = {"epoch": 0, "chunk": 0, "stale": 0, "steps_a_chunk": 1, "reductions": 0, "reduced_at": 0}


@dataclass
class State:
    """Epochs completed, and how far the next one has come.

    Random numbers are a function of seed, epoch, chunk and the size of a chunk, so that these few numbers, the weights
    and the optimizer's tables continue a run bit for bit.
    """

    epoch: int = 0
    chunk: int = 0
    loss: float = 0.0  # summed over the steps of the unfinished epoch
    seconds: float = 0.0  # spent training, validation included
    best_mrr: float | None = None  # on valid, by the protocol of the run's validations
    best_epoch: int | None = None
    stale: int = 0  # validations since the best one
    steps_a_chunk: int | None = None  # if it is not the sampler's STEPS_A_CHUNK
    reductions: int = 0  # of the learning rate, by the schedule plateau
    reduced_at: int = 0  # what ``stale`` was at the last of them

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it; versions that know one size of a chunk read every state that has it, and refuse others."""
        values = dataclasses.asdict(self)
        for name, usual in (("steps_a_chunk", None), ("reductions", 0), ("reduced_at", 0)):
            if values[name] == usual:
                del values[name]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any], file: Path) -> State:
        """From the state in the checkpoint ``file``."""
        try:
            state = cls(**values)
            found = fields(dataclasses.asdict(state), _KINDS)
            for name, least in _LEAST.items():
                if found[name] is not None and found[name] < least:
                    raise ValueError(f"its field {name!r} cannot be {reprlib.repr(found[name])}")
        except (TypeError, ValueError) as error:
            raise RunError(f"{file}: the checkpoint's state is not one this version knows: {error}.") from None
        return state
