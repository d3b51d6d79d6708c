"""What a run came to, to be compared with another to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from murp.runs import checkpoint, folder


def outcome(run: Path) -> Any:
    """What must be the same, to the bit: newest and best weights, where training stands, every epoch's metrics.

    The newest checkpoint itself is read: where it is damaged, the one before does not take its place.
    """
    found: list[Any] = []
    for name in (folder.LAST, folder.BEST):
        tables, state = checkpoint.read(checkpoint.place(run / name))
        state.pop("seconds")
        bits = {table: values.flatten().view(torch.uint8).numpy() for table, values in tables.items()}
        found += [state, {table: bits[table].tobytes() for table in sorted(bits)}]
    return found + [(m["epoch"], m["loss"], m["valid"]["mrr"]) for m in folder.read_metrics(run)]
