"""What the pages say of the code that made the stored results, and what `make figures` warns of.

Which commits and digests git's history has is kept in results/history.json, so that the pages are made from stored
files alone; making a page asks git anew where it is there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from murp.paper import history
from murp.provenance import ROOT

Results = dict[str, Mapping[str, Any]]
GUIDES = "guides"  # a file with a result for each guide
# Folders with more results of the same names: from other processors, and times of the field's rows.
OTHERS = ("amd", "intel", "times", "times-gpu")


def every(folder: Path) -> Results:
    """The stored results by name: a file each, but for the guides, of which one file has all.

    A result of another folder has its folder's name before its own: ``intel/cpu_step``.
    """
    found: Results = {}
    for file in (file for place in ("", *OTHERS) for file in sorted((folder / place).glob("*.json"))):
        if file.name != history.FILE:
            values = json.loads(file.read_text(encoding="utf-8"))
            name = file.relative_to(folder).with_suffix("").as_posix()
            found |= {f"guide {guide}": of for guide, of in values.items()} if name == GUIDES else {name: values}
    return found


def said(result: Mapping[str, Any], folder: Path) -> str:
    """Where one result comes from: ``commit 0a5764c``."""
    return history.origin(result, history.read(folder)).text


def section(results: Results, folder: Path) -> list[str]:
    """The part of a page that counts and lists its results by where they come from."""
    if not results:
        return []
    known = history.read(folder)
    rows = [
        f"| {each.text} | {len(names)} | {', '.join(names)} |" for each, names in history.listed(results, known).items()
    ]
    return [
        "## Where the results come from",
        history.summary(results, known),
        "\n".join(["| code | results | which |", "| --- | --- | --- |", *rows]),
    ]


def refresh(folder: Path) -> history.History | None:
    """Ask git about the code of every result in ``folder``, and keep what it says; None where it cannot say."""
    return history.refresh(folder, every(folder).values(), ROOT)


def warn(results: Results, folder: Path) -> None:
    """Say of which results git does not have the code, having asked it anew."""
    for line in history.warnings(results, refresh(folder)):
        print(line if line.startswith(" ") else f"warning: {line}", file=sys.stderr)
