"""Some ranks on this machine, and what each of them came to."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from murp.errors import MurpError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from local_ranks import launch


def together(work: Callable[..., Any], size: int, *given: Any, restarts: int = 0) -> list[Any]:
    """What ``work`` gives on each rank; a :class:`MurpError` that it raises stands in the place of that.

    None: of a rank that was stopped, because another had failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            launch(_guarded, size, work, folder, restarts, *given, restarts=restarts)
        except ChildFailedError:
            if not any(Path(folder).iterdir()):
                raise
        files = [Path(folder, str(rank)) for rank in range(size)]
        return [pickle.loads(file.read_bytes()) if file.exists() else None for file in files]


def _guarded(work: Callable[..., Any], folder: str, restarts: int, *given: Any) -> None:
    status = 0
    try:
        found = work(*given)
    except MurpError as error:
        found, status = error, 1
    if restarts == 0:
        Path(folder, os.environ["RANK"]).write_bytes(pickle.dumps(found))
    if status:
        os._exit(status)  # as a rank ends that has failed
