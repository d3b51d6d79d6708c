"""A training step on the CPU for different numbers of entities, and the memory of training beside the parameters.

    python benchmarks/cpu_many_entities.py --out results/cpu_many_entities.json

Random triples, MuRP. Steps of all sizes run in turns in one process. To measure memory, every size is trained in its
own process; the memory of the entities is its peak minus the peak of a process with hardly any entities.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import murp  # noqa: F401 - before torch, as in the command line: see murp/__init__.py

# isort: split
import torch

from measure import Work, in_turns, parser, ratio, result, store
from murp import engines, models
from murp.engines import Chunk

RELATIONS, DIM, BATCH, NEGATIVES = 22, 40, 128, 50
FEW = 1000  # entities that take hardly any memory


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--engine", default="numba")
    options.add_argument("--entities", type=int, nargs="+", default=[40_943, 10_000_000])
    options.add_argument("--memory", type=int, help="print the peak of this process after training so many entities")
    chosen = options.parse_args(arguments)
    steps, repeats = (2, 2) if chosen.quick else (256, 9)
    if chosen.memory:
        training(chosen.memory, chosen.engine, steps)()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
        return
    engine, sizes = ("torch", [FEW]) if chosen.quick else (chosen.engine, chosen.entities)

    @cache
    def peak(count: int) -> int:
        command = [sys.executable, __file__, "--memory", str(count), "--engine", engine]
        command += ["--quick"] if chosen.quick else []
        return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    # Memory first: on Linux a process inherits the peak of the one that starts it.
    constant, *peaks = (peak(count) for count in (FEW, *sizes))
    times = in_turns({str(count): (training(count, engine, steps), steps) for count in sizes}, repeats=repeats)
    by = []
    for count, most in zip(sizes, peaks, strict=True):
        parameters = 4 * (count * (DIM + 2) + RELATIONS * 2 * DIM)
        by.append(
            {
                "entities": count,
                "seconds_a_step": times[str(count)],
                "parameter_bytes": parameters,
                "peak_bytes": most,
                "peak_less_constant_over_parameters": (most - constant) / parameters,
            }
        )
    figures = {"by": by, "constant_bytes": constant, "ratio": ratio(times, str(sizes[-1]), str(sizes[0]))}
    settings = {"seed": 0, "model": "murp", "dim": DIM, "batch_size": BATCH, "negatives": NEGATIVES, "engine": engine}
    store(result("a training step by number of entities, float32", settings, figures), chosen.out)


def training(count: int, engine_name: str, steps: int) -> Work:
    """Some steps of a model with ``count`` entities."""
    draw = torch.Generator().manual_seed(0)
    heads, tails = torch.randint(count, (2, steps, BATCH), generator=draw)
    kinds = torch.randint(RELATIONS, heads.shape, generator=draw)
    chunk = Chunk(torch.stack([heads, kinds, tails], dim=-1), count, NEGATIVES, seed=0)
    engine = engines.build(engine_name, [models.murp(count, RELATIONS, DIM).initialise(0)])
    return lambda: engine.run([chunk], [50.0])


if __name__ == "__main__":
    main()
