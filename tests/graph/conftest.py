"""Settings of the property-based tests here."""

from __future__ import annotations

from hypothesis import settings

# A busy machine makes a slow example, not a wrong one.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
