"""``--threads`` as a user types it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from typed import TRAIN, murp, ok, refused

from murp import load, threads
from murp.cli.main import WITH_THREADS
from murp.graph import KnowledgeGraph


@pytest.fixture(scope="module")
def data(make_tree: Callable[..., KnowledgeGraph], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tree"
    make_tree().save(folder)
    return folder


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    ok(*TRAIN, "--data", data, "--out", folder)
    return folder


@pytest.fixture(autouse=True)
def _nothing_is_left_chosen() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    threads.use(0)
    torch.set_num_threads(before)


@pytest.mark.parametrize("number", [1, 3])
def test_it_sets_how_many_threads_evaluate_and_not_what_they_find(
    number: int, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    together = threads.together

    def noting(work: Any, count: int, **more: Any) -> None:
        asked.append(count)
        together(work, count, **more)

    expected = ok("evaluate", run)
    monkeypatch.setattr(threads, "together", noting)
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)  # however small the graph
    assert ok("evaluate", run, "--threads", str(number)) == expected
    assert max(asked) == threads.count() == number


def test_training_has_the_same_bits_on_any_number_of_threads(data: Path, run: Path, tmp_path: Path) -> None:
    """The order of every sum is fixed by the batch; see tests/test_threads.py."""
    ok(*TRAIN, "--data", data, "--out", tmp_path / "run", "--threads", "4")
    one, four = (load(folder).model.parameters for folder in (run, tmp_path / "run"))
    assert all(torch.equal(four[table], one[table]) for table in one)


@pytest.mark.parametrize("command", WITH_THREADS)
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("0", "must be at least 1, not 0"),
        ("-1", "must be at least 1, not -1"),
        ("9" * 26, "must be at most"),
        ("two", "'two' is not a whole number"),
        ("1.5", "'1.5' is not a whole number"),
    ],
)
def test_what_is_no_number_of_threads_is_refused(command: str, number: str, reason: str) -> None:
    assert f"argument --threads: {reason}" in refused(command, "x", "--threads", number, status=2)


@pytest.mark.parametrize("number", [threads.MOST + 1, 2**63 - 1])
def test_more_threads_than_any_machine_has_are_refused(number: int, run: Path) -> None:
    """They would be started, or their memory asked for."""
    told = refused("evaluate", run, "--threads", str(number))
    assert told == (
        f"murp: threads must be a whole number from 1 to {threads.MOST:,}, or 0 for as many as the process may use, "
        f"not {number}.\n"
    )


def test_a_command_that_computes_nothing_has_no_such_option(run: Path) -> None:
    assert murp("info", run, "--threads", "1").returncode == 2
