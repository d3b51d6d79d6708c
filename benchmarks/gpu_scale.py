"""Tables that fill a GPU, tables in host memory, and a whole run at scale.

    python benchmarks/gpu_scale.py --out results/gpu_scale.json
    python benchmarks/gpu_scale.py --rows --out results/gpu_scale_rows.json
    python benchmarks/gpu_scale.py --read FOLDER
    python benchmarks/gpu_scale.py --whole FOLDER --out results/gpu_scale_whole.json

The first measures a step of MuRP by the engine triton on random triples: with 41 thousand, 10 million and 100 million
entities on the GPU, and with 41 thousand and 200 million in host memory (``tables = host``) beside the same on the GPU,
200 million also stored in float16 (``table_dtype``), in both places.
All tables are in memory at once, and the cases run in turns. Tables are filled on the GPU, block by block, since the
CPU's normal generator would take minutes. For each case it measures the time of a step and of its gradient kernel, the
peak memory on the GPU, the bytes that cross the bus, and the speed of the bus.

``--rows`` only reads random rows, spread over more or less memory (benchmarks/host_rows.py). This shows why a large
table in host memory is slow. It needs 34 GB of host memory, and less than a minute.

``--read`` generates the graph of benchmarks/scale_reading.py (10 million entities, 100 million facts of a known
hierarchy) into FOLDER and codes it; what is there already is kept, and what was stopped goes on. ``--whole`` takes it
from there, and reads it first if it is not (benchmarks/scale_whole.py): opened, trained for one epoch, evaluated
under protocol sampled, and whether the hierarchy was learned; seconds of each part. Both say how far they are, and
``--out`` has what there is after each part. ``--facts 1000000 --entities 100000 --device cpu`` is a smaller one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from measure import Works, finish, in_turns, parser, ratio, result, seconds, spread, store
from murp import models
from murp.engines import Chunk
from murp.files import write_text
from murp.models import MultiRelational
from murp.models.host_memory import room
from scale_whole import read, whole

RELATIONS, BATCH, NEGATIVES, LR, SCALE = 22, 128, 50, 50.0, 1e-3
DIM = 40  # of the rows that are read alone: 160 bytes
SPANS = (65_536, 6_250_000, 25_000_000, 100_000_000, 200_000_000)  # 10 MB, 1 GB, 4 GB, 16 GB and 32 GB of them
BLOCK = 2**18  # rows that are filled at a time
LAUNCHES = 256  # of the gradient kernel, timed as one graph
BUS = 2**30  # bytes that are copied to see how fast the bus is


@dataclass(frozen=True)
class Case:
    """A model by the number of its entities, its dimension, and where and in which format its points are stored."""

    entities: int
    dim: int
    host: bool = False
    table_dtype: str = "float32"

    @property
    def name(self) -> str:
        form = "" if self.table_dtype == "float32" else f"-{self.table_dtype}"
        return f"{'host' if self.host else 'device'}-{self.entities}-d{self.dim}{form}"


CASES = (
    Case(40_943, 100), Case(10_000_000, 100), Case(100_000_000, 100),
    Case(40_943, 40), Case(200_000_000, 40), Case(40_943, 40, host=True), Case(200_000_000, 40, host=True),
    Case(200_000_000, 40, table_dtype="float16"), Case(200_000_000, 40, host=True, table_dtype="float16"),
)  # fmt: skip
TOYS = (
    *(Case(*shape) for shape in ((30, 4), (60, 4), (90, 4), (30, 3), (90, 3), (30, 3, True), (90, 3, True))),
    *(Case(90, 3, host, "float16") for host in (False, True)),
)


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
    spans: tuple[int, ...] = SPANS


TOY = Size(torch.device("cpu"), TOYS, 1, 1, 1, 1, 2_000, 300, 5, (20, 40, 60))


def filled(case: Case, device: torch.device) -> MultiRelational:
    """A model with points about the origin, filled where the numbers are made fastest."""
    model = models.murp(case.entities, RELATIONS, case.dim)
    model.point_dtype = models.DTYPES[case.table_dtype]
    draw = torch.Generator(device).manual_seed(0)
    shape = (case.entities, case.dim)
    pinned = case.host and device.type == "cuda"
    kind = model.point_dtype
    points = room(shape, kind) if pinned else torch.empty(shape, dtype=kind, device=device)
    for start in range(0, case.entities, BLOCK):
        part = points[start : start + BLOCK]
        part.copy_(torch.randn(part.shape, generator=draw, device=device).mul_(SCALE))
    small = torch.Generator().manual_seed(0)
    for table in model.tables:
        if table.name == "entity":
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
            "bytes_over_the_bus_a_step": 2 * rows * case.dim * model.point_dtype.itemsize if case.host else 0,
        }
        print(f"{case.name}: filled in {made:.1f} s", file=sys.stderr, flush=True)
    for name, times in in_turns(works, repeats=size.repeats, device=size.device).items():
        figures[name]["seconds_a_step"] = times
    for case, engine in engines.items():
        figures[case.name]["seconds_of_the_gradient_kernel"] = gradient_alone(engine, size)
    times = {name: figures[name]["seconds_a_step"] for name in figures}
    few, more, most, small, large, host, large_host, half, half_host = (case.name for case in size.cases)
    told: dict[str, Any] = {
        "cases": figures,
        "10 million on the device against 41 thousand": ratio(times, more, few),
        "100 million on the device against 41 thousand": ratio(times, most, few),
        "200 million on the device against 41 thousand": ratio(times, large, small),
        "41 thousand in host memory against on the device": ratio(times, host, small),
        "200 million in host memory against on the device": ratio(times, large_host, large),
        "200 million in host memory against 41 thousand": ratio(times, large_host, host),
        "200 million on the device, float16 against float32": ratio(times, half, large),
        "200 million in host memory, float16 against float32": ratio(times, half_host, large_host),
        "bus": bus(size.device),
    }
    settings = {
        "seed": 0,
        "model": "murp",
        "batch_size": size.batch,
        "negatives": size.negatives,
        "steps": size.steps,
        "lr": LR,
    }
    what = "a step by number of entities and by where and in which format their points are stored, engine triton"
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
    """The most bytes since then, beyond those there were; None if there is no GPU."""
    return torch.cuda.max_memory_allocated() - before if device.type == "cuda" else None


def rows(size: Size, keep: Callable[[Any], None]) -> Any:
    """Random rows by the size of their table; ``keep`` is handed what there is after each place."""
    from host_rows import by_place

    settings = {"seed": 0, "dim": DIM, "batch_size": size.batch, "negatives": size.negatives}

    def told(figures: dict[str, Any]) -> Any:
        return result("random rows, read by how large their table is and where it lies", settings, figures, size.device)

    count = size.batch * (2 + size.negatives)
    return told(by_place(size.spans, DIM, count, size.repeats, size.device, lambda found: keep(told(found))))


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser(__doc__)
    one = options.add_mutually_exclusive_group()
    one.add_argument("--rows", action="store_true", help="only random rows by the size of their table")
    one.add_argument("--read", type=Path, metavar="FOLDER", help="only generate the graph there and code it")
    one.add_argument("--whole", type=Path, metavar="FOLDER", help="a whole run on the graph there")
    options.add_argument("--facts", type=int, default=Size.facts)
    options.add_argument("--entities", type=int, default=Size.entities)
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="of a whole run")
    chosen = options.parse_args(arguments)
    if chosen.quick:
        os.environ.setdefault("TRITON_INTERPRET", "1")
    elif not (torch.cuda.is_available() or chosen.read or (chosen.whole and chosen.device == "cpu")):
        print("PyTorch sees no CUDA device here: nothing to measure (--quick runs toys on the CPU).", file=sys.stderr)
        return 1
    size = Size(torch.device(chosen.device), facts=chosen.facts, entities=chosen.entities)
    size = TOY if chosen.quick else size

    def keep(values: Any) -> None:
        if chosen.out is not None:
            chosen.out.parent.mkdir(parents=True, exist_ok=True)
            write_text(chosen.out, json.dumps(values, indent=1) + "\n")

    if chosen.read:
        print(read(chosen.read, size.facts, size.entities))
    elif chosen.whole:
        shape = size.facts, size.entities, size.candidates
        store(whole(chosen.whole, *shape, size.device, keep, toy=chosen.quick), chosen.out)
    elif chosen.rows:
        store(rows(size, keep), chosen.out)
    else:
        store(step(size), chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
