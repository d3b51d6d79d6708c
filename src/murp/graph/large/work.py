"""The folder of work in progress: what was read so far, so that reading goes on after a stop.

It lies beside the graph that is made and is removed with the last step. ``state.json`` says how far it is; names are
written anew at each halt, facts are only added, and what was added after the halt is cut off again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from murp.display import aside
from murp.errors import DataError, first_line
from murp.files import fields, flush, flush_folder, lock, parse_json, write_text
from murp.graph import arrays
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
            raise self.refused(self.path, error) from error
        try:
            lock(self._held)
        except BlockingIOError:
            os.close(self._held)
            raise WorkStopped(
                f"{self.path}: another process is reading the same data. Wait until it is done."
            ) from None
        except OSError:
            pass  # a system without locks
        self._files: list[BinaryIO] = []
        try:
            self.state = self._read(key)
            self.names = self._names(key)
            self.clear()
            self._files += [self._facts(part) for part in range(3)]
        except OSError as error:
            self.close()
            raise self.refused(self.path, error) from error

    @property
    def resumed(self) -> bool:
        """Whether there is work of an earlier process."""
        return self.state.halt > 0

    def add(self, part: int, facts: NDArray[np.int32]) -> None:
        """Add rows (n, 3) to split number ``part``."""
        try:
            arrays.write(self._files[part], facts)
        except OSError as error:
            raise self.refused(self.path, error) from error
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
                flush(file.fileno())
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for names in self.names.values():
                names.save(folder)
            flush_folder(folder)
            write_text(self.path / STATE, json.dumps(asdict(self.state)))
        except OSError as error:
            self.state.halt = old
            raise self.refused(self.path, error) from error
        shutil.rmtree(self.path / f"names{old}", ignore_errors=True)

    def close(self) -> None:
        """Let others have it."""
        self._close_files()
        os.close(self._held)

    def remove(self) -> None:
        """When all is done."""
        self._close_files()
        shutil.rmtree(self.path, ignore_errors=True)

    def clear(self) -> None:
        """Remove all that the next process does not need, and all if there was no halt."""
        kept = {STATE, f"names{self.state.halt}", *(f"facts{part}.bin" for part in range(3))}
        for left in self.path.iterdir():
            if not self.state.halt or left.name not in kept:
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def _close_files(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):  # on a full disk: what was not flushed by a halt is not needed
                file.close()

    def _names(self, key: str) -> dict[str, Names]:
        """Those of the last halt. If they are damaged, reading starts anew."""
        folder = self.path / f"names{self.state.halt}"
        if self.state.halt:
            try:
                return {kind: Names.load(kind, folder) for kind in KINDS}
            except (OSError, ValueError) as error:
                aside(f"murp: {folder} is damaged ({first_line(error)}): everything is read again.")
                self.state = State(key)
        return {kind: Names(kind) for kind in KINDS}

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

    def _facts(self, part: int) -> BinaryIO:
        path = self.path / f"facts{part}.bin"
        path.touch()
        os.truncate(path, 12 * self.state.rows[part])
        return path.open("ab")

    def refused(self, place: Path, error: OSError) -> WorkStopped:
        """What is said where the system does not let ``place`` be written."""
        why = os.strerror(error.errno) if error.errno else str(error)
        return WorkStopped(
            f"{place} cannot be written: {why}. Free some space (a graph takes about 40 bytes a fact "
            "while it is read), then start again: what was read so far is kept."
        )
