"""Of the processes of a test run that need the same kernel at the same time one compiles it; the others wait for that.

On a new machine all of them start without compiled code. The step alone takes a processor 12 seconds to compile, for
each type of number, and each process would spend them. Kernels are locked one by one, by a file beside their code. A
kernel holds its lock while those it calls are compiled; none calls itself, so that nobody waits for each other.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from murp import compiling

try:
    import fcntl
except ImportError:  # every process compiles for itself
    fcntl = None  # type: ignore[assignment]

_held: Counter[str] = Counter()


def share() -> None:
    """From now on this process waits for kernels that others compile."""
    alone = Dispatcher.compile

    def together(dispatcher: Any, signature: Any) -> Any:
        kept = getattr(dispatcher, "_cache", None)
        if not isinstance(kept, compiling._Cache) or fcntl is None:
            return alone(dispatcher, signature)
        # Numba's own lock first: a thread of this process that has it may need this kernel.
        with global_compiler_lock, _locked(kept._cache_file._index_path):
            return alone(dispatcher, signature)

    Dispatcher.compile = together


@contextlib.contextmanager
def _locked(index: str) -> Iterator[None]:
    """No other process has this; where nothing can be locked, any may."""
    with contextlib.ExitStack() as stack:
        if not _held[index]:
            with contextlib.suppress(OSError):
                os.makedirs(os.path.dirname(index), exist_ok=True)
                handle = stack.enter_context(open(f"{index}.lock", "ab"))
                fcntl.flock(handle, fcntl.LOCK_EX)
        _held[index] += 1
        try:
            yield
        finally:
            _held[index] -= 1
