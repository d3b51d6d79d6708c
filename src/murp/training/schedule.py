"""The learning rate by epoch."""

from __future__ import annotations

import math

from murp.config import Config
from murp.training.state import State

PLATEAU = 3  # validations without a better MRR, after which the schedule plateau divides
DIVISOR = 10.0
MOST = 300  # divisions that a float holds


def learning_rate(config: Config, state: State) -> float:
    """η in the epoch after ``state``, 0 … epochs-1.

    Constant η, η(1 - t), or η(1 + cos πt)/2, where t = epoch/epochs; for ``plateau`` η divided by 10 for every three
    validations in a row that were no better. In the first w = ``warmup`` epochs all that times (epoch + 1)/(w + 1).
    """
    epoch = state.epoch
    lr: float = config.lr
    t = epoch / config.epochs
    if config.lr_schedule == "linear":
        lr *= 1 - t
    elif config.lr_schedule == "cosine":
        lr = lr * (1 + math.cos(math.pi * t)) / 2
    elif config.lr_schedule == "plateau":
        lr /= DIVISOR ** min(state.reductions, MOST)
    return lr if epoch >= config.warmup else lr * (epoch + 1) / (config.warmup + 1)
