"""Stored benchmark results: finding them under results/, and how times, ratios and machines are printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import origins
from murp import tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
Result = dict[str, Any]
RELIABILITY = "reliability_"
PROTOCOLS = "protocols_"
NAMES = {"murp": "MuRP", "mure": "MuRE"}


def result(name: str) -> Result | None:
    """One stored result, None where there is none."""
    file = RESULTS / f"{name}.json"
    values: Result | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return values


def by_processor(name: str) -> dict[str, Result]:
    """One benchmark's results by the device that each comes from: where it is measured first, then the others."""
    found = [result(f"{place}/{name}") for place in (".", *origins.OTHERS)]
    by_name: dict[str, Result] = {}
    for stored in found:
        if stored is not None and by_name.setdefault(stored["machine"]["device"], stored) is not stored:
            raise SystemExit(f"two results {name} come from {stored['machine']['device']}: only one can be shown.")
    return by_name


def results(pattern: str) -> Iterator[tuple[str, Result]]:
    """The stored results whose names match, with their names, in order."""
    for path in sorted(RESULTS.glob(f"{pattern}.json")):
        values = result(path.stem)
        assert values is not None
        yield path.stem, values


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return tables.table(head, rows, format="markdown")


def time(seconds: float) -> str:
    """With its unit, three digits: 9.31 µs, 1.20 ms, 6.40 s."""
    shown = float(f"{seconds:.3g}")  # first, so that 0.9996 s are not 1000 ms
    if shown >= 100:
        return f"{seconds:.0f} s"
    unit, size = next(scale for scale in (("s", 1.0), ("ms", 1e-3), ("µs", 0.0)) if shown >= scale[1])
    return f"{shown / (size or 1e-6):#.3g} {unit}".replace(". ", " ")


def size(count: float) -> str:
    """Bytes with their unit."""
    unit, scale = next((unit, scale) for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 0)) if count >= scale)
    return f"{count / (scale or 1e3):.3g} {unit}"


def spread(values: Result) -> str:
    """The median, least and most in brackets; what was measured once says so."""
    if values.get("repeats") == 1:
        return f"{time(values['median'])} (once)"
    return f"{time(values['median'])} ({time(values['least'])} to {time(values['most'])})"


def times(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.2f}" if number < 3 else f"{number:.1f}"


def machine(stored: Result) -> str:
    """One line on where and with what a result was measured, and by which code."""
    here = stored["machine"]
    packages = ("torch", "numba", "triton", "geoopt", "pykeen", "pyarrow")
    versions = ", ".join(f"{name} {here[name]}" for name in packages if name in here)
    when = f"{stored['date'][:10]}; {code(stored)}"
    used = here.get("threads", here["cores"])
    threads = "" if used == here["cores"] else f", {used} thread{'s' * (used > 1)}"
    return f"*{here['device']}, {here['cores']} cores{threads}; murp {here['murp']}, {versions}; {when}.*"


def code(stored: Result) -> str:
    """The commit that a result comes from, or what else is to be said."""
    return origins.said(stored, RESULTS)


def benchmarks() -> origins.Results:
    """The results that are not of reliability or of protocols, which have pages of their own."""
    elsewhere = (RELIABILITY, PROTOCOLS)
    return {name: stored for name, stored in origins.every(RESULTS).items() if not name.startswith(elsewhere)}
