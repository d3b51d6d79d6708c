"""What a rank does with a command of a page; a module of its own, so that ranks import little."""

from __future__ import annotations

import os
from pathlib import Path

from test_commands_of_ranks import said


def said_in(folder: Path, words: list[str]) -> int:
    """Run a command in ``folder``, where the named datasets are under ``data``.

    A rank is forked from a process that may have been started in another test: it has another folder and environment.
    """
    os.chdir(folder)
    os.environ["MURP_DATA"] = str(folder / "data")
    return said(words, folder)
