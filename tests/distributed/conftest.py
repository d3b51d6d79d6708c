"""What a run came to is said where ranks are killed, under reliability/; these tests ask it too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "reliability"))
