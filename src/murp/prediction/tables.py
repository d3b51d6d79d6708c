"""Columns of ids and names from columns of numbers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from murp.evaluation.filter import Indices
from murp.graph import Vocabulary


def ids(vocabulary: Vocabulary, indices: Indices) -> pa.Array:
    """Ids as the data files write them."""
    return vocabulary.ids.take(pa.array(indices))


def names(vocabulary: Vocabulary, indices: Indices) -> pa.Array:
    """Readable names, ids where there are none."""
    own = ids(vocabulary, indices)
    return own if vocabulary.names is None else pc.coalesce(vocabulary.names.take(pa.array(indices)), own)
