"""Many processes on one machine compared with one: losses and MRR, the work of each process, the bytes between them.

    python benchmarks/distributed.py --out results/distributed_cpu.json
    python benchmarks/distributed.py --negatives local --out results/distributed_local_cpu.json
    python benchmarks/distributed.py --negatives shared --out results/distributed_shared_cpu.json
    python benchmarks/distributed.py --negatives many --out results/distributed_many_cpu.json

Every case is one process, or several started by torchrun (gloo), and does the same steps of the same training:

    plain         one process, the engine torch on two threads
    1, 2, 4       so many ranks, batches cut into 4 slices; and 2 ranks with 2 slices, to be compared with plain
    1 beside 1    the case 1 twice at the same time, which do not know of each other: what it costs that the other core
                  is busy, and shares caches and memory; ranks pay that too

Cases run in turns, on a quiet machine with two cores. Work is the processor time of a rank; with 4 ranks on two cores
the wall time means nothing. The part of it that the system works is told apart: with gloo it copies every message, from
the sender into the kernel and from there to the receiver. Bytes are counted when tensors are given to
torch.distributed, computed from the batches (distinct remote rows × row bytes × 2 plus their numbers), and measured at
the loopback device, which sees the traffic of all processes of the machine. As many bytes are also sent through plain
sockets, with nothing else (benchmarks/loopback.py): ranks on one machine cannot work less for that. The work of a rank
is also told apart by what it is for (``PARTS``).

Triples are exchanged at the beginning of an epoch, and counted apart: 12 bytes for each that another rank has, which is
(W - 1)/W of them all.

There are four settings. If every triple has its own negatives, a slice needs nearly all entities of this graph, so the
largest possible number of rows is sent. With local ones, only rows of heads and tails are sent. If a batch shares its
negatives, as is usual for large graphs, few rows are sent and much is computed with each. With many shared negatives
and long vectors most of a step is products of matrices, which hardly depend on caches that ranks share.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import murp  # noqa: F401 - before torch, as in the command line: see murp/__init__.py

# isort: split
import numpy as np
import torch

import measure
from loopback import work_of_sending
from murp import models, threads
from murp.config import Config
from murp.distributed import ShardedEngine, join
from murp.distributed.plan import cut, own_slices
from murp.distributed.ranking import Counting
from murp.distributed.shares import Share, initialise
from murp.engines import Chunk, Task, TorchEngine
from murp.engines.torch_engine import pieces
from murp.evaluation import evaluate
from murp.graph import KnowledgeGraph
from murp.training.distributed_sampler import DistributedSampler
from murp.training.sampler import Sampler, fewer_steps

SETTINGS: dict[str, dict[str, Any]] = {
    "own": {"model": "murp", "dim": 40, "batch_size": 16384, "negatives": 50, "lr": 10.0, "engine": "torch"},
    "local": {
        "model": "murp", "dim": 40, "batch_size": 16384, "negatives": 50, "lr": 10.0, "engine": "torch",
        "corruption": "local", "entity_parts": 4,
    },
    # The recipe wn18rr, with more negatives, which the batch shares.
    "shared": {
        "model": "roth-stretch", "dim": 40, "batch_size": 8192, "negatives": 1000, "corruption": "shared",
        "objective": "self-adversarial", "temperature": 0.5, "optimizer": "adam", "lr": 0.002,
        "regularizer": "l2", "regularizer_weight": 0.002, "engine": "torch",
    },
    "many": {
        "model": "complex", "dim": 200, "batch_size": 8192, "negatives": 4000, "corruption": "shared",
        "objective": "softmax", "optimizer": "row-adagrad", "lr": 0.1, "regularizer": "none", "engine": "torch",
    },
}  # fmt: skip
QUICK: dict[str, Any] = {"dim": 8, "batch_size": 64, "negatives": 5}
CASES: dict[str, tuple[int, int]] = {
    "plain": (1, 0), "1": (1, 4), "2": (2, 4), "4": (4, 4), "2 of 2": (2, 2), "1 beside 1": (1, 4),
}  # fmt: skip
COPIES = {"1 beside 1": 2}  # of a case at the same time
STEPS = 16  # of a case in one turn
FEW_STEPS = 2  # with --quick
BEFORE = 4  # times as many that are not measured come first: until memory has grown as far as it will
# What the main thread of a rank works for, and the methods of its engine; all other threads are gloo's.
PARTS: dict[str, tuple[str, ...]] = {
    "gradients of slices": ("_gradients",),
    "moving entities": ("_move_entities",),
    "moving relations": ("_move_common",),
    "messages, on the main thread": ("_send", "_fetched", "_exchanged"),
}
OTHERS, REST = "gloo's threads", "planning, and the rest"


def graph_of(data: str) -> KnowledgeGraph:
    """The toy graph, or a dataset by name."""
    return measure.toy_graph() if data == "toy" else KnowledgeGraph.load(data)


class Parts:
    """Seconds of processor time for each part of the work of a rank, since it was made."""

    def __init__(self, engine: Any) -> None:
        self.spent: Counter[str] = Counter()
        self.inside = False  # a part of which the time is taken as a whole
        for part, methods in PARTS.items():
            for name in methods:
                setattr(engine, name, self._timed(part, getattr(engine, name)))

    def _timed(self, part: str, method: Any) -> Any:
        def timed(*given: Any) -> Any:
            if self.inside:
                return method(*given)
            self.inside, began = True, time.thread_time()
            try:
                return method(*given)
            finally:
                self.spent[part] += time.thread_time() - began
                self.inside = False

        return timed

    def now(self) -> Counter[str]:
        main, whole = time.thread_time(), time.process_time()
        return Counter({**self.spent, OTHERS: whole - main, REST: main - sum(self.spent.values())})


def case(data: str, settings: dict[str, Any], slices: int, steps: int) -> dict[str, Any]:
    """What one process of a case does and finds."""
    ranks = join()
    graph, config = graph_of(data), Config(**settings)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    share = Share(graph.num_entities, ranks.rank, ranks.size)
    initialise(model, share, 0, config.initial_scale)
    task = Task.of(config, model)
    triples = graph.with_reciprocals(graph.train)
    task.negatives.prepare(torch.from_numpy(triples), graph.num_entities, model.num_relations)
    engine: Any = ShardedEngine(task, ranks, slices, config.engine) if slices else TorchEngine(task)
    parts = Parts(engine) if slices else None
    shared = config.corruption == "shared"
    fewer = fewer_steps(config.batch_size, config.negatives, config.dim, torch.device("cpu"), shared=shared)
    a_chunk = min(fewer or steps, steps)  # as a training has
    options: dict[str, Any] = {
        "batch_size": config.batch_size, "negatives": config.negatives, "seed": 0, "device": torch.device("cpu"),
        "steps_a_chunk": a_chunk,
    }  # fmt: skip
    whole = Sampler(triples, graph.num_entities, **options)
    sampler = DistributedSampler(graph, ranks, slices, **options) if ranks.size > 1 else whole
    first, last = BEFORE * steps // a_chunk, (BEFORE + 1) * steps // a_chunk
    of_an_epoch = len(triples) // config.batch_size // a_chunk  # chunks of as many steps
    places = [divmod(number, of_an_epoch) for number in range(last)]  # epoch and chunk
    before = ranks.sent
    chunks = [sampler.chunk(*place) for place in places]
    of_triples = (ranks.sent - before) / (places[-1][0] + 1)
    warm, measured = chunks[:first], chunks[first:]
    losses = [engine.run([chunk], [config.lr]).item() for chunk in warm]
    ranks.agreed(True)  # all begin together
    sent, loopback, wall, work = ranks.sent, _loopback(), time.perf_counter(), time.process_time()
    system, before_parts = _system(), parts.now() if parts else Counter()
    losses += [engine.run([chunk], [config.lr]).item() for chunk in measured]
    work, wall, system = time.process_time() - work, time.perf_counter() - wall, _system() - system
    by_part = parts.now() if parts else Counter()
    by_part.subtract(before_parts)
    sent = ranks.sent - sent
    ranks.agreed(True)
    counting = Counting(ranks, model) if slices else None
    report = evaluate(model, graph, "valid", counting=counting)
    again = [whole.chunk(*place) for place in places[first:]] if slices else []
    return {
        "rank": ranks.rank,
        "steps": sum(chunk.steps for chunk in measured),
        "seconds": wall,
        "work": work,
        "system": system,
        "parts": {part: max(0.0, spent) for part, spent in by_part.items()},
        "losses": losses,
        "mrr": report.mrr,
        "sent": sent,
        "loopback": _loopback() - loopback,
        "computed": _computed(task, ranks.rank, ranks.size, slices, again, share),
        "triples": of_triples,
        "triples computed": triples.nbytes * (ranks.size - 1) / ranks.size**2,
    }


def _system() -> float:
    """Seconds that the system has worked for this process, most of it to copy messages."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime


