"""Which files are to be read in pieces, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import murp
from murp.graph.reading.columns import Columns


@dataclass(frozen=True)
class ReadingPlan:
    """What is to be read: files of one part, which is divided by ``seed``, or of three; and names beside them."""

    name: str
    parts: Sequence[Sequence[Path]]
    columns: Columns
    names: Mapping[str, Path]
    seed: int = 0
    valid: float = 0.05
    test: float = 0.05
    many_files: bool = False

    @property
    def divided(self) -> bool:
        """Whether valid and test are drawn from one part."""
        return len(self.parts) == 1

    @property
    def files(self) -> list[Path]:
        """Of triples."""
        return [path for part in self.parts for path in part]

    @property
    def key(self) -> str:
        """What the work depends on: which files, how long and how old, and how they are read."""
        how = f"{murp.__version__} {self.columns!r} {self.seed} {self.valid} {self.test}"
        files = [*self.parts, list(self.names.values())]
        return json.dumps([[[_identity(path) for path in part] for part in files], how])


def _identity(path: Path) -> tuple[str, int, int]:
    found = path.stat()
    return str(path.resolve()), found.st_size, found.st_mtime_ns
