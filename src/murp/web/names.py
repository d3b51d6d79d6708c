"""Looking things up: by id or name, and by what has been typed so far."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import UnknownNameError
from murp.graph import Vocabulary
from murp.web.refusals import Refused

SHOWN = 10  # of those that share a name


class Index:
    """A vocabulary held ready for many questions by id or name."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.ids: list[str] = vocabulary.ids.to_pylist()
        self.names: list[str] = _readable(vocabulary).to_pylist()
        self._index = {name: i for i, name in enumerate(self.names)}
        self.shared: dict[str, list[int]] = {name: [] for name, count in Counter(self.names).items() if count > 1}
        for index, name in enumerate(self.names):
            if name in self.shared:
                self.shared[name].append(index)
        for name in self.shared:
            del self._index[name]
        self._index.update({id: i for i, id in enumerate(self.ids)})  # an id goes before a name

    def __len__(self) -> int:
        return len(self.ids)

    def known(self, text: str) -> int | None:
        """Index of the only thing whose id or name is ``text``, None if there is none or it is ``shared``."""
        return self._index.get(text)

    def reference(self, index: int) -> dict[str, str]:
        """How an answer speaks of it."""
        return {"id": self.ids[index], "name": self.names[index]}


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


class Suggestions:
    """What misspelt names may have meant: slow to find, so one at a time, in a thread."""

    def __init__(self) -> None:
        self.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.start)  # a child would wait for its parent's thread

    def start(self) -> None:
        """Have a thread as soon as one is needed."""
        self.thread = ThreadPoolExecutor(1, "murp-suggestions")

    async def closest(self, vocabulary: Vocabulary, text: str) -> list[str]:
        """The names nearest to ``text``."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, vocabulary.closest, text)


SUGGESTIONS = Suggestions()


async def find(names: Index, text: str, advice: Mapping[str, str], where: str = "") -> int:
    """The index of a name or id; an unknown one is refused with what may have been meant.

    ``advice`` says of an entity and of a relation how to look one up; ``where`` is put before the error.
    """
    index = names.known(text)
    if index is not None:
        return index
    vocabulary = names.vocabulary
    if text in names.shared:
        try:
            return vocabulary.find(text)
        except UnknownNameError as error:
            closest = [vocabulary.label(index) for index in names.shared[text][:SHOWN]]
            raise Refused(404, f"{where}{error}", "Ask by one of the ids.", closest) from None
    closest = await SUGGESTIONS.closest(vocabulary, text)
    hint = f" Closest: {', '.join(closest)}." if closest else ""
    raise Refused(404, f"{where}unknown {vocabulary.kind} {text!r}.{hint}", advice[vocabulary.kind], closest)
