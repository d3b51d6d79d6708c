"""The scripts under reliability/ import each other as plain modules; so do their tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "reliability"))
