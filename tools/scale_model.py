"""The formula of the plan in docs/scale.md: bytes that a rank sends, and seconds of a step on one GPU.

Its constants are measured (results/gpu_step.json, gpu_many_entities.json, the bus in gpu_scale.json). What it says of
cases that were measured elsewhere is compared in tools/scale_errors.py.
"""

from __future__ import annotations

import math
from typing import Any

import benchmark_results as stored
from murp import models
from murp.config import Config
from murp.distributed.shares import widths
from scale_constants import CACHE

FLOAT, NUMBER, FLAG = 4, 4, 1  # bytes of a value, of a row's number, and of the word whether it travels early
TRIPLE, PLACE = 12, 4  # bytes of a triple, and of its place in the order of an epoch
MEASURED_BATCH, MEASURED_NEGATIVES = 128, 50  # of the step whose time is known


def distinct(drawn: int, among: int) -> float:
    """How many different numbers there are, expected, in ``drawn`` draws from ``among``."""
    return -among * math.expm1(drawn * math.log1p(-1 / among)) if among > 1 else float(among)


def bytes_sent(asked: float, served: float, relations: float, others: int, row: int, relation_row: int) -> float:
    """What a rank sends: rows ``served``, gradients and numbers of rows ``asked`` for, and relations' to all others.

    ``asked`` and ``served`` count rows between this rank and others; ``row`` and ``relation_row`` are bytes.
    """
    return served * row + asked * (row + NUMBER) + others * relations * (relation_row + NUMBER)


def bytes_of_triples(own: float, gpus: int) -> float:
    """What a rank sends of its share of ``own`` triples, once an epoch: those that are in slices of other ranks."""
    return TRIPLE * own * (gpus - 1) / gpus


def row_bytes(dim: int) -> tuple[int, int]:
    """Of an entity's row and of a relation's, MuRP in float32."""
    model = models.from_config(Config(model="murp", dim=dim), 1, 1)
    row, relation_row = (FLOAT * sum(widths(model, of).values()) for of in ("entity", "relation"))
    return row, relation_row


def seconds_of_kernel(dim: int, entities: int) -> float:
    """128 triples with 50 negatives on one GPU: linear in ``dim``, and slower where the table exceeds the cache."""
    steps = figures("gpu_step")["seconds_a_step"]
    small, large = (steps[f"triton_murp_d{d}"]["median"] for d in (40, 200))
    ratio: float = figures("gpu_many_entities")["ratio"] if entities * dim * FLOAT > CACHE.value else 1.0
    return ratio * (small + (large - small) * (dim - 40) / 160)


def seconds_over_the_host_bus(dim: int) -> float:
    """For the rows of such a step, once there and once back, at the speed of large copies."""
    bus = figures("gpu_scale")["bus"]
    moved = MEASURED_BATCH * (MEASURED_NEGATIVES + 2) * dim * FLOAT
    return moved / bus["from_host"] + moved / bus["to_host"]


def figures(name: str) -> dict[str, Any]:
    """Of a stored result that the plan cannot do without."""
    found = stored.result(name)
    if found is None:
        raise SystemExit(f"results/{name}.json is missing")
    values: dict[str, Any] = found["figures"]
    return values
