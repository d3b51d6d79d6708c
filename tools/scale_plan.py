"""Write the plan for 8, 64 and 512 GPUs into docs/scale.md; with --check, only say whether it is up to date.

    python tools/scale_plan.py

Times of a GPU and of its tables come from results/. Speeds of buses and networks are vendors' and stand in ``ASSUMED``:
no run of many GPUs has been measured. Bytes follow what :mod:`murp.distributed` sends, which a test compares.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from dataclasses import dataclass, field
from typing import Any

import benchmark_results as stored
from benchmark_results import size, table, time
from murp import models
from murp.config import Config
from murp.distributed.plan import SPARSE
from murp.distributed.shares import widths
from murp.provenance import ROOT

PAGE = ROOT / "docs" / "scale.md"
BLOCK = re.compile(r"(<!-- plan -->\n).*?(<!-- end -->)", re.DOTALL)
FLOAT, NUMBER, FLAG = 4, 4, 1  # bytes of a value, of a row's number, and of the word whether it travels early
GPUS = (8, 64, 512)
MACHINE = 8  # GPUs
DIM, BATCH, NEGATIVES = 128, 4096, 50  # BATCH: triples of each GPU in a step


@dataclass(frozen=True)
class Assumed:
    """A constant that was not measured here."""

    what: str
    value: float
    shown: str
    source: str


ASSUMED = {
    "bus": Assumed("between GPUs of a machine, each way", 450e9, "450 GB/s",
                   "NVIDIA, H200: NVLink 900 GB/s, both ways"),
    "network": Assumed("between machines, each way, a GPU", 50e9, "50 GB/s",
                       "NVIDIA, DGX H200: 8 ports of 400 Gb/s for 8 GPUs"),
    "memory": Assumed("memory of a GPU", 4.8e12, "4.8 TB/s, 141 GB", "NVIDIA, H200"),
    "message": Assumed("start of a message to one other GPU", 2e-6, "2 µs", "our guess; no vendor names one"),
}  # fmt: skip


@dataclass(frozen=True)
class Graph:
    """How large a graph is."""

    entities: int
    relations: int
    facts: int


GRAPHS = {
    "Freebase": Graph(86_054_151, 14_824, 338_586_276),
    "Wikidata": Graph(100_000_000, 1_387, 658_900_000),
}
WN18RR = Graph(40_943, 11, 86_835)
SIZES = (
    "Freebase has the size of Freebase86m; Wikidata that of WikiKG90Mv2 (91 million entities, 601 million facts), "
    "enlarged to 100 million entities."
)
PUBLISHED = (
    ("Freebase", "Dist-KGE, ComplEx d=128", "1 GPU", "3,929 s"),
    ("Freebase", "Dist-KGE, ComplEx d=128", "8 GPUs in two machines", "592 s"),
    ("Freebase", "Marius, d=100", "1 V100, partitions on disk", "774 s"),
    ("Freebase", "DGL-KE", "8 V100", "8,356 s for a whole run"),
)


def distinct(drawn: int, among: int) -> float:
    """How many different numbers there are, expected, in ``drawn`` draws from ``among``."""
    return -among * math.expm1(drawn * math.log1p(-1 / among)) if among > 1 else float(among)


def bytes_sent(asked: float, served: float, relations: float, others: int, row: int, relation_row: int) -> float:
    """What a rank sends: rows ``served``, gradients and numbers of rows ``asked`` for, and relations' to all others.

    ``asked`` and ``served`` count rows between this rank and others; ``row`` and ``relation_row`` are bytes.
    """
    return served * row + asked * (row + NUMBER) + others * relations * (relation_row + NUMBER)


def row_bytes(dim: int) -> tuple[int, int]:
    """Of an entity's row and of a relation's, MuRP in float32."""
    model = models.from_config(Config(model="murp", dim=dim), 1, 1)
    row, relation_row = (FLOAT * sum(widths(model, of).values()) for of in ("entity", "relation"))
    return row, relation_row


def seconds_of_kernel(dim: int) -> float:
    """128 triples with 50 negatives on one GPU and a table of many entities: measured, and linear in ``dim``."""
    steps = _figures("gpu_step")["seconds_a_step"]
    small, large = (steps[f"triton_murp_d{d}"]["median"] for d in (40, 200))
    ratio: float = _figures("gpu_many_entities")["ratio"]
    return ratio * (small + (large - small) * (dim - 40) / 160)


def _figures(name: str) -> dict[str, Any]:
    found = stored.result(name)
    if found is None:
        raise SystemExit(f"results/{name}.json is missing")
    figures: dict[str, Any] = found["figures"]
    return figures


@dataclass
class Plan:
    """A step of one of ``gpus`` GPUs on a graph."""

    graph: Graph
    gpus: int
    terms: dict[str, float] = field(default_factory=dict)  # seconds, by what takes them
    hidden: float = 0.0  # seconds of messages behind computing

    def __post_init__(self) -> None:
        row, relation_row = row_bytes(DIM)
        named, others = BATCH * (NEGATIVES + 2), self.gpus - 1
        self.sparse = self.graph.entities >= SPARSE * named * self.gpus
        remote = distinct(named, self.graph.entities) * others / self.gpus
        relations = distinct(BATCH, 2 * self.graph.relations)
        self.of_rows = bytes_sent(remote, remote, 0, others, row, relation_row) + remote * FLAG * self.sparse
        self.of_relations = bytes_sent(0, 0, relations, others, row, relation_row)
        self.rows_held = self.graph.entities / self.gpus * row
        steps = _figures("gpu_step")["seconds_a_step"]
        self.terms = {
            "computing": seconds_of_kernel(DIM) * BATCH / 128,
            "starting kernels": steps["torch_murp_d40"]["median"],
            "rows and gradients": self._travel(self.of_rows),
            "gradients of relations": self._travel(self.of_relations),
            "starting messages": 3 * others * ASSUMED["message"].value,
            # Every rank draws the negatives of all, 8 bytes each, written and read.
            "drawing": 16 * NEGATIVES * BATCH * self.gpus / ASSUMED["memory"].value,
        }
        if self.sparse:  # about half of the bytes, the rows, travel while the step before computes
            self.hidden = min(self.terms["rows and gradients"] / 2, self.terms["computing"])

    def _travel(self, sent: float) -> float:
        """Seconds for bytes that go to all other GPUs alike, inside the machine and between machines at once."""
        inside = min(self.gpus, MACHINE) - 1
        outside = self.gpus - 1 - inside
        shares = (inside / ASSUMED["bus"].value, outside / ASSUMED["network"].value)
        return sent / (self.gpus - 1) * max(shares)

    @property
    def seconds(self) -> float:
        return sum(self.terms.values()) - self.hidden

    @property
    def bound(self) -> str:
        """What takes longest."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def epoch(self) -> float:
        """Seconds for all facts and their reciprocals."""
        return 2 * self.graph.facts / (BATCH * self.gpus) * self.seconds


