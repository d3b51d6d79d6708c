"""A run that is trained once for the tests of the Python interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import murp
from murp.training.progress import Silent
from trees import tree

QUICK: dict[str, Any] = {
    "dim": 3, "epochs": 4, "lr": 2.0, "batch_size": 16, "negatives": 4, "validate_every": 2, "device": "cpu",
    "engine": "torch", "progress": Silent(),
}  # fmt: skip


def trained(folder: Path, **settings: Any) -> murp.Run:
    """MuRP on the tree of 63 entities, in a moment."""
    return murp.train(tree(), out=folder / "run", **{**QUICK, **settings})
