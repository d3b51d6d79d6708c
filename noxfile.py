"""Every supported Python with the newest dependencies, and the lowest declared version of each dependency.

    nox                             # every session whose Python is there
    nox -s tests-3.12 -- tests/runs # one session, some tests
    nox -s lowest

``python reliability/versions.py`` stores what these environments were tried with.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = False
# The other tools of the extra dev need newer dependencies than the package itself.
JUDGES = [
    "pytest>=8", "pytest-xdist", "hypothesis>=6.100", "mpmath", "geoopt", "httpx", "networkx", "triton",
    "pyoxigraph", "duckdb", "polars", "pandas",
]  # fmt: skip


def lowest_versions() -> list[str]:
    """``torch>=2.8`` → ``torch==2.8``, for every dependency of the package."""
    declared = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return [requirement.replace(">=", "==") for requirement in declared]


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """The suite with whatever the package index offers today."""
    session.install("-e", ".[dev]")
    session.run("pytest", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """The suite with the oldest versions that pyproject.toml promises to work with."""
    # FastAPI's test client of that time passes httpx what 0.28 no longer takes.
    session.install("-e", ".", *lowest_versions(), *JUDGES, "httpx<0.28")
    session.run("pytest", *session.posargs)
