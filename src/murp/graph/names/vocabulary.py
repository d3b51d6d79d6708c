"""Names of entities and relations: from index to name and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import UnknownNameError
from murp.graph.names.spelling import Spelling
from murp.graph.names.tidy import tidy
from murp.paths import not_text

PLURALS = {"entity": "entities", "relation": "relations"}
FEW = 20  # names that an error can list
HASHED = 2**20  # ids at a time, for a digest
COMPARED = 200_000  # names for a typing error; of more only those with the same first letter


class Vocabulary:
    """The ids of one kind of thing in index order, with readable names and glosses where known.

    ``kind`` ("entity" or "relation") is how errors speak of it. Ids are unique; names need not be
    (two people called *John Smith*), so an interface shows both. Held as Arrow arrays: ten million
    names cost their bytes, not ten million Python objects.
    """

    def __init__(
        self,
        kind: str,
        ids: pa.Array | Sequence[str],
        names: pa.Array | Sequence[str | None] | None = None,
        glosses: pa.Array | Sequence[str | None] | None = None,
    ) -> None:
        self.kind = kind
        self.ids = _strings(ids)
        self.names = None if names is None else _strings(names)
        self.glosses = None if glosses is None else _strings(glosses)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        first = [repr(self.id(i)) for i in range(min(3, len(self)))]
        ids = ", ".join([*first, *(["…"] if len(self) > 3 else [])])
        return f"Vocabulary({counted({PLURALS[self.kind]: len(self)})}{': ' if ids else ''}{ids})"

    def digest(self) -> str:
        """What tells these ids, in their order, from others."""
        found = hashlib.blake2b(digest_size=8)
        _, ends, text = self.ids.buffers()
        if len(self.ids):
            places = np.frombuffer(ends, np.int64)[self.ids.offset : self.ids.offset + len(self.ids) + 1]
            for start in range(0, len(places), HASHED):
                found.update((places[start : start + HASHED] - places[0]).data)
            if text is not None:
                found.update(memoryview(text)[places[0] : places[-1]])
        return found.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return bool(self.table().equals(other.table()))

    __hash__ = None  # type: ignore[assignment]

    def id(self, index: int) -> str:
        """The id of one entity or relation, as the data files write it."""
        return str(self.ids[int(index)].as_py())

    def name(self, index: int) -> str:
        """Its readable name; the id if there is none."""
        name = None if self.names is None else self.names[int(index)].as_py()
        return self.id(index) if name is None else str(name)

    def label(self, index: int) -> str:
        """Name and id together, ``breathe.v.01 [00001740]``; the id alone where they are the same."""
        name, id = self.name(index), self.id(index)
        return id if name == id else f"{name} [{id}]"

    def gloss(self, index: int) -> str | None:
        """What the name means, where the data says."""
        return None if self.glosses is None else self.glosses[int(index)].as_py()

    def find(self, text: str) -> int:
        """Index of the thing whose id or name is ``text``, as it stands or by the rule for names.

        Raises :class:`UnknownNameError` naming the closest matches if there is none, or listing
        the ids if several things share the name.
        """
        if (why := not_text(text)) is not None:
            raise UnknownNameError(f"unknown {self.kind} {text!r}: it {why}.")
        index = pc.index(self.ids, text).as_py()
        if index >= 0:
            return int(index)
        if (other := tidy(text)) not in ("", text):
            return self.find(other)
        if self.names is not None:
            matches = np.flatnonzero(pc.fill_null(pc.equal(self.names, text), False).to_numpy(False))
            if len(matches) == 1:
                return int(matches[0])
            if len(matches) > 1:
                shown = ", ".join(self.id(i) for i in matches[:10]) + (", …" if len(matches) > 10 else "")
                raise UnknownNameError(
                    f"{self.kind} name {text!r} is ambiguous: {len(matches)} ids share it ({shown})."
                    " Give the id instead."
                )
        closest = self.closest(text)
        hint = f" Closest: {', '.join(closest)}." if closest else ""
        if not closest and 0 < len(self) <= FEW:
            hint = f" Choose from {', '.join(map(self.label, range(len(self))))}."
        raise UnknownNameError(f"unknown {self.kind} {text!r}.{hint}")

    def closest(self, text: str, n: int = 5) -> list[str]:
        """Up to ``n`` labels that ``text`` may have been meant for, best first."""
        lowered = self._lowered()
        wanted = text.lower()
        # Names that contain the text come first, shortest first; edit distance serves the typing errors.
        inside: Iterable[int] = np.flatnonzero(pc.match_substring(lowered, wanted).to_numpy(False)) if wanted else ()
        found = sorted((int(i) for i in inside), key=lambda i: (len(self.name(i)), i))[:n]
        if len(found) < n:
            if len(self) <= COMPARED:
                places, spelling = self._spelling
            else:
                pool = np.flatnonzero(pc.starts_with(lowered, wanted[:1]).to_numpy(False))[:COMPARED]
                places, spelling = _spelling(pool, lowered)
            near = spelling.closest(wanted, n, cutoff=0.6)
            found += [places[name] for name in near if places[name] not in found]
        return [self.label(i) for i in found[:n]]

    def _lowered(self) -> pa.Array:
        return pc.utf8_lower(self.ids if self.names is None else pc.coalesce(self.names, self.ids))

    @cached_property
    def _spelling(self) -> tuple[dict[str, int], Spelling]:
        """All names, kept ready for the next typing error."""
        return _spelling(np.arange(len(self)), self._lowered())

    def table(self) -> pa.Table:
        """Columns ``id`` and, where known, ``name`` and ``gloss``."""
        columns = {"id": self.ids}
        if self.names is not None:
            columns["name"] = self.names
        if self.glosses is not None:
            columns["gloss"] = self.glosses
        return pa.table(columns)

    @classmethod
    def from_table(cls, kind: str, table: pa.Table) -> Vocabulary:
        """Inverse of :meth:`table`."""
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        return cls(kind, columns["id"], columns.get("name"), columns.get("gloss"))


def counted(counts: Mapping[str, int]) -> str:
    """``78 entities, 1 relation, 148 train``: numbers with their names, one of a thing in the singular."""
    singular = {"facts": "fact", **{many: one for one, many in PLURALS.items()}}
    return ", ".join(f"{count:,} {singular.get(name, name) if count == 1 else name}" for name, count in counts.items())


def text_buffers(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets (n + 1) and bytes of large strings."""
    _, offsets, data = texts.buffers()
    from_first = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return from_first, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _spelling(pool: NDArray[np.int64], lowered: pa.Array) -> tuple[dict[str, int], Spelling]:
    """Each distinct name among those at ``pool`` with its first index, and all of them ready to be compared."""
    places: dict[str, int] = {}
    for i, name in zip(pool.tolist(), lowered.take(pa.array(pool)).to_pylist(), strict=True):
        places.setdefault(name, i)
    return places, Spelling(list(places))


def _strings(values: pa.Array | Sequence[str | None]) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values if values.type == pa.large_string() else values.cast(pa.large_string())
    return pa.array(values, type=pa.large_string())