def steps_table() -> str:
    plans = [(name, Plan(graph, gpus)) for name, graph in GRAPHS.items() for gpus in GPUS]
    sent = ["sent a step: rows", "sent a step: relations"]
    head = ["graph", "GPUs", "rows a GPU", *sent, *plans[0][1].terms, "hidden", "step"]
    rows = [
        [name, str(plan.gpus), size(plan.rows_held), size(plan.of_rows), size(plan.of_relations),
         *map(time, plan.terms.values()), time(plan.hidden) if plan.hidden else "–", time(plan.seconds)]
        for name, plan in plans
    ]  # fmt: skip
    return table(head, rows)


def bounds() -> str:
    """What bounds a step on so many GPUs."""
    said = []
    for gpus in GPUS:
        found = dict.fromkeys(Plan(graph, gpus).bound for graph in GRAPHS.values())
        said.append(f"with {gpus} GPUs {' or '.join(found)}")
    return ", ".join(said)


def epochs_table() -> str:
    rows = [
        [name, f"murp, MuRP d={DIM} (this plan)", f"{gpus} H200", f"{plan.epoch:,.0f} s",
         f"{plan.epoch * gpus / 3600:.2f}", plan.bound]
        for name, graph in GRAPHS.items() for gpus in GPUS for plan in [Plan(graph, gpus)]
    ]  # fmt: skip
    rows += [[*published, "", "published, measured"] for published in PUBLISHED]
    return table(["graph", "what", "on", "an epoch", "GPU-hours an epoch", "bound by"], rows)


