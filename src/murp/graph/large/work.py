"""The folder of work in progress: what was read so far, so that reading goes on after a stop.

It lies beside the graph that is made and is removed with the last step. ``state.json`` says how far it is; names are
written anew at each halt, facts are only added, and what was added after the halt is cut off again.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.errors import DataError
from murp.files import fields, lock, parse_json, write_text
from murp.graph.large.numbering import Names


class WorkStopped(DataError):
    """What was read is kept, and the next process goes on with it."""


STATE = "state.json"
KINDS = ("entity", "relation")


@dataclass
class State:
    """How far the reading is: the ``file`` that is next or not done, the ``place`` in it, and rows of each split."""

    key: str
    file: int = 0
    place: int = 0
    row: int = 0  # of this file
    rows: list[int] = field(default_factory=lambda: [0, 0, 0])
    comments: list[str] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)  # findings of the files that are done
    halt: int = 0


class Work:
    """The folder ``.NAME.work`` beside ``target``; one process at a time has it."""

    def __init__(self, target: Path, key: str) -> None:
        self.path = target.with_name(f".{target.name}.work")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._held = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise self._refused(error) from error
        try:
            lock(self._held)
        except BlockingIOError:
            os.close(self._held)
            raise WorkStopped(
                f"{self.path}: another process is reading the same data. Wait until it is done."
            ) from None
        except OSError:
            pass  # a system without locks
        self.state = self._read(key)
        if self.state.halt:
            folder = self.path / f"names{self.state.halt}"
            self.names = {kind: Names.load(kind, folder) for kind in KINDS}
        else:
            for left in self.path.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            self.names = {kind: Names(kind) for kind in KINDS}
        self._files = [self._facts(part) for part in range(3)]

    @property
    def resumed(self) -> bool:
        """Whether there is work of an earlier process."""
        return self.state.halt > 0

    def add(self, part: int, facts: NDArray[np.int32]) -> None:
        """Add rows (n, 3) to split number ``part``."""
        try:
            facts.tofile(self._files[part])
        except OSError as error:
            raise self._refused(error) from error
        self.state.rows[part] += len(facts)
        self.state.row += len(facts)

    def facts(self, part: int) -> Path:
        """The file of the facts of one split, as triples of int32."""
        self._files[part].flush()
        return self.path / f"facts{part}.bin"

    def halt(self) -> None:
        """Make safe what there is: whoever comes next goes on from here."""
        old, self.state.halt = self.state.halt, self.state.halt + 1
        folder = self.path / f"names{self.state.halt}"
        try:
            for file in self._files:
                file.flush()
                os.fsync(file.fileno())
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for names in self.names.values():
                names.save(folder)
            write_text(self.path / STATE, json.dumps(asdict(self.state)))
        except OSError as error:
            self.state.halt = old
            raise self._refused(error) from error
        shutil.rmtree(self.path / f"names{old}", ignore_errors=True)

    def close(self) -> None:
        """Let others have it."""
        for file in self._files:
            file.close()
        os.close(self._held)

    def remove(self) -> None:
        """When all is done."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _read(self, key: str) -> State:
        """The state of an earlier process, if that read the same; a new one otherwise."""
        kinds = {"key": str, "file": int, "place": int, "row": int, "rows": list, "comments": list, "told": list}
        try:
            found = fields(parse_json((self.path / STATE).read_text(encoding="utf-8")), {**kinds, "halt": int})
            state = State(**{name: found[name] for name in (*kinds, "halt")})
        except (OSError, ValueError, TypeError):
            return State(key)
        whole = all(
            (self.path / f"facts{part}.bin").exists() and (self.path / f"facts{part}.bin").stat().st_size >= 12 * rows
            for part, rows in enumerate(state.rows)
        )
        return state if state.key == key and whole else State(key)

    def _facts(self, part: int) -> Any:
        path = self.path / f"facts{part}.bin"
        path.touch()
        os.truncate(path, 12 * self.state.rows[part])
        return path.open("ab")

    def _refused(self, error: OSError) -> WorkStopped:
        return WorkStopped(
            f"{self.path} cannot be written: {error.strerror}. Free some space (a graph takes about 40 bytes a fact "
            "while it is read), then start again: what was read so far is kept."
        )
