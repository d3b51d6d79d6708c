"""Importing PyTorch sooner."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Import PyTorch and what comes with it without Python's collector, which would look through it over and over.

    What was imported is frozen, so that the collector does not look through it when the process ends either. Where
    PyTorch has been imported already nothing is done: what is garbage when it is frozen would stay.
    """
    if "torch" in sys.modules:
        yield
        return
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()
