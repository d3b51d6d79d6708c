"""Write the plan for 8, 64 and 512 GPUs into docs/scale.md; with --check, only say whether it is up to date.

    python tools/scale_plan.py

Times of a GPU and of its tables come from results/. What others say (hardware, prices, sizes, published times) stands
with its sources in tools/scale_constants.py: no run of many GPUs has been measured. Bytes follow what
:mod:`murp.distributed` sends, which a test compares.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field

import benchmark_results as stored
from benchmark_results import size, table, time
from murp.distributed.plan import SPARSE
from murp.provenance import ROOT
from scale_constants import (
    BUS,
    CONSTANTS,
    EPOCHS,
    ETHERNET,
    GRAPHS,
    HBM,
    MESSAGE,
    NETWORK,
    PRICE,
    PUBLISHED,
    SIZES,
    Constant,
    Graph,
    Published,
)
from scale_errors import errors_table, said
from scale_model import (
    FLAG,
    MEASURED_BATCH,
    PLACE,
    TRIPLE,
    bytes_of_triples,
    bytes_sent,
    distinct,
    figures,
    row_bytes,
    seconds_of_kernel,
)

PAGE = ROOT / "docs" / "scale.md"
BLOCK = re.compile(r"(<!-- plan -->\n).*?(<!-- end -->)", re.DOTALL)
GPUS = (8, 64, 512)
MACHINE = 8  # GPUs
DIM, BATCH, NEGATIVES = 128, 4096, 50  # BATCH: triples of each GPU in a step


@dataclass
class Plan:
    """A step of one of ``gpus`` GPUs on a graph; with ``local`` negatives only rows of heads and tails travel."""

    graph: Graph
    gpus: int
    network: Constant = NETWORK  # between machines
    local: bool = False
    terms: dict[str, float] = field(default_factory=dict)  # seconds, by what takes them
    hidden: float = 0.0  # seconds of messages behind computing

    def __post_init__(self) -> None:
        row, relation_row = row_bytes(DIM)
        named, others = BATCH * (NEGATIVES + 2), self.gpus - 1
        self.sparse = self.graph.entities >= SPARSE * named * self.gpus
        remote = distinct(BATCH * 2 if self.local else named, self.graph.entities) * others / self.gpus
        relations = distinct(BATCH, 2 * self.graph.relations)
        self.of_rows = bytes_sent(remote, remote, 0, others, row, relation_row) + remote * FLAG * self.sparse
        self.of_relations = bytes_sent(0, 0, relations, others, row, relation_row)
        self.of_triples = bytes_of_triples(BATCH, self.gpus)
        self.rows_held = self.graph.entities / self.gpus * row
        # Its share of the facts and their reciprocals, and the triples of its slices in an epoch.
        self.triples_held = 2 * TRIPLE * 2 * self.graph.facts / self.gpus
        steps = figures("gpu_step")["seconds_a_step"]
        self.terms = {
            "computing": seconds_of_kernel(DIM, self.graph.entities // self.gpus) * BATCH / MEASURED_BATCH,
            "starting kernels": steps["torch_murp_d40"]["median"],
            "rows and gradients": self._travel(self.of_rows),
            "gradients of relations": self._travel(self.of_relations),
            "triples": self._travel(self.of_triples),
            "starting messages": (3 if self.sparse else 2) * others * MESSAGE.value,  # rows, early rows, gradients
            # Every rank draws the negatives of all, 8 bytes each, written and read.
            "drawing": 16 * NEGATIVES * BATCH * self.gpus / HBM.value,
        }
        if self.sparse:  # about half of the bytes, the rows, travel while the step before computes
            self.hidden = min(self.terms["rows and gradients"] / 2, self.terms["computing"])

    def _travel(self, sent: float) -> float:
        """Seconds for bytes that go to all other GPUs alike, inside the machine and between machines at once."""
        inside = min(self.gpus, MACHINE) - 1
        outside = self.gpus - 1 - inside
        shares = (inside / BUS.value, outside / self.network.value)
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
    head = ["graph", "GPUs", "rows a GPU", *sent, *plans[0][1].terms, "hidden", "step", "step over Ethernet"]
    head += ["local negatives: rows sent", "their step", "their step over Ethernet"]
    rows = [
        [name, str(plan.gpus), size(plan.rows_held), size(plan.of_rows), size(plan.of_relations),
         *map(time, plan.terms.values()), time(plan.hidden) if plan.hidden else "–", time(plan.seconds),
         over_ethernet(plan), size((own := Plan(plan.graph, plan.gpus, local=True)).of_rows), time(own.seconds),
         over_ethernet(own)]
        for name, plan in plans
    ]  # fmt: skip
    return table(head, rows)


def over_ethernet(plan: Plan) -> str:
    """The time of a step if machines are connected by Ethernet; one machine needs none."""
    return time(Plan(plan.graph, plan.gpus, ETHERNET, local=plan.local).seconds) if plan.gpus > MACHINE else "–"


def bounds() -> str:
    """What bounds a step on so many GPUs."""
    told = []
    for gpus in GPUS:
        found = dict.fromkeys(Plan(graph, gpus).bound for graph in GRAPHS.values())
        told.append(f"with {gpus} GPUs {' or '.join(found)}")
    return ", ".join(told)


def epoch_on_one(graph: Graph) -> float:
    """Seconds of an epoch on one GPU, by the fused engine at its measured batch."""
    return 2 * graph.facts / MEASURED_BATCH * seconds_of_kernel(DIM, graph.entities)


def costs_table() -> str:
    """Epochs, GPU-hours and cost, planned and published."""
    rows = []
    for name, graph in GRAPHS.items():
        alone = (1, epoch_on_one(graph), "its fused kernel, batch 128")
        for gpus, epoch, bound in (alone, *((n, Plan(graph, n).epoch, Plan(graph, n).bound) for n in GPUS)):
            hours = epoch * gpus / 3600
            cost = hours * PRICE.value
            rows.append(
                [name, f"murp, MuRP d={DIM}", f"{gpus} H200", f"{epoch:,.0f} s", f"{hours:.2f}", f"{cost:,.2f} $",
                 f"{epoch * EPOCHS.value:,.0f} s", f"{cost * EPOCHS.value:,.0f} $", f"this plan; bound by {bound}"]
            )  # fmt: skip
    head = ["graph", "what", "on", "an epoch", "GPU-hours of it", "cost of it", "a whole run", "cost of that", "source"]
    return table(head, rows + [published(one) for one in PUBLISHED])


def published(one: Published) -> list[str]:
    """A row of what others have measured; they name no price."""
    taken = [f"{seconds:,.0f} s" if seconds else "–" for seconds in (one.epoch, one.run)]
    hours = f"{one.epoch * one.gpus / 3600:.2f}" if one.epoch and one.gpus else "–"
    if one.run and one.gpus:
        hours = f"{one.run * one.gpus / 3600:.2f} for the run"
    source = f"{one.source}; {one.remark}" if one.remark else str(one.source)
    return [one.graph, one.what, one.on, taken[0], hours, "–", taken[1], "–", source]


def not_published() -> str:
    """What cannot be compared, because the sources do not have it."""
    timed = {one.graph for one in PUBLISHED if one.epoch or one.run}
    missing = " and ".join(name for name in GRAPHS if name not in timed)
    untimed = f"None of these sources has a time for {missing}, so there our times stand alone. " if missing else ""
    return f"{untimed}None of them names a price, so costs in money are not compared: those in the table are ours."


def sizes_table() -> str:
    rows = [[name, *(f"{n:,}" for n in (of.entities, of.relations, of.facts)), source] for name, of, source in SIZES]
    return table(["graph", "entities", "relations", "facts", "source"], rows)


def text() -> str:
    """The plan, as Markdown."""
    many = stored.result("gpu_many_entities")
    assert many is not None
    small = figures("gpu_step")["seconds_a_step"]["torch_murp_d40"]["median"]
    kernel = time(seconds_of_kernel(DIM, GRAPHS["Freebase"].entities))
    held = " and ".join(f"{size(Plan(graph, GPUS[0]).triples_held)} for {name}" for name, graph in GRAPHS.items())
    order = " and ".join(f"{size(PLACE * 2 * graph.facts)} for {name}" for name, graph in GRAPHS.items())
    parts = [
        f"MuRP, d={DIM}, float32, {BATCH:,} triples per GPU and step, {NEGATIVES} negatives each; {MACHINE} GPUs per "
        "machine.",
        f"**Measured** on one {many['machine']['device']}: {kernel} for 128 triples on a table of many entities "
        f"(`results/gpu_step.json`, between d=40 and d=200; `results/gpu_many_entities.json`), and {time(small)} for "
        f"a small step of the engine torch, which is the time to start its kernels ({stored.code(many)}). **No run on "
        "many GPUs was measured.** These values come from others, or are assumptions:",
        table(["what", "value", "source"], (one.cells() for one in CONSTANTS)),
        "The graphs:",
        sizes_table(),
        "### A step",
        "One step of one GPU. *Hidden* is the time of messages that are sent while the step before computes. "
        "*Drawing* is the time to draw negatives, since every rank draws the negatives of all ranks. The time of a "
        "step is the sum of the terms minus the hidden part. The last three columns are for `--corruption local`, with "
        "which only rows of heads and tails are sent.",
        steps_table(),
        f"The largest term of a step is: {bounds()}. Gradients of relations go from every slice to every rank, so "
        "that they can be added in a fixed order. The plan assumes that all relations are equally frequent, which is "
        "the worst case. A ring all-reduce would send a small part of that, but not keep the order. A batch of "
        f"{GPUS[-1]} times {BATCH:,} triples names more entities than these graphs have, so no row can be sent early. "
        f"It is also far larger than batches that are known to learn well. Each of {GPUS[0]} GPUs also stores triples, "
        f"{held}, and more GPUs store less each. The order of an epoch takes {order} on every GPU while it is drawn, "
        "and PyTorch's sorting several times as much; the plan does not count the time for this. Triples are sent once "
        f"an epoch, {size(Plan(GRAPHS['Freebase'], GPUS[0]).of_triples)} for each step. Over plain Ethernet an epoch "
        f"of Freebase takes {Plan(GRAPHS['Freebase'], GPUS[1], ETHERNET).epoch:,.0f} s on {GPUS[1]} GPUs, and "
        f"{Plan(GRAPHS['Freebase'], GPUS[0]).epoch:,.0f} s on {GPUS[0]} in one machine.",
        "### Costs on Freebase and Wikidata, beside published ones",
        "The models, dimensions and GPUs differ. Their times are measured, ours are planned. Our epoch has every "
        f"fact and its reciprocal. Quality is not compared. {not_published()}",
        costs_table(),
        "One H200 can hold these tables "
        f"({' and '.join(size(g.entities * row_bytes(DIM)[0]) for g in GRAPHS.values())} of its 141), and its fused "
        "kernel takes the fewest GPU-hours. Many GPUs are useful if a table does not fit into one, or if time is "
        "short. The fused kernel is the paper's SGD, which learns slowly: in trials on small graphs of "
        "`benchmarks/gpu_scale.py`, one epoch of it ranked like chance, while one epoch of Adam with a softmax learned "
        "([PREDICTIONS.md](../benchmarks/PREDICTIONS.md)).",
        "### The error of the plan in small measured cases",
        "The same formula, applied to measured cases that are not constants of the formula:",
        errors_table(),
        said(),
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
