"""The pages' files. A page is the frame that all share, with its own parts in it.

A part of a page begins with a comment that names it; the first comment gives the page's title and its script.
"""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template

_FIRST = re.compile(r"<!-- title: (?P<title>\w+); script: (?P<script>[\w.]+) -->\n")
_PART = re.compile(r"^<!-- (\w+) -->\n", re.MULTILINE)
FRAME = "frame.html"


def read(name: str) -> str:
    """A file of the page, markup with its frame around it."""
    text = files("murp.explorer").joinpath("page", name).read_text(encoding="utf-8")
    return framed(text) if name.endswith(".html") else text


def names() -> list[str]:
    """The files that a browser may ask for."""
    return [file.name for file in files("murp.explorer").joinpath("page").iterdir() if file.name != FRAME]


def framed(text: str) -> str:
    """The whole page of a file's parts."""
    first = _FIRST.match(text)
    assert first is not None, "a page begins with its title and script"
    _, *parts = _PART.split(text[first.end() :])
    own = dict(zip(parts[::2], parts[1::2], strict=True))
    frame = Template(files("murp.explorer").joinpath("page", FRAME).read_text(encoding="utf-8"))
    return frame.substitute({"search": "", "tools": "", **first.groupdict(), **own})
