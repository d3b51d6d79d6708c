"""Training and evaluation beside other busy processes, and with a quota of half a core: default threads against one.

    MURP_DATA=… python benchmarks/cpu_neighbours.py --out results/cpu_neighbours.json

A neighbour is a process with a busy loop. Beside 0, 1, 2 and 4 of them, and with the quota, default threads and one
thread run in turns in one process; the result is the ratio. The quota needs permission to make a control group (version
1 or 2); without it that part is left out, and the result says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measure import parser, result, spread, store

NEIGHBOURS = (0, 1, 2, 4)
QUOTA, PERIOD = 50_000, 100_000
GROUP = "murp-benchmark"
BUSY, IDLE = "while True: pass", "import time; time.sleep(3600)"  # a toy's neighbours take nothing from other tests
THREADS = {"default threads": 0, "one thread": 1}
ROUNDS = 5


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="WN18RR")
    options.add_argument("--work", help="only measure, and print seconds: what the processes in turn are started with")
    chosen = options.parse_args(arguments)
    if chosen.work:
        print(json.dumps(measured(chosen.data, chosen.work, chosen.quick)))
        return
    # The toy does without what is compiled first.
    works = ("training, torch",) if chosen.quick else ("training", "training, torch", "evaluation")
    figures: dict[str, Any] = {}
    left_out = {}
    for work in works:
        for count in (1,) if chosen.quick else NEIGHBOURS:
            with neighbours(count, IDLE if chosen.quick else BUSY):
                figures[f"{work} beside {count}"] = compared(chosen.data, work, chosen.quick, None)
    try:
        with quota() as join:
            for work in () if chosen.quick else works:
                figures[f"{work} under half a core"] = compared(chosen.data, work, chosen.quick, join)
    except OSError as error:
        left_out["half a core"] = f"no control group can be made: {error.strerror}"
    settings = {"seed": 0, "data": chosen.data, "rounds": ROUNDS, "quota": QUOTA / PERIOD}
    what = "seconds of the same work with default threads and with one, beside busy processes; ratio of the medians"
    store(result(what, settings, {"seconds": figures, "left_out": left_out}), chosen.out)


def compared(data: str, work: str, quick: bool, join: Path | None) -> dict[str, Any]:
    """Seconds of each number of threads, measured in a process of its own, and how they compare."""
    words = [sys.executable, __file__, "--data", data, "--work", work, *(["--quick"] if quick else [])]
    enter = None if join is None else lambda: join.write_text(str(os.getpid()))
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=enter)
    found: dict[str, Any] = {name: spread(values) for name, values in json.loads(done.stdout).items()}
    found["default over one"] = found["default threads"]["median"] / found["one thread"]["median"]
    return found


def measured(data: str, work: str, quick: bool) -> dict[str, list[float]]:
    """Seconds of some training steps or of an evaluation, by number of threads, warmed up and in turns."""
    from measure import toy_graph
    from murp import threads
    from murp.graph import KnowledgeGraph

    graph = toy_graph() if quick else KnowledgeGraph.load(data)
    jobs = {}
    for name, number in THREADS.items():
        threads.use(number)
        jobs[name] = job(graph, work, quick)
        jobs[name]()
    times: dict[str, list[float]] = {name: [] for name in THREADS}
    for _ in range(1 if quick else ROUNDS):
        for name, number in THREADS.items():
            threads.use(number)
            began = time.perf_counter()
            jobs[name]()
            times[name].append(time.perf_counter() - began)
    return times


def job(graph: Any, work: str, quick: bool) -> Callable[[], object]:
    """What is measured, for as many threads as are set now."""
    import torch

    from murp import engines, models
    from murp.evaluation import KnownFacts, evaluate
    from murp.training.sampler import Sampler

    model: Any = models.murp(graph.num_entities, 2 * graph.num_relations, 40).initialise(0)
    if work == "evaluation":
        model.parameters["entity"].mul_(50)
        known = KnownFacts.of(graph)
        return lambda: evaluate(model, graph, "test", known=known)
    steps = 2 if quick else 48 if "torch" in work else 1024
    sampler = Sampler(
        graph.with_reciprocals(graph.train), graph.num_entities, batch_size=128, negatives=50, seed=0,
        device=torch.device("cpu"), steps_a_chunk=steps,
    )  # fmt: skip
    engine = engines.build("torch" if "torch" in work else "numba", [model])
    chunk = sampler.chunk(0, 0)
    return lambda: engine.run([chunk], [50.0])


@contextlib.contextmanager
def neighbours(count: int, code: str) -> Iterator[None]:
    """So many processes that run ``code`` until the end of the block."""
    busy = [subprocess.Popen([sys.executable, "-I", "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@contextlib.contextmanager
def quota() -> Iterator[Path]:
    """A control group of half a core; the file to write a process's number to. Raises OSError if it cannot be."""
    root = Path("/sys/fs/cgroup")
    one = (root / "cpu").is_dir()
    group = (root / "cpu" if one else root) / GROUP
    group.mkdir(exist_ok=True)
    try:
        if one:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(QUOTA))
        else:
            (group / "cpu.max").write_text(f"{QUOTA} {PERIOD}")
        yield group / "cgroup.procs"
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


if __name__ == "__main__":
    main()
