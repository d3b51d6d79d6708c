"""Find a text among millions without comparing it with all of them: at most 8 bytes beside each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.graph.names.vocabulary import text_buffers
from murp.kernels import numba_text_lookup as loops


class TextLookup:
    """Texts (n), large strings of which some may be null, in 2ᵇ lists by the first b bits of their hashes.

    2ᵇ ≤ n < 2ᵇ⁺¹, so that a list has one or two different texts on average. A text is compared with those of its list.
    """

    def __init__(self, texts: pa.Array) -> None:
        self._offsets, self._data = text_buffers(texts)
        self._bits = max(1, len(texts).bit_length() - 1)
        chosen = np.empty(len(texts), np.int32)
        loops.choose(self._data, self._offsets, pc.is_valid(texts).to_numpy(False), self._bits, chosen)
        self.starts = np.zeros((1 << self._bits) + 1, np.int32)
        loops.count(chosen, self.starts)
        self.order = np.empty(self.starts[-1], np.int32)
        loops.sort(chosen, self.starts, self.order)

    def of(self, text: str, most: int) -> list[int]:
        """Which texts are equal to ``text``, in ascending order; the first ``most`` of them."""
        try:
            wanted = np.frombuffer(text.encode(), np.uint8)
        except UnicodeEncodeError:  # a lone surrogate, which no text here has
            return []
        found = np.empty(most, np.int64)
        many = loops.find(self._data, self._offsets, self.starts, self.order, self._bits, wanted, found)
        places: list[int] = found[:many].tolist()
        return places
