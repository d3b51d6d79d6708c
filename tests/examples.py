"""How many examples a test looks at that says so itself."""

from __future__ import annotations

from hypothesis import settings


def at_most(number: int) -> int:
    """``number``, or what MURP_EXAMPLES allows where that is less (see conftest.py)."""
    return min(number, settings.default.max_examples)
