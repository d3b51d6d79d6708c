"""Kills training with SIGKILL at random moments, over and over, and looks whether anything is lost.

    python reliability/crash.py --out results/reliability_crash.json

A run is started, killed, opened, resumed, killed again, … and then left to get to its end; its weights must be those
of a run that nobody disturbed, bit for bit. Every second kill is aimed: it comes within milliseconds of a checkpoint
being begun. Every second run has long epochs, which are saved on the way. Runs of the engine torch go through all
optimizers and objectives in turn. Processes are forked from this one, which computes nothing itself, so that none has
to import PyTorch.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import torch  # noqa: E402
from numba.core.registry import cpu_target  # noqa: E402
from outcome import outcome  # noqa: E402

import measure  # noqa: E402
import murp  # noqa: E402
from murp import registry  # noqa: E402
from murp.config import known_settings  # noqa: E402
from murp.graph import KnowledgeGraph  # noqa: E402
from murp.runs import checkpoint, folder  # noqa: E402
from murp.training import resume, train  # noqa: E402
from murp.training.progress import Silent  # noqa: E402

torch.set_num_threads(1)
SETTINGS: dict[str, Any] = {
    "dim": 8, "epochs": 40, "batch_size": 64, "negatives": 5, "device": "cpu", "validate_every": 1,
    "save_every": 0.0,
}  # fmt: skip
LONG_EPOCHS = {"batch_size": 2, "epochs": 8}
# Those with a state first; each with a learning rate of its own.
RATES = {"adam": 0.01, "row-adagrad": 0.1, "adagrad": 0.1, "sgd": 2.0}
KINDS = [(engine, model) for engine in ("torch", "numba") for model in ("murp", "mure")]


class Child:
    """A forked process that does ``work``; its traceback, if there is one, comes back through a file."""

    def __init__(self, work: Callable[[], object], log: Path) -> None:
        self.log = log
        self.id = os.fork()
        if self.id == 0:
            try:
                warnings.simplefilter("ignore")  # of going back to an older checkpoint, which is what we are after
                work()
                os._exit(0)
            except BaseException:
                log.write_text(traceback.format_exc())
                os._exit(1)

    def killed_after(self, seconds: float, aim: Path | None) -> bool:
        """Kill it after ``seconds``, then when the folder ``aim`` next holds a half-written file; whether it lived."""
        time.sleep(seconds)
        patience = time.monotonic() + 0.2
        while aim is not None and time.monotonic() < patience and not half_written(aim):
            pass
        os.kill(self.id, signal.SIGKILL)
        return self.wait() is None

    def wait(self) -> int | None:
        """Its exit status; None where a signal ended it."""
        _, status = os.waitpid(self.id, 0)
        return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def half_written(run: Path) -> list[str]:
    """Names of the temporary files in a run folder."""
    try:
        return [name for name in os.listdir(run) if name.endswith(".part")]
    except FileNotFoundError:
        return []


def disturb(
    graph: KnowledgeGraph, settings: dict[str, Any], work: Path, draw: random.Random, most: int
) -> Iterator[dict[str, Any]]:
    """One run, killed ``most`` times or less: what each kill met, and at last how it compares with one in peace."""
    calm, run, log = work / "calm", work / "run", work / "log"

    def begin() -> None:
        train(graph, out=run, progress=Silent(), **settings)

    def go_on() -> None:
        resume(run, progress=Silent())

    start, length = undisturbed(graph, settings, calm, log)
    for number in range(most):
        child = Child(go_on if (run / folder.CONFIG).exists() else begin, log)
        early = number % 5 == 0
        delay = draw.uniform(0, start) if early else start + draw.uniform(0, length / 6)
        if not child.killed_after(delay, run if number % 2 else None):
            break  # it was done before
        met = {"kill": True, "began": (run / folder.CONFIG).exists(), "left": half_written(run)}
        met["beside"] = len(list(work.glob(".run.*.part")))
        met["moved"] = met["began"] and not (run / folder.LAST).exists()
        met["within"] = met["began"] and stands_within_an_epoch(run / folder.LAST)
        if met["began"] and Child(lambda: murp.load(run), log).wait() != 0:
            met["failure"] = f"does not open: {log.read_text()}"
        yield met
    Child(go_on if (run / folder.CONFIG).exists() else begin, log).wait()
    met = {"kill": False, "left_at_the_end": len(half_written(run)) + len(list(work.glob(".run.*.part")))}
    if log.exists():
        met["failure"] = f"does not go on: {log.read_text()}"
    elif outcome(run) != outcome(calm):
        met["failure"] = "other weights or figures than the undisturbed run"
    yield met


def stands_within_an_epoch(last: Path) -> bool:
    """Whether training will go on from a checkpoint that was written before an epoch's end."""
    try:
        state = checkpoint.verify(last)
    except checkpoint.DamagedError:
        state = checkpoint.verify(checkpoint.previous(last))
    return bool(state["chunk"])


