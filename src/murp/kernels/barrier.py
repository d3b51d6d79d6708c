"""A barrier: the threads of one compiled loop wait for each other.

They share an array of counters. Each takes parts of the work from one counter, arrives when none is left, and waits
until the last to arrive has done what only one may do. Waiting looks for some microseconds, which is how long the
others take where every thread has a processor; then it sleeps, so that a thread without one gets this one's.
"""

from __future__ import annotations

from typing import Any

from murp.compiling import kernel
from murp.kernels.intrinsics import pause, read, sleep_microseconds, take, write

# Counters that are written often lie apart by a line of the cache.
FIRST, SECOND, THREADS, SHARED, _ARRIVED, _ROUND = 0, 8, 16, 17, 24, 32
COUNTERS = 40
_LOOKS = 2000
_SLEEP = 50


@kernel
def arrive(counters: Any) -> bool:
    """Whether this thread is the last; it has to :func:`release` the others, which wait for that."""
    number = read(counters, _ROUND)
    if take(counters, _ARRIVED, 1) + 1 == read(counters, THREADS):
        write(counters, _ARRIVED, 0)
        return True
    for _ in range(_LOOKS):
        if read(counters, _ROUND) != number:
            return False
        pause()
    while read(counters, _ROUND) == number:
        sleep_microseconds(_SLEEP)
    return False


@kernel
def release(counters: Any) -> None:
    """Let the others go on."""
    take(counters, _ROUND, 1)


@kernel
def begin(counters: Any) -> None:
    """Wait until it is known how many threads there are."""
    while read(counters, THREADS) == 0:
        sleep_microseconds(_SLEEP)
