"""Ctrl-C as a request: finish the chunk, write a checkpoint, then stop."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While active, the first SIGINT or SIGTERM sets ``requested``; a second one stops at once.

    A signal within ``again`` seconds of the first does not count as a second one.
    """

    def __init__(self, again: float = 0.0) -> None:
        self.requested = False
        self.again, self.asked = again, 0.0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        # Python delivers signals to the main thread alone; elsewhere there is nothing to catch.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.requested and now - self.asked >= self.again:
            raise KeyboardInterrupt
        if not self.requested:
            self.requested, self.asked = True, now
