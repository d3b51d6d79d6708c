"""How much memory saving a large model takes beside the model itself.

    python reliability/saving.py --out results/reliability_saving.json

A model is made and its checkpoint written twice, so that there is an older one. The most memory this process had is
told by the system.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import measure
from murp import models
from murp.runs import checkpoint


def most_mib() -> float:
    """The most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Make, save, measure; status 1 where saving took a tenth of the model or more."""
    options = measure.parser(__doc__).parse_args(arguments)
    entities, dim = (200_000, 80) if options.quick else (3_000_000, 80)
    model = models.murp(entities, 10, dim)
    model.initialise(0)
    size = sum(values.nbytes for values in model.parameters.values()) / 2**20
    before = most_mib()
    with tempfile.TemporaryDirectory() as work:
        began = time.perf_counter()
        for epoch in range(2):
            checkpoint.write(Path(work) / "last.safetensors", model.parameters, {"epoch": epoch})
        seconds = (time.perf_counter() - began) / 2
    extra = most_mib() - before
    figures = {"model_mib": size, "before_mib": before, "beside_the_model_mib": extra, "seconds_a_checkpoint": seconds}
    settings = {"seed": 0, "model": "murp", "entities": entities, "dim": dim, "dtype": str(torch.float32)}
    measure.store(measure.result("memory while saving", settings, figures), options.out)
    return 1 if extra > max(size / 10, 16) else 0


if __name__ == "__main__":
    sys.exit(main())
