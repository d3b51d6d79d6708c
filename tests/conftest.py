"""What every test shares."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

import copied_interpreter
import copied_workers
import quick_interpreter
from murp import display, threads
from murp.graph import KnowledgeGraph
from trees import tree

# Collecting makes a million objects, and nearly all stay: to look for garbage among them, then and in every later
# search, would take each process a third of the time that it collects for.
gc.disable()

# Tests run side by side on few cores: threads of one would only wait for those of another. Who sets the number of
# threads gets it (reliability/instructions.py does).
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
torch.set_num_threads(threads.count())

# A busy machine makes a slow example, not a wrong one. The examples are the same every time, so that a change is
# judged by itself; MURP_EXPLORE=1 looks for new ones. MURP_EXAMPLES sets how many there are.
settings.register_profile(
    "murp",
    deadline=None,
    derandomize=not os.environ.get("MURP_EXPLORE"),
    max_examples=int(os.environ.get("MURP_EXAMPLES", "100")),
)
settings.load_profile("murp")

# Tests leave nothing in the user's cache; those of the cache switch it on in folders of their own.
os.environ["MURP_CACHE"] = "off"


def pytest_configure(config: pytest.Config) -> None:
    """Only ``-m gpu`` shows a GPU to tests. Others do the same on every machine, and some fork, which CUDA forbids."""
    if config.option.markexpr != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is first imported


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked ``gpu`` is skipped, with its reason, where there is no GPU; one marked ``triton`` is one of them
    where there is a GPU."""
    if torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("triton"):
                item.add_marker(pytest.mark.gpu)
    else:
        if "triton.runtime.interpreter" in sys.modules:  # what has kernels for a GPU was imported while collecting
            quick_interpreter.use()
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and PyTorch sees none here"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[object]) -> None:
    """The processes of a test run begin as copies of this one."""
    copied_workers.prepare(len(specs))
    gc.enable()  # this one collects nothing


def pytest_collection_finish() -> None:
    """From here on garbage is looked for as always, but not among what was imported and collected."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def heard() -> None:
    """A command with --quiet is for its own process; the next test of this one is told everything again."""
    display._quiet = False


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that a test starts by ``subprocess`` is a copy of this process: see ``copied_interpreter.py``."""
    monkeypatch.setattr(subprocess, "Popen", copied_interpreter.Popen)


@pytest.fixture
def benchmark_data() -> Path:
    """The folder of benchmark datasets; tests that use it carry the mark ``data``."""
    folder = os.environ.get("MURP_DATA")
    if not folder:
        pytest.skip("needs benchmark data: set MURP_DATA to a folder with WN18RR, FB15k-237, NELL-995-h100, …")
    return Path(folder)


@pytest.fixture
def small_tree() -> KnowledgeGraph:
    """63 entities, 2 relations, about 94 facts."""
    return tree()


@pytest.fixture(scope="session")
def make_tree() -> Callable[..., KnowledgeGraph]:
    """:func:`tree` for fixtures that outlive a test."""
    return tree
