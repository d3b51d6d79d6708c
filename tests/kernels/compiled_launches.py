"""Compiles what host code launches on a GPU of some architecture, without one, and prints each variant as JSON.

``python compiled_launches.py 90 --others``: tables are on PyTorch's device ``meta``, where nothing is computed, and
Triton's driver is replaced by one that only names its target. Without ``--others`` the usual cases are compiled.
See ``test_triton_compiles.py``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from murp import registry
from murp.engines import Chunk
from murp.engines.triton_engine import TritonEngine
from murp.engines.triton_slices import TritonSlices
from murp.evaluation import triton_ranks
from murp.evaluation.fused import fused_ranks
from murp.graph import KnownFacts
from murp.kernels import triton_gathered
from murp.kernels.all_entities import WIDEST, mean_log_sum_exp, mean_softplus
from murp.kernels.formula_means import formula_mean
from murp.kernels.formulas import traced
from murp.models import MODELS, MultiRelational
from murp.objectives.every_score import EveryScore

Mean = Callable[..., torch.Tensor]
SINGLE, DOUBLE, HALF, BRAIN = torch.float32, torch.float64, torch.float16, torch.bfloat16
FUNCTIONS = ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sin", "asin", "acos", "expm1", "log1p", "sign")
# Bytes that the threads of a program may share, by architecture: A100 and H100.
SHARED = {80: 163 * 2**10, 90: 227 * 2**10}


class Target:
    """A driver of Triton's for an architecture of NVIDIA's, without a GPU."""

    def __init__(self, architecture: int) -> None:
        self.architecture = architecture
        self.utils = self

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": SHARED[self.architecture]}

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.architecture, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


class Recorder:
    """Takes the place of launches: compiles each variant once, with the types and options that it was launched with."""

    def __init__(self) -> None:
        self.case, self.seen, self.helpers = "", set[int](), set[str]()
        self.compile = JITFunction.run

    def __call__(self, kernel: JITFunction, *given: Any, grid: Any, warmup: bool, **options: Any) -> None:
        told = {"kernel": f"{kernel.__module__}.{kernel.__name__}", "case": self.case}
        try:
            made = self.compile(kernel, *given, grid=grid, warmup=True, **options)
        except Exception as error:
            print(json.dumps({**told, "error": f"{error} {error.__cause__ or ''}"}))
            return
        if id(made) in self.seen:
            return
        self.seen.add(id(made))
        self.helpers |= set(re.findall(r"@\"?(murp\.[\w.]+?)__", made.asm["source"]))
        told |= {"shared": made.metadata.shared, "warps": made.metadata.num_warps}
        print(json.dumps({**told, **used(made.asm["cubin"])}), flush=True)


def used(code: bytes) -> dict[str, int]:
    """The registers of a thread, and the bytes of what did not fit into them."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {name: int(number) for name, number in re.findall(r"(REG|STACK|LOCAL):(\d+)", said)}
    return {"registers": found["REG"], "spilled": found["STACK"] + found["LOCAL"]}


def model(
    name: str, dim: int, dtype: torch.dtype, *, points: torch.dtype | None = None, **parts: str
) -> MultiRelational:
    made: MultiRelational = MODELS[name](30, 4, dim, dtype=dtype, **parts)
    made.initialise(0)
    if points is not None:
        made.point_dtype = points
        made.parameters["entity"] = made.parameters["entity"].to(points)
    made.to("meta")
    return made


def triples(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, 3, dtype=torch.int64, device="meta")


def train(*models: MultiRelational, host: bool = False) -> None:
    """A step of MuRP's engine, whose entities may lie in host memory, and the negatives that it draws."""
    engine = TritonEngine(models)
    engine.host = host
    works = [Chunk(triples(1, 8), 30, 50, seed) for seed, _ in enumerate(models)]
    engine.run(works, [1.0] * len(models))
    engine.negatives(works[0])


def slices(of: MultiRelational) -> None:
    negatives = torch.zeros(8, 50, dtype=torch.int64, device="meta")
    TritonSlices()(of, triples(8), negatives, 1.0)


def evaluate(of: MultiRelational) -> None:
    asked, known = np.zeros(3, np.int64), KnownFacts(np.zeros((0, 3), np.int32), 4)
    fused_ranks(triton_ranks, of, known, asked, asked, asked, asked - 1, size=2)


def means(
    mean: Mean, dim: int, dtype: torch.dtype, *, own: bool = True, graded: bool = True, entities: int = 30_000
) -> None:
    """A mean over all entities; ``own``: of queries and entities that have numbers of their own."""

    def some(*shape: int) -> torch.Tensor:
        return torch.empty(*shape, dtype=dtype, device="meta", requires_grad=graded)

    value = mean(some(500, dim), some(entities, dim), *((some(500), some(entities)) if own else (None, None)))
    if graded:
        value.backward()


def formulas(name: str, dim: int, dtype: torch.dtype, kind: str = "log_sum_exp", *, graded: bool = True) -> None:
    """A mean over all entities of a model whose ending is a formula."""
    of = registry.find("model", name)(30_000, 4, dim, dtype=dtype).initialise(0)
    of.to("meta")
    of.parameters = {name: values.requires_grad_(graded) for name, values in of.parameters.items()}
    asked = torch.zeros(500, dtype=torch.int64, device="meta")
    query = of.query(of.rows("subject", asked), of.rows("relation", asked), of.rows("shared"))
    every = EveryScore(of, query, of.candidate(of.rows("object"), of.rows("shared")))
    assert every.formula is not None
    getattr(every, kind)()


