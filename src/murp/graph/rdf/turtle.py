"""Plain Turtle as columns: subjects, predicates, objects.

Plain are names with a prefix, most IRIs, blank nodes with a name, and strings without escapes. Nothing is nested, and
all prefixes stand before the first statement. A block of plain statements is cut at its blanks, all at once. From the
first block with anything else on, a parser of the whole language reads the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.graph.rdf.ontology import RDF
from murp.graph.reading.columns import COLUMNS

_NAME = "[A-Za-z0-9_][A-Za-z0-9_-]*"
# Nothing that a parser may refuse or shorten: no port, no query, no step that begins with a dot.
_IRI = rf"[a-z]+://[A-Za-z0-9.-]+(?:/{_NAME}(?:\.[A-Za-z0-9_-]+)*)*(?:[/#](?:{_NAME})?)?"
_STRING = r'"[^"\\\x00-\x1f\x7f\x{fffe}\x{ffff}]*"(?:@[a-z]{2,8})?'
_PREFIX = re.compile(rf"@prefix ([A-Za-z][A-Za-z0-9_-]*)?: <({_IRI})> \.\n+".encode())
_NAMED, _BRACKETS, _QUOTED, _NODE, _TYPE = range(5)  # the kinds of words: e:x, <http://e.org/x>, "x", _:x, a
_FORMS = {_NAMED: _NAME, _BRACKETS: _IRI, _QUOTED: _STRING, _NODE: f"_:{_NAME}"}
_MISPLACED = dict(zip(COLUMNS, ([_QUOTED, _TYPE], [_QUOTED, _NODE], [_TYPE]), strict=True))
_DOT, _SEMICOLON, _COMMA = b".;,"

Places = NDArray[np.int64]


def prefixes(data: bytes) -> tuple[dict[str, str], int]:
    """The prefixes that ``data`` begins with, and where the first thing after them is."""
    found, end = {}, 0
    while match := _PREFIX.match(data, end):
        found[(match[1] or b"").decode()] = match[2].decode()
        end = match.end()
    return found, end


def cut(data: bytes, known: Mapping[str, str]) -> pa.Table | None:
    """The statements of whole lines, names with the IRIs of their ``known`` prefixes; None if one is not plain."""
    text = np.frombuffer(data, np.uint8)
    if (words := _words(text)) is None or (columns := _columns(words[2])) is None:
        return None
    starts, ends, _ = words
    kind = _kinds(text, starts, ends)
    if any(np.isin(kind[one], _MISPLACED[role]).any() for role, one in columns.items()):
        return None
    written = _written(data, starts, ends, kind, known)
    return None if written is None else pa.table({role: written.take(pa.array(one)) for role, one in columns.items()})


def cut_at(data: bytes, places: Places) -> pa.Array:
    """The texts between neighbouring ``places`` of ``data``, which rise, and after the last; unchecked, no copy."""
    offsets = np.append(places, len(data))
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _words(text: NDArray[np.uint8]) -> tuple[Places, Places, NDArray[np.uint8]] | None:
    """Where the words begin and end, without the marks between them, and the mark after each; 0 if there is none."""
    blanks = np.flatnonzero((text == ord(" ")) | (text == ord("\n")))
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes):
        blanks = blanks[np.searchsorted(quotes, blanks) % 2 == 0]
    if not len(blanks) or blanks[-1] != len(text) - 1:
        return None
    starts = np.append(0, blanks[:-1] + 1)
    some = starts < blanks
    starts, ends = starts[some], blanks[some]
    last = text[ends - 1]
    alone = ends - starts == 1
    mark = alone & ((last == _DOT) | (last == _SEMICOLON) | (last == _COMMA))
    joined = ~alone & ((last == _SEMICOLON) | (last == _COMMA))
    following = np.append(np.where(mark, last, 0)[1:], 0).astype(np.uint8)
    if not len(starts) or mark[0] or ((mark | joined) & (following > 0)).any():
        return None
    after = np.where(joined, last, following)
    return starts[~mark], (ends - joined)[~mark], after[~mark]


def _columns(after: NDArray[np.uint8]) -> dict[str, Places] | None:
    """Which words are the subjects, the predicates and the objects, by the marks ``after`` them; None if a statement
    has too many words, or too few."""
    objects = np.flatnonzero(after)
    before = np.append(_DOT, after[objects[:-1]])
    whole, new = before == _DOT, before != _COMMA
    if after[-1] != _DOT or (np.diff(objects, prepend=-1) != 1 + new + whole).any():
        return None
    predicates = np.maximum.accumulate(np.where(new, objects - 1, 0))
    subjects = np.maximum.accumulate(np.where(whole, objects - 2, 0))
    return dict(zip(COLUMNS, (subjects, predicates, objects), strict=True))


def _kinds(text: NDArray[np.uint8], starts: Places, ends: Places) -> NDArray[np.int8]:
    """What each word looks like by its first and last bytes; all others are taken for names with a prefix."""
    first, last, alone = text[starts], text[ends - 1], ends - starts == 1
    kind = np.full(len(starts), _NAMED, np.int8)
    kind[(first == ord("<")) & (last == ord(">"))] = _BRACKETS
    kind[first == ord('"')] = _QUOTED
    kind[(first == ord("_")) & (text[starts + 1] == ord(":"))] = _NODE
    kind[alone & (first == ord("a"))] = _TYPE
    return kind


def _written(
    data: bytes, starts: Places, ends: Places, kind: NDArray[np.int8], known: Mapping[str, str]
) -> pa.Array | None:
    """The words as N-Triples has them, IRIs without brackets; None if one is not what its kind says."""
    colons = np.append(np.flatnonzero(np.frombuffer(data, np.uint8) == ord(":")), len(data))
    named, brackets = kind == _NAMED, kind == _BRACKETS
    colon = np.where(named, colons[np.searchsorted(colons, starts)], starts)
    if (colon >= ends).any():
        return None
    begin = np.where(kind == _TYPE, ends, colon + (named | brackets))
    pieces = cut_at(data, np.stack([starts, colon, begin, ends - brackets], axis=1).reshape(-1))
    rows = np.arange(len(starts)) * 4
    prefix, rest = pieces.take(pa.array(rows)), pieces.take(pa.array(rows + 2))
    try:
        rest.validate(full=True)  # all else is compared with what is known
    except pa.ArrowInvalid:  # not UTF-8
        return None
    for one, form in _FORMS.items():
        if not pc.all(
            pc.match_substring_regex(rest.filter(pa.array(kind == one)), f"^(?:{form})$"), min_count=0
        ).as_py():
            return None
    place = pc.index_in(prefix, value_set=pa.array(list(known), pa.large_string())).fill_null(-1).to_numpy()
    if (named & (place < 0)).any():
        return None
    beginnings = pa.array(["", f"{RDF}type", *known.values()], pa.large_string())
    which = np.where(named, place + 2, kind == _TYPE)
    return pc.binary_join_element_wise(beginnings.take(pa.array(which)), rest, pa.scalar("", pa.large_string()))
