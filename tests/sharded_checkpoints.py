"""A checkpoint of one file as many ranks would have written it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from torch import Tensor

from murp.distributed.shares import Share
from murp.runs import checkpoint, folder, shards


def write_shards(
    tables: dict[str, Tensor], state: dict[str, Any], home: Path, files: int, shared: Collection[str]
) -> None:
    """Write ``tables`` into the folder ``home``; each file has its share of the rows of those that are ``shared``."""
    rows = {name: len(values) for name, values in tables.items()}
    for rank in range(files):
        part, offsets = {}, {}
        for name, values in tables.items():
            share = Share(len(values), rank, files)
            if name in shared:
                part[name], offsets[name] = values[share.start : share.stop], share.start
            elif rank == 0:
                part[name], offsets[name] = values, 0
        shards.Writer(home, state, rank, files).write(part, offsets, rows)


def shard_run(run: Path, files: int) -> None:
    """Replace the checkpoints of a run."""
    for name in (folder.LAST, folder.BEST):
        if (run / name).exists():
            tables, state = checkpoint.read(run / name)
            home = checkpoint.shards_of(run / name)
            home.mkdir()
            write_shards(
                tables, state, home, files, {one for one in tables if len(tables[one]) == len(tables["entity"])}
            )
            checkpoint.previous(run / name).unlink(missing_ok=True)
            (run / name).unlink()
