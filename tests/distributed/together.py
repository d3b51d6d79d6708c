"""Some ranks on this machine: forked from this process, so that none has to import PyTorch, and started by torchrun's
own launcher, which finds a free port and starts them again where one fails."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from murp.errors import MurpError

TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def together(work: Callable[..., Any], size: int, *given: Any, restarts: int = 0) -> list[Any]:
    """What ``work`` gives on each rank; an error that it raises stands in the place of that."""
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
    with _signals():
        found = elastic_launch(config, _guarded)(work, restarts, *given)
    return [found[rank] for rank in range(size)]


def _guarded(work: Callable[..., Any], restarts: int, *given: Any) -> Any:
    torch.set_num_threads(1)
    for number in TAKEN:
        signal.signal(number, signal.SIG_DFL)
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        return work(*given)
    except MurpError as error:
        if restarts:
            sys.exit(1)
        return error if error.silent is False else f"silent: {error}"


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """The launcher takes signals for itself and keeps them."""
    before = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
