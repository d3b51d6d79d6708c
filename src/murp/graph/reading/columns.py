"""Which columns are head, relation and tail: recognised by title, given by the user, or not known.

A row is a header if it names all three roles with known words, in any order, with or without other columns. If several
columns could have a role, the more specific pair is used (``head`` and ``tail`` before ``start`` and ``end``, which may
be dates); if both are equally specific, neither is chosen. A row that looks like a header but is not recognised is
never read as a fact: it is refused, and the user must say what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

from murp.errors import DataError

COLUMNS = ("head", "relation", "tail")

# Words for both ends of a fact, and how telling they are: 0 most.
_ENDS = {
    0: "head/tail subject/object subj/obj",
    1: "source/target src/dst src/tgt src/trg src/dest source/destination source/dest origin/destination "
    "entity1/entity2 entitya/entityb ent1/ent2 e1/e2 node1/node2 nodea/nodeb n1/n2 vertex1/vertex2 v1/v2 id1/id2 "
    "arg1/arg2 concept1/concept2 cui1/cui2 term1/term2 item1/item2 lhs/rhs left/right",
    2: "from/to start/end begin/end x/y",  # x and y only with a mark
}
_END_MARKS = (
    *("", "s", "entity", "node", "vertex", "id", "entityid", "nodeid", "vertexid", "uri", "iri", "key"),
    *("index", "idx", "name", "entityname", "nodename", "label"),
)
_RELATIONS = (
    *((0, word) for word in ("relation", "rel", "relationship", "predicate", "pred")),
    *((1, word) for word in ("edge", "link", "property", "verb", "rela", "association", "interaction", "connection")),
)
_RELATION_MARKS = ("", "s", "type", "id", "uri", "iri", "kind", "name", "label", "index", "idx")
_BARE_RELATIONS = ((2, "type"), (2, "label"), (2, "kind"), (2, "typename"), (2, "typeid"))
_LETTERS = {"h": "head", "r": "relation", "t": "tail", "s": "head", "p": "relation", "o": "tail"}

# What titles of columns are made of; facts are so seldom that asking is no burden.
_TITLE_WORDS = frozenset(
    [
        "head",
        "tail",
        "subject",
        "object",
        "predicate",
        "relation",
        "relations",
        "rel",
        "relationship",
        "source",
        "target",
        "src",
        "dst",
        "from",
        "to",
        "start",
        "end",
        "entity",
        "entities",
        "node",
        "nodes",
        "id",
        "ids",
        "type",
        "types",
        "label",
        "labels",
        "name",
        "names",
        "edge",
        "link",
        "property",
        "key",
        "uri",
        "iri",
        "url",
        "weight",
        "date",
        "time",
        "timestamp",
        "year",
        "score",
        "confidence",
        "probability",
        "count",
        "index",
        "idx",
        "col",
        "column",
        "field",
        "value",
        "kind",
        "category",
        "class",
        "vertex",
        "begin",
        "origin",
        "destination",
        "dest",
        "verb",
        "subj",
        "obj",
        "pred",
        "left",
        "right",
        "lhs",
        "rhs",
        "arg",
        "fact",
        "triple",
        "row",
    ]
)

# Its marks may stand behind a property's name, but rdf:type is no title.
_NEO4J = re.compile(r":(START_ID|END_ID)\b|^:(TYPE|ID|LABEL|IGNORE)\b")
_NUMBER = re.compile("[1-9][0-9]{0,6}")

Strength = tuple[int, int]
Value = TypeVar("Value")


def _end_families() -> dict[tuple[str, str], Strength]:
    found: dict[tuple[str, str], Strength] = {}
    pairs = [(rank, pair) for rank, text in _ENDS.items() for pair in text.split()]
    for (rank, pair), (place, mark) in product(pairs, enumerate(_END_MARKS)):
        head, _, tail = pair.partition("/")
        if len(head) > 1 or len(mark) > 1:
            found.setdefault((head + mark, tail + mark), (rank, place))
            if mark and mark != "s":
                found.setdefault((mark + head, mark + tail), (rank, place))
    return found


def _relation_words() -> dict[str, Strength]:
    words = {word + mark: (rank, place) for rank, word in _RELATIONS for place, mark in enumerate(_RELATION_MARKS)}
    return words | {word: (rank, 0) for rank, word in _BARE_RELATIONS}


_FAMILIES = _end_families()
_RELATION_WORDS = _relation_words()
_ROLES = {
    **{head: "head" for head, _ in _FAMILIES},
    **{tail: "tail" for _, tail in _FAMILIES},
    **dict.fromkeys(_RELATION_WORDS, "relation"),
    **_LETTERS,
}


@dataclass(frozen=True)
class Columns:
    """The user's options for columns: which is which, by title or by number from 1, and whether there is no header."""

    chosen: Mapping[str, str] = field(default_factory=dict)
    header: bool = True

    @classmethod
    def parse(cls, text: str = "", *, header: bool = True) -> Columns:
        """From ``head=from,relation=kind,tail=to``; nothing: by their titles, or in this order."""
        if not text.strip():
            return cls(header=header)
        pairs = [part.partition("=") for part in text.split(",")]
        chosen = {role.strip().lower(): title.strip() for role, _, title in pairs}
        if len(pairs) != 3 or set(chosen) != set(COLUMNS) or not all(chosen.values()):
            raise DataError(
                f"columns are given as head=…,relation=…,tail=…, each by its title or its number from 1, not {text!r}."
            )
        return cls(chosen, header)

    @classmethod
    def of(cls, columns: object = None, *, header: bool = True) -> Columns:
        """From Python: None, the text of the command line, a mapping of roles, or three in order."""
        if columns is None or isinstance(columns, str):
            return cls.parse(columns or "", header=header)
        if isinstance(columns, Mapping):
            chosen = {str(role): _title(title) for role, title in columns.items()}
        elif isinstance(columns, Iterable):
            chosen = dict(zip(COLUMNS, map(_title, columns), strict=False))
        else:
            chosen = {}
        if set(chosen) != set(COLUMNS):
            raise DataError(f"give three columns (head, relation, tail), each by name or number, not {columns!r}.")
        return cls(chosen, header)

    def __str__(self) -> str:
        return ",".join(f"{role}={self.chosen[role]}" for role in COLUMNS) if self.chosen else ""

    def numbers(self) -> tuple[int, int, int] | None:
        """The places that were given by number, from 0; None unless all three are numbers."""
        if not self.chosen or not all(_NUMBER.fullmatch(title) for title in self.chosen.values()):
            return None
        head, relation, tail = (int(self.chosen[role]) - 1 for role in COLUMNS)
        return head, relation, tail

    def find(self, titles: Sequence[str], where: str) -> tuple[int, int, int] | None:
        """The positions of the three roles among ``titles``; None if there are no options and the titles are not
        recognised."""
        if not self.chosen:
            return role_positions(titles)
        found = []
        for role in COLUMNS:
            title = self.chosen[role]
            places = [i for i, one in enumerate(titles) if one.strip() == title]
            places = places or [i for i, one in enumerate(titles) if _word(one) == _word(title)]
            if not places and _NUMBER.fullmatch(title):
                places = [int(title) - 1]
            if len(places) != 1 or places[0] >= len(titles):
                many = "several columns are" if len(places) > 1 else "no column is"
                raise DataError(f"{where}: {many} titled {title!r}. There are {_quoted(titles)}.")
            found += places
        if len(set(found)) < 3:
            raise DataError(f"{where}: head, relation and tail must be three columns, not {str(self)!r}.")
        return found[0], found[1], found[2]


