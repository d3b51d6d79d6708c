"""The run that is served, and the one that takes its place when the folder is replaced.

The folder is looked at once a second. What lies there is loaded beside the run that is served, and takes its place only
when it is ready: requests that are being answered keep the run they began with. If the folder is missing, half copied
or damaged, the old run is served on, and :attr:`Current.error` gives the reason.
"""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

from murp.display import show
from murp.errors import MurpError
from murp.runs import folder, load
from murp.runs.checkpoint import place
from murp.runs.run import Checkpoint
from murp.serving.loaded import Loaded

EVERY = 1.0  # seconds between two looks
AGAIN = 10.0  # seconds until what could not be loaded is tried again, unless it changes before
Look = tuple[tuple[str, int, int, int], ...]


class Current:
    """``loaded`` is what is served now. :meth:`watch` begins to look for another, :meth:`close` ends that."""

    def __init__(
        self, path: Path, checkpoint: Checkpoint | None, device: str, *, types: bool = False, approximate: bool = False
    ) -> None:
        self.path, self.checkpoint, self.device = path, checkpoint, device
        self.types, self.approximate = types, approximate
        self.reloads = self.failures = 0
        self.error: str | None = None
        self._seen = look(path, checkpoint)
        self.loaded = self._load()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="murp-reload", daemon=True)

    def watch(self) -> None:
        """Look for another run from now on."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(EVERY)

    def _load(self) -> Loaded:
        run = load(self.path, checkpoint=self.checkpoint, device=self.device)
        return Loaded(run, types=self.types, approximate=self.approximate)

    def _watch(self) -> None:
        before, tried, waited = self._seen, self._seen, 0.0
        while not self._closed.wait(EVERY):
            now = look(self.path, self.checkpoint)
            still, before = now == before, now
            waited += EVERY
            if not still:  # still being written
                continue
            if not now:
                self.error = f"{self.path} is missing, or is not a complete run folder."
                continue
            if now == self._seen:
                self.error = None  # the folder is back as it was
                continue
            if now == tried and waited < AGAIN:
                continue
            tried, waited = now, 0.0
            self.renew()

    def renew(self) -> None:
        """Load what lies in the folder, and serve it from now on."""
        began = look(self.path, self.checkpoint)
        try:
            loaded = self._load()
            if look(self.path, self.checkpoint) != began:
                return  # it was replaced meanwhile: the next look sees that
        except Exception as error:  # no memory for a second run, for one: the watch must go on, whatever it is
            self.failures += 1
            self.error = str(error) if isinstance(error, MurpError) else f"{type(error).__name__}: {error}"
            show(f"murp: the run in {self.path} cannot be served, the one before it still is: {self.error}", sys.stderr)
            return
        self._seen = began
        self.loaded = loaded
        self.reloads += 1
        self.error = None
        del loaded
        gc.collect()  # the run before has references to itself, and may be large
        show(f"serving the new run in {self.path}, epoch {self.loaded.run.state['epoch']}", sys.stderr)


def look(path: Path, checkpoint: Checkpoint | None = None) -> Look:
    """What tells one state of a run folder from another: the files that are served; empty if they are not there.

    A training in the folder writes its newest weights often: where the best are served, these do not count.
    """
    names = (f"{checkpoint}.safetensors",) if checkpoint else (folder.BEST, folder.LAST)
    try:
        weights = [place(path / name) for name in names]
        chosen = next((file for file in weights if file.exists()), weights[0])
        parts = sorted(chosen.iterdir()) if chosen.is_dir() else [chosen]  # a folder: of many ranks
        files = [path / folder.CONFIG, *parts, *sorted((path / folder.GRAPH).iterdir())]
        calibration = path / folder.CALIBRATION
        stats = [(file, file.stat()) for file in [*files, *([calibration] if calibration.exists() else [])]]
    except OSError:
        return ()
    return tuple((str(file), stat.st_ino, stat.st_mtime_ns, stat.st_size) for file, stat in stats)
