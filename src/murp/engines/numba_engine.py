"""The Numba engine: MuRP and MuRE on the CPU, fused and compiled; see :mod:`murp.engines.numba_murp`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from murp.compiling import say
from murp.engines import numba_math, numba_mure, numba_murp
from murp.engines.engine import Chunk
from murp.geometry import PoincareBall
from murp.geometry.poincare import limit_radius, set_back_radius
from murp.models import MODELS, MultiRelational

TABLES = ("entity", "subject_stretch", "translation", "subject_bias", "object_bias")
# Below this a gradient of the loss by a score is lost: see :func:`murp.engines.numba_murp.murp_steps`.
TINY = {torch.float32: 1e-17, torch.float64: 0.0}
MURE_SPACE = (
    "moved", "of_phi", "s_gradient", "m_gradient", "r_gradient", "s_bias_gradient", "losses", "head", "following",
    "rows", "relation_head", "relation_rows", "scratch",
)  # fmt: skip


class NumbaEngine:
    """Steps of the published MuRP or MuRE; the same bits whatever the number of threads."""

    name = "numba"

    def __init__(self, model: MultiRelational) -> None:
        self.model = model
        self.workspaces: dict[tuple[int, int], dict[str, Any]] = {}
        _compile(model)

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`; this engine has one model."""
        (chunk,), (lr,) = chunks, rates
        return self.steps(chunk.positives, chunk.draw(), lr)[None]

    def steps(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """One step after another on positives (S, B, 3) and negatives (S, B, k); the sum of their mean losses."""
        shape = (positives.shape[1], negatives.shape[2])
        if shape not in self.workspaces:
            self.workspaces[shape] = _workspace(self.model, *shape)
        return _steps(self.model, positives, negatives, lr, self.workspaces[shape])


def _steps(model: MultiRelational, positives: Tensor, negatives: Tensor, lr: float, space: dict[str, Any]) -> Tensor:
    tables = [model.parameters[name].numpy() for name in TABLES]
    arrays = (positives.contiguous().numpy(), negatives.contiguous().numpy(), *tables, float(lr))
    if isinstance(model.geometry, PoincareBall):
        bounds = (model.geometry.c, limit_radius(model.dtype), set_back_radius(model.dtype))
        total = numba_murp.murp_steps(*arrays, *bounds, TINY[model.dtype], *space.values())
    else:
        total = numba_mure.mure_steps(*arrays, TINY[model.dtype], *(space[name] for name in MURE_SPACE))
    return torch.tensor(total, dtype=torch.float64)


def _workspace(model: MultiRelational, size: int, false: int) -> dict[str, Any]:
    """Every array a step writes to beside the tables, made once: no allocation while training."""
    dtype = model.parameters["entity"].numpy().dtype
    threads = numba.config.NUMBA_NUM_THREADS
    occurrences = size * (2 + false)

    def rows(number: int) -> Any:
        return np.zeros((number, model.dim), dtype=dtype)

    return {
        "moved": rows(size),
        "r_copy": rows(size),
        "of_x": np.zeros(occurrences, dtype=dtype),
        "of_r": np.zeros(occurrences, dtype=dtype),
        "of_self": np.zeros(occurrences),
        "of_phi": np.zeros(occurrences),
        "s_gradient": rows(size),
        "m_gradient": rows(size),
        "r_gradient": rows(size),
        "s_bias_gradient": np.zeros(size),
        "losses": np.zeros(size),
        "head": torch.full((model.num_entities,), -1, dtype=torch.int32).numpy(),  # on large pages, where there are
        "following": np.zeros(occurrences, dtype=np.int32),
        "rows": np.zeros(occurrences, dtype=np.int64),
        "relation_head": np.full(model.num_relations, -1, dtype=np.int32),
        "relation_rows": np.zeros(size, dtype=np.int64),
        "scratch": rows(threads),
        "products": np.zeros((threads, 3, 1 + false), dtype=dtype),
    }


def _compile(model: MultiRelational) -> None:
    """See to it that the kernel for this kind of model comes from Numba's cache.

    Code that Numba has just compiled and the same code loaded from its cache are optimised differently and differ in
    how they round. So that the first run on a machine has the bits of every later one, another process compiles.
    """
    kind, module = ("murp", numba_murp) if isinstance(model.geometry, PoincareBall) else ("mure", numba_mure)
    kernel = getattr(module, f"{kind}_steps")
    cache = Path(kernel.stats.cache_path)
    sources = [Path(str(part.__file__)).stat() for part in (module, numba_math)]
    state = "-".join(f"{source.st_mtime_ns}-{source.st_size}" for source in sources)
    # Numba keeps what it compiled for one kind of processor apart from what it compiled for another.
    processor = zlib.crc32(repr(kernel.targetctx.codegen().magic_tuple()).encode())
    versions = f"{numba.__version__}-{sys.version_info[0]}{sys.version_info[1]}-{processor:08x}-{state}"
    done = cache / f"murp-{kind}-{model.dtype}-{versions}.compiled"
    if done.exists():
        return
    _drop_older(cache, f"{module.__name__.rpartition('.')[2]}.{kernel.__name__}-*", max(s.st_mtime for s in sources))
    say("the training step")
    code = f"from murp.engines.numba_engine import compile_here; compile_here({kind!r}, {str(model.dtype)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    with contextlib.suppress(OSError):  # a cache that cannot be written: every process compiles, all alike
        done.touch()


def _drop_older(cache: Path, pattern: str, time: float) -> None:
    """Remove what was compiled before ``time``: Numba asks how old a kernel's own file is, not the one it imports."""
    with contextlib.suppress(OSError):
        for compiled in cache.glob(pattern):
            if compiled.stat().st_mtime < time:
                compiled.unlink(missing_ok=True)


def compile_here(kind: str, dtype: str) -> None:
    """Compile one kernel in this process, which leaves it in the cache."""
    model = MODELS[kind](1, 1, 1, dtype=getattr(torch, dtype.removeprefix("torch.")))
    model.initialise(0)
    one = torch.zeros(1, 1, 3, dtype=torch.int64)
    _steps(model, one, one[:, :, :1], 0.0, _workspace(model, 1, 1))
