"""What a run came to, to be compared with another to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from murp.runs import checkpoint, folder


def outcome(run: Path) -> Any:
    """What must be the same, to the bit: newest and best weights, where training stands, every epoch's metrics.

    The newest checkpoint itself is read: where it is damaged, the one before does not take its place.
    """
    found: list[Any] = []
    for name in (folder.LAST, folder.BEST):
        tables, state = checkpoint.read(checkpoint.place(run / name))
        state.pop("seconds")
        found += [state, {table: values.numpy().tobytes() for table, values in sorted(tables.items())}]
    return found + [(m["epoch"], m["loss"], m["valid"]["mrr"]) for m in folder.read_metrics(run)]
