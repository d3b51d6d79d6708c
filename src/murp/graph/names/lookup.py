"""Many names at once as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import UnknownNameError
from murp.graph.known_facts import Indices
from murp.graph.names.tidy import tidy_array
from murp.graph.names.vocabulary import Vocabulary


class Numbers:
    """The numbers of many things of a vocabulary by id or, where only one has it, by name."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.names, self.named = pa.array([], pa.large_string()), np.zeros(0, np.int64)
        if vocabulary.names is not None:
            counts = vocabulary.names.drop_null().value_counts()
            once = pc.filter(counts.field("values"), pc.equal(counts.field("counts"), 1))
            self.names, self.named = once, pc.index_in(once, value_set=vocabulary.names).to_numpy(False)

    def find(self, texts: Sequence[str] | pa.Array, where: Callable[[int], str]) -> Indices:
        """The numbers of ``texts``; the first that is unknown or ambiguous is an error that says ``where`` it is."""
        given = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
        column = tidy_array(given)
        by_id = pc.index_in(column, value_set=self.vocabulary.ids)
        found: Indices = pc.fill_null(by_id, -1).to_numpy(False).astype(np.int64)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            by_name = pc.index_in(column.take(pa.array(missing)), value_set=self.names)
            rows = pc.fill_null(by_name, -1).to_numpy(False)
            found[missing[rows >= 0]] = self.named[rows[rows >= 0]]
        for row in missing.tolist():
            if found[row] < 0:
                try:
                    # Graphs of earlier runs may have names with blanks, which are found as they stand.
                    found[row] = self.vocabulary.find(given[row].as_py())
                except UnknownNameError as error:
                    raise UnknownNameError(f"{where(row)}: {error}") from None
        return found
