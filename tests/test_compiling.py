"""Whoever waits for the compiler is told so, once, and not when it has nothing to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import numpy as np
from murp.analysis import graph_kernels
graph_kernels.components(np.array([0, 1, 1]), np.array([1]))
graph_kernels.components(np.array([0, 1, 1], np.int32), np.array([1], np.int32))
"""


def test_compiling_is_told_once_on_a_new_machine_and_never_after(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert said == ["murp: compiling the analysis, once for this machine …\n", ""]


def test_kernels_of_others_are_not_ours_to_speak_of(tmp_path: Path) -> None:
    code = "import murp.analysis.graph_kernels, numba\nassert numba.njit(lambda x: x + 1)(1) == 2"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
