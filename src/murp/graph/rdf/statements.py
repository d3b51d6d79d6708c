"""RDF statements as columns: subjects, predicates, objects, a block at a time.

Lines of N-Triples in the usual form (``<s> <p> <o> .``) are cut at their spaces, all lines of a block at once. So is
plain Turtle (:mod:`murp.graph.rdf.turtle`). pyoxigraph parses everything else and writes it as such lines. IRIs have no
brackets, blank nodes as ``_:name``, literals as N-Triples writes them, in quotation marks.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import DataError
from murp.extras import need
from murp.graph.rdf import turtle
from murp.graph.reading.columns import COLUMNS
from murp.graph.reading.streams import LONGEST_LINE, Begun
from murp.graph.reading.xml_entities import Checked

_BLOCK = 1 << 21  # bytes: what is made of them stays in the caches
_QUADS = 50_000  # statements that pyoxigraph writes at a time
_AHEAD = 2  # blocks that wait to be cut
_LITERAL = r'^"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+(?:--[a-z]+)?|\^\^<[^<>"\s]*>)?$'
_NOT_IN_NAMES = r'[<>"\\\s]'
FORMATS = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".jsonld": "JSON_LD",
}


@dataclass
class Source:
    """A stream of RDF, its origin, and what is found while reading it."""

    stream: Any
    form: str
    where: str
    prefixes: dict[str, str] = field(default_factory=dict)
    left_out: int = 0  # statements about statements
    graphs: int = 0  # statements in a named graph

    def blocks(self) -> Iterator[pa.Table]:
        """The statements, a table a block, in the order of the source."""
        if self.form in (".nt", ".nq"):
            yield from self._lines()
        elif self.form == ".ttl":
            yield from self._turtle()
        else:
            stream = Checked(self.stream, self.where) if self.form == ".rdf" else self.stream
            yield from self._parsed(stream, 0)

    def _lines(self) -> Iterator[pa.Table]:
        with ThreadPoolExecutor(2) as pool:
            for cut, (data, begun) in _ahead(pool, self._whole_lines()):
                if cut is not None and bool(cut.right.all()):
                    yield cut.table
                else:
                    yield from self._parsed(io.BytesIO(data), begun)

    def _turtle(self) -> Iterator[pa.Table]:
        """Blocks that end with a statement, as long as they are plain. The rest, after the prefixes, is parsed."""
        rest, begun = bytes(self.stream.read(_BLOCK)), 0
        self.prefixes, end = turtle.prefixes(rest)
        opening, rest = rest[:end], rest[end:]
        # Outside of strings a dot between blanks ends a statement, and the strings of a plain block have no line ends.
        while (end := rest.rfind(b" .\n") + 3) > 2 and (table := turtle.cut(rest[:end], self.prefixes)) is not None:
            yield table
            begun += rest.count(b"\n", 0, end)
            rest = rest[end:] + bytes(self.stream.read(_BLOCK))
        if rest:
            yield from self._parsed(Begun(opening + rest, self.stream), begun)

    def _whole_lines(self) -> Iterator[tuple[bytes, int]]:
        """Blocks that end with a line, and how many lines are before each."""
        rest, begun = b"", 0
        while block := self.stream.read(_BLOCK):
            data = rest + bytes(block)
            cut = data.rfind(b"\n") + 1
            if not cut and len(data) > LONGEST_LINE:
                raise DataError(f"{self.where}, line {begun + 1}: longer than {LONGEST_LINE >> 20} MiB.")
            whole, rest = data[:cut], data[cut:]
            if whole:
                yield whole, begun
            begun += whole.count(b"\n")
        if rest.strip():
            yield rest + b"\n", begun

    def _parsed(self, stream: Any, begun: int) -> Iterator[pa.Table]:
        """What pyoxigraph reads, written as lines and cut."""
        ox = need("pyoxigraph", "rdf", f"{self.where}: reading RDF", DataError)
        try:
            base = None if self.form in (".nt", ".nq") else "file:///"
            parser = ox.parse(input=stream, format=getattr(ox.RdfFormat, FORMATS[self.form]), base_iri=base)
            with ThreadPoolExecutor(1) as pool:
                for cut, _ in _ahead(pool, self._written(ox, parser)):
                    if cut is None:
                        raise ValueError("what pyoxigraph writes is not as this version of murp knows it")
                    self.left_out += int((~cut.right).sum())
                    yield cut.table if cut.right.all() else cut.table.filter(pa.array(cut.right))
        except SyntaxError as error:
            # Its own words name the line of a block, and of XML none.
            line = "" if error.lineno is None else f", line {begun + error.lineno}"
            column = f", column {error.offset}" if line and error.offset else ""
            said = re.sub(r"^Parser error [^:]*: ", "", _said(error.msg))
            if "LoadDocumentCallback" in said:
                said = "its context lies elsewhere, and nothing is fetched. Put the context into the file"
            raise DataError(f"{self.where}{line}{column}: {said}. Fix it there, or write the file again.") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise DataError(f"{self.where}: cannot be read: {_said(error)}.") from error

    def _written(self, ox: Any, parser: Any) -> Iterator[tuple[bytes, int]]:
        """What a parser gives as lines of N-Triples."""
        count = 1  # at first: the prefixes of XML are gone at the end
        while True:
            quads = islice(parser, count)
            written = self._triples(ox, quads) if self.form in (".nq", ".trig", ".jsonld") else quads
            lines = ox.serialize(written, format=ox.RdfFormat.N_TRIPLES)
            if count == 1 or not lines:  # in between there may be prefixes that only a part of an XML file has
                self.prefixes |= parser.prefixes
            if not lines:
                return
            yield lines, 0
            count = _QUADS

    def _triples(self, ox: Any, quads: Iterator[Any]) -> Iterator[Any]:
        """Statements without their graphs, which are counted."""
        unnamed = ox.DefaultGraph()
        for quad in quads:
            self.graphs += quad.graph_name != unnamed
            yield quad.triple


Block = tuple[bytes, int]


def _ahead(pool: ThreadPoolExecutor, blocks: Iterator[Block]) -> Iterator[tuple[_Cut | None, Block]]:
    """Blocks with what they are cut into, in their order, while the next are being read: NumPy and Arrow do not hold
    Python's lock."""
    pending: deque[tuple[Future[_Cut | None], Block]] = deque()
    for block in blocks:
        pending.append((pool.submit(_cut, block[0]), block))
        if len(pending) > _AHEAD:
            future, done = pending.popleft()
            yield future.result(), done
    for future, done in pending:
        yield future.result(), done


