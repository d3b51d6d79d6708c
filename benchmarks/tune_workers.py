"""Trials of ``murp tune`` side by side: the same number of trials by one worker and by several.

    MURP_DATA=… python benchmarks/tune_workers.py --device cuda --data NELL-995-h100 --out results/gpu_tune_workers.json

Each search has a new storage file, the same seed and the same number of trials. Its time is measured from the start of
the command to its end, so the start of every worker and its compiling count. A search with several workers proposes
other settings than a search with one, because fewer trials are finished when it proposes. So the seconds of training
differ too, and the result stores how many epochs each search trained. Test is not used.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from measure import parser, result, store


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="wordnet-mini")
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--trials", type=int, default=16)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options.add_argument("--dim", type=int, default=40)
    options.add_argument("--epochs", type=int, default=45)
    chosen = options.parse_args(arguments)
    settings: dict[str, Any] = {"dim": chosen.dim, "epochs": chosen.epochs, "seed": 0, "device": chosen.device}
    workers: list[int] = chosen.workers
    if chosen.quick:
        settings |= {"dim": 2, "epochs": 3}
        chosen.trials, workers = 2, workers[:2]
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        for count in workers:
            figures[str(count)] = search(chosen.data, settings, chosen.trials, count, Path(scratch))
            print(count, figures[str(count)])
    first = figures[str(workers[0])]["seconds"]
    for found in figures.values():
        found["share_of_the_first"] = found["seconds"] / first
    about = {**settings, "data": chosen.data, "trials": chosen.trials, "split": "valid", "protocol": "standard"}
    what = "the same number of trials of murp tune by one worker and by several"
    store(result(what, about, {"by_workers": figures}, torch.device(chosen.device)), chosen.out)


def search(data: str, settings: dict[str, Any], trials: int, workers: int, home: Path) -> dict[str, Any]:
    """One search by the command, in a folder of its own."""
    given = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "murp", "tune", "--data", data, *given, "--trials", str(trials)]
    command += ["--workers", str(workers), "--storage", str(home / f"{workers}.db"), "--json", "--quiet"]
    began = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    took = time.perf_counter() - began
    found = json.loads(done.stdout)
    states = [trial["state"] for trial in found["trials"]]
    return {
        "seconds": took,
        "states": {state: states.count(state) for state in sorted(set(states))},
        "epochs": sum(trial["epoch"] or 0 for trial in found["trials"]),
        "mrr": found["best"]["mrr"],
    }


if __name__ == "__main__":
    main()
