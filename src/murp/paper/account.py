"""The report's account of itself: how it was measured, what the protocol and the data's flaws are worth, the claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from murp.paper.blocks import Block, Heading, Table, Text
from murp.paper.evidence import NAMES, Evidence, Spread, decimals, signed
from murp.paper.lab import read_settings
from murp.paper.pictures import difference, near

ITEMS = ("table1", "figure3a", "figure3b", "table2", "table3", "nell")


# Relations that mirror each other are no flaw of a file; `murp data audit` has them too.
SERIOUS = ("duplicate_rows", "shared_facts", "triples_with_unseen_entities", "merged_ids")


def method(evidence: Evidence) -> list[Block]:
    """Protocol, seeds, selection, hardware, version."""
    runs = [run for run in every_run(evidence) if "failed" not in run]
    if not runs:
        return [Text("Nothing is stored yet: `murp paper run all`.")]
    machines = sorted({run["environment"]["device"] for run in runs})
    sources = sorted({run["source"] for run in runs})
    settings = runs[0]["settings"]
    missing = [item for item in read_settings() if item != "training" and evidence.item(item) is None]
    epochs = sorted({run["settings"]["epochs"] for run in runs})
    seeds = sorted({run["settings"]["seed"] for run in runs})
    return [
        Text(
            f"{len(runs)} runs on {', '.join(machines)}, seeds {', '.join(map(str, seeds))}, "
            f"{' or '.join(map(str, epochs))} epochs, batches of {settings['batch_size']}, {settings['negatives']} "
            f"negatives, {settings['dtype']}. murp {runs[0]['murp']}, source {', '.join(sources)}. Every "
            "figure below is "
            "read from the stored results; `murp paper report` writes this page from them, `murp paper run "
            "all` makes them."
        ),
        Text(
            "**Selection.** Of each run the weights with the best MRR on valid (protocol `standard`, every "
            f"{settings['validate_every']} epochs) are evaluated on test, once. The learning rate of table 1 "
            "is chosen on "
            "valid from the paper's grid. Nothing is chosen on test. A figure with ± is the mean and the "
            "sample deviation "
            "over seeds."
        ),
        Text(
            "**Protocols.** `standard`: filtered ranks among all entities, ties at the mean of the best and "
            "the worst rank, "
            "both directions, test triples with unseen entities kept, NaN an error. `paper`: the same, with "
            "the subject "
            "itself taken out of its own ranking, as the authors' code does and the paper does not say. The paper's "
            "figures stand beside ours under `paper`."
        ),
        *([Text(f"**Not stored yet**, so not on this page: {', '.join(missing)}.")] if missing else []),
    ]


def every_run(evidence: Evidence) -> list[dict[str, Any]]:
    """The runs that stored items rest on, each once."""
    names: dict[str, None] = {}
    for item in filter(None, map(evidence.item, ITEMS)):
        for cell in [*item.get("grid", []), *item["cells"]]:
            names.update(dict.fromkeys(cell["runs"]))
    return [evidence.run(name) for name in names]


def subject_removed(evidence: Evidence) -> list[Block]:
    """What taking the subject out of its own ranking adds."""
    rows = []
    for item in filter(None, (evidence.item("table1"), evidence.item("nell"))):
        for cell in item["cells"]:
            gains = [
                run["metrics"]["test"]["paper"]["mrr"] - run["metrics"]["test"]["standard"]["mrr"]
                for run in evidence.runs(cell)
            ]
            hits = [
                run["metrics"]["test"]["paper"]["hits@1"] - run["metrics"]["test"]["standard"]["hits@1"]
                for run in evidence.runs(cell)
            ]
            what = f"{cell['data']}, {NAMES[cell['model']]} d={cell['dim']}"
            rows.append([what, signed(Spread.of(gains).mean, 4), signed(Spread.of(hits).mean, 4)])
    if not rows:
        return []
    text = (
        "What the subject's removal is worth on test: protocol `paper` less protocol `standard`. A figure without its "
        "protocol cannot be compared with another at this level."
    )
    return [Heading("The effect of removing the subject"), Text(text), Table(["", "MRR", "hits@1"], rows)]


def flaws(evidence: Evidence) -> list[Block]:
    """Unseen entities and leaks, in MRR."""
    blocks: list[Block] = [Heading("The data's flaws, and what they are worth")]
    rows = []
    for item in filter(None, (evidence.item("table1"), evidence.item("nell"))):
        for cell in [c for c in item["cells"] if c["model"] == "murp" and c["dim"] == item["settings"]["dims"][0]]:
            groups = [run["metrics"]["test"]["standard"]["by_seen"] for run in evidence.runs(cell)]
            unseen = groups[0]["unseen"]["queries"] // 2 if groups else 0
            if unseen:
                means = [Spread.of([group[kind]["mrr"] for group in groups]) for kind in ("seen", "unseen")]
                whole = evidence.spread(cell, "mrr", "standard")
                total = unseen + groups[0]["seen"]["queries"] // 2
                rows.append(
                    [f"{cell['data']}, d={cell['dim']}", f"{unseen:,} of {total:,}", *map(str, means), str(whole)]
                )
    if rows:
        text = (
            "Test triples with an entity that training never saw cannot be ranked better than by chance; "
            "some libraries "
            "leave them out. MuRP, MRR, protocol `standard`:"
        )
        blocks += [Text(text), Table(["", "triples with unseen entities", "without them", "on them", "all"], rows)]
    leaky = evidence.item("nell")
    if leaky is not None:
        rows = [
            [
                f"{data}, {row['run']}",
                f"{row['leaked']:,} of {row['test']:,}",
                decimals(row["standard"]["mrr"], 4),
                decimals(row["standard"]["mrr_without_leaks"], 4),
            ]
            for data, row in leaky["flaws"].items()
        ]
        text = "Test facts that are in train too, and MRR (protocol `standard`) with and without them:"
        blocks += [Text(text), Table(["", "leaked", "MRR", "MRR without them"], rows)]
    audited = evidence.item("flaws")
    if audited is not None:
        rows = [
            [data, "; ".join(finding["text"] for finding in found if finding["check"] in SERIOUS)]
            for data, found in audited["found"].items()
        ]
        text = "What `murp data audit` finds in the published files; nothing was repaired for these figures."
        blocks += [Text(text), Table(["", "findings"], [[data, found or "none of these"] for data, found in rows])]
    return blocks if len(blocks) > 1 else []


def claims(evidence: Evidence) -> list[Block]:
    """The paper's ordering claims with our numbers, MRR under protocol paper."""
    rows = [*_ahead(evidence), *_sooner(evidence), *_ablations(evidence), *_shrinking(evidence)]
    return (
        [Heading("The paper's claims"), Table(["claim", "holds", "numbers (MRR, protocol paper)"], rows)]
        if rows
        else []
    )


