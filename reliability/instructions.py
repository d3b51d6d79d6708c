"""The numeric tests under several choices of instructions: other processors' rounding, on this one.

    python reliability/instructions.py --out results/reliability_instructions.json

The libraries below murp choose their code by the processor, and so the order in which they add and whether they fuse a
product into a sum. Environment variables make them choose otherwise. Each choice here runs the tests that compare
scores, ranks, ties, steps and geometry in a process of its own; ``make test`` runs all of them. What PyTorch chooses
and what MKL chooses, which it calls, are changed in pairs: the usual, the lowest, and one between. Two choices have
other numbers of threads as well. Tests of PyTorch alone run where everything but Numba is the lowest, and with the one
between: what Numba chooses changes nothing for them. Tests through Triton's interpreter are left out: it computes by
NumPy, one operation at a time, and has the same code on every processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from in_effect import PREFIX  # noqa: E402

import measure  # noqa: E402
from murp import threads  # noqa: E402

TESTS = [
    "tests/kernels/test_products.py", "tests/kernels/test_ties.py", "tests/evaluation/test_every_engine.py",
    "tests/evaluation/test_fused_ranks.py", "tests/evaluation/test_ranks.py", "tests/prediction/test_top.py",
    "tests/engines", "tests/geometry", "tests/models/test_scores.py",
]  # fmt: skip
BY_PYTORCH = ["tests/geometry"]  # alone, and on tensors too small to be shared among threads
# Of the tests, what goes through the interpreter, computes nothing (steps on the device ``meta``), or is about memory,
# cost and imports: the instructions change nothing.
WITHOUT = (
    "test_captured_steps or triton or side_by_side or several_tiles or set_back or transformation_near_the_boundary"
    " or compilers or cost_of or never_makes or counts_stay or there_is_room or fits_its_memory"
)
QUICK = ["tests/kernels/test_products.py", "tests/geometry/test_batches.py"]
UNUSED = ("schemathesis", "xdist", "anyio")  # plugins that take long to import
EXAMPLES = 6  # of a property, at most
AT_ONCE = 4  # processes, at most, and no more than there are processors


@dataclass(frozen=True)
class Choice:
    """What is set, and the instructions that the processor needs for it, as LLVM calls them."""

    environment: dict[str, str]
    needs: str = ""
    pytorch: bool = True  # whether the tests of PyTorch alone are run


def _threads(number: int) -> dict[str, str]:
    return {name: str(number) for name in ("MURP_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


ATEN = {"ATEN_CPU_CAPABILITY": "default"}
MKL = {"MKL_CBWR": "COMPATIBLE"}
NUMBA = {"NUMBA_CPU_NAME": "generic"}
# NumPy's own loops (of the names it takes those it knows), its products, and exp, log and pow of the C library.
NUMPY = {
    "NPY_DISABLE_CPU_FEATURES": "FMA3 AVX2 AVX512F AVX512_SKX X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Nehalem",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
}
LOWEST = "the lowest of all"
OLD = ATEN | MKL | NUMPY
CHOICES = {
    LOWEST: Choice(OLD | NUMBA, pytorch=False),  # first: it takes longest, because fma is done in software
    "ATEN_CPU_CAPABILITY=default, MKL_CBWR=COMPATIBLE, NumPy, OpenBLAS, C library without AVX2 and FMA, one thread": (
        Choice(OLD | _threads(1))
    ),
    "ATEN_CPU_CAPABILITY=avx2, MKL_ENABLE_INSTRUCTIONS=SSE4_2, three threads": Choice(
        {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", **_threads(3)}, "avx2"
    ),
    "NUMBA_CPU_NAME=generic": Choice(NUMBA, pytorch=False),
}
_SET = {name for choice in CHOICES.values() for name in choice.environment}


def environment(choice: Choice) -> dict[str, str]:
    """This process's, with what ``choice`` sets and nothing that another would."""
    others = {name: value for name, value in os.environ.items() if name not in _SET}
    paths = [str(ROOT / "reliability"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(path for path in paths if path)
    return {**others, "MURP_EXAMPLES": str(EXAMPLES), "PYTHONPATH": path, **choice.environment}


def tested(choice: Choice, tests: Sequence[str]) -> dict[str, Any]:
    """What took effect under a choice, and how many tests passed, failed and were skipped."""
    if choice.needs and not llvmlite.binding.get_host_cpu_features().get(choice.needs, False):
        return {"not tried": f"this processor does not have {choice.needs}", "failed": 0}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        report = Path(work) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "in_effect", "-m", "not gpu"]
        command += [word for plugin in UNUSED for word in ("-p", f"no:{plugin}")]
        command += ["-rfE", "--tb=short", "-k", f"not ({WITHOUT})", f"--junitxml={report}"]
        command += [test for test in tests if choice.pytorch or test not in BY_PYTORCH]
        done = subprocess.run(command, cwd=ROOT, env=environment(choice), capture_output=True, text=True)
        if not report.exists() or done.returncode not in (0, 1):
            return {"failed": 1, "ended": f"status {done.returncode}", "said": (done.stdout + done.stderr)[-3000:]}
        suite = next(ElementTree.parse(report).iter("testsuite"))
    count = {what: int(suite.attrib[what]) for what in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    return {
        **in_effect(suite),
        "passed": count["tests"] - failed - count["skipped"],
        "failed": failed,
        "seconds": round(time.perf_counter() - began, 1),
        **({"said": done.stdout[-6000:]} if failed else {}),
    }


def in_effect(suite: ElementTree.Element) -> dict[str, str]:
    """What the plugin recorded, by library; Hypothesis records something of its own."""
    told = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    return {name.removeprefix(PREFIX): value for name, value in told.items() if name.startswith(PREFIX)}


def line(name: str, found: dict[str, Any]) -> str:
    """What was chosen, what happened, and what took effect."""
    if "not tried" in found:
        return f"{name}: not tried, {found['not tried']}"
    if "ended" in found:
        return f"{name}: the tests ended with {found['ended']}\n{found['said']}"
    effect = ", ".join(f"{what} {value}" for what, value in found.items() if what not in ("passed", "failed", "said"))
    return f"{name}: {found['passed']} passed, {found['failed']} failed ({effect})\n{found.get('said', '')}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every choice; status 1 where a test failed."""
    parser = measure.parser(__doc__)
    parser.add_argument("--only", action="append", choices=CHOICES, help="one choice; may be given several times")
    options = parser.parse_args(arguments)
    tests = QUICK if options.quick else TESTS
    names = options.only or ([LOWEST] if options.quick else list(CHOICES))
    figures: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(min(threads.available(), AT_ONCE)) as pool:
        for name, found in zip(names, pool.map(lambda name: tested(CHOICES[name], tests), names), strict=True):
            print(line(name, found), flush=True)
            figures[name] = {what: value for what, value in found.items() if what != "said"}
    settings = {"tests": tests, "of PyTorch alone": BY_PYTORCH, "left out": WITHOUT, "examples": EXAMPLES}
    if options.out is not None:
        measure.store(measure.result("numeric tests under choices of instructions", settings, figures), options.out)
    return int(any(found["failed"] for found in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
