"""Some ranks on this machine, and what each of them came to.

They are forked from a process that has imported everything and computed nothing: one that tests have run in may have
threads, or locks of libraries, that a forked rank would wait for without end.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from murp.errors import MurpError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from local_ranks import launch


def on_ranks(work: Callable[..., Any], size: int, *given: Any, restarts: int = 0) -> list[Any]:
    """What ``work`` gives on each rank; a :class:`MurpError` that it raises stands in the place of that.

    None: of a rank that was stopped, because another had failed.
    """
    context = _context()
    with tempfile.TemporaryDirectory() as folder:
        launcher = context.Process(target=_launched, args=(work, size, folder, restarts, given))
        launcher.start()
        launcher.join()
        files = [Path(folder, str(rank)) for rank in range(size)]
        found = [pickle.loads(file.read_bytes()) if file.exists() else None for file in files]
        assert launcher.exitcode == 0 or any(one is not None for one in found), "the ranks failed"
        return found


@cache
def _context() -> Any:
    """Python 3.11 does not hand its path on to the process that is forked, and ignores what that cannot import."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["before_ranks"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


def _launched(work: Callable[..., Any], size: int, folder: str, restarts: int, given: tuple[Any, ...]) -> None:
    assert "before_ranks" in sys.modules
    try:
        launch(_guarded, size, work, folder, restarts, *given, restarts=restarts)
    except ChildFailedError:
        sys.exit(1)


def _guarded(work: Callable[..., Any], folder: str, restarts: int, *given: Any) -> None:
    status = 0
    try:
        found = work(*given)
    except MurpError as error:
        found, status = error, 1
    if restarts == 0:
        whole = Path(folder, os.environ["RANK"])
        part = whole.with_suffix(".part")  # torchrun may stop this rank while it writes
        part.write_bytes(pickle.dumps(found))
        part.replace(whole)
    if status:
        os._exit(status)  # as a rank ends that has failed
