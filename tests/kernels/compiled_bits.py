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

import torch
from numba.core.dispatcher import Dispatcher

sys.path.insert(0, str(Path(__file__).parents[1]))

from murp.engines import Chunk
from murp.engines.numba_engine import NumbaEngine
from murp.evaluation import KnownFacts, rank
from murp.models import MODELS
from trees import tree

CASES = [f"{name} {dtype}" for name in MODELS for dtype in ("float32", "float64")]
# What lets LLVM reorder, fuse or leave out an operation on floating-point numbers, as flags and as a function.
LOOSE = re.compile(r"\b(?:fast|reassoc|contract|nnan|ninf|nsz|arcp|afn)\b|llvm\.fmuladd")
ARITHMETIC = re.compile(r"= (?:tail )?(?:fadd|fsub|fmul|fdiv|frem|fneg|fcmp|call|select|phi)\b")


def digest(name: str, dtype: str) -> str:
    """Of the tables after some steps and of the ranks that they give."""
    graph = tree()
    facts = torch.from_numpy(graph.train).long()
    model: Any = MODELS[name](graph.num_entities, 2 * graph.num_relations, 11, dtype=getattr(torch, dtype))
    model.initialise(0)
    # 4 steps at a rate at which some rows go far: both branches of a step on the ball are taken.
    NumbaEngine(model).run([Chunk(facts[:64].view(4, 16, 3), graph.num_entities, 9, 1)], [20.0])
    ranks = rank(model, graph.train, KnownFacts.of(graph), num_relations=graph.num_relations)
    tables = [model.parameters[table].numpy().tobytes() for table in sorted(model.parameters)]
    return hashlib.sha256(b"".join([*tables, ranks.tail.tobytes(), ranks.head.tobytes()])).hexdigest()


def kernels() -> dict[str, Any]:
    """Every compiled function of murp that is imported."""
    modules = [module for name, module in sys.modules.items() if name.startswith("murp.") and module is not None]
    return {
        f"{made.py_func.__module__}.{made.py_func.__name__}": made
        for module in modules
        for made in vars(module).values()
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
