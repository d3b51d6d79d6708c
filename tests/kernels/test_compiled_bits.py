"""What the compiler makes of the kernels: the same bits fresh and kept, on this processor and on the plainest.

Every operation of a kernel is one that IEEE 754 defines to the bit, in an order that is written down, and no flag lets
the compiler change it. The exceptions are ``tanh`` and ``atanh``, which are calls of the system's library: the same one
in all processes of a machine. So digests of all bits are compared.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compiled_bits import CASES, digest, kernels

import murp
from examples import PATIENCE
from murp import compiling

PACKAGE = Path(murp.__file__).parent


def elsewhere(cache: Path, *cases: str, **variables: str) -> list[dict[str, Any]]:
    """What two processes find, one after the other, that keep their compiled code in ``cache``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    environment = {**kept, "NUMBA_CACHE_DIR": str(cache), **variables}
    command = [sys.executable, str(Path(__file__).with_name("compiled_bits.py")), *cases]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_bits_are_the_same_fresh_and_kept_and_on_the_plainest_processor(tmp_path: Path) -> None:
    """The plainest has no wide vectors, and on x86 no instruction for ``fma``, which is then a call.

    Two processes: the first compiles and keeps, the second takes what is kept. Numba looks at every index there. It
    does not elsewhere: a row past the last would be read in silence. One thread, since others would wait for the one
    that stops. What leaves the compiler a choice would stand in its input, which no processor changes.
    """
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_BOUNDSCHECK": "1", "MURP_NUM_THREADS": "1"}
    # Each model in one type of number: compiling is most of what this takes, and goes with the types.
    cases = [case for case in CASES if case.endswith("float32")]
    fresh, kept = elsewhere(tmp_path, *cases, **plain)
    assert fresh["compiled"] > 15
    assert kept["compiled"] == 0
    assert fresh["loose"] == []
    assert fresh["digests"] == kept["digests"] == {case: digest(*case.split()) for case in cases}


def modules_with_kernels() -> list[str]:
    """Modules that use :mod:`murp.compiling`."""
    return sorted(
        ".".join(("murp", *source.relative_to(PACKAGE).with_suffix("").parts))
        for source in PACKAGE.rglob("*.py")
        if "import" in (text := source.read_text()) and re.search(r"from murp\.compiling import .*kernel", text)
    )


def test_a_change_of_any_kernel_is_noticed_where_compiled_code_is_kept() -> None:
    """Numba itself looks at the file of a kernel alone, not at those of the kernels that it calls."""
    noticed = {source.relative_to(PACKAGE.parent) for source in compiling._sources()}
    assert {Path(*name.split(".")).with_suffix(".py") for name in modules_with_kernels()} <= noticed


def test_every_kernel_is_compiled_by_the_rules() -> None:
    modules = modules_with_kernels()
    assert "murp.engines.numba_steps" in modules
    for module in modules:
        importlib.import_module(module)
    made = kernels()
    assert {kernel.py_func.__module__ for kernel in made.values()} >= set(modules)
    assert {Path(inspect.getfile(kernel.py_func)) for kernel in made.values()} <= {*compiling._sources()}
    for name, kernel in made.items():
        options = kernel.targetoptions
        assert (options["nopython"], options["nogil"], options["error_model"]) == (True, True, "numpy"), name
        assert not options["fastmath"], name
        assert not options.get("parallel"), name


@pytest.mark.parametrize("word", ["njit", "jit(", "vectorize", "fastmath", "prange"])
def test_nothing_is_compiled_past_the_rules(word: str) -> None:
    """Only :mod:`murp.compiling` speaks to Numba's compiler; kernels of GPUs have Triton's."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(word)}|numba\.{re.escape(word)}")
    users = {source.name for source in PACKAGE.rglob("*.py") if pattern.search(source.read_text())}
    assert users <= {"compiling.py"}
