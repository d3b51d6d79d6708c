"""What the formula of the plan says of cases that were measured, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import benchmark_results as stored
from benchmark_results import size, table, time
from scale_constants import WN18RR
from scale_model import bytes_sent, distinct, figures, row_bytes, seconds_of_kernel, seconds_over_the_host_bus

CASES = ("2", "4")  # ranks on CPUs, each with four slices; one rank is what they are predicted from
SLICES = 4
MEASURED = {
    "distributed_cpu": "",
    "distributed_local_cpu": ", local negatives",
    "distributed_shared_cpu": ", negatives shared by a batch",
    "distributed_many_cpu": ", 4,000 negatives shared by a batch, d=200",
}
BESIDE = "work of a rank at 4, in quarters of one beside another"


@dataclass(frozen=True)
class Compared:
    """A case: what the formula says, and what was measured, in seconds or in bytes."""

    what: str
    predicted: float
    measured: float
    unit: str = "s"

    @property
    def error(self) -> float:
        """Of the prediction, as a share of what was measured: below 0 where it is too hopeful."""
        return self.predicted / self.measured - 1

    def cells(self) -> list[str]:
        shown = time if self.unit == "s" else size
        return [self.what, shown(self.predicted), shown(self.measured), self.percent]

    @property
    def percent(self) -> str:
        """The error as a text."""
        return f"{self.error:+.0%}".replace("-", "−")


def steps_on_one_gpu() -> list[Compared]:
    """41 thousand to 200 million entities in float32, on the GPU and in host memory, and steps in the middle of whole
    runs."""
    found = stored.result("gpu_scale")
    cases = [] if found is None else list(found["figures"]["cases"].values())
    cases = [case for case in cases if case.get("table_dtype", "float32") == "float32"]
    compared = []
    for case in cases:
        predicted = seconds_of_kernel(case["dim"], case["entities"])
        predicted += seconds_over_the_host_bus(case["dim"]) if case["host"] else 0.0
        where = "in host memory" if case["host"] else "on the GPU"
        what = f"a step, H200, {case['entities']:,} entities {where}, d={case['dim']}"
        compared.append(Compared(what, predicted, case["seconds_a_step"]["median"]))
    for name, dim, entities in (("fb15k-237-murp-d40", 40, 14_541), ("wn18rr-murp-d200", 200, WN18RR.entities)):
        measured = figures(f"gpu_{name}")["microseconds_a_step"] * 1e-6
        compared.append(Compared(f"a step in a whole run, H200, {name}", seconds_of_kernel(dim, entities), measured))
    return compared


def larger_batch() -> Compared:
    """The plan takes time to grow with the number of candidates."""
    larger = figures("gpu_any_model")["steps"]["rotation and stretch, self-adversarial"]
    settings = larger["settings"]
    candidates = settings["batch_size"] * (settings["negatives"] + 2)
    predicted = seconds_of_kernel(settings["dim"], WN18RR.entities) * candidates / (128 * 52)
    what = (
        f"a step of {candidates / (128 * 52):.0f} times as many candidates, H200 (another model, compiled: RotH with "
        f"stretch, {settings['batch_size']} triples, {settings['negatives']} negatives)"
    )
    return Compared(what, predicted, larger["seconds_a_step"]["ours"]["median"])


def work_of_ranks() -> list[Compared]:
    """Processor time of one of 2 and 4 ranks on CPUs: the plan divides that of one by their number."""
    compared = []
    for file, words in MEASURED.items():
        if (found := stored.result(file)) is None:
            continue
        work = {name: found["figures"][name]["work_a_step_of_a_rank"]["median"] for name in ("1", *CASES)}
        what = "work of one of {} ranks, CPU, WN18RR" + words
        compared += [Compared(what.format(name), work["1"] / int(name), work[name]) for name in CASES]
    return compared


def bytes_of_ranks() -> list[Compared]:
    """What 2 and 4 ranks on CPUs send in a step, all together."""
    return [
        Compared(
            f"bytes a step of {name} ranks, CPU, WN18RR{MEASURED[file]}",
            bytes_of_case(found["settings"], int(name), SLICES),
            found["figures"][name]["bytes_a_step"],
            "bytes",
        )
        for file in ("distributed_cpu", "distributed_local_cpu")
        if (found := stored.result(file)) is not None
        for name in CASES
    ]


def bytes_of_case(settings: dict[str, Any], gpus: int, slices: int) -> float:
    """Bytes that all ranks together send in a step of ``benchmarks/distributed.py`` on WN18RR."""
    row, relation_row = row_bytes(settings["dim"])
    batch = settings["batch_size"] // slices
    travelling = 2 if settings.get("corruption") == "local" else settings["negatives"] + 2
    remote = distinct(batch * travelling, WN18RR.entities) * (gpus - 1) / gpus
    relations = distinct(batch, 2 * WN18RR.relations)
    return slices * bytes_sent(remote, remote, relations, gpus - 1, row, relation_row)


def errors_table() -> str:
    """Every case: predicted, measured, error."""
    rows = [*steps_on_one_gpu(), larger_batch(), *work_of_ranks(), *bytes_of_ranks()]
    return table(["case", "predicted", "measured", "error"], (one.cells() for one in rows))


def said() -> str:
    """What follows from the table."""
    on_gpu = [one.error for one in steps_on_one_gpu() if "host memory" not in one.what]
    parts = [
        "An error below 0 means that the plan is too optimistic. For steps on one GPU, with tables of any size, the "
        f"error is at most {max(map(abs, on_gpu)):.0%}."
    ]
    in_host = [one for one in steps_on_one_gpu() if "host memory" in one.what]
    if in_host:
        worst_in_host = min(in_host, key=lambda one: one.error)
        parts.append(
            f"A large table in host memory is much slower than predicted ({worst_in_host.percent}): the formula counts "
            "bytes, but the translation of addresses takes most of the time."
        )
    parts.append(
        f"A larger batch of another model is predicted with an error of {larger_batch().percent}: the plan takes the "
        "time of one model, MuRP with a small batch, to grow with the number of candidates. So it says little about "
        "other models and other batches."
    )
    if work_of_ranks():
        parts.append(
            f"Ranks do more work than their share, up to {worst():.2f} times, because each also sorts and indexes, and "
            f"they share the caches of one machine.{beside()} If this is true for GPUs too, *computing* and *starting "
            "kernels* take that many times as long."
        )
    if bytes_of_ranks():
        parts.append(f"Bytes are predicted to {max(abs(one.error) for one in bytes_of_ranks()):.1%}.")
    parts.append(
        "Not measured at all: the operations of many ranks on GPUs, which are not compiled, NCCL, and messages over "
        "NVLink and InfiniBand. The plan uses the kernel time of a single GPU."
    )
    return " ".join(parts)


def worst() -> float:
    """How many times the work of a rank exceeds its share at most; 1 where that was not measured."""
    return max((one.measured / one.predicted for one in work_of_ranks()), default=1.0)


def beside() -> str:
    """A sentence on how much of that is left against a process whose neighbour takes its share of the caches."""
    results = [found["figures"]["compared"] for name in MEASURED if (found := stored.result(name)) is not None]
    left = [f"{compared[BESIDE]:.2f}" for compared in results if BESIDE in compared]
    return f" Beside a busy neighbour, one of 4 ranks has {' and '.join(left)} times its share." if left else ""