def undisturbed(graph: KnowledgeGraph, settings: dict[str, Any], out: Path, log: Path) -> tuple[float, float]:
    """Train to the end in peace; the seconds before the first epoch was done, and from there to the end."""
    began = time.monotonic()
    child = Child(lambda: train(graph, out=out, progress=Silent(), **settings), log)
    metrics = out / folder.METRICS
    while not (metrics.exists() and metrics.stat().st_size) and not log.exists():
        time.sleep(0.001)
    start = time.monotonic() - began
    if child.wait() != 0:
        raise RuntimeError(log.read_text())
    return start, time.monotonic() - began - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill until there are enough kills of every kind; status 1 where anything failed."""
    parser = measure.parser(__doc__)
    parser.add_argument("--kills", type=int, default=200, help="over all engines and models")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    kills, most = (8, 2) if options.quick else (options.kills, 10)
    graph = measure.toy_graph()
    cpu_target.target_context.refresh()  # what Numba loads before its first function, once for all children
    gc.freeze()  # nor does a child copy what it would only look through
    counts: dict[str, Counter[str]] = {}
    with_parts: Counter[tuple[str, str]] = Counter()
    failures: list[dict[str, Any]] = []
    for engine, model in KINDS:
        count = counts[f"{engine} {model}"] = Counter()
        while count["kills"] < kills / len(KINDS):
            seed = options.seed + count["runs"]
            shorter = {"epochs": 8 if engine == "torch" else 20} if options.quick else {}
            epochs = LONG_EPOCHS if count["runs"] % 2 else shorter
            chosen = trained_with(engine, model, count["runs"])
            settings = {**SETTINGS, **epochs, **chosen, "seed": seed}
            settings = {name: value for name, value in settings.items() if name in known_settings(settings)}
            with_parts[chosen["optimizer"], chosen["objective"]] += 1
            with tempfile.TemporaryDirectory() as work:
                for met in disturb(graph, settings, Path(work), random.Random(f"{engine} {model} {seed}"), most):
                    tally(count, met)
                    if "failure" in met:
                        failures.append({**chosen, "seed": seed, "what": met["failure"]})
    total = {what: sum(count[what] for count in counts.values()) for what in count}
    figures = {"kills": total["kills"], "failures": len(failures), "what_failed": failures}
    figures |= {"total": total, "by_engine_and_model": counts}
    figures["by_optimizer_and_objective"] = [
        {"optimizer": optimizer, "objective": objective, "runs": runs}
        for (optimizer, objective), runs in with_parts.items()
    ]
    settings = {**SETTINGS, "long epochs": LONG_EPOCHS, "lr": RATES, "kills": kills, "seed": options.seed, "threads": 1}
    settings |= {"graph": graph.name, "triples": len(graph.train)}
    measure.store(measure.result("crash safety", settings, json.loads(json.dumps(figures))), options.out)
    return 1 if failures else 0


def trained_with(engine: str, model: str, turn: int) -> dict[str, Any]:
    """Model, optimizer and objective of a run: of the engine torch the next ones in turn, else the paper's."""
    chosen = {"engine": engine, "model": model, "optimizer": "sgd", "objective": "bernoulli"}
    if engine == "torch":
        turn += model == "mure"
        optimizers, objectives = list(RATES | registry.OPTIMIZERS), list(registry.OBJECTIVES)
        chosen |= {"optimizer": optimizers[turn % len(optimizers)], "objective": objectives[turn % len(objectives)]}
    return {**chosen, "lr": RATES.get(chosen["optimizer"], 0.1)}


def tally(count: Counter[str], met: dict[str, Any]) -> None:
    """Add to the counts what a kill met, or how a run ended."""
    if not met["kill"]:
        count["runs"] += 1
        count["temporary files left at the end"] += met["left_at_the_end"]
        return
    count["kills"] += 1
    count["kills before the run folder stood"] += not met["began"]
    count["kills within a save"] += bool(met["left"] or met["moved"])
    count["of these with a checkpoint half-written"] += any(".safetensors." in name for name in met["left"])
    count["of these between the two renames"] += met["moved"]
    count["kills from which training went on within an epoch"] += met["within"]
    count["temporary files met"] += len(met["left"])
    count["temporary folders met"] += met["beside"]


if __name__ == "__main__":
    sys.exit(main())
