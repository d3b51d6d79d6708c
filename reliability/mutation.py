"""Do the tests notice mistakes? Modules with one mistake each, and whether the module's tests fail for it.

    python reliability/mutation.py --out results/reliability_mutation.json
    python reliability/mutation.py --out results/reliability_mutation.json geometry/poincare evaluation/ranks

Third-party packages are imported once; every mutant has a forked process, which finds the mistaken text in the place
of the module and runs the tests that belong to it. Compiled kernels run as Python, those of the GPU through Triton's
interpreter. A mutant is killed if a test fails or the time is up. Named modules are measured anew and replace what
the file says of them. What survives is explained in ``reliability/survivors.toml``.
"""

from __future__ import annotations

import os

os.environ.update(NUMBA_DISABLE_JIT="1", TRITON_INTERPRET="1", OMP_NUM_THREADS="1", MURP_CACHE="off")
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they would be imported for every mutant

import argparse
import ast
import contextlib
import fcntl
import gc
import importlib.abc
import importlib.util
import json
import random
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(Path(__file__).parent)]

from mutants import Mutant, mutants, mutated  # noqa: E402 - beside this file

_SPACES = ["tests/geometry/test_spaces.py", "tests/models/test_scores.py", "tests/engines/test_step.py"]
_RANKS = ["tests/evaluation/test_every_engine.py", "tests/evaluation/test_fused_ranks.py", "-k"]
_NUMBA_STEPS = [
    "tests/engines/test_small_steps.py",
    "tests/engines/test_fused.py",
    "-k",
    "small_steps or numba and (torch_steps or boundary)",
]
_TRITON_STEPS = [
    "tests/engines/test_triton_math.py",
    "tests/engines/test_fused.py",
    "-k",
    "triton_math or every_transformation or several_tiles or set_back or draws or side_by_side and mure",
]
# What is mutated, and the tests that are asked.
MODULES: dict[str, list[str]] = {
    "geometry/poincare": ["tests/geometry", "--ignore=tests/geometry/test_lorentz.py"],
    "geometry/euclidean": [*_SPACES, "tests/geometry/test_batches.py"],
    "geometry/spaces": _SPACES,
    "geometry/lorentz": ["tests/geometry/test_batches.py", "tests/geometry/test_lorentz.py"],
    "geometry/disk": ["tests/geometry/test_batches.py", "tests/geometry/test_disk_laws.py"],
    "engines/step": ["tests/engines/test_step.py"],
    "engines/numba_math": _NUMBA_STEPS,
    "engines/numba_murp": _NUMBA_STEPS,
    "engines/numba_mure": _NUMBA_STEPS,
    "engines/triton_math": _TRITON_STEPS,
    "engines/triton_ball": _TRITON_STEPS,
    "engines/triton_gradient": _TRITON_STEPS,
    "engines/triton_update": _TRITON_STEPS,
    "evaluation/filter": ["tests/evaluation/test_known_facts.py", "tests/evaluation/test_ranks.py"],
    "evaluation/ranks": ["tests/evaluation/test_ranks.py", "tests/evaluation/test_every_engine.py", "-k", "not triton"],
    "evaluation/metrics": ["tests/evaluation/test_reports.py"],
    "evaluation/fused": [*_RANKS, "every_engine and not triton or only_the_published or fits or products"],
    "evaluation/numba_ranks": [*_RANKS, "every_engine and numba or logarithm or infinite and numba"],
}
TESTS_PASS, CRASHED = 0, 99
UNEXPLAINED = "not explained"
# How the explanation of a mutant begins that no test could kill: the same results, or the same but slower.
HARMLESS = ("equivalent", "speed")
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


def import_what_all_share() -> None:
    """The packages that take long to import and are not ours: a forked process has them already."""
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
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{module.rpartition('.')[2]}.py"
        file.write_text(text, encoding="utf-8")
        status = _in_child(lambda: _test(module, file, tests, limit))
    if os.WIFSIGNALED(status):
        return TIMED_OUT if os.WTERMSIG(status) == signal.SIGVTALRM else KILLED
    return SURVIVED if os.WEXITSTATUS(status) == TESTS_PASS else KILLED


