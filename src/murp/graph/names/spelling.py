"""Suggestions for misspelt names."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

BUCKETS = 1024


class Spelling:
    """Distinct names, prepared for comparison with a typed text.

    The ratio by which difflib compares two strings is at most 2 · (characters they share) / (characters of both).
    That bound is cheap for all names at once; characters that fall into one bucket count as the same.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._lengths = np.array([len(name) for name in names], dtype=np.int64)
        letters = _buckets("".join(names))
        order = np.argsort(letters, kind="stable")
        # Which name each character is of, bucket after bucket.
        self._owners = np.repeat(np.arange(len(names)), self._lengths)[order]
        self._starts = np.searchsorted(letters[order], np.arange(BUCKETS + 1))

    def closest(self, text: str, n: int, cutoff: float) -> list[str]:
        """:func:`difflib.get_close_matches`: the ``n`` names of the highest ratio, best first, none below ``cutoff``.

        Names are compared by their bounds, the highest first, until these fall below the n-th best ratio found.
        """
        bounds = self._bounds(text)
        matcher = SequenceMatcher()
        matcher.set_seq2(text)
        best: list[tuple[float, str]] = []
        for i in np.argsort(-bounds, kind="stable"):
            if bounds[i] < cutoff or (len(best) == n and bounds[i] < best[0][0]):
                break
            matcher.set_seq1(self.names[i])
            ratio = matcher.ratio()
            if ratio >= cutoff:
                heapq.heappush(best, (ratio, self.names[i]))
                if len(best) > n:
                    heapq.heappop(best)
        return [name for _, name in sorted(best, reverse=True)]

    def _bounds(self, text: str) -> NDArray[np.float64]:
        """What no ratio with ``text`` exceeds, for every name."""
        wanted = np.bincount(_buckets(text), minlength=BUCKETS)
        shared = np.zeros(len(self.names), dtype=np.int64)
        for bucket in np.flatnonzero(wanted):
            owners = self._owners[self._starts[bucket] : self._starts[bucket + 1]]
            shared += np.minimum(np.bincount(owners, minlength=len(self.names)), wanted[bucket])
        # By a little too much: rounding must not put a bound below its ratio. Two empty strings are equal.
        length = self._lengths + len(text)
        return np.where(length > 0, 2 * shared / np.maximum(length, 1) + 1e-9, 1.0)


def _buckets(text: str) -> NDArray[np.uint16]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return (codes % BUCKETS).astype(np.uint16)
