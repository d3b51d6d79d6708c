"""Links to the headings of a page, and a table of contents made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def anchor(title: str) -> str:
    """What GitHub and the documentation site call a heading in a link: ``Table 1: norms`` → ``table-1-norms``."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def link(title: str) -> str:
    """A heading of the same page as a link in Markdown."""
    return f"[{title}](#{anchor(title)})"


def contents(titles: Iterable[str]) -> str:
    """The headings as a list of links."""
    return "\n".join(f"- {link(title)}" for title in titles)
