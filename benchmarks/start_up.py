"""How long a user waits: for ``murp --help``, and for the first training step.

    MURP_DATA=… python benchmarks/start_up.py --out results/cpu_start_up.json

Every measurement is a new process. A start of ``murp train`` ends with its first step, and includes imports, reading
the data and making the run folder. The first start, which parses and compiles, is not counted: the second start uses
its caches.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import parser, result, seconds, spread, store

# The command line as it is, but for a progress bar that ends the process when it hears of the first step.
TRAIN = """
import os, sys
from murp.cli.main import main
from murp.training import progress, sampler
class Stop(progress.Silent):
    def advance(self, *told): os._exit(0)
progress.usual = Stop
sampler.STEPS_A_CHUNK["cpu"] = 1
sys.exit(main(sys.argv[1:]) or "training ended before its first step")
"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="WN18RR")
    options.add_argument("--engine", nargs="+", default=["numba", "torch"])
    chosen = options.parse_args(arguments)
    repeats, data = (0, "wordnet-mini") if chosen.quick else (7, chosen.data)  # a toy counts the first start

    def fresh(*command: str) -> float:
        call = [sys.executable, *command]
        return seconds(lambda: subprocess.run(call, check=True, stdout=subprocess.DEVNULL))

    def start(engine: str) -> float:
        with tempfile.TemporaryDirectory() as scratch:
            settings = {"--data": data, "--engine": engine, "--device": "cpu", "--out": os.path.join(scratch, "run")}
            return fresh("-c", TRAIN, "train", *(word for pair in settings.items() for word in pair))

    def without_the_first(times: list[float]) -> dict[str, float]:
        return spread(times[1:] or times)

    figures = {"murp --help": without_the_first([fresh("-m", "murp", "--help") for _ in range(1 + repeats)])}
    if not chosen.quick:
        figures["import torch"] = without_the_first([fresh("-c", "import torch") for _ in range(1 + repeats)])
    for engine in ["torch"] if chosen.quick else chosen.engine:
        times = [start(engine) for _ in range(1 + repeats)]
        figures[f"first step, {engine}"] = {**without_the_first(times), "first_start": times[0]}
    settings = {"data": Path(data).name, "model": "murp", "dim": 40, "device": "cpu"}
    store(result("seconds from the start of a process", settings, {"seconds": figures}), chosen.out)


if __name__ == "__main__":
    main()