EACH_BY_TITLE = Columns()


def role_positions(titles: Sequence[str]) -> tuple[int, int, int] | None:
    """The positions of head, relation and tail among ``titles``; None unless they are clear."""
    words = [_word(title) for title in titles]
    if letters := _by_letters(words):
        return letters
    ends = [
        (strength, (words.index(head), words.index(tail)))
        for (head, tail), strength in _FAMILIES.items()
        if words.count(head) == words.count(tail) == 1
    ]
    relations = [(_RELATION_WORDS[word], place) for place, word in enumerate(words) if word in _RELATION_WORDS]
    chosen = _strongest(ends) if ends else _mixed(words)
    relation = _strongest(relations)
    return None if chosen is None or relation is None else (chosen[0], relation, chosen[1])


def role_of(title: str) -> str | None:
    """The role that a title names."""
    return _ROLES.get(_word(title))


def looks_like_header(fields: Sequence[str]) -> bool:
    """Whether a row that is not understood seems to hold titles: two of them are words that titles are made of."""
    if any(_NEO4J.search(one.strip()) for one in fields):
        return True
    return sum(_is_title(one) for one in fields) >= 2


def not_understood(
    where: str, fields: Sequence[str], why: str = "looks like a header and is not understood"
) -> DataError:
    """The error that shows the row and the two solutions."""
    return DataError(
        f"{where}: the first row {why}: {_quoted(fields)}. If it is a header, say which column is which: --columns "
        "head=…,relation=…,tail=… (titles or numbers; in Python columns=…). If it is a fact: --no-header "
        "(header=False)."
    )


