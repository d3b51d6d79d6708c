"""OBO, the line format of biomedical ontologies: stanzas of ``tag: value`` lines.

``is_a``, ``relationship``, ``instance_of`` and the parts of ``intersection_of`` are facts, as are ``is_a`` and
``inverse_of`` between relations. Names become names, definitions and synonyms glosses. Other tags are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from murp.errors import DataError
from murp.graph.findings import noticed
from murp.graph.rdf.labels import joined_gloss
from murp.graph.reading.columns import Columns
from murp.graph.reading.facts import Facts, names_of, triples_of
from murp.graph.reading.streams import text_lines

_STANZA = re.compile(r"\[(\w+)\]")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "W": " "}
_LINKS = ("is_a", "instance_of", "inverse_of", "transitive_over", "equivalent_to")
_TOLD = {"id", "name", "def", "synonym", "relationship", "intersection_of", *_LINKS}


def read(path: Path, columns: Columns) -> Facts:
    """The facts of all stanzas."""
    del columns
    facts: list[tuple[str, str, str]] = []
    lines: list[int] = []
    names: dict[str, tuple[str | None, str | None]] = {}
    relations: dict[str, tuple[str | None, str | None]] = {}
    others: Counter[str] = Counter()
    for kind, tags in _stanzas(path):
        id, name, gloss, synonyms = "", None, None, []
        for number, tag, value in tags:
            where = f"{path}, line {number}"
            if tag == "id":
                id = _words(value, where)[0]
            elif tag == "name":
                name = _unescaped(_bare(value)) or None
            elif tag in ("def", "synonym"):
                text = _text(value, where)
                gloss = text if tag == "def" else gloss
                synonyms += [text] if tag == "synonym" else []
            elif not id:
                raise DataError(f"{where}: {tag!r} stands before the id of its stanza. Begin a stanza with its id.")
            elif fact := _fact(id, tag, value, where):
                facts.append(fact)
                lines.append(number)
            elif tag not in _TOLD:
                others[tag] += 1
        if id and (name or gloss or synonyms):
            (relations if kind == "Typedef" else names)[id] = (name, joined_gloss(gloss, synonyms))
    heads, links, tails = zip(*facts, strict=True) if facts else ((), (), ())
    findings = noticed("further_tags", path.name, sum(others.values()), "line{s} with other tags left out", others)
    # Relations are entities too where facts are about them.
    return Facts(
        triples_of(heads, links, tails),
        lambda row: f"{path}, line {lines[row]}",
        names_of(names | relations),
        names_of(relations),
        findings,
    )


def _stanzas(path: Path) -> Iterator[tuple[str, list[tuple[int, str, str]]]]:
    """(kind, its lines as (number, tag, value)); the header of the file is passed over."""
    kind, tags = "", list[tuple[int, str, str]]()
    for number, raw in enumerate(text_lines(path), 1):
        line = _without_comment(raw).strip()
        if not line:
            continue
        try:
            line.encode()
        except UnicodeEncodeError:
            raise DataError(f"{path}, line {number}: not UTF-8. Save the file in the encoding UTF-8.") from None
        if begin := _STANZA.fullmatch(line):
            if kind:
                yield kind, tags
            kind, tags = begin[1], []
            continue
        tag, colon, value = line.partition(":")
        if not colon or not tag.strip():
            raise DataError(f"{path}, line {number}: not 'tag: value', but {line[:80]!r}. Is it an OBO file?")
        if kind:
            tags.append((number, tag.strip(), value.strip()))
    if kind:
        yield kind, tags


def _fact(id: str, tag: str, value: str, where: str) -> tuple[str, str, str] | None:
    if tag in _LINKS:
        return id, tag, _words(value, where)[0]
    if tag in ("relationship", "intersection_of"):
        words = _words(value, where)
        if len(words) == 1 and tag == "intersection_of":
            return id, "is_a", words[0]
        if len(words) < 2:
            raise DataError(f"{where}: a relationship is a relation and a term, not {value[:80]!r}.")
        return id, words[0], words[1]
    return None


def _words(value: str, where: str) -> list[str]:
    words = [_unescaped(word) for word in _bare(value).split()]
    if not words:
        raise DataError(f"{where}: has no value. Fill it in or remove the line.")
    return words


def _text(value: str, where: str) -> str:
    found = _QUOTED.match(value)
    if not found:
        raise DataError(f"{where}: a definition or synonym begins with a text in quotation marks, not {value[:80]!r}.")
    return _unescaped(found[1])


def _bare(value: str) -> str:
    """Without the qualifiers ``{…}`` at its end."""
    return re.sub(r"(?<!\\)\{[^{}]*\}\s*$", "", value).strip()


def _without_comment(line: str) -> str:
    """A line up to an exclamation mark that is neither escaped nor within quotation marks."""
    if "!" not in line:
        return line
    quoted, escaped = False, False
    for place, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == "!" and not quoted:
            return line[:place]
    return line


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)
