"""The explorer in a notebook: a server in a thread of this process, and a frame that shows its page."""

from __future__ import annotations

import atexit
import html
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from murp.explorer.collection import Collection, one_thread
from murp.explorer.columns import read_columns
from murp.explorer.server import address_of, bind, ready
from murp.runs import Run

HEIGHT = 640  # pixels of the frame
PATIENCE = 5.0  # seconds for the server to end


class Explorer:
    """A running explorer: ``address`` is where a browser of this machine finds it.

    A notebook shows its page in a frame. It ends with :meth:`close`, at the end of a ``with``, or with the process.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        columns: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        height: int = HEIGHT,
    ) -> None:
        self.height = height
        colours = None if columns is None else read_columns(Path(columns), runs[0].graph)
        bound = bind(host, port)
        try:
            with one_thread():
                self._server = ready(Collection(runs, colours), host, framed=True)
        except BaseException:
            bound.close()
            raise
        self._socket = bound
        self.address = address_of(bound)
        # A daemon: whoever ends the kernel need not close the explorer first.
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [bound]}, name="murp-explorer", daemon=True
        )
        self._thread.start()
        _open.add(self)

    def close(self) -> None:
        """End the server; what is closed already stays so."""
        self._server.should_exit = True
        self._thread.join(PATIENCE)
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
        return f"Explorer({self.address!r})" if self.running else f"Explorer(closed, was {self.address!r})"

    def _repr_html_(self) -> str:
        address = html.escape(self.address)
        if not self.running:
            return f"the explorer at {address} is closed"
        frame = f'<iframe src="{address}" width="100%" height="{self.height}" style="border:0"></iframe>'
        return f'{frame}<div>explorer: <a href="{address}" target="_blank">{address}</a></div>'


_open: weakref.WeakSet[Explorer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads that still answer when Python takes itself apart would write errors into the kernel's log."""
    for explorer in list(_open):
        explorer.close()
