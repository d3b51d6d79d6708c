"""Run folders near a path that is not a run folder, to suggest one."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

SHOWN = 8


def runs_near(path: Path) -> str:
    """A sentence with the run folders in ``path``, or beside it where it is no folder; empty if there are none.

    If the name of one is close to that of ``path``, only that one is named.
    """
    home = path if os.path.isdir(path) else path.parent
    try:
        found = sorted(name for name in os.listdir(home) if os.path.isfile(home / name / "config.toml"))
    except (OSError, ValueError):  # not to be read, or a name the system refuses
        return ""
    if not found:
        return ""
    if home != path and (close := difflib.get_close_matches(path.name, found, n=1)):
        return f" Did you mean {home / close[0]}?"
    names = ", ".join(str(home / name) for name in found[:SHOWN])
    return f" Run folders there: {names}{', …' if len(found) > SHOWN else '.'}"
