"""How the benchmarks measure, and how they store results.

Work is warmed up, repeated, and reported as median, minimum and maximum. Cases that are compared run in turns, so that
other busy processes slow all of them: use ratios, not seconds. A result is one JSON object: ``what`` was measured, its
``settings``, the ``figures``, and everything of :func:`murp.runs.stamp.stamp`: the code that made it and the
``machine``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from murp.files import write_text
from murp.graph import KnowledgeGraph
from murp.graph.reading.files import COLUMNS
from murp.provenance import code, identity
from murp.runs.stamp import stamp

KINDS = (("e", 60), ("r", 3), ("e", 60))
CPU = torch.device("cpu")
Work = Callable[[], object]
Works = dict[str, tuple[Work, float]]


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options every benchmark has: where its JSON goes, and a toy size that only shows that it works."""
    identity()  # of the code as it is now, not as it may be edited before the result is there
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, help="write the result here")
    options.add_argument("--quick", action="store_true", help="toy sizes: does it run at all?")
    return options


def toy_graph() -> KnowledgeGraph:
    """A random graph of 60 entities and 3 relations, for quick runs."""
    random = np.random.default_rng(0)

    def facts(count: int) -> pa.Table:
        names = [[f"{kind}{i}" for i in random.integers(most, size=count)] for kind, most in KINDS]
        return pa.table([pa.array(column, pa.large_string()) for column in names], names=COLUMNS)

    return KnowledgeGraph.from_tables("toy", facts(700), facts(30), facts(30))


def seconds(work: Work, device: torch.device = CPU) -> float:
    """How long ``work`` takes, what it left running on the device included."""
    finish(device)
    began = time.perf_counter()
    work()
    finish(device)
    return time.perf_counter() - began


def finish(device: torch.device) -> None:
    """Wait until the device has nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most of repeated measurements, and how many there were."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "repeats": len(values)}


def in_turns(
    works: Works, *, repeats: int = 7, device: torch.device = CPU, warm_up: bool = True
) -> dict[str, dict[str, float]]:
    """Seconds of each work, divided by how many units it does, over rounds in which each has its turn.

    ``works``: name → (work, units); every one is done once before anything is measured. Toys need no ``warm_up``.
    """
    for work, _ in works.values() if warm_up else ():
        seconds(work, device)
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, (work, units) in works.items():
            times[name].append(seconds(work, device) / units)
    return {name: spread(values) for name, values in times.items()}


def ratio(figures: Mapping[str, Mapping[str, float]], slow: str, fast: str) -> float:
    """How many times the median of ``fast`` goes into that of ``slow``."""
    return figures[slow]["median"] / figures[fast]["median"]


def result(what: str, settings: Mapping[str, Any], figures: Mapping[str, Any], device: torch.device = CPU) -> Any:
    """What a benchmark stores."""
    return {"what": what, "settings": settings, "figures": figures, **stamp(device)}


def parts(before: Mapping[str, Any], kept: Iterable[str], new: Iterable[str]) -> dict[str, Any]:
    """Of a result that is measured part by part: the code that made each part, ``new`` ones now, ``kept`` ones before.

    A part that was kept from a file that says nothing of its parts was made by what that file names, if anything.
    """
    told = ("commit", "clean", "source", "date")
    whole = {name: before[name] for name in told if name in before}
    earlier = before.get("parts", {})
    now = {name: value for name, value in code().items() if name in told}
    return {**{name: earlier.get(name, whole) for name in kept}, **dict.fromkeys(new, now)}


def store(values: Mapping[str, Any], out: Path | None) -> None:
    """Print a result and, where asked, write it."""
    text = json.dumps(values, indent=1) + "\n"
    print(text, end="", flush=True)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, text)
