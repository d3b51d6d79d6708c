"""Capturing CUDA graphs."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """Capture graphs in here: Python's garbage collector runs once before, and not while they are captured.

    An engine that is no longer used goes with the collector, and its graphs with it; destroying a graph while
    another is captured makes the capture fail.
    """
    gc.collect()
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    # PyTorch collects before every capture, which takes as long as thousands of steps; what is frozen it passes over.
    gc.freeze()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()
        if enabled:
            gc.enable()
