"""The learning rate by epoch."""

from __future__ import annotations

from murp.config import Config
from murp.schedules import SCHEDULES
from murp.training.state import State


def learning_rate(config: Config, state: State) -> float:
    """η in the epoch after ``state``, 0 … epochs - 1: as its schedule says, and in the first w = ``warmup`` epochs that
    times (epoch + 1)/(w + 1)."""
    epoch = state.epoch
    lr = SCHEDULES[config.lr_schedule].rate(config.lr, epoch / config.epochs, state.reductions)
    return lr if epoch >= config.warmup else lr * (epoch + 1) / (config.warmup + 1)
