"""A plugin of pytest for reliability/instructions.py: which instructions the libraries use, into the report."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable

import numba
import numpy as np
import pytest
import torch

from murp import threads

PREFIX = "in effect: "  # before the names of what is recorded


@pytest.fixture(scope="session", autouse=True)
def _recorded(record_testsuite_property: Callable[[str, object], None]) -> None:
    for what, value in in_effect().items():
        record_testsuite_property(PREFIX + what, value)


def in_effect() -> dict[str, str]:
    """What each library chose in this process, in its own words, and the number of threads."""
    return {
        "PyTorch": torch.backends.cpu.get_cpu_capability(),
        "MKL": mkl(),
        "Numba": numba.config.CPU_NAME or "host",
        "NumPy": numpy(),
        "threads": str(threads.count()),
    }


def mkl() -> str:
    """The processors that MKL takes its code for and its mode of reproducible results; it tells by printing only."""
    if not torch.backends.mkl.is_available():
        return "none"
    matrix = torch.ones(8, 8)
    before = os.dup(1)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        try:
            with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
                torch.mm(matrix, matrix)
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(before, 1)
            os.close(before)
        said.seek(0)
        text = said.read().decode(errors="replace")
    processors = re.search(r"architecture (.*?)(?: enabled processors| processors|,)", text)
    mode = re.search(r"CNR:(\S+)", text)
    return f"{processors[1] if processors else 'unknown'}, CBWR {mode[1] if mode else 'unknown'}"


def numpy() -> str:
    """The highest of the levels that NumPy has loops for and that are switched on."""
    core = getattr(np, "_core", None) or np.core
    umath = core._multiarray_umath
    levels = [*umath.__cpu_baseline__, *umath.__cpu_dispatch__]
    return next((level for level in reversed(levels) if umath.__cpu_features__.get(level)), "unknown")
