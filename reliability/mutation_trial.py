"""The trial of one mutant: a forked process that finds the mistaken text in the place of the module and runs tests.

Third-party packages are imported once, by the process that is forked. Kernels of the GPU run through Triton's
interpreter, those of the CPU are compiled. A mutant of a kernel has a folder of its own for compiled code: in a common
one a kernel that calls the mistaken one would be found as it was compiled before, without the mistake.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.abc
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
TESTS_PASS, CRASHED = 0, 99
_ASLEEP = 3  # times the limit: a thread that waits for another without end takes no time of a processor
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "killed by the time limit"


class _Instead(importlib.abc.MetaPathFinder):
    """Finds the mistaken file where the module is asked for."""

    def __init__(self, module: str, file: Path) -> None:
        self.module, self.file = module, file

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(fullname, self.file) if fullname == self.module else None


class _Brief:
    """A plugin of pytest: few examples, and a failure is not made smaller, since no one reads it."""

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile("brief", settings(), max_examples=40, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("brief")


@cache
def import_what_all_share() -> None:
    """The packages that take long to import and are not ours, once: a forked process has them already."""
    # The compiler is to be quick: what it makes has the same bits at any level.
    os.environ.update(NUMBA_OPT="0", TRITON_INTERPRET="1", OMP_NUM_THREADS="1", MURP_CACHE="off")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they would be imported for every mutant
    import geoopt  # noqa: F401
    import hypothesis.extra.numpy  # noqa: F401
    import mpmath  # noqa: F401
    import numba  # noqa: F401
    import numpy  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401
    import rich.console  # noqa: F401
    import safetensors.torch  # noqa: F401
    import torch
    import torch.distributed.tensor  # by torch.testing, when first used
    import triton  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()  # what is here already needs no looking through in every process


def verdict(module: str, text: str, tests: Sequence[str], limit: float) -> str:
    """What the tests say of the module with this text; it has ``limit`` seconds of processor time."""
    import_what_all_share()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{module.rpartition('.')[2]}.py"
        file.write_text(text, encoding="utf-8")
        compiled = Path(folder) if holds_kernels(module) else _compiled_before()
        status = in_child(lambda: _test(module, file, tests, limit, compiled))
    if os.WIFSIGNALED(status):
        return TIMED_OUT if os.WTERMSIG(status) in (signal.SIGVTALRM, signal.SIGALRM) else KILLED
    return SURVIVED if os.WEXITSTATUS(status) == TESTS_PASS else KILLED


def holds_kernels(module: str) -> bool:
    """Whether compiled code depends on the module: the same ones as in ``murp.compiling``."""
    _, *folders, name = module.split(".")
    return folders == ["kernels"] or name.startswith("numba_") or name == "compiling"


@cache
def _compiled_before() -> Path:
    """A folder for the code of kernels without a mistake, which all other mutants share."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def in_child(work: Callable[[], int]) -> int:
    """The status of ``work`` in a forked process: what is ours is never imported here, or no mutant would be."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os._exit(work())
        os._exit(CRASHED)
    return os.waitpid(child, 0)[1]


def _test(module: str, file: Path, tests: Sequence[str], limit: float, compiled: Path) -> int:
    """In a process of its own: the tests with the mistake, quietly, up to the first that fails."""
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    signal.setitimer(signal.ITIMER_REAL, _ASLEEP * limit)
    os.environ["NUMBA_CACHE_DIR"] = str(compiled)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.meta_path.insert(0, _Instead(module, file))
    import pytest

    return int(pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *tests], [_Brief()]))
