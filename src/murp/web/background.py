"""A server in a thread of this process, which ends when it is closed, or with the process."""

from __future__ import annotations

import atexit
import socket
import threading
import weakref
from types import TracebackType
from typing import Self

from murp.web.connections import Server
from murp.web.server import address_of

PATIENCE = 5.0  # seconds for the server to end, beside those that it gives to requests


class Background:
    """A running server: ``address`` is where this machine finds it.

    It ends with :meth:`close`, at the end of a ``with``, or with the process.
    """

    def __init__(self, server: Server, bound: socket.socket) -> None:
        self._server, self._socket = server, bound
        self.address = address_of(bound)
        # A daemon: whoever ends the process need not close the server first.
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [bound]}, name="murp-background", daemon=True
        )
        self._thread.start()
        _open.add(self)

    def close(self) -> None:
        """End the server; what is closed already stays so."""
        self._server.should_exit = True
        self._thread.join(PATIENCE + self._server.grace)
        self._socket.close()
        _open.discard(self)

    @property
    def running(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.address!r})" if self.running else f"{name}(closed, was {self.address!r})"


_open: weakref.WeakSet[Background] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads that still answer when Python takes itself apart would write errors into a notebook's log."""
    for server in list(_open):
        server.close()
