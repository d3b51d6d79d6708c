"""How many examples a test looks at that says so itself."""

from __future__ import annotations

from hypothesis import settings

# Seconds after which a process that has not answered is taken to hang. Beside busy neighbours a test may get a tenth of
# a processor, so that it is many times what any of them takes alone.
PATIENCE = 1200


def at_most(number: int) -> int:
    """``number``, or what MURP_EXAMPLES allows where that is less (see conftest.py)."""
    return min(number, settings.default.max_examples)
