"""XML that would unpack itself: entities made of entities, or long ones, are refused before a parser sees them."""

from __future__ import annotations

import re
from typing import Any

from murp.errors import DataError
from murp.graph.reading.streams import Begun

_LONGEST_PROLOG = 1 << 20
_LONGEST_ENTITY = 1000
_DECLARATION = re.compile(rb"<!ENTITY\s+(%?\s*[^\s\"']+)\s+(\"[^\"]*\"|'[^']*'|[^>]*)")
_NESTED = re.compile(rb"[&%](?!#|amp;|lt;|gt;|quot;|apos;)")


class Checked(Begun):
    """A stream of XML whose declarations were looked at."""

    def __init__(self, stream: Any, where: str) -> None:
        begin = bytes(stream.read(_LONGEST_PROLOG))
        _check(begin, where)
        super().__init__(begin, stream)


def _check(begin: bytes, where: str) -> None:
    if b"\0" in begin[:1000]:
        raise DataError(f"{where}: not in UTF-8. Save it in the encoding UTF-8.")
    start = begin.find(b"<!DOCTYPE")
    if start < 0:
        if b"<!ENTITY" in begin or (len(begin) == _LONGEST_PROLOG and re.search(rb"<[A-Za-z_]", begin) is None):
            raise DataError(f"{where}: no element begins within {_LONGEST_PROLOG >> 20} MiB. Is it XML?")
        return
    root = re.compile(rb"<[A-Za-z_]").search(begin, start)
    if root is None:
        raise DataError(f"{where}: no element begins within {_LONGEST_PROLOG >> 20} MiB. Is it XML?")
    for name, value in _DECLARATION.findall(begin):
        if len(value) > _LONGEST_ENTITY or _NESTED.search(value) or name.startswith(b"%"):
            shown = name[:40].decode("utf-8", "replace")
            raise DataError(
                f"{where}: the entity {shown!r} is made of others or longer than {_LONGEST_ENTITY} characters, which "
                "could fill any memory. Write out what it stands for."
            )
