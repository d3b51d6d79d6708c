"""Modules that these tests import from elsewhere: scripts of tools/, and what tests of ranks and of pages share."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent / "tools"), *(str(TESTS / name) for name in ("explorer", "distributed"))]
