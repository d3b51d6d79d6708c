"""The learning rate by epoch."""

from __future__ import annotations

import math

from murp.config import Config


def learning_rate(config: Config, epoch: int) -> float:
    """η in epoch 0 … epochs-1: constant η, η(1 - t), or η(1 + cos πt)/2, where t = epoch/epochs."""
    t = epoch / config.epochs
    if config.lr_schedule == "linear":
        return config.lr * (1 - t)
    if config.lr_schedule == "cosine":
        return config.lr * (1 + math.cos(math.pi * t)) / 2
    return config.lr
