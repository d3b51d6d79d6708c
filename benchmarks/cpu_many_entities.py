"""A training step on the CPU by the number of entities, and the memory training takes beside the parameters.

    python benchmarks/cpu_many_entities.py --out results/cpu_many_entities.json

Random triples, MuRP. Every size is trained in a process of its own, whose peak of resident memory less
that of a process with hardly any entities is what the entities cost.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import torch

from measure import in_turns, parser, result, store
from murp import engines, models
from murp.engines import Chunk

RELATIONS, DIM, BATCH, NEGATIVES = 22, 40, 128, 50


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--engine", default="numba")
    options.add_argument("--entities", type=int, nargs="+", default=[40_943, 10_000_000])
    options.add_argument("--train", type=int, help="measure this many entities in this process")
    chosen = options.parse_args(arguments)
    if chosen.train:
        print(json.dumps(measure(chosen.train, chosen.engine, *((2, 2) if chosen.quick else (256, 9)))))
        return
    engine, sizes = ("torch", [2000]) if chosen.quick else (chosen.engine, chosen.entities)

    def fresh(count: int) -> dict[str, Any]:
        command = [sys.executable, __file__, "--train", str(count), "--engine", engine]
        command += ["--quick"] if chosen.quick else []
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        values: dict[str, Any] = json.loads(told)
        return values

    nothing = fresh(1000)
    by = [fresh(count) for count in sizes]
    for size in by:
        size["peak_less_constant_over_parameters"] = (size["peak_bytes"] - nothing["peak_bytes"]) / size[
            "parameter_bytes"
        ]
    few, many = by[0], by[-1]
    figures = {
        "by": by,
        "constant_bytes": nothing["peak_bytes"],
        "ratio": many["seconds_a_step"]["median"] / few["seconds_a_step"]["median"],
    }
    settings = {"model": "murp", "dim": DIM, "batch_size": BATCH, "negatives": NEGATIVES, "engine": engine}
    store(result("a training step by number of entities, float32", settings, figures), chosen.out)


def measure(count: int, engine_name: str, steps: int, repeats: int) -> dict[str, Any]:
    """Seconds a step and the peak of memory of this process, with ``count`` entities."""
    draw = torch.Generator().manual_seed(0)
    heads, tails = torch.randint(count, (2, steps, BATCH), generator=draw)
    kinds = torch.randint(RELATIONS, heads.shape, generator=draw)
    chunk = Chunk(torch.stack([heads, kinds, tails], dim=-1), count, NEGATIVES, seed=0)
    model = models.murp(count, RELATIONS, DIM).initialise(0)
    engine = engines.build(engine_name, [model])
    times = in_turns({"step": (lambda: engine.run([chunk], [50.0]), steps)}, repeats=repeats)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "entities": count,
        "seconds_a_step": times["step"],
        "parameter_bytes": sum(table.numel() * table.element_size() for table in model.parameters.values()),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
    }


if __name__ == "__main__":
    main()