def by_position(titles: Sequence[str]) -> bool:
    """Whether three titles mean nothing (``a, b, c``; ``0, 1, 2``; ``column_1`` …), so that their order is used."""
    return len(titles) == 3 and all(
        re.fullmatch(r"[a-z]|(col(umn)?|f|c|v|x)?_?[0-9]+|", t.strip().lower()) for t in titles
    )


def left_out(titles: Sequence[str], used: Sequence[int]) -> list[str]:
    """The titles of the other columns."""
    return [title.strip() for i, title in enumerate(titles) if i not in used]


def _title(title: object) -> str:
    # Numbers of Python count from 0, those of the command line from 1.
    return str(title + 1) if isinstance(title, int) and not isinstance(title, bool) else str(title)


def _word(title: str) -> str:
    """A title without differences of spelling: case, spaces, underscores, Neo4j's marks, a comment's #."""
    text = title.strip().lstrip("#").strip()
    if mark := _NEO4J.search(text):
        text = mark[1] or mark[2]
    return re.sub(r"[\W_]+", "", text).lower()


def _by_letters(words: Sequence[str]) -> tuple[int, int, int] | None:
    """``h, r, t`` or ``s, p, o``: letters count where all titles are."""
    if len(words) != 3 or {_LETTERS.get(word) for word in words} != set(COLUMNS):
        return None
    roles = [_LETTERS[word] for word in words]
    return roles.index("head"), roles.index("relation"), roles.index("tail")


def _strongest(found: Sequence[tuple[Strength, Value]]) -> Value | None:
    """The value of the lowest strength; None if there is none, or several."""
    lowest = min((strength for strength, _ in found), default=None)
    best = {value for strength, value in found if strength == lowest}
    return best.pop() if len(best) == 1 else None


def _mixed(words: Sequence[str]) -> tuple[int, int] | None:
    """Ends of two families (``source`` and ``object``), where each is the only word for its role."""
    places = [
        [i for i, word in enumerate(words) if len(word) > 1 and _ROLES.get(word) == role] for role in ("head", "tail")
    ]
    return (places[0][0], places[1][0]) if all(len(place) == 1 for place in places) else None


def _is_title(field: str) -> bool:
    if re.search("[0-9]", field):
        return False  # entity_17 and e1 are names as often as titles
    if len(_word(field)) > 1 and role_of(field):
        return True
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+", field)]
    return any(part in _TITLE_WORDS for part in parts) and all(len(part) == 1 or part in _TITLE_WORDS for part in parts)


def _quoted(titles: Sequence[str]) -> str:
    shown = [repr(title[:40]) for title in titles[:20]]
    return ", ".join([*shown, *(["…"] if len(titles) > 20 else [])])
