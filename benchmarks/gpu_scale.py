"""Tables that fill a GPU, tables in host memory, and a whole run at scale.

    python benchmarks/gpu_scale.py --out results/gpu_scale.json
    python benchmarks/gpu_scale.py --read FOLDER
    python benchmarks/gpu_scale.py --whole FOLDER --out results/gpu_scale_whole.json

The first measures a step of MuRP by the engine triton on random triples: with 41 thousand, 10 million and 100 million
entities on the GPU, and with 41 thousand and 200 million in host memory (``tables = host``) beside the same on the
GPU. All tables are there at once and take turns. Tables are filled on the GPU, block by block, since the CPU's normal
generator would take minutes. Of each case: seconds a step and how many of them are the gradient kernel's, peak memory
on the GPU, and the bytes that cross the bus beside what the bus copies in a second.

``--read`` generates the graph of benchmarks/scale_reading.py (10 million entities, 100 million facts of a known
hierarchy) into FOLDER and codes it; what is there already is kept. ``--whole`` takes it from there (and reads it first
where it is not): opened, trained for one epoch by murp.train, evaluated under protocol sampled; seconds of each part.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import murp
import scale_reading
from gpu import Clock
from measure import Works, finish, in_turns, parser, ratio, result, seconds, spread, store
from murp import models
from murp.engines import Chunk
from murp.graph import KnowledgeGraph
from murp.graph.sources import code_source
from murp.models import MultiRelational
from murp.models.host_memory import room

RELATIONS, BATCH, NEGATIVES, LR, SCALE = 22, 128, 50, 50.0, 1e-3
BLOCK = 2**18  # rows that are filled at a time
LAUNCHES = 256  # of the gradient kernel, timed as one graph
BUS = 2**30  # bytes that are copied to see how fast the bus is


@dataclass(frozen=True)
class Case:
    """A model by the number of its entities, its dimension, and where its points lie."""

    entities: int
    dim: int
    host: bool = False

    @property
    def name(self) -> str:
        return f"{'host' if self.host else 'device'}-{self.entities}-d{self.dim}"


CASES = (
    Case(40_943, 100), Case(10_000_000, 100), Case(100_000_000, 100),
    Case(40_943, 40), Case(200_000_000, 40), Case(40_943, 40, host=True), Case(200_000_000, 40, host=True),
)  # fmt: skip
TOYS = tuple(Case(*shape) for shape in ((30, 4), (60, 4), (90, 4), (30, 3), (90, 3), (30, 3, True), (90, 3, True)))


@dataclass(frozen=True)
class Size:
    """How large the benchmark is: as above, or a toy in Triton's interpreter."""

    device: torch.device
    cases: tuple[Case, ...] = CASES
    steps: int = 1024
    batch: int = BATCH
    negatives: int = NEGATIVES
    repeats: int = 5
    facts: int = 100_000_000
    entities: int = 10_000_000
    candidates: int = 500


TOY = Size(torch.device("cpu"), TOYS, 1, 1, 1, 1, 2_000, 300, 5)


def filled(case: Case, device: torch.device) -> MultiRelational:
    """A model with points about the origin, filled where the numbers are made fastest."""
    model = models.murp(case.entities, RELATIONS, case.dim)
    draw = torch.Generator(device).manual_seed(0)
    shape = (case.entities, case.dim)
    pinned = case.host and device.type == "cuda"
    points = room(shape, model.dtype) if pinned else torch.empty(shape, device=device)
    for start in range(0, case.entities, BLOCK):
        part = points[start : start + BLOCK]
        part.copy_(torch.randn(part.shape, generator=draw, device=device).mul_(SCALE))
    small = torch.Generator().manual_seed(0)
    for table in model.tables:
        if table.name == model.point:
            model.parameters[table.name] = points
        elif table.of == "entity":
            model.parameters[table.name] = torch.zeros(case.entities, device=device)
        else:
            model.parameters[table.name] = table.draw(RELATIONS, model.dtype, small, SCALE).to(device)
    return model


def triples(case: Case, size: Size) -> Chunk:
    """Random ones."""
    draw = torch.Generator(size.device).manual_seed(1)
    columns = [
        torch.randint(most, (size.steps, size.batch), generator=draw, device=size.device)
        for most in (case.entities, RELATIONS, case.entities)
    ]
    return Chunk(torch.stack(columns, -1), case.entities, size.negatives, seed=0)


def step(size: Size) -> dict[str, Any]:
    """A step of every case, in turns."""
    from murp.engines.triton_engine import TritonEngine

    works: Works = {}
    engines, figures = {}, {}
    for case in size.cases:
        before = allocated(size.device)
        began = time.perf_counter()
        model = filled(case, size.device)
        finish(size.device)
        made = time.perf_counter() - began
        engine, chunk = TritonEngine([model]), triples(case, size)
        engine.host = case.host  # the interpreter has no other memory to tell it by
        engine.run([chunk], [LR])
        finish(size.device)
        engines[case] = engine
        works[case.name] = (lambda e=engine, c=chunk: e.run([c], [LR])), float(chunk.steps)
        rows = size.batch * (2 + size.negatives)
        figures[case.name] = {
            **dataclasses.asdict(case),
            "seconds_to_fill": made,
            "parameter_bytes": sum(values.nbytes for values in model.parameters.values()),
            "peak_bytes_on_the_device": peak(size.device, before),
            "bytes_over_the_bus_a_step": 2 * rows * case.dim * model.dtype.itemsize if case.host else 0,
        }
        print(f"{case.name}: filled in {made:.1f} s", file=sys.stderr, flush=True)
    for name, times in in_turns(works, repeats=size.repeats, device=size.device).items():
        figures[name]["seconds_a_step"] = times
    for case, engine in engines.items():
        figures[case.name]["seconds_of_the_gradient_kernel"] = gradient_alone(engine, size)
    times = {name: figures[name]["seconds_a_step"] for name in figures}
    few, more, most, small, large, host, large_host = (case.name for case in size.cases)
    told: dict[str, Any] = {
        "cases": figures,
        "10 million on the device against 41 thousand": ratio(times, more, few),
        "100 million on the device against 41 thousand": ratio(times, most, few),
        "200 million on the device against 41 thousand": ratio(times, large, small),
        "41 thousand in host memory against on the device": ratio(times, host, small),
        "200 million in host memory against on the device": ratio(times, large_host, large),
        "200 million in host memory against 41 thousand": ratio(times, large_host, host),
        "bus": bus(size.device),
    }
    settings = {"model": "murp", "batch_size": size.batch, "negatives": size.negatives, "steps": size.steps, "lr": LR}
    what = "a step by number of entities and by where their points lie, float32, engine triton"
    return result(what, settings, told, size.device)


