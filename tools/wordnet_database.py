"""The WordNet database files, read: synsets with names and glosses, and the facts between them.

A data file has one synset a line (the manual page wndb(5) describes it)::

    offset lex_filenum ss_type w_cnt word lex_id [word lex_id ...] p_cnt [pointer ...] [frames ...] | gloss

and a pointer is ``symbol offset pos source/target``. An index file lists, for each lemma, the
offsets of its synsets in the order of their sense numbers.
"""

from __future__ import annotations

import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}

# A synset's key: the letter of its file and its offset there. The offset alone is not unique:
# 00001740 is entity.n.01, breathe.v.01, able.a.01 and a_cappella.r.01.
Key = tuple[str, str]
Fact = tuple[Key, str, Key]

# Pointer symbol -> (relation, whether the pointer runs from the relation's tail to its head).
# A relation and its inverse become one fact, whichever of the two pointers the database holds.
POINTERS: dict[str, tuple[str, bool]] = {
    "@": ("hypernym", False),
    "~": ("hypernym", True),
    "@i": ("instance_hypernym", False),
    "~i": ("instance_hypernym", True),
    "%p": ("has_part", False),
    "#p": ("has_part", True),
    "%m": ("member_meronym", False),
    "#m": ("member_meronym", True),
    "%s": ("has_substance", False),
    "#s": ("has_substance", True),
    ";c": ("synset_domain_topic_of", False),
    "-c": ("synset_domain_topic_of", True),
    "-r": ("member_of_domain_region", False),
    ";r": ("member_of_domain_region", True),
    "-u": ("member_of_domain_usage", False),
    ";u": ("member_of_domain_usage", True),
    "+": ("derivationally_related_form", False),
    "&": ("similar_to", False),
    "$": ("verb_group", False),
    "^": ("also_see", False),
    "*": ("entails", False),
    ">": ("causes", False),
    "=": ("attribute", False),
    "!": ("antonym", False),
    "\\": ("pertains_to", False),
    "<": ("participle_of", False),
}


@dataclass(frozen=True)
class Synset:
    """A set of synonyms with one meaning.

    ``id`` is lemma.pos.nn (``asia.n.01``): the first lemma in lower case, the part of speech
    (``s`` for satellite adjectives) and the sense number of that lemma. ``name`` is the first
    lemma as written, with blanks (``Asia``). ``gloss`` is the definition with its examples.
    """

    id: str
    name: str
    gloss: str

    @property
    def definition(self) -> str:
        """The gloss up to its first example: ``travel up, "We ascended the hill"`` gives ``travel up``."""
        return re.split(r'\s*[;:,]\s*"', self.gloss, maxsplit=1)[0]


@dataclass(frozen=True)
class Database:
    """Synsets by key in the order of the files, the facts between them sorted, the licence notice."""

    synsets: dict[Key, Synset]
    facts: list[Fact]
    licence: str


class DatabaseError(Exception):
    """A WordNet database that is missing or damaged; the message says what and where."""


def read(path: Path) -> Database:
    """Read the database from a folder with ``data.noun`` and its kin, or from a tarball that holds one.

    Pointers between words (derivation, antonyms …) become facts between their synsets; a
    synset's pointer to itself is dropped, and a fact the files state twice is kept once.
    """
    texts = _texts(path)
    senses = {pos: _senses(texts[f"index.{file}"]) for pos, file in FILES.items()}
    synsets: dict[Key, Synset] = {}
    facts: set[Fact] = set()
    for pos, file in FILES.items():
        for line_number, line in enumerate(texts[f"data.{file}"].splitlines(), start=1):
            if line.startswith("  "):  # the licence notice
                continue
            try:
                key, synset, pointers = _parse(line, pos, senses[pos])
            except (ValueError, IndexError, KeyError) as error:
                raise DatabaseError(f"data.{file}, line {line_number}: not a synset ({error!r})") from error
            synsets[key] = synset
            facts.update(pointers)
    dangling = next((fact for fact in sorted(facts) if fact[0] not in synsets or fact[2] not in synsets), None)
    if dangling:
        raise DatabaseError(f"pointer to a synset that is not in the database: {dangling}")
    return Database(synsets, sorted(facts), _licence(texts["data.noun"]))


def _parse(line: str, pos: str, senses: dict[str, list[str]]) -> tuple[Key, Synset, Iterator[Fact]]:
    head, _, gloss = line.partition("|")
    fields = head.split()
    offset, kind, words = fields[0], fields[2], int(fields[3], 16)
    # Adjectives carry their position in brackets: galore(ip).
    lemma = re.sub(r"\((a|p|ip)\)$", "", fields[4])
    sense = senses[lemma.lower()].index(offset) + 1
    key = (pos, offset)
    synset = Synset(f"{lemma.lower()}.{kind}.{sense:02d}", lemma.replace("_", " "), gloss.strip())
    start = 4 + 2 * words
    pointers = fields[start + 1 : start + 1 + 4 * int(fields[start])]
    if len(pointers) != 4 * int(fields[start]):
        raise ValueError("the line ends before its last pointer")
    return key, synset, _facts(key, pointers)


def _facts(source: Key, fields: list[str]) -> Iterator[Fact]:
    for symbol, offset, pos in zip(fields[0::4], fields[1::4], fields[2::4], strict=True):
        relation, reverse = POINTERS[symbol]
        target = ("a" if pos == "s" else pos, offset)
        if target != source:
            yield (target, relation, source) if reverse else (source, relation, target)


def _senses(index: str) -> dict[str, list[str]]:
    """Offsets of each lemma's synsets in order of sense: ``lemma pos n p_cnt symbols… n tagged offsets…``."""
    senses = {}
    for line in index.splitlines():
        if not line.startswith("  "):
            fields = line.split()
            senses[fields[0]] = fields[-int(fields[2]) :]
    return senses


def _licence(data: str) -> str:
    """The notice at the head of a data file, without its line numbers."""
    lines = [line for line in data.splitlines() if line.startswith("  ")]
    return "".join(re.sub(r"^  \d+ ?", "", line).rstrip() + "\n" for line in lines)


def _texts(path: Path) -> dict[str, str]:
    """The eight files' contents by name."""
    wanted = [f"{kind}.{file}" for kind in ("index", "data") for file in FILES.values()]
    found = _from_folder(path, wanted) if path.is_dir() else _from_tarball(path, wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise DatabaseError(
            f"{path} holds no {', '.join(missing)}: "
            "give the folder of WordNet 3.0's database files, or the WNdb tarball"
        )
    return found


def _from_folder(path: Path, wanted: list[str]) -> dict[str, str]:
    folder = path if (path / wanted[0]).exists() else path / "dict"
    return {name: (folder / name).read_text("latin-1") for name in wanted if (folder / name).exists()}


def _from_tarball(path: Path, wanted: list[str]) -> dict[str, str]:
    try:
        return dict(_members(path.read_bytes(), wanted))
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise DatabaseError(f"cannot read a WordNet database from {path}: {error}") from error


def _members(archive: bytes, wanted: list[str]) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = member.name.rpartition("/")[2]
            file = tar.extractfile(member)
            if file is None:
                continue
            if name in wanted:
                yield name, file.read().decode("latin-1")
            elif name.endswith(".tar.gz"):  # the npm package wraps Princeton's tarball
                yield from _members(file.read(), wanted)
