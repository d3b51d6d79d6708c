"""Some ranks on this machine: forked from this process, so that none has to import PyTorch, and started by torchrun's
own launcher, which finds a free port and starts them again where one fails."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from murp.errors import MurpError

TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def together(work: Callable[..., Any], size: int, *given: Any, restarts: int = 0) -> list[Any]:
    """What ``work`` gives on each rank; a :class:`MurpError` that it raises stands in the place of that.

    None: of a rank that was stopped, because another had failed.
    """
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=size,
        run_id="murp",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        monitor_interval=0.05,
        start_method="fork",
        logs_specs=DefaultLogsSpecs(),
        local_addr="localhost",
    )
    with tempfile.TemporaryDirectory() as folder, _signals():
        try:
            elastic_launch(config, _guarded)(work, folder, restarts, *given)
        except ChildFailedError:
            if not any(Path(folder).iterdir()):
                raise
        files = [Path(folder, str(rank)) for rank in range(size)]
        return [pickle.loads(file.read_bytes()) if file.exists() else None for file in files]


def _guarded(work: Callable[..., Any], folder: str, restarts: int, *given: Any) -> None:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    for number in TAKEN:
        signal.signal(number, signal.SIG_DFL)
    status = 0
    try:
        found = work(*given)
    except MurpError as error:
        found, status = error, 1
    if restarts == 0:
        Path(folder, os.environ["RANK"]).write_bytes(pickle.dumps(found))
    if status:
        os._exit(status)  # as a rank ends that has failed


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """The launcher takes signals for itself and keeps them."""
    before = {number: signal.getsignal(number) for number in TAKEN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