def _loopback() -> int:
    """Bytes that the loopback device has sent; 0 where the system does not tell."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
        return next(int(line.split()[9]) for line in lines if line.strip().startswith("lo:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return 0


def _computed(task: Task, rank: int, size: int, slices: int, chunks: list[Chunk], share: Share) -> int:
    """Bytes of the rows of other ranks that this rank's slices read, there and back, and of their numbers."""
    model = task.model
    row = sum(int(np.prod(table.shape)) for table in model.tables if table.of == "entity") * model.dtype.itemsize
    total = 0
    for chunk in chunks:
        for positives, drawn in pieces(task, chunk):
            places = cut(positives.shape[1], slices)
            for step in range(len(positives)):
                for number in own_slices(slices, rank, size):
                    false = drawn.objects[step] if drawn.objects.dim() == 2 else drawn.objects[step, places[number]]
                    read = [positives[step, places[number]][:, [0, 2]].flatten(), false]
                    rows = np.unique(np.concatenate([part.numpy().ravel() for part in read]))
                    remote = int((rows // share.length != rank).sum())
                    total += remote * (2 * row + 4)
    return total


def started(name: str, options: Any, settings: dict[str, Any], steps: int, folder: Path) -> list[dict[str, Any]]:
    """What the processes of a case found."""
    size, slices = CASES[name]
    given = [__file__, "--case", json.dumps([options.data, settings, slices, steps]), "--found", str(folder)]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)] if slices else []
    number = "1" if slices else "2"
    environment = {**os.environ, "OMP_NUM_THREADS": number, "NUMBA_NUM_THREADS": number}
    for old in folder.iterdir():
        old.unlink()
    words = [sys.executable, *launcher, *given]
    copies = [subprocess.Popen(words, env=environment) for _ in range(COPIES.get(name, 1))]
    ended = [copy.wait() for copy in copies]
    if any(ended):
        raise SystemExit(f"the case {name} failed: see above")
    return sorted((json.loads(path.read_text()) for path in folder.iterdir()), key=lambda one: one["rank"])