def _ahead(evidence: Evidence) -> list[list[str]]:
    item = evidence.item("figure3a")
    if item is None:
        return []
    dims, data = item["settings"]["dims"], item["settings"]["data"]
    cells = {"cells": [{**cell, "data": data} for cell in item["cells"]]}
    leads = [difference(evidence, cells, data, dim) for dim in dims]
    numbers = ", ".join(f"d={dim} {_lead(lead)}" for dim, lead in zip(dims, leads, strict=True))
    low, high = leads[0].mean, leads[-1].mean
    return [
        [f"MuRP ahead of MuRE on {data} at every dimension", _holds([lead.mean > 0 for lead in leads]), numbers],
        ["more so at low dimension", _holds([low > high]), f"d={dims[0]} {signed(low)}, d={dims[-1]} {signed(high)}"],
    ]


def _sooner(evidence: Evidence) -> list[list[str]]:
    item = evidence.item("figure3b")
    if item is None:
        return []
    cells = {cell["model"]: evidence.runs(cell) for cell in item["cells"]}
    if not all(cells.values()):
        return []
    own = {model: Spread.of(near(cells[model], 0.95)) for model in NAMES}
    level = [Spread.of([max(mrr for _, mrr in run["valid_curve"]) for run in cells["mure"]]).mean]
    passed = [
        float(next((epoch for epoch, mrr in run["valid_curve"] if mrr >= level[0]), float("inf")))
        for run in cells["murp"]
    ]
    epochs = [run["settings"]["epochs"] for run in cells["mure"]]
    numbers = f"95 % of its best on valid after {own['murp'].mean:.0f} epochs, MuRE after {own['mure'].mean:.0f}"
    passing = f"after {Spread.of(passed).mean:.0f} epochs MuRP has the MRR that is MuRE's best of {epochs[0]}"
    return [
        [
            "MuRP converges in fewer epochs, each to 95 % of its own best",
            _holds([own["murp"].mean < own["mure"].mean]),
            numbers,
        ],
        ["MuRP needs fewer epochs for MuRE's best", _holds([value < epochs[0] for value in passed]), passing],
    ]


def _ablations(evidence: Evidence) -> list[list[str]]:
    item = evidence.item("table2")
    if item is None:
        return []
    rows = []
    for model, name in NAMES.items():
        cells = [cell for cell in item["cells"] if cell["model"] == model]
        ours = {cell["part"]: evidence.spread(cell, "mrr", "paper") for cell in cells}
        best = ours.pop("published")
        ours.pop("both", None)
        numbers = f"published {best}; " + ", ".join(f"{part} {spread}" for part, spread in ours.items())
        holds = _holds([not spread.mean >= best.mean for spread in ours.values()])  # diverged is not ahead
        rows.append([f"the published {name} ahead of every ablation", holds, numbers])
    return rows


def _shrinking(evidence: Evidence) -> list[list[str]]:
    item = evidence.item("nell")
    if item is None:
        return []
    rows = []
    for dim in item["settings"]["dims"]:
        leads = {data: difference(evidence, item, data, dim) for data in item["settings"]["data"]}
        numbers = ", ".join(f"{data.rpartition('-')[2]} {_lead(lead)}" for data, lead in leads.items())
        first, *_, last = (lead.mean for lead in leads.values())
        ends = [data.rpartition("-")[2] for data in leads]
        name = f"the lead shrinks from {ends[0]} to {ends[-1]}, d={dim}"
        rows.append([name, _holds([first > last]), numbers])
    return rows


def _lead(lead: Spread) -> str:
    return signed(lead.mean) if lead.deviation is None else f"{signed(lead.mean)} ± {decimals(lead.deviation)}"


def _holds(conditions: Sequence[bool]) -> str:
    return "yes" if all(conditions) else f"no ({sum(conditions)} of {len(conditions)})" if len(conditions) > 1 else "no"
