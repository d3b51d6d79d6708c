"""What the process imports that ranks are forked from; see ``local_ranks.py``."""

from __future__ import annotations

import local_ranks

local_ranks.share()
