"""How long the tests take: `make test` in this checkout, after `make .venv/tools`.

    MURP_DATA=… python benchmarks/suite.py --out results/suite.json

With lint, types, all tests, and the numeric tests again under several choices of instructions.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from measure import parser, result, store

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser(__doc__).parse_args(arguments)
    goals = ["--dry-run", "test"] if options.quick else ["test"]
    began = time.perf_counter()
    done = subprocess.run(["make", *goals], cwd=ROOT, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-4000:], file=sys.stderr)
        return done.returncode
    figures = {"seconds": seconds, "tests": outcomes(done.stdout)}
    store(result("make test", {"goals": goals}, figures), options.out)
    return 0


def outcomes(printed: str) -> dict[str, int]:
    """How many tests passed, were skipped, or failed, in all runs of pytest that ``printed`` tells of."""
    found: Counter[str] = Counter()
    for number, outcome in re.findall(r"\b(\d+) (passed|skipped|failed)\b", printed):
        found[outcome] += int(number)
    return dict(found)


if __name__ == "__main__":
    sys.exit(main())
