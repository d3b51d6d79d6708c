"""What the process imports that ranks are forked from; see ``run_on_ranks.py``."""

from __future__ import annotations

import local_ranks

local_ranks.share()
