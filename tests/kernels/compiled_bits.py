"""Trains and ranks in small, and prints digests of every bit as JSON, for cases such as ``murp float32``.

Twice, in two copies of a process that has compiled nothing: the second finds what the first has kept. See
``test_compiled_bits.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numba.core.dispatcher import Dispatcher

sys.path.insert(0, str(Path(__file__).parents[1]))

from murp.engines import Chunk
from murp.engines.numba_engine import NumbaEngine
from murp.evaluation import KnownFacts, rank
from murp.kernels.numba_formulas import Loops, loops
from murp.models import MODELS
from trees import tree

CASES = [f"{name} {dtype}" for name in MODELS for dtype in ("float32", "float64")]
# What lets LLVM reorder, fuse or leave out an operation on floating-point numbers, as flags and as a function.
LOOSE = re.compile(r"\b(?:fast|reassoc|contract|nnan|ninf|nsz|arcp|afn)\b|llvm\.fmuladd")
ARITHMETIC = re.compile(r"= (?:tail )?(?:fadd|fsub|fmul|fdiv|frem|fneg|fcmp|call|select|phi)\b")


def digest(name: str, dtype: str) -> str:
    """Of the tables after some steps, of the ranks that they give, and of the model's ending as a formula."""
    graph = tree()
    facts = torch.from_numpy(graph.train).long()
    model: Any = MODELS[name](graph.num_entities, 2 * graph.num_relations, 11, dtype=getattr(torch, dtype))
    model.initialise(0)
    # 4 steps at a rate at which some rows go far: both branches of a step on the ball are taken.
    NumbaEngine(model).run([Chunk(facts[:64].view(4, 16, 3), graph.num_entities, 9, 1)], [20.0])
    ranks = rank(model, graph.train, KnownFacts.of(graph), num_relations=graph.num_relations)
    tables = [model.parameters[table].numpy().tobytes() for table in sorted(model.parameters)]
    of_ending = bits_of_ending(model)
    return hashlib.sha256(b"".join([*tables, ranks.tail.tobytes(), ranks.head.tobytes(), of_ending])).hexdigest()


def of_ending(model: Any) -> tuple[Loops, tuple[int, int, int]]:
    """The loops of a model's ending, and how many products, numbers of queries and of candidates it has."""
    names = [["xx", "rr", "xr", "added"], ["square", "object_bias"]]
    formula = model.formula(2, *names)
    counts = 2, 4, 2
    return loops(formula, counts), counts


def bits_of_ending(model: Any) -> bytes:
    """Of scores and their derivatives, for products and numbers that no library has computed."""
    compiled, counts = of_ending(model)
    draw = torch.Generator().manual_seed(3)
    products, queries, candidates = (
        (0.1 * torch.rand(count, *shape, generator=draw, dtype=torch.float64)).to(model.dtype).numpy()
        for count, shape in zip(counts, [(5, 32), (5,), (32,)], strict=True)
    )
    given = products, queries, candidates
    found = [np.zeros_like(array) for array in (products[0], queries, candidates, queries[0])]
    compiled.values(*given, found[0])
    row = np.full(5, 0.5, products.dtype)
    for loop in compiled.derivatives:
        loop(*given, 31, row, row, *found)
    return b"".join(array.tobytes() for array in (products, *found))


def kernels() -> dict[str, Any]:
    """Every compiled function of murp that is imported, and those of MuRP's ending."""
    modules = [module for name, module in sys.modules.items() if name.startswith("murp.") and module is not None]
    compiled, _ = of_ending(MODELS["murp"](9, 4, 3))
    further = [compiled.values, compiled.log_sums, *compiled.derivatives]
    return {
        f"{made.py_func.__module__}.{made.py_func.__qualname__}": made
        for made in [*(made for module in modules for made in vars(module).values()), *further]
        if isinstance(made, Dispatcher)
    }


def loose_lines() -> list[str]:
    """Lines of the compiled code that leave the compiler a choice."""
    return [
        f"{name}: {line.strip()}"
        for name, kernel in kernels().items()
        for code in kernel.inspect_llvm().values()
        for line in code.splitlines()
        if ARITHMETIC.search(line) and LOOSE.search(line)
    ]


def found(cases: list[str]) -> dict[str, Any]:
    """What this process finds."""
    digests = {case: digest(*case.split()) for case in cases}
    compiled = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels().values())
    return {"digests": digests, "compiled": compiled, "loose": loose_lines() if compiled else []}


if __name__ == "__main__":
    for _ in range(2):
        if (copy := os.fork()) == 0:
            try:
                print(json.dumps(found(sys.argv[1:])), flush=True)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(copy, 0)[1]:
            sys.exit(1)
