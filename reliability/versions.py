"""Runs tests in several environments and stores which versions were tried and what happened.

    nox --install-only
    python reliability/versions.py pinned=.venv/bin/python lowest=.nox/lowest/bin/python \\
        newest-3.12=.nox/tests-3-12/bin/python --out results/reliability_versions.json

An environment is a name and its Python; ``noxfile.py`` makes them. What is tried is the way from a graph to answers:
reading, training, run folders, evaluation, prediction, exports, pictures, the explorer's server; `nox` runs everything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import measure  # noqa: E402

TESTS = [
    "tests/geometry", "tests/models", "tests/graph", "tests/training",
    "tests/runs/test_checkpoints.py", "tests/runs/test_format.py", "tests/evaluation/test_ranks.py",
    "tests/evaluation/test_fused_ranks.py", "tests/prediction", "tests/exchange/test_round_trip.py", "tests/plots",
    "tests/explorer/test_fast_path.py", "tests/explorer/test_answers.py", "tests/explorer/test_connections.py",
    "tests/explorer/test_refusals.py",
]  # fmt: skip
VERSIONS = """
import importlib.metadata, json, platform, sys
names = {name: importlib.metadata.version(name) for name in sys.argv[1:]}
print(json.dumps({"python": platform.python_version(), **names}))
"""


def declared() -> list[str]:
    """The package's dependencies as pyproject.toml has them: ``torch>=2.8``."""
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return [str(requirement) for requirement in requirements]


def tested(python: str, tests: Sequence[str]) -> dict[str, Any]:
    """The versions in an environment, and how many tests passed, failed and were skipped there."""
    names = [re.split("[<>=]", requirement)[0] for requirement in declared()]
    versions = subprocess.run([python, "-c", VERSIONS, *names], check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as work:
        report = Path(work) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        print(result.stdout[-2000:], file=sys.stderr)
        suite = next(ElementTree.parse(report).iter("testsuite"))
    count = {what: int(suite.attrib[what]) for what in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    passed = count["tests"] - failed - count["skipped"]
    return {"versions": json.loads(versions.stdout), "passed": passed, "failed": failed, "skipped": count["skipped"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every environment; status 1 where a test failed."""
    parser = measure.parser(__doc__)
    parser.add_argument("environments", nargs="*", metavar="NAME=PYTHON", help="default: the Python that runs this")
    options = parser.parse_args(arguments)
    environments = dict(word.split("=", 1) for word in options.environments) or {"this": sys.executable}
    tests = ["--noconftest", "tests/test_widths.py"] if options.quick else TESTS  # which would import PyTorch
    settings = {"declared": declared(), "tests": tests}
    figures = {name: tested(python, tests) for name, python in environments.items()}
    earlier = before(options.out, settings)
    whole = {**earlier.get("figures", {}), **figures}
    origins = measure.parts(earlier, whole, figures)
    measure.store({**measure.result("versions", settings, whole), "parts": origins}, options.out)
    return 1 if any(found["failed"] for found in figures.values()) else 0


def before(out: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """What ``out`` holds of other environments, tried in the same way: they need not all be tried at once."""
    stored = json.loads(out.read_text(encoding="utf-8")) if out is not None and out.exists() else {}
    return dict(stored) if stored.get("settings") == settings else {}


if __name__ == "__main__":
    sys.exit(main())
