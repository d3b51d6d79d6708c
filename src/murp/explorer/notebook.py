"""The explorer in a notebook: a server in a thread of this process, and a frame that shows its page."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path

from murp.explorer.collection import Collection
from murp.explorer.columns import read_columns
from murp.explorer.server import ready
from murp.runs import Run
from murp.threads import one_thread
from murp.web.background import Background
from murp.web.server import bind

HEIGHT = 640  # pixels of the frame


class Explorer(Background):
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
                server = ready(Collection(runs, colours), host, framed=True)
        except BaseException:
            bound.close()
            raise
        super().__init__(server, bound)

    def _repr_html_(self) -> str:
        address = html.escape(self.address)
        if not self.running:
            return f"the explorer at {address} is closed"
        frame = f'<iframe src="{address}" width="100%" height="{self.height}" style="border:0"></iframe>'
        return f'{frame}<div>explorer: <a href="{address}" target="_blank">{address}</a></div>'
