"""The processes of pytest-xdist as copies of the first one, which has imported what all of them need.

A new interpreter takes each of them most of ten processor seconds for imports. One that is started in place of a
process that died is a new interpreter, as are all where there is no ``fork``, and where there is a GPU: CUDA does not
work in a fork of a process that has looked for one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import signal
import sys
import traceback
import types
import warnings
from typing import Any, NoReturn

import torch

from murp import threads

# What takes long to import and is imported while tests are collected. One that is missing here costs time, no more.
HEAVY = (
    "torch._dynamo", "torch.distributed.launcher.api", "numba.np.npyimpl", "scipy.stats", "pandas",
    "sklearn.linear_model", "matplotlib.figure", "fastapi.testclient", "uvicorn", "schemathesis", "playwright.sync_api",
    "geoopt", "networkx", "optuna", "faiss", "duckdb", "polars", "nbclient", "nbconvert", "mkdocstrings",
    "murp.cli.main", "murp.testing", "murp.explorer.app", "murp.serving.app", "murp.paper", "murp.training",
)  # fmt: skip


def prepare(number: int) -> None:
    """Make so many copies; the next processes that xdist asks for are these."""
    if torch.cuda.is_available():
        return
    try:
        from execnet import gateway_io
    except ImportError:
        return
    # These are not promised by execnet. Without them the processes are new interpreters.
    if not hasattr(os, "fork") or not all(hasattr(gateway_io, name) for name in ("create_io", "Popen2IOMaster")):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what others import: nobody reads it here
        for name in HEAVY:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()  # what is shared stays shared
    ready: list[tuple[int, int, int]] = []
    for _ in range(number):
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: OpenBLAS restarts its own
            pid = os.fork()
        if pid == 0:
            for _, *ends in ready:
                for end in ends:  # a process sees that the first one has ended only where no other keeps this open
                    os.close(end)
            os.close(ours_in)
            os.close(ours_out)
            _serve(theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)
        ready.append((pid, ours_in, ours_out))
    new = gateway_io.create_io

    class Copy(gateway_io.Popen2IOMaster):
        def __init__(self, pid: int, write: int, read: int, execmodel: Any) -> None:
            self.pid = pid
            super(gateway_io.Popen2IOMaster, self).__init__(os.fdopen(write, "wb"), os.fdopen(read, "rb"), execmodel)

        def wait(self) -> int | None:
            try:
                return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:
                return None

        def kill(self) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def create_io(spec: Any, execmodel: Any) -> Any:
        if ready and spec.popen and not spec.python:
            return Copy(*ready.pop(0), execmodel)
        return new(spec, execmodel)

    gateway_io.create_io = create_io


def _serve(stdin: int, stdout: int) -> NoReturn:
    """What execnet has a new interpreter do: run the line that it is sent."""
    status = 1
    try:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.close(stdin)
        os.close(stdout)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.argv = ["-c"]
        # A fork keeps murp from PyTorch's threads, which a child lacks. The first process never started any.
        threads._forked = False
        threads.use_torch(threads.count())
        main = sys.modules["__main__"] = types.ModuleType("__main__")  # a child by spawn would run pytest's once more
        exec(eval(sys.stdin.readline()), vars(main))
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        os._exit(status)
