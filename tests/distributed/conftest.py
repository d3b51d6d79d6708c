"""What these tests ask of scripts: what a run came to (reliability/), and what a step sends (tools/)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / name) for name in ("reliability", "tools")]
