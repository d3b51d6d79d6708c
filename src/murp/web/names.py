"""Looking things up: by id or name, and by what has been typed so far."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import UnknownNameError
from murp.graph import Vocabulary
from murp.web.refusals import Refused

Found = TypeVar("Found")
SHOWN = 10  # of those that share a name
MANY = 2**20  # names: of more, a server keeps no copies of its own


class Index:
    """A vocabulary held ready for many questions by id or name."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.ids: Sequence[str] = vocabulary.ids.to_pylist()
        self.names: Sequence[str] = _readable(vocabulary).to_pylist()
        self._index = {name: i for i, name in enumerate(self.names)}
        self._shared: dict[str, list[int]] = {name: [] for name, count in Counter(self.names).items() if count > 1}
        for index, name in enumerate(self.names):
            if name in self._shared:
                self._shared[name].append(index)
        for name in self._shared:
            del self._index[name]
        self._index.update({id: i for i, id in enumerate(self.ids)})  # an id goes before a name

    def __len__(self) -> int:
        return len(self.ids)

    def known(self, text: str) -> int | None:
        """Index of the only thing whose id or name is ``text``, None if there is none or several share it."""
        return self._index.get(text)

    def sharing(self, text: str) -> list[int]:
        """Which things are called ``text``, which is no id, if they are several; the first of them."""
        return self._shared.get(text, [])[:SHOWN]

    def reference(self, index: int) -> dict[str, str]:
        """How an answer speaks of it."""
        return {"id": self.ids[index], "name": self.names[index]}


class LargeIndex(Index):
    """The same without Python's own copies: of ten million names ready within a second."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        from murp.graph.large.text_lookup import TextLookup  # Numba, which small graphs need not wait for

        self.vocabulary = vocabulary
        ids, names = vocabulary.ids, vocabulary.names
        self.ids, self.names = Column(ids, ids), Column(ids if names is None else names, ids)
        self._ids, self._names = TextLookup(ids), None if names is None else TextLookup(names)

    def known(self, text: str) -> int | None:
        found = self._ids.of(text, 1) or self._called(text, 2)
        return found[0] if len(found) == 1 else None

    def sharing(self, text: str) -> list[int]:
        found = self._called(text, SHOWN)
        return found if len(found) > 1 else []

    def _called(self, text: str, most: int) -> list[int]:
        return [] if self._names is None else self._names.of(text, most)


class Column(Sequence[str]):
    """Strings of Arrow, each made for Python when it is asked for; where one is null, that of ``instead``."""

    def __init__(self, values: pa.Array, instead: pa.Array) -> None:
        self.values, self.instead = values, instead

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Column: ...
    def __getitem__(self, index: int | slice) -> str | Column:
        if isinstance(index, slice):
            return Column(self.values[index], self.instead[index])
        text = self.values[int(index)].as_py()
        return str(self.instead[int(index)].as_py() if text is None else text)


def index_of(vocabulary: Vocabulary) -> Index:
    """A vocabulary to look names up in, of any size."""
    return LargeIndex(vocabulary) if len(vocabulary) > MANY else Index(vocabulary)


class Names(Index):
    """A vocabulary that can be searched too.

    ``weights`` (n) says how often each thing occurs; of equal matches the more frequent is offered first.
    """

    def __init__(self, vocabulary: Vocabulary, weights: NDArray[np.int64]) -> None:
        super().__init__(vocabulary)
        self.weights = weights
        self._columns: list[pa.Array] = [pc.utf8_lower(_readable(vocabulary))]
        if vocabulary.names is not None:
            self._columns.append(pc.utf8_lower(vocabulary.ids))
        self._glosses = None if vocabulary.glosses is None else pc.utf8_lower(vocabulary.glosses)

    def search(self, text: str, k: int) -> list[int]:
        """Up to ``k`` things whose name, id or gloss contains ``text``, whatever the case.

        Equal to the text come first, then beginning with it, then the others, last those with the text in their gloss;
        the most frequent first. Nothing typed yet: the most frequent of all.
        """
        typed = text.strip().lower()
        # 0 equal, 1 at the beginning, 2 inside, 3 in the gloss, 4 nowhere
        match = np.full(len(self), 4 if typed else 0)
        for column in self._columns if typed else ():
            position = pc.find_substring(column, typed).to_numpy(False)
            match = np.minimum(match, np.where(position < 0, 4, np.where(position == 0, 1, 2)))
            match[pc.equal(column, typed).to_numpy(False)] = 0
        if typed and self._glosses is not None:
            position = pc.fill_null(pc.find_substring(self._glosses, typed), -1).to_numpy(False)
            match = np.minimum(match, np.where(position < 0, 4, 3))
        found = np.flatnonzero(match < 4)
        order = np.lexsort((found, -self.weights[found], match[found]))
        return [int(i) for i in found[order[:k]]]


def _readable(vocabulary: Vocabulary) -> pa.Array:
    """The name of each thing, its id where it has none."""
    return vocabulary.ids if vocabulary.names is None else pc.coalesce(vocabulary.names, vocabulary.ids)


class Searches:
    """What looks through all names, for one that is unknown or shared: slow, so one at a time, in a thread."""

    def __init__(self) -> None:
        self.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.start)  # a child would wait for its parent's thread

    def start(self) -> None:
        """Have a thread as soon as one is needed."""
        self.thread = ThreadPoolExecutor(1, "murp-searches")

    async def run(self, search: Callable[[str], Found], text: str) -> Found:
        """What ``search`` finds for ``text``."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, search, text)


SEARCHES = Searches()


async def find(names: Index, text: str, advice: Mapping[str, str], where: str = "") -> int:
    """The index of a name or id; an unknown one is refused with what may have been meant.

    ``advice`` says of an entity and of a relation how to look one up; ``where`` is put before the error.
    """
    index = names.known(text)
    if index is not None:
        return index
    vocabulary = names.vocabulary
    if shared := names.sharing(text):
        try:
            return await SEARCHES.run(vocabulary.find, text)
        except UnknownNameError as error:
            closest = [vocabulary.label(index) for index in shared]
            raise Refused(404, f"{where}{error}", "Ask by one of the ids.", closest) from None
    closest = await SEARCHES.run(vocabulary.closest, text)
    hint = f" Closest: {', '.join(closest)}." if closest else ""
    raise Refused(404, f"{where}unknown {vocabulary.kind} {text!r}.{hint}", advice[vocabulary.kind], closest)
