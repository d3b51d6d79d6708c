"""Columns of ids and names from columns of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.graph import Indices, Vocabulary


def ids(vocabulary: Vocabulary, indices: Indices) -> pa.Array:
    """Ids as the data files write them."""
    return vocabulary.ids.take(pa.array(indices))


def names(vocabulary: Vocabulary, indices: Indices) -> pa.Array:
    """Readable names, ids where there are none."""
    own = ids(vocabulary, indices)
    return own if vocabulary.names is None else pc.coalesce(vocabulary.names.take(pa.array(indices)), own)


def distinct_names(vocabulary: Vocabulary, indices: Indices) -> list[str]:
    """Readable names, with the id where another thing of the vocabulary has the same."""
    own = names(vocabulary, indices)
    everyone = names(vocabulary, np.arange(len(vocabulary)))
    counts = everyone.filter(pc.is_in(everyone, value_set=own.unique())).value_counts()
    shared = set(pc.filter(counts.field("values"), pc.greater(counts.field("counts"), 1)).to_pylist())
    return [
        vocabulary.label(i) if name in shared else name
        for i, name in zip(indices.tolist(), own.to_pylist(), strict=True)
    ]
