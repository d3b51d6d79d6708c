"""Ranks on this machine, started by torchrun's own launcher; forked, so that none has to import PyTorch.

The launcher finds a free port, watches the ranks and, if one fails, ends all and starts them again.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

# The launcher takes these for itself, and a forked rank would inherit that.
TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def share() -> None:
    """Import here, once for all ranks that are forked, what each would import by its first step, rank or save."""
    import pandas  # noqa: F401
    import torch._dynamo  # noqa: F401
    from numba.core.registry import cpu_target

    import murp.engines.torch_engine
    import murp.evaluation
    import murp.kernels.numba_products
    import murp.training.sharded  # noqa: F401

    cpu_target.target_context.refresh()  # what Numba loads before its first function
    gc.freeze()  # a rank copies no memory that the collector of garbage would only look through


def launch(work: Callable[..., Any], size: int, *given: Any, restarts: int = 0) -> list[Any]:
    """What ``work`` gives on each of ``size`` ranks; ChildFailedError if one failed more than ``restarts`` times."""
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
    before = {number: signal.getsignal(number) for number in TAKEN}
    try:
        found = elastic_launch(config, _rank)(work, *given)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return [found[rank] for rank in range(size)]


def _rank(work: Callable[..., Any], *given: Any) -> Any:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"  # as torchrun sets it
    for number in TAKEN:
        signal.signal(number, signal.SIG_DFL)
    return work(*given)
