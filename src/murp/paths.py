"""What a path must be: text that a file can hold and, to be read, the path of a plain file."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

_OTHERS = {
    stat.S_ISDIR: "is a folder, where a file is wanted",
    stat.S_ISFIFO: "is a pipe, where a file is wanted (save what it gives as one)",
    stat.S_ISSOCK: "is a socket, where a file is wanted",
    stat.S_ISCHR: "is a device, where a file is wanted",
    stat.S_ISBLK: "is a device, where a file is wanted",
}


def not_a_file(path: Path) -> str | None:
    """Why ``path`` cannot be read as a file, to stand behind its name; None if it can, or where nothing is there.

    Reading a pipe would wait for its writer, and reading a device may never end.
    """
    if (why := not_text(os.fspath(path))) is not None:
        return why
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None  # whoever opens it will say what is wrong
    return next((words for test, words in _OTHERS.items() if test(mode)), None)


def not_text(text: str) -> str | None:
    """Why ``text`` cannot be written as UTF-8, to stand behind it; None if it can.

    Python stores bytes that the locale's encoding cannot decode as lone surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return _in_another_locale(text) or "holds bytes that are no UTF-8: choose another name"
    return None


def _in_another_locale(text: str) -> str | None:
    encoding = sys.getfilesystemencoding()
    try:
        os.fsencode(text).decode()
    except UnicodeError:
        return None
    return f"has characters that this locale (encoding {encoding}) does not have: set PYTHONUTF8=1"
