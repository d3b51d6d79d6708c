"""A compiled loop over comma-separated text: see :mod:`murp.graph.large.pieces`."""

from __future__ import annotations

from typing import Any

from murp.compiling import announce, kernel

announce(__name__, "the reader of large files")

_QUOTE, _COMMA, _LF, _CR = 34, 44, 10, 13


@kernel
def last_row_end(data: Any, begin: int) -> int:
    """Where the last whole row of ``data`` ends, which begins with a row at ``begin``; 0 if there is none.

    As the columnar reader has it: a quote at the beginning of a field opens a quoted one, in which line ends do not
    count and two quotes are one; any other quote is an ordinary character.
    """
    end, quoted, opening, i = 0, False, True, begin
    while i < len(data):
        byte = data[i]
        if quoted:
            if byte == _QUOTE:
                if i + 1 < len(data) and data[i + 1] == _QUOTE:
                    i += 1
                else:
                    quoted = False
        elif byte in (_LF, _CR):
            if byte == _CR:
                if i + 1 == len(data):
                    break  # it may be half of a CRLF
                if data[i + 1] == _LF:
                    i += 1
            end = i + 1
            opening = True
        elif opening and byte == _QUOTE:
            quoted, opening = True, False
        else:
            opening = byte == _COMMA
        i += 1
    return end
