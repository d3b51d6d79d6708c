"""Reuse memory that a step has freed.

Rows and gradients of a step are some megabytes each. The C library returns such blocks to the system when they are
freed, and the system clears every page before it gives it out again. This takes up to half of the work of a step on the
CPU. So an engine keeps freed memory for its next step.
"""

from __future__ import annotations

import ctypes
from functools import cache

# Numbers of the GNU C library: malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGEST = 2**25  # bytes of a block that is kept: no version of the library allows more; larger ones are returned
KEPT = 2**29  # bytes that are free at the end of the heap and stay there


@cache
def keep_freed() -> bool:
    """From now on keep freed memory in this process. Returns whether the C library can do that."""
    try:
        option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another system's library
        return False
    return bool(option(MMAP_THRESHOLD, LARGEST)) and bool(option(TRIM_THRESHOLD, KEPT))
