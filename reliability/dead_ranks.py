"""Kills single ranks of a training on many with SIGKILL at random moments, and looks whether anything is lost.

    python reliability/dead_ranks.py --out results/reliability_dead_ranks.json

Ranks are started by torchrun's own launcher, which starts all of them again where one is killed. Where one is killed
once more than that, the run is continued by another number of ranks: 1, 2, 3 and 4 in turn. At last it is left to get
to its end. Weights, optimizer's tables and figures must be those of a run of one process that nobody disturbed, bit
for bit. Every second kill is aimed: it comes when a checkpoint is half-written.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import torch  # noqa: E402
from crash import Child, half_written  # noqa: E402
from outcome import outcome  # noqa: E402

import measure  # noqa: E402
from local_ranks import launch, share  # noqa: E402
from murp.graph import KnowledgeGraph  # noqa: E402
from murp.runs import checkpoint, folder  # noqa: E402
from murp.training import resume, train  # noqa: E402
from murp.training.progress import Silent  # noqa: E402

torch.set_num_threads(1)
SETTINGS: dict[str, Any] = {
    "dim": 8, "epochs": 24, "batch_size": 350, "negatives": 5, "device": "cpu", "validate_every": 1, "save_every": 0.0,
    "slices": 4, "engine": "torch",
}  # fmt: skip
KINDS = [
    {"model": "murp", "optimizer": "adam", "lr": 0.01},
    {"model": "mure", "optimizer": "row-adagrad", "lr": 0.1},
    {"model": "rotate", "optimizer": "adagrad", "lr": 0.1, "objective": "self-adversarial"},
    {"model": "murp", "optimizer": "sgd", "lr": 2.0},
]
RESTARTS = 2  # of one launch


def work(graph: KnowledgeGraph, run: Path, settings: dict[str, Any], ids: Path) -> None:
    """What a rank does: begin, or go on; the id of its process is left for whoever kills."""
    told = ids / os.environ["RANK"]
    told.write_text(str(os.getpid()))
    if (run / folder.CONFIG).exists() and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        resume(run, progress=Silent())
    else:
        train(graph, out=run, reuse=False, progress=Silent(), **settings)
    # Who is done waits for the others by a lock of multiprocessing, and if it is killed there, the launcher waits for
    # it without end.
    told.unlink(missing_ok=True)


def launched(graph: KnowledgeGraph, run: Path, settings: dict[str, Any], ids: Path, size: int, log: Path) -> Child:
    """A process that starts ranks and watches them; what it says goes into a file."""

    def start() -> None:
        said = os.open(log.with_suffix(".said"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 2)
        launch(work, size, graph, run, settings, ids, restarts=RESTARTS)

    return Child(start, log)


def kill_one(draw: random.Random, ids: Path, child: Child, run: Path, aimed: bool) -> bool:
    """Kill a rank of those that have begun since the last time; whether there was one before all were done.

    One kill of five comes while the ranks start; the others some epochs later.
    """
    before, further = epochs(run), 0 if draw.random() < 0.2 else 1
    while not list(ids.iterdir()) or epochs(run) < before + further:
        if ended(child):
            return False
        time.sleep(0.005)
    time.sleep(draw.uniform(0, 0.2))
    patience = time.monotonic() + 2.0
    while aimed and time.monotonic() < patience and not half_written(run):
        time.sleep(0.0002)
    there = sorted(ids.iterdir())
    try:
        os.kill(int(draw.choice(there).read_text()), signal.SIGKILL)
    except (ProcessLookupError, FileNotFoundError, ValueError, IndexError):  # it is done, or has not begun
        return False
    for file in ids.iterdir():
        file.unlink()
    return True


def epochs(run: Path) -> int:
    """How many epochs a run has behind it, as its metrics tell."""
    try:
        return (run / folder.METRICS).read_bytes().count(b"\n")
    except OSError:
        return 0


def ended(child: Child) -> bool:
    """Whether the launcher has ended; it stays to be waited for."""
    return os.waitid(os.P_PID, child.id, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def disturb(
    graph: KnowledgeGraph, settings: dict[str, Any], place: Path, draw: random.Random, kills: int, sizes: list[int]
) -> Counter[str]:
    """One run with so many kills; what was met, and ``failures`` where it ended otherwise than in peace."""
    calm, run, ids, log = place / "calm", place / "run", place / "ids", place / "log"
    ids.mkdir()
    peace = Child(lambda: train(graph, out=calm, progress=Silent(), **settings), log)
    if peace.wait() != 0:
        raise RuntimeError(log.read_text())
    met: Counter[str] = Counter()
    while met["kills"] < kills:
        size = sizes[met["launches"] % len(sizes)]
        met["launches"] += 1
        for file in ids.iterdir():
            file.unlink()
        child = launched(graph, run, settings, ids, size, log)
        alive = True
        for turn in range(RESTARTS + 1):
            alive = met["kills"] < kills and kill_one(draw, ids, child, run, bool(turn % 2))
            if not alive:
                break
            met["kills"] += 1
            met[f"kills among {size}"] += 1
            met["kills before the run folder stood"] += not (run / folder.CONFIG).exists()
            met["kills with a checkpoint half-written"] += bool(half_written(run))
        child.wait()
        met["launches that were restarted to their end"] += not alive
        if done(run, settings):
            break
    finish = launched(graph, run, settings, ids, sizes[met["launches"] % len(sizes)], log)
    if finish.wait() != 0:
        met["failures"] += 1
        print(log.read_text() if log.exists() else "", log.with_suffix(".said").read_text()[-3000:], file=sys.stderr)
    elif outcome(run) != outcome(calm):
        met["failures"] += 1
        print("other weights or figures than the undisturbed run", file=sys.stderr)
    met["temporary files left at the end"] += len(half_written(run)) + len(list(place.glob(".run.*.part")))
    met["runs"] += 1
    return met


def done(run: Path, settings: dict[str, Any]) -> bool:
    """Whether a run is at its end."""
    with contextlib.suppress(Exception):
        return bool(checkpoint.state_of(run / folder.LAST)["epoch"] >= settings["epochs"])
    return False


def main(arguments: list[str] | None = None) -> int:
    """Kill until there are enough kills; status 1 where anything failed."""
    parser = measure.parser(__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    kills, a_run = (2, 2) if options.quick else (options.kills, 10)
    graph = measure.toy_graph()
    share()
    total: Counter[str] = Counter()
    while total["kills"] < kills:
        number = total["runs"]
        settings = {**SETTINGS, **KINDS[number % len(KINDS)], "seed": options.seed + number}
        if options.quick:
            settings["epochs"] = 6
        sizes = [2, 1] if options.quick else [4, 3, 2, 1][number % 4 :] + [4, 3, 2, 1][: number % 4]
        with tempfile.TemporaryDirectory() as place:
            total += disturb(graph, settings, Path(place), random.Random(f"{options.seed} {number}"), a_run, sizes)
        print(f"{total['kills']} kills, {total['failures']} failures", file=sys.stderr, flush=True)
    figures = {"kills": total["kills"], "failures": total["failures"], "total": dict(sorted(total.items()))}
    about = {**SETTINGS, "kinds": KINDS, "restarts": RESTARTS, "kills": kills, "seed": options.seed, "threads": 1}
    about |= {"graph": graph.name, "triples": len(graph.train)}
    measure.store(measure.result("dead ranks", about, json.loads(json.dumps(figures))), options.out)
    return 1 if total["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
