"""What a step has freed is there for the next one."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch

from murp.engines.memory import keep_freed

STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not STATM.exists(), reason="needs Linux's /proc")
def test_memory_of_a_step_is_kept() -> None:
    if not keep_freed():
        pytest.skip("needs the GNU C library")
    blocks = [torch.ones(2**22) for _ in range(16)]  # 256 MiB
    full = resident()
    blocks.clear()
    assert full - resident() < 2**26
