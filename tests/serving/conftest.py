"""A run with random weights, and a server of it that the tests of a file share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import murp
from examples import PATIENCE
from murp.runs import Run
from murp.serving.server import Service
from trees import tree

sys.path.insert(0, str(Path(__file__).parents[1] / "explorer"))  # runs with random weights
from explorer_runs import made_run, nasty_graph


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made_run(tmp_path_factory.mktemp("served") / "run", nasty_graph(tree()), save=True)


@pytest.fixture(scope="module")
def service(run: Run) -> Iterator[Service]:
    with murp.serve(run.path, most_questions=50, most_bytes=20_000, timeout=PATIENCE) as served:
        yield served
