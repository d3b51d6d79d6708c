"""Running items of the paper, and which of them are stored: what ``murp paper run`` and ``list`` do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from murp.config import Config
from murp.errors import ConfigError
from murp.paper.cells import run_cell, stored_config
from murp.paper.done import is_done
from murp.paper.experiments import Experiments, stored
from murp.paper.items import ITEMS
from murp.rows import Rows
from murp.training import progress

RESULTS = "results/paper"


@dataclass(frozen=True)
class Stored:
    """An item: what it is, and when its result was stored, None if it is not; ``quick``: as a toy."""

    item: str
    date: str | None
    quick: bool
    what: str


def items(out: str | os.PathLike[str] = RESULTS) -> Rows[Stored]:
    """The paper's tables and figures, and which of them ``out`` holds."""
    found = ((name, item, stored(Path(out), name)) for name, item in ITEMS.items())
    return Rows(
        Stored,
        (
            Stored(
                name,
                None if result is None else result["date"][:10],
                bool(result and result["quick"]),
                (item.__doc__ or "").splitlines()[0],
            )
            for name, item, result in found
        ),
    )


def run(
    items: Sequence[str],
    out: str | os.PathLike[str] = RESULTS,
    *,
    device: str = "auto",
    seeds: int = 3,
    again: bool = False,
    quick: bool = False,
    only: str | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Run the experiments of items, or of "all", in the paper's order; what ``out`` holds already is not repeated.

    ``seeds``: runs of each cell. ``again`` runs what is stored already, too. ``quick``: a toy of it on the bundled
    graph. ``only``: one cell of one item, as ``DATA/MODEL/DIM`` ("WN18RR/murp/40"): its plan and time are said first,
    and the item itself is not stored. ``say`` is told what is done.
    """
    unknown = [name for name in items if name not in (*ITEMS, "all")]
    if unknown:
        raise ConfigError(f"unknown item {unknown[0]!r}: choose from {', '.join(ITEMS)}, or all.")
    folder = Path(out)
    for name in ITEMS:
        found = stored(folder, name)
        if found is not None and found["quick"] != quick:
            kind = "quick toys" if found["quick"] else "real results"
            raise ConfigError(f"{folder} holds {kind}: keep the two kinds apart, choose another --out.")
    shown = progress.usual()
    experiments = Experiments(folder, device=device, seeds=seeds, quick=quick, again=again, progress=shown, say=say)
    try:
        if only is not None:
            run_cell(experiments, _one(items), only)
            return
        for name, item in ITEMS.items():
            if name not in items and "all" not in items:
                continue
            if not again and is_done(experiments, name):
                say(f"{name}: stored already in {folder / name}.json; --again runs it again")
            else:
                item(experiments)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; what is done is kept. Give the same command to go on.") from stop


def config(name: str, out: str | os.PathLike[str] = RESULTS) -> Config:
    """The settings of a stored run by its name; ``config(name).to_toml()`` is a file for `murp train --config`."""
    return stored_config(Path(out), name)


def _one(items: Sequence[str]) -> str:
    """The item that a cell is of."""
    if len(items) != 1 or items[0] == "all":
        raise ConfigError("--only is a cell of one item: name that item, and no other.")
    return items[0]