def gradient_alone(engine: Any, size: Size) -> dict[str, float] | None:
    """Seconds of the gradient kernel; what a step takes beyond that is the update. None in the interpreter."""
    if size.device.type != "cuda":
        return None
    (batch,) = engine.batches.values()
    engine.clock[:1].zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for offset in range(LAUNCHES):
            batch.launch_gradient(offset)
    graph.replay()
    found = spread([seconds(graph.replay, size.device) / LAUNCHES for _ in range(size.repeats)])
    engine.head.fill_(-1)  # which the update clears
    return found


def bus(device: torch.device) -> dict[str, float] | None:
    """Bytes a second that the GPU copies from pinned memory and to it, in one piece."""
    if device.type != "cuda":
        return None
    there, here = room((BUS // 4,), torch.float32), torch.zeros(BUS // 4, device=device)
    ways: dict[str, Callable[[], object]] = {
        "from_host": lambda: here.copy_(there, non_blocking=True),
        "to_host": lambda: there.copy_(here, non_blocking=True),
    }
    return {name: BUS / min(seconds(way, device) for _ in range(5)) for name, way in ways.items()}


def allocated(device: torch.device) -> int:
    """Bytes on the GPU now, from which the peak is counted anew."""
    if device.type != "cuda":
        return 0
    finish(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def peak(device: torch.device, before: int) -> int | None:
    """The most bytes since then, beyond those there were; None where there is no GPU."""
    return torch.cuda.max_memory_allocated() - before if device.type == "cuda" else None


def read(place: Path, size: Size) -> dict[str, float]:
    """Generate the graph into ``place`` and code it; seconds of what was not there already."""
    facts, coded, took = place / "facts", place / "graph", {}
    if not facts.exists() and not coded.exists():
        part = place / "facts.part"
        place.mkdir(parents=True, exist_ok=True)
        took["generating"] = seconds(lambda: scale_reading.write(part, size.facts, size.entities, 16))
        part.rename(facts)
    if not coded.exists():
        took["reading"] = seconds(lambda: code_source(str(facts), coded))
    return took


def whole(place: Path, size: Size) -> dict[str, Any]:
    """Open, train for an epoch, evaluate."""
    took: dict[str, float] = read(place, size)

    def clocked(name: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = work()
        finish(size.device)
        took[name] = time.perf_counter() - began
        print(f"{name}: {took[name]:.1f} s", file=sys.stderr, flush=True)
        return found

    graph = clocked("opening", lambda: KnowledgeGraph.load(place / "graph"))
    settings: dict[str, Any] = {"model": "murp", "dim": 40, "batch_size": BATCH, "negatives": NEGATIVES, "lr": LR}
    settings |= {"epochs": 1, "validate_every": 0, "device": size.device.type, "seed": 0}
    allocated(size.device)
    clock = Clock()
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        out = Path(scratch) / "run"
        run = clocked("training", lambda: murp.train(graph, out=out, progress=clock, **settings))
        took["training, steps alone"] = clock.total
        most = peak(size.device, 0)
        report = clocked("evaluating", lambda: run.evaluate("test", "sampled", candidates=size.candidates))
        loss = run.metrics()[-1]["loss"]
    figures = {
        "graph": graph.counts(),
        "seconds": took,
        "seconds_without_reading": took["opening"] + took["training"] + took["evaluating"],
        "steps": clock.steps,
        "microseconds_a_step": clock.total / clock.steps * 1e6,
        "loss": loss,
        "peak_bytes_on_the_device": most,
        "test": {name: value for name, value in report.to_dict().items() if not name.startswith("by_")},
    }
    return result("a whole run at scale: one epoch, then protocol sampled", settings, figures, size.device)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser(__doc__)
    options.add_argument("--read", type=Path, metavar="FOLDER", help="only generate the graph there and code it")
    options.add_argument("--whole", type=Path, metavar="FOLDER", help="a whole run on the graph there")
    options.add_argument("--facts", type=int, default=Size.facts)
    options.add_argument("--entities", type=int, default=Size.entities)
    chosen = options.parse_args(arguments)
    if chosen.quick:
        os.environ.setdefault("TRITON_INTERPRET", "1")
    elif not (torch.cuda.is_available() or chosen.read):
        print("PyTorch sees no CUDA device here: nothing to measure (--quick runs toys on the CPU).", file=sys.stderr)
        return 1
    size = Size(torch.device("cuda"), facts=chosen.facts, entities=chosen.entities)
    size = TOY if chosen.quick else size
    if chosen.read:
        print(read(chosen.read, size))
    elif chosen.whole:
        store(whole(chosen.whole, size), chosen.out)
    else:
        store(step(size), chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