def functions(dtype: torch.dtype) -> None:
    """A mean of a formula that has every function that the kernels know."""

    def ending(p: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        found = torch.maximum(own.clamp(-1, 1), torch.minimum(own, own.sigmoid()))
        for name in FUNCTIONS:
            found = found + getattr(torch, name)(own)
        return found * p

    formula = traced(ending, 2, dtype)
    assert formula is not None
    q, v, own = (torch.empty(*shape, dtype=dtype, device="meta") for shape in ((50, 8), (300, 8), (50,)))
    formula_mean(formula, "mean", [q.requires_grad_()], [own], [v], [])


def gathered(dim: int, dtype: torch.dtype) -> None:
    """Two vectors of a query, of which only the first asks for squares."""
    table, vector = (torch.empty(rows, dim, dtype=dtype, device="meta") for rows in (900, 60))
    indices = torch.zeros(60, 50, dtype=torch.int64, device="meta")
    found = triton_gathered.products([vector, vector], table, indices)
    triton_gathered.back(found, [vector, vector], table, indices)


def shown(value: Any) -> str:
    """A part of a case in a few words."""
    if isinstance(value, MultiRelational):
        kinds = dict.fromkeys((str(value.dtype), str(value.parameters["entity"].dtype)))
        return f"{type(value).__name__} {value.dim} {' '.join(kinds)} {value.transformation} {value.bias}"
    return "=".join(map(str, value)) if isinstance(value, tuple) else getattr(value, "__name__", str(value))


def side_by_side(name: str, dim: int, dtype: torch.dtype, *, points: torch.dtype | None = None) -> partial[None]:
    """A step of three models."""
    return partial(train, *(model(name, dim, dtype, points=points) for _ in range(3)))


def usual() -> Iterator[partial[None]]:
    """At least one variant of every kernel; those that need the most shared memory are among them."""
    yield partial(train, model("murp", 40, SINGLE))
    yield side_by_side("murp", 200, SINGLE)
    yield partial(slices, model("mure", 40, SINGLE))
    for name in MODELS:
        yield partial(evaluate, model(name, 40, SINGLE))
    for mean in (mean_log_sum_exp, mean_softplus):
        yield partial(means, mean, 40, SINGLE)
    yield partial(means, mean_log_sum_exp, WIDEST[SINGLE], SINGLE)
    yield partial(means, mean_softplus, WIDEST[DOUBLE], DOUBLE)
    yield partial(formulas, "murp", 40, SINGLE)
    yield partial(formulas, "murp", 256, SINGLE)
    yield partial(gathered, 40, SINGLE)


def further() -> Iterator[partial[None]]:
    """Every option with which the kernels are compiled, and the other types of numbers."""
    yield partial(train, model("mure", 200, SINGLE))
    yield partial(train, model("murp", 200, SINGLE, points=BRAIN), host=True)
    yield partial(train, model("mure", 40, DOUBLE), host=True)
    yield side_by_side("murp", 40, SINGLE)
    yield side_by_side("murp", 200, DOUBLE)
    yield side_by_side("mure", 40, SINGLE, points=HALF)
    yield partial(slices, model("murp", 200, DOUBLE))
    for name in MODELS:
        yield partial(train, model(name, 40, SINGLE, transformation="stretch-both", bias="transformed-norm"))
        yield partial(train, model(name, 40, SINGLE, transformation="swapped", bias="norm"))
    yield partial(train, model("murp", 40, SINGLE, transformation="stretch-only", bias="transformed-norm"))
    yield partial(train, model("mure", 40, SINGLE, transformation="translation-only", bias="head"))
    yield partial(evaluate, model("murp", 200, DOUBLE))
    yield partial(means, mean_log_sum_exp, 200, SINGLE)
    for mean in (mean_log_sum_exp, mean_softplus):
        yield partial(means, mean, 40, SINGLE, own=False, graded=False)
    yield partial(means, mean_log_sum_exp, 40, DOUBLE, own=False)
    yield partial(means, mean_softplus, 40, SINGLE, entities=60_000_000)  # more numbers than 32 bits can count
    yield partial(formulas, "mixed-curvature", 40, SINGLE)
    yield partial(formulas, "murp", 40, SINGLE, "softplus", graded=False)
    yield partial(formulas, "murp", 128, DOUBLE, "mean")
    yield partial(functions, DOUBLE)
    yield partial(gathered, 200, DOUBLE)


def main(architecture: int, *, others: bool) -> None:
    """See this module."""
    driver.set_active(Target(architecture))
    recorder = Recorder()
    JITFunction.run = lambda kernel, *given, **options: recorder(kernel, *given, **options)
    for case in further() if others else usual():
        recorder.case = " ".join(shown(one) for one in (case.func.__name__, *case.args, *case.keywords.items()))
        case()
    print(json.dumps({"helpers": sorted(recorder.helpers), "room": SHARED[architecture]}))


if __name__ == "__main__":
    main(int(sys.argv[1]), others="--others" in sys.argv)
