"""What results of earlier versions say in texts alone. Newer results have fields, and nothing else reads texts."""

from __future__ import annotations

import re
from typing import Any


def failed_epoch(run: dict[str, Any]) -> int | None:
    """The epoch in which a stored run diverged; None if even its text does not say."""
    if "failed_epoch" in run:
        return int(run["failed_epoch"])
    found = re.search(r"epoch (\d+)", run["failed"])
    return int(found[1]) if found else None


def finding_text(text: str) -> str:
    """A finding in words that can be read alone; an old one refers to the audit's line before it."""
    return text.replace("hold such entities", "hold entities that training never saw")
