"""What every stored result carries, whoever writes it: which code made it, and on what machine."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from murp.provenance import code
from murp.runs.folder import environment

# What computes beside PyTorch, or is compared with.
PACKAGES = ("numba", "triton", "pyarrow", "geoopt", "pykeen")
CPU = torch.device("cpu")


def stamp(device: torch.device = CPU) -> dict[str, Any]:
    """Everything of :func:`murp.provenance.code`, and the ``machine``: hardware, and the versions of what computes."""
    machine = environment(device)
    del machine["started"], machine["source"]  # said beside it
    for package in PACKAGES:
        try:
            machine[package] = version(package)
        except PackageNotFoundError:
            continue
    return {**code(), "machine": machine}