def sent_alone(found: list[dict[str, Any]]) -> float:
    """Seconds that a rank works to send the bytes of a step through plain sockets, rows there and gradients back; of
    the rank that works most."""
    size, steps = len(found), found[0]["steps"]
    length = round(sum(one["sent"] for one in found) / steps / (2 * size * (size - 1)))
    return max(work_of_sending(size, length, 2 * steps)) / steps


def summary(turns: dict[str, list[list[dict[str, Any]]]], alone: dict[str, list[float]]) -> dict[str, Any]:
    """Times and bytes of every case, and how they compare; ``alone``: what it takes only to send the bytes."""
    figures: dict[str, Any] = {}
    for name, found in turns.items():
        steps = found[0][0]["steps"]
        figures[name] = {
            "seconds_a_step": measure.spread([max(one["seconds"] for one in turn) / steps for turn in found]),
            "work_a_step_of_a_rank": measure.spread([max(one["work"] for one in turn) / steps for turn in found]),
            "system_work_a_step_of_a_rank": measure.spread(
                [max(turn, key=lambda one: one["work"])["system"] / steps for turn in found]
            ),
            "losses": found[0][0]["losses"],
            "mrr": found[0][0]["mrr"],
            "bytes_a_step": sum(one["sent"] for one in found[0]) / steps,
            "bytes_a_step_computed": sum(one["computed"] for one in found[0]) / steps,
            "bytes_a_step_loopback": max(one["loopback"] for one in found[0]) / steps,
            "bytes_of_triples_an_epoch": sum(one["triples"] for one in found[0]),
            "bytes_of_triples_an_epoch_computed": sum(one["triples computed"] for one in found[0]),
        }
        if parts := found[0][0]["parts"]:
            most = [max(turn, key=lambda one: one["work"])["parts"] for turn in found]
            figures[name]["work_a_step_of_a_rank_by_part"] = {
                part: measure.spread([one[part] / steps for one in most]) for part in parts
            }
        if name in alone:
            figures[name]["work_a_step_of_a_rank_to_send_alone"] = measure.spread(alone[name])
    one, four = figures["1"]["work_a_step_of_a_rank"], figures["4"]["work_a_step_of_a_rank"]
    beside = figures["1 beside 1"]["work_a_step_of_a_rank"]
    exact = [figures[name] for name in ("1", "2", "4")]
    plain = figures["plain"]
    figures["compared"] = {
        "losses and MRR of 1, 2 and 4 ranks bit for bit": all(
            (case["losses"], case["mrr"]) == (exact[0]["losses"], exact[0]["mrr"]) for case in exact
        ),
        "greatest relative difference of a loss to plain": max(
            abs(a - b) / abs(b) for a, b in zip(exact[0]["losses"], plain["losses"], strict=True)
        ),
        "difference of the MRR to plain": exact[0]["mrr"] - plain["mrr"],
        "work of a rank at 4, in quarters of one": 4 * four["median"] / one["median"],
        "work of a rank at 4, in quarters of one beside another": 4 * four["median"] / beside["median"],
        "two ranks, in times of one process on two threads": measure.ratio(
            {name: figures[name]["seconds_a_step"] for name in ("2 of 2", "plain")}, "2 of 2", "plain"
        ),
        "bytes of 2 ranks, of those computed": figures["2 of 2"]["bytes_a_step"]
        / figures["2 of 2"]["bytes_a_step_computed"],
        "bytes of 4 ranks, of those computed": figures["4"]["bytes_a_step"] / figures["4"]["bytes_a_step_computed"],
        "bytes of triples of 4 ranks, of those computed": figures["4"]["bytes_of_triples_an_epoch"]
        / figures["4"]["bytes_of_triples_an_epoch_computed"],
    }
    return figures