def _in_child(work: Callable[[], int]) -> int:
    """The status of ``work`` in a forked process: what is ours is never imported here, or no mutant would be."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os._exit(work())
        os._exit(CRASHED)
    return os.waitpid(child, 0)[1]


def _test(module: str, file: Path, tests: Sequence[str], limit: float) -> int:
    """In a process of its own: the tests with the mistake, quietly, up to the first that fails."""
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.meta_path.insert(0, _Instead(module, file))
    import pytest

    if module.startswith("murp.engines"):
        from murp.engines import numba_engine

        numba_engine._compile = lambda model: None
    return int(pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *tests], [_Brief()]))


def check(name: str, most: int, seed: int, limit: float) -> dict[str, Any]:
    """The figures of one module: ``most`` of its mutants, drawn by ``seed``."""
    path = ROOT / "src" / "murp" / f"{name}.py"
    module, text = f"murp.{name.replace('/', '.')}", path.read_text(encoding="utf-8")
    # Written from its tree as the mutants are, so that a mutant differs from it in its mistake alone.
    if (sound := verdict(module, ast.unparse(ast.parse(text)), MODULES[name], 10 * limit)) != SURVIVED:
        raise SystemExit(f"{name}: its tests do not pass as it is ({sound}): {' '.join(MODULES[name])}")
    every = mutants(text)
    drawn = random.Random(f"{seed} {name}").sample(every, min(most, len(every)))
    began = time.process_time() + os.times().children_user
    verdicts = [(mutant, verdict(module, mutated(text, mutant), MODULES[name], limit)) for mutant in drawn]
    survivors = [mutant for mutant, said in verdicts if said == SURVIVED]
    lines = text.splitlines()
    return {
        "exist": len(every),
        "tried": len(drawn),
        "killed": len(drawn) - len(survivors),
        "of which by the time limit": sum(said == TIMED_OUT for _, said in verdicts),
        "processor seconds": round(time.process_time() + os.times().children_user - began),
        "survivors": [_survivor(name, mutant, lines) for mutant in survivors],
    }


def _survivor(name: str, mutant: Mutant, lines: list[str]) -> dict[str, Any]:
    # A line's text and not its number, so that an explanation outlives an edit elsewhere.
    key = f"{name}: {lines[mutant.line - 1].strip()}: {mutant.column}: {mutant.change}"
    return {"key": key, "line": mutant.line}


def summary(modules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """All modules together, and by folder."""
    folders = sorted({name.partition("/")[0] for name in modules})
    parts = {folder: [m for name, m in modules.items() if name.startswith(folder)] for folder in folders}
    parts["all"] = list(modules.values())
    return {folder: _together(part) for folder, part in parts.items()}


def _together(modules: list[dict[str, Any]]) -> dict[str, Any]:
    """Two shares: of all that were tried, and of those that are no other way to write the same (``HARMLESS``)."""
    counts = {count: sum(module[count] for module in modules) for count in ("exist", "tried", "killed")}
    survivors = [survivor for module in modules for survivor in module["survivors"]]
    harmless = sum(survivor["explanation"].startswith(HARMLESS) for survivor in survivors)
    return {
        **counts,
        "harmless": harmless,
        "not explained": sum(survivor["explanation"] == UNEXPLAINED for survivor in survivors),
        "share killed": round(counts["killed"] / counts["tried"], 3),
        "share killed of those not harmless": round(counts["killed"] / max(1, counts["tried"] - harmless), 3),
    }


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Several of these may measure different modules at once; one at a time adds to the file."""
    with (Path(tempfile.gettempdir()) / f"{out.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("modules", nargs="*", help=f"of {', '.join(MODULES)}; by default all")
    options.add_argument("--out", type=Path, help="write the result here")
    options.add_argument("--most", type=int, default=24, help="mutants of each module")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--limit", type=float, default=60, help="seconds of processor time a mutant has")
    options.add_argument("--quick", action="store_true", help="two mutants of one module: does it run at all?")
    given = options.parse_args()
    names, most = (["geometry/lorentz"], 2) if given.quick else (given.modules or list(MODULES), given.most)
    import_what_all_share()
    settings = {"seed": given.seed, "limit in seconds": given.limit}
    for name in names:
        found = check(name, most, given.seed, given.limit)
        print(f"{name}: {found['killed']} of {found['tried']} killed, {found['exist']} exist", file=sys.stderr)
        for survivor in found["survivors"]:
            print(f"  {survivor['line']}: {survivor['key']}", file=sys.stderr)
        if given.out is not None:
            with _alone(given.out):
                if _in_child(partial(_add, given.out, settings, name, found)) != 0:
                    raise SystemExit(f"{given.out} could not be written.")


def _add(out: Path, settings: dict[str, Any], name: str, found: dict[str, Any]) -> int:
    from measure import result
    from murp.files import write_text

    before = json.loads(out.read_text(encoding="utf-8"))["figures"]["modules"] if out.exists() else {}
    modules = {n: m for n, m in {**before, name: found}.items() if n in MODULES}
    explained = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text(encoding="utf-8"))
    for survivor in (survivor for module in modules.values() for survivor in module["survivors"]):
        survivor["explanation"] = explained.get(survivor["key"], UNEXPLAINED)
    modules = dict(sorted(modules.items(), key=lambda item: list(MODULES).index(item[0])))
    figures = {"modules": modules, "together": summary(modules)}
    write_text(out, json.dumps(result("mutation", settings, figures), indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    main()