@dataclass(frozen=True)
class _Cut:
    """Lines cut into subject, predicate and object, and which of them are statements as they should be."""

    table: pa.Table
    right: NDArray[np.bool_]


def _cut(data: bytes) -> _Cut | None:
    """The lines of ``data``, cut at their first two blanks and before `` .``; None if one has another form."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == 10)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    blanks = np.flatnonzero(text == 32)
    first = np.searchsorted(blanks, starts)
    if not len(ends) or first[-1] + 2 >= len(blanks):
        return None
    one, two, last = blanks[first], blanks[first + 1], ends - 2
    if not ((two < last) & (text[last] == 32) & (text[ends - 1] == 46)).all():
        return None
    bounds, brackets = [], 0
    for begin, end in ((starts, one), (one + 1, two), (two + 1, last)):
        if not (begin < end).all():
            return None
        bracket = (text[begin] == 60) & (text[end - 1] == 62)
        node = (text[begin] == 95) & (text[begin + 1] == 58)
        if not (bracket | node | (text[begin] == 34)).all():
            return None
        bounds += [begin + bracket, end - bracket]
        brackets += int(bracket.sum())
    columns = _strings(data, np.stack(bounds, axis=1))
    # Where there are no more brackets and blanks than those of the form, none stands within a name.
    counts = np.bincount(text, minlength=256)
    plain = counts[60] == counts[62] == brackets and counts[32] == 3 * len(ends)
    plain = plain and not counts[[9, 13, 34, 92]].any()
    if columns is None:
        return None
    return _Cut(pa.table(dict(zip(COLUMNS, columns, strict=True))), _right(columns, bool(plain)))


def _right(columns: list[pa.Array], plain: bool) -> NDArray[np.bool_]:
    """Whether subject and object are an IRI or a blank node, or the object a literal, and the predicate an IRI.

    ``plain``: nothing in them is what an IRI must not hold.
    """
    _, predicate, objects = columns
    wrong = [pc.starts_with(predicate, "_:")]
    if not plain:
        wrong += [pc.match_substring_regex(one, _NOT_IN_NAMES) for one in columns]
        unfit = pc.invert(pc.match_substring_regex(objects, _LITERAL))
        wrong[3] = pc.if_else(pc.starts_with(objects, '"'), unfit, wrong[3])
    right: NDArray[np.bool_] = ~np.logical_or.reduce([one.to_numpy(False) for one in wrong])
    return right


def _strings(data: bytes, bounds: NDArray[np.int64]) -> list[pa.Array] | None:
    """Three arrays of strings out of their bounds, which rise from row to row; None if they are not UTF-8."""
    pieces = turtle.cut_at(data, bounds.reshape(-1))
    rows = np.arange(len(bounds)) * 6
    columns = [pieces.take(pa.array(rows + 2 * place)) for place in range(3)]
    try:
        for column in columns:
            column.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return columns


def _said(error: object) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")