def main(arguments: list[str] | None = None) -> int:
    """Run every case in turns."""
    parser = measure.parser(__doc__)
    parser.add_argument("--data", default="WN18RR")
    parser.add_argument(
        "--negatives",
        choices=list(SETTINGS),
        default="own",
        help="of each triple, local ones, of the batch, or many of the batch",
    )
    parser.add_argument("--batch-size", type=int, help="another one than the setting has")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--case", help="of one process: data, settings, slices and steps as JSON")
    parser.add_argument("--found", type=Path, help="of one process: where what it found goes")
    options = parser.parse_args(arguments)
    if options.case:
        threads.use(int(os.environ["OMP_NUM_THREADS"]))
        found = case(*json.loads(options.case))
        (options.found / f"{found['rank']} {os.getpid()}").write_text(json.dumps(found))
        return 0
    if options.quick:
        options.data, options.turns = "toy", 1
    settings, steps = SETTINGS[options.negatives], STEPS
    if options.quick:
        settings, steps = {**settings, **QUICK}, FEW_STEPS
    if options.batch_size:
        settings = {**settings, "batch_size": options.batch_size}
    turns: dict[str, list[list[dict[str, Any]]]] = {name: [] for name in CASES}
    alone: dict[str, list[float]] = {name: [] for name, (ranks, _) in CASES.items() if ranks > 1}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.turns):
            for name in CASES:
                turns[name].append(started(name, options, settings, steps, Path(folder)))
                if name in alone:
                    alone[name].append(sent_alone(turns[name][-1]))
    about = {**settings, "seed": 0, "data": options.data, "turns": options.turns, "cases (ranks, slices)": CASES}
    about |= {"steps": steps, "steps before": BEFORE * steps}
    measure.store(measure.result("distributed training on CPUs", about, summary(turns, alone)), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
