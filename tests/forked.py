"""A command in a process of its own that begins as a copy of this one, which has imported everything.

A new interpreter spends 2 to 4 processor seconds on imports. This one is for tests of signals, kills, terminals and
streams; tests of what is imported, and of how an interpreter ends, start a new one.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from examples import PATIENCE
from murp.cli.main import main


class Forked:
    """Like a ``Popen`` of ``murp`` with these words.

    Standard output and error go to the open files ``out`` and ``err``, or are told by :meth:`communicate`. The new
    process calls ``before`` first.
    """

    def __init__(
        self,
        *words: str | Path,
        out: int | None = None,
        err: int | None = None,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        self.returncode: int | None = None
        self.told = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115 (read after the process has ended)
        streams = [self.told[i].fileno() if given is None else given for i, given in enumerate((out, err))]
        self.pid = os.fork()
        if self.pid == 0:
            status = 70
            try:
                status = _run(list(map(str, words)), streams, before)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)

    def poll(self) -> int | None:
        if self.returncode is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = PATIENCE) -> int:
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            assert time.monotonic() < deadline, "it does not end"
            time.sleep(0.01)
        return status

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, str]:
        """What it printed, when it has ended."""
        self.wait(timeout)
        for file in self.told:
            file.seek(0)
        return self.told[0].read(), self.told[1].read()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(words: list[str], streams: list[int], before: Callable[[], None]) -> int:
    gc.freeze()  # what is shared stays shared
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
    os.closerange(3, 1024)  # as in a new process; the other end of a pipe would keep it open
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
    before()
    try:
        status = main(words)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    sys.stdout.flush()
    return status
