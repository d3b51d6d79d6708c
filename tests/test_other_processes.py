"""A process that has trained, evaluated and predicted, then its children, its threads: the same numbers everywhere.

Where the loops shared their work by a library of threads (commit 535de4f) a forked child was ended by SIGTERM in its
first loop, which training took for Ctrl-C, and evaluation read memory that nothing had been written to.

Why bits are compared: each operation of the compiled loops is one that IEEE 754 defines to the bit, in an order that
the batch fixes, and ``tanh`` and ``atanh`` come from the same library in parent and child. PyTorch's own operations may
use other instructions on another number of threads. In float64 each rounds by 1.1e-16. Three epochs have 30 steps
of some hundred operations one after another; were every rounding to go the same way and to grow a thousand times in
later steps, that would be 4e-10. Figures of the engine ``torch`` have to agree to 1e-9.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from murp import threads
from murp.errors import MurpError
from murp.evaluation import evaluate, numba_ranks
from murp.graph import KnowledgeGraph
from murp.models import MODELS
from murp.prediction import numba_top, top_objects
from other_process import ENGINES, PATIENCE, all_figures, figures

METHODS = ("fork", "spawn", "forkserver")


def assert_same(engine: str, found: Any, expected: Any) -> None:
    """Bit for bit, or to nine digits: see this module."""
    if engine == "numba":
        assert found == expected
        return
    assert (found.keys(), found["predicted"]) == (expected.keys(), expected["predicted"])
    for name in ("epochs", "scores", "mrr", "mr"):
        assert found[name] == pytest.approx(expected[name], rel=1e-9), name
    for name, values in expected["tables"].items():
        torch.testing.assert_close(torch.tensor(found["tables"][name]), torch.tensor(values), rtol=1e-9, atol=1e-9)


@pytest.fixture(autouse=True, scope="module")
def _two_threads() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_WORTH_A_THREAD", 1)
        threads.use(2)
        yield
    threads.use(0)
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def expected(_two_threads: None) -> dict[str, Any]:
    """What this process finds."""
    return all_figures()


def test_a_child_finds_what_its_parent_found(expected: dict[str, Any]) -> None:
    command = [sys.executable, str(Path(__file__).with_name("other_process.py")), *METHODS]
    parent = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = parent.communicate(timeout=4 * PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate()
        pytest.fail("the parent or one of its children hangs")
    assert parent.returncode == 0, err
    for (method, told), engine in itertools.product(json.loads(out).items(), ENGINES):
        assert "error" not in told["child"], (method, told["child"]["error"])
        if method == "fork" and engine == "torch" and torch.cuda.is_available() and "error" in told["child"][engine]:
            # Beside a GPU PyTorch differentiates on threads of its own, and refuses to in a forked child.
            assert "fork" in told["child"][engine]["error"]
            continue
        for process in ("parent", "child", "parent again"):
            assert_same(engine, told[process][engine], expected[engine])


@pytest.mark.parametrize("number", [1, 4])
def test_threads_find_what_the_process_found(number: int, expected: dict[str, Any]) -> None:
    found: list[dict[str, Any]] = []
    started = [threading.Thread(target=lambda: found.append(all_figures()), daemon=True) for _ in range(number)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(PATIENCE)
    assert len(found) == number, "a thread hangs, or failed"
    for answer in found:
        for engine in ENGINES:
            assert_same(engine, answer[engine], expected[engine])


def test_tasks_find_what_the_process_found(expected: dict[str, Any]) -> None:
    async def both() -> list[dict[str, Any]]:
        tasks = [asyncio.to_thread(figures, engine) for engine in ENGINES]
        return await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)

    for engine, found in zip(ENGINES, asyncio.run(both()), strict=True):
        assert_same(engine, found, expected[engine])


def test_a_fork_within_a_block_of_pytorch_alone_leaves_the_child_a_whole_state() -> None:
    """The child goes on in the block and out of it; nothing there waits for a lock or for threads of the parent."""
    reader, writer = os.pipe()
    with threads.torch_alone():
        child = os.fork()
        if child == 0:
            os.close(reader)
    if child == 0:
        try:
            with threads.torch_alone(), threads.torch_alone():
                pass
            os.write(writer, f"{torch.get_num_threads()} {threads._inside}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    assert (told, torch.get_num_threads(), threads._inside) == ("1 0", 2, 0)


def untouched(*_: Any) -> None:
    """A kernel that does not run."""


@pytest.mark.parametrize("name", MODELS)
def test_ranks_that_were_never_counted_become_no_metric(
    name: str, small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS[name](small_tree.num_entities, 2 * small_tree.num_relations, 3, dtype=torch.float64).initialise(0)
    assert math.isfinite(evaluate(model, small_tree).mrr)
    monkeypatch.setattr(numba_ranks, "_ranks", untouched)
    with pytest.raises(MurpError, match=r"18 of 18 ranks do not lie between 1 and 63, so a part .* --threads 1"):
        evaluate(model, small_tree)


@pytest.mark.parametrize("wrong", [0.0, 0.5, 63.5, 64.0, 1e-10, -1.0, math.inf, -math.inf])
def test_one_impossible_rank_is_enough(
    wrong: float, small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS["murp"](63, 4, 3, dtype=torch.float64).initialise(0)
    ball = numba_ranks.ball

    def spoiled(*arguments: Any) -> torch.Tensor:
        ranks = ball(*arguments)
        ranks[-1] = wrong
        return ranks

    monkeypatch.setattr(numba_ranks, "ball", spoiled)
    with pytest.raises(MurpError, match="1 of 18 ranks do not lie"):
        evaluate(model, small_tree)


@pytest.mark.parametrize("name", MODELS)
def test_answers_that_were_never_looked_for_are_no_prediction(
    name: str, small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS[name](small_tree.num_entities, 2 * small_tree.num_relations, 3, dtype=torch.float64).initialise(0)
    query = np.array([3, 40]), np.array([0, 1])
    assert top_objects(model, *query, 3).entities.shape == (2, 3)
    monkeypatch.setattr(numba_top, "_best", untouched)
    with pytest.raises(MurpError, match=r"a part of the search did not run.* --threads 1"):
        top_objects(model, *query, 3)
