"""Every reader under 100,000 and more damaged inputs: a result or a clear refusal, no traceback, no hang, no memory.

    python reliability/fuzz.py --out results/reliability_fuzz.json
    python reliability/fuzz.py --only "triples .csv" --input 4711     # one input again, with its traceback

Each reader has a process of its own with a bound on its memory; inputs follow from seed, reader and number, so that
a failure can be repeated. A reader that dies or hangs on an input is started again behind it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmarks")]
os.environ |= {"MURP_CACHE": "off", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import torch  # noqa: E402
from fuzz_explorer import make_explorer  # noqa: E402
from fuzz_files import FILES  # noqa: E402
from fuzz_graphs import GRAPHS  # noqa: E402
from fuzz_oracle import Make  # noqa: E402
from fuzz_service import make_service, make_wire  # noqa: E402
from numba.core.registry import cpu_target  # noqa: E402

from measure import parser, result, store  # noqa: E402

READERS: dict[str, tuple[int, Make]] = {
    **FILES,
    **GRAPHS,
    "explorer requests": (5_000, make_explorer),
    "service requests": (5_000, make_service),
    "service connections": (500, make_wire),
}
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a folder in memory, where there is one
SECONDS = 10  # an input may take, those not counted in which other programs had the processor
MEMORY = 2 << 30  # address space a reader may take on top of what the libraries have
GROWTH_MIB = 512  # resident memory it may come to hold


class Hang(BaseException):
    """An input took too long."""


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", choices=READERS, help="one reader")
    options.add_argument("--input", type=int, help="one input of it, in this process")
    chosen = options.parse_args(arguments)
    torch.set_num_threads(1)
    if chosen.input is not None:
        return again(chosen)
    cpu_target.target_context.refresh()  # what Numba loads before its first function, once for all children
    gc.freeze()  # nor does a child copy what it would only look through
    found = {
        name: fuzzed(name, make, 5 if chosen.quick else inputs, chosen.seed)
        for name, (inputs, make) in READERS.items()
        if chosen.only in (None, name)
    }
    counts = ("inputs", "accepted", "refused")
    figures = {
        **{count: sum(reader[count] for reader in found.values()) for count in counts},
        "failures": sum(len(reader["failures"]) for reader in found.values()),
        "slowest_ms": max(reader["slowest_ms"] for reader in found.values()),
        "memory_growth_mib": max(reader["memory_growth_mib"] for reader in found.values()),
        "readers": found,
    }
    settings = {
        "seed": chosen.seed,
        "seconds_an_input": SECONDS,
        "memory_bound_mib": MEMORY >> 20,
        "quick": chosen.quick,
    }
    store(result("damaged input to every reader", settings, figures), chosen.out)
    if figures["failures"]:
        sys.exit(f"{figures['failures']} inputs made a reader fail.")


def again(chosen: argparse.Namespace) -> None:
    """One input in this process, for a debugger."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
        attempt = READERS[chosen.only][1](Path(scratch))
        print("accepted" if attempt(random_of(chosen.seed, chosen.only, chosen.input)) else "refused")


def random_of(seed: int, name: str, number: int) -> Random:
    return Random(f"{seed} {name} {number}")


class Board:
    """What a reader's process has done so far, where its parent sees it even after its death."""

    FIELDS = ("next", "accepted", "refused", "slowest", "growth")

    def __init__(self) -> None:
        self.shared = mmap.mmap(-1, mmap.PAGESIZE)

    def __getitem__(self, field: str) -> float:
        return float(struct.unpack_from("d", self.shared, 8 * self.FIELDS.index(field))[0])

    def __setitem__(self, field: str, value: float) -> None:
        struct.pack_into("d", self.shared, 8 * self.FIELDS.index(field), value)


def fuzzed(name: str, make: Make, inputs: int, seed: int) -> dict[str, Any]:
    """One reader under ``inputs`` inputs."""
    began, board, failures = time.perf_counter(), Board(), []
    with tempfile.TemporaryDirectory(prefix="murp-fuzz-", dir=SCRATCH) as scratch:
        log = Path(scratch) / "failures"
        log.touch()
        while board["next"] < inputs:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    work(name, make, inputs, seed, board, log, Path(tempfile.mkdtemp(dir=scratch)))
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)
            if (death := watched(child, board)) is not None:
                failures.append({"input": int(board["next"]), "error": death})
                board["next"] += 1
                if len(failures) > 20:
                    break
        failures += [json.loads(line) for line in log.read_text().splitlines()]
    if board["growth"] > GROWTH_MIB:
        failures.append({"input": None, "error": f"memory grew by {board['growth']:.0f} MiB"})
    elapsed = time.perf_counter() - began
    print(f"{name}: {inputs} inputs in {elapsed:.1f} s, {len(failures)} failures", file=sys.stderr, flush=True)
    return {
        "inputs": int(board["accepted"] + board["refused"]) + len(failures),
        "accepted": int(board["accepted"]),
        "refused": int(board["refused"]),
        "failures": failures,
        "per_second": round(inputs / elapsed),
        "slowest_ms": round(1e3 * board["slowest"], 1),
        "memory_growth_mib": round(board["growth"], 1),
    }


def watched(child: int, board: Board) -> str | None:
    """Wait for a reader's process; how it died, if it did, or that it had to be stopped."""
    seen, since = -1.0, time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if code == 0 else f"the process ended with {code}"
        if board["next"] != seen:
            seen, since = board["next"], time.monotonic()
        elif time.monotonic() - since > 30 * SECONDS:  # however busy the machine is
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hung where no signal reaches"
        time.sleep(0.05)


def work(name: str, make: Make, inputs: int, seed: int, board: Board, log: Path, scratch: Path) -> None:
    """What a reader's process does."""

    def alarm(*_: object) -> None:
        if (left := SECONDS - (_own_time() - began)) <= 0:
            raise Hang(f"took more than {SECONDS} s")
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    def fail(number: int, error: BaseException) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1:]
        place = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in where)
        with log.open("a") as file:
            file.write(
                json.dumps({"input": number, "error": f"{type(error).__name__}: {str(error)[:300]}{place}"}) + "\n"
            )

    signal.signal(signal.SIGALRM, alarm)
    # A library that prints a traceback and goes on shows it to the user all the same.
    sys.unraisablehook = lambda hidden: fail(int(board["next"]), hidden.exc_value or Hang("an exception was ignored"))
    attempt = make(scratch)
    for warm in range(3):
        with contextlib.suppress(Exception):
            attempt(random_of(seed, "warm-up", warm))
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + MEMORY,) * 2)
    before, began = _memory("VmRSS"), 0.0
    while board["next"] < inputs:
        number = int(board["next"])
        random = random_of(seed, name, number)
        began = _own_time()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            outcome = "accepted" if attempt(random) else "refused"
            board[outcome] += 1
        except BaseException as error:
            fail(number, error)
        signal.setitimer(signal.ITIMER_REAL, 0)
        board["slowest"] = max(board["slowest"], _own_time() - began)
        board["next"] += 1
    board["growth"] = max(board["growth"], (_memory("VmHWM") - before) / 2**20)


def _own_time() -> float:
    """A clock in seconds that stands while this thread is ready and others have the processor (where Linux tells)."""
    waited = 0
    with contextlib.suppress(OSError, IndexError, ValueError):
        waited = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    return time.perf_counter() - waited / 1e9


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
