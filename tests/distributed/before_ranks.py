"""What the process imports that ranks are forked from; see ``together.py``."""

from __future__ import annotations

import local_ranks

local_ranks.share()