def errors() -> list[str]:
    """What measured small cases say about the model: measured against computed."""
    steps = _figures("gpu_step")["seconds_a_step"]
    said = []
    for name, of in (("gpu_fb15k-237-murp-d40", "triton_murp_d40"), ("gpu_wn18rr-murp-d200", "triton_murp_d200")):
        measured = _figures(name)["microseconds_a_step"] * 1e-6
        constant = steps[of]["median"]
        said.append(
            f"a step in a whole run ({name.removeprefix('gpu_')}): {measured / constant:.2f} times the constant"
        )
    ratio = _figures("gpu_many_entities")["ratio"]
    others = [of["ratio"] for of in _figures("gpu_any_model")["state"].values()]
    said.append(
        f"ten million entities against 41 thousand: the plan takes {ratio:.2f}, measured with MuRP's kernels; other "
        f"models' steps have {min(others):.2f} and {max(others):.2f}. Beyond ten million it is a guess"
    )
    larger = _figures("gpu_any_model")["steps"]["rotation and stretch, self-adversarial"]
    settings = larger["settings"]
    candidates = settings["batch_size"] * (settings["negatives"] + 2)
    computed = steps["triton_murp_d40"]["median"] * candidates / (128 * 52)
    measured = larger["seconds_a_step"]["ours"]["median"]
    said.append(
        f"a batch {candidates / (128 * 52):.0f} times as large (another model, {settings['batch_size']} triples with "
        f"{settings['negatives']} negatives, compiled): {measured / computed:.2f} times what the plan's time for a "
        "candidate gives. The operations of many ranks are not compiled, and their time on a GPU is not measured: the "
        "column *computing* may be too small by some times"
    )
    found = stored.result("distributed_cpu")
    if found is None:
        said.append("bytes of 2 and 4 ranks on CPUs: `benchmarks/distributed.py` counts them; no result is stored yet")
        return said
    for name in ("2", "4"):
        computed = bytes_of_case(found["settings"], int(name), 4)
        measured = found["figures"][name]["bytes_a_step"]
        said.append(f"bytes a step of {name} ranks on CPUs (WN18RR): {measured / computed:.2f} times those computed")
    for name, words in (("distributed_cpu", ""), ("distributed_shared_cpu", ", where a batch shares its negatives")):
        if (found := stored.result(name)) is not None:
            work = found["figures"]["compared"]["work of a rank at 4, in quarters of one"]
            said.append(
                f"work of one of 4 ranks on CPUs{words}: {work:.2f} quarters of that of one process; the plan says 1"
            )
    return said


def bytes_of_case(settings: dict[str, int], gpus: int, slices: int) -> float:
    """Bytes that all ranks together send in a step of ``benchmarks/distributed.py`` on WN18RR."""
    row, relation_row = row_bytes(settings["dim"])
    batch = settings["batch_size"] // slices
    remote = distinct(batch * (settings["negatives"] + 2), WN18RR.entities) * (gpus - 1) / gpus
    relations = distinct(batch, 2 * WN18RR.relations)
    return slices * bytes_sent(remote, remote, relations, gpus - 1, row, relation_row)


def text() -> str:
    """The plan, as Markdown."""
    assumed = table(["assumed", "value", "source"], ([one.what, one.shown, one.source] for one in ASSUMED.values()))
    many = stored.result("gpu_many_entities")
    assert many is not None
    small = _figures("gpu_step")["seconds_a_step"]["torch_murp_d40"]["median"]
    held = {name: size(2 * 20 * graph.facts) for name, graph in GRAPHS.items()}
    parts = [
        f"MuRP, d={DIM}, float32, {BATCH:,} triples a GPU in a step, {NEGATIVES} negatives each; {MACHINE} GPUs in a "
        f"machine. {SIZES}",
        f"Measured on one {many['machine']['device']}: {time(seconds_of_kernel(DIM))} for 128 triples on a table of "
        "many entities (`results/gpu_step.json`, between d=40 and d=200; `results/gpu_many_entities.json`), and "
        f"{time(small)} for a small step of the engine torch, which is the time to start its kernels "
        f"({stored.code(many)}). **No run of many GPUs is measured.** Everything about buses and networks is assumed:",
        assumed,
        "One step of one GPU. *Hidden* are messages that travel while the step before computes; *drawing* is that "
        "every rank draws the negatives of all.",
        steps_table(),
        f"What bounds a step, the largest term of it: {bounds()}. Gradients of relations go from every slice to every "
        "rank, so that they can be added in a fixed order; relations are taken to be equally frequent here, which is "
        "the worst case. A sum along a ring would send a small part of that, and give up the order. A batch of "
        f"{GPUS[-1]} times {BATCH:,} triples names more entities than these graphs have, so that no row can travel "
        "early, and it is far larger than those that are known to learn well. Each rank also holds every triple: "
        f"{held['Freebase']} for Freebase, {held['Wikidata']} for Wikidata.",
        "An epoch, beside what others have published (other models and GPUs; theirs are measured):",
        epochs_table(),
        "What measured small cases say about the model's error:",
        "\n".join(f"- {one};" for one in errors())[:-1] + ".",
    ]
    return "\n\n".join(parts)


def filled(page: str) -> str:
    """The page with the plan made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{text()}\n{found[2]}", page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the page is out of date")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    if options.check:
        return int(filled(page) != page)
    PAGE.write_text(filled(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
