"""A training that is shown in the browser while it goes on."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from murp.display import show
from murp.explorer.live import Live
from murp.explorer.server import watching
from murp.explorer.snapshots import Recorder
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.training.progress import Silent
from murp.web.server import address_of, bind


class Watched(Recorder):
    """Records a training and serves the page that shows it, until it stops."""

    def __init__(self, shown: Silent, host: str, port: int) -> None:
        super().__init__(shown)
        self.host = host
        self.bound = bind(host, port)  # a port that is taken is told before anything is trained
        self.port: int = self.bound.getsockname()[1]
        self.serving = contextlib.ExitStack()

    def watch(self, path: Path, graph: KnowledgeGraph, model: Model) -> None:
        super().watch(path, graph, model)
        show(f"training: {address_of(self.bound)}", sys.stderr)
        self.serving.enter_context(watching(Live(path), self.bound, self.host))

    def stop(self) -> None:
        super().stop()
        self.serving.close()
