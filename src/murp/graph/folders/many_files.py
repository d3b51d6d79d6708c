"""Facts in many files: a pattern such as ``facts/*.parquet``, a folder of Parquet files, folders train, valid and test.

Files are taken in the order of their names.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from murp.errors import DataError
from murp.graph.knowledge_graph import SPLITS
from murp.graph.large import FORMATS
from murp.graph.reading.streams import split_endings
from murp.paths import not_a_file

_NAMES = ("entity_names", "relation_names")


def is_pattern(text: str) -> bool:
    """Whether it may stand for many files."""
    return glob.has_magic(text)


def matching(pattern: str) -> list[Path]:
    """The files that a pattern stands for; ``**`` is any number of folders."""
    return _triples(Path(found) for found in sorted(glob.glob(pattern, recursive=True)))


def pattern_for(folder: Path) -> str | None:
    """A pattern for several files of triples in a folder, all in one format; None if there are no such files."""
    files = _triples(sorted(folder.iterdir()))
    endings = {"".join(split_endings(path)) for path in files}
    return f"{glob.escape(str(folder))}/*{endings.pop()}" if len(files) > 1 and len(endings) == 1 else None


def find(folder: Path) -> list[list[Path]] | None:
    """The files of train, valid and test, or of the one part there is; None if the folder is no such dataset."""
    inside = [folder / split for split in SPLITS]
    if all(path.is_dir() for path in inside):
        parts = [[_checked(path, folder) for path in _triples(sorted(one.iterdir()))] for one in inside]
        for one, files in zip(inside, parts, strict=True):
            if not files:
                raise DataError(f"{one}: holds no files of triples ({', '.join(FORMATS)}). Put some there.")
        return parts
    files = [path for path in _triples(sorted(folder.iterdir())) if split_endings(path)[0] == ".parquet"]
    return [[_checked(path, folder) for path in files]] if files else None


def _triples(paths: Iterable[Path]) -> list[Path]:
    """Those that may hold triples: no folders, no names, nothing hidden (``_SUCCESS``, ``.crc``)."""
    return [
        path
        for path in paths
        if not path.is_dir()
        and not path.name.startswith((".", "_"))
        and split_endings(path)[0] in FORMATS
        and path.name.partition(".")[0] not in _NAMES
    ]


def _checked(path: Path, folder: Path) -> Path:
    if (why := not_a_file(path)) is not None:
        raise DataError(f"{path} {why}.")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{path} is a symbolic link that leads out of its folder. Put the file itself there.")
    return path
