"""Capturing CUDA graphs."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def capturing(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Capture into ``graph`` with Python's garbage collector at rest.

    An engine that is no longer used goes with the collector, and its graphs with it; destroying a graph while
    another is captured makes the capture fail.
    """
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph):
            yield
    finally:
        if enabled:
            gc.enable()
