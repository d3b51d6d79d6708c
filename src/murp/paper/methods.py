"""How the report was measured, and what the protocol and the flaws of the data change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from murp.commands import command
from murp.paper import history
from murp.paper.document import Block, Heading, Table, Text
from murp.paper.done import every_name
from murp.paper.evidence import NAMES, Evidence, Spread, counted, decimals, signed
from murp.paper.experiments import read_settings
from murp.paper.old_results import failed_epoch, finding_text

DIVERGED = "Runs that diverged"
# Relations that mirror each other are no flaw of a file; `murp data audit` has them too.
SERIOUS = ("duplicate_rows", "shared_facts", "triples_with_unseen_entities", "merged_ids")


def method(evidence: Evidence) -> list[Block]:
    """Protocol, seeds, selection, hardware, version."""
    items = {name: item for name in read_settings() if (item := evidence.item(name)) is not None}
    runs = [run for run in evidence.every_run() if "failed" not in run]
    if not runs:
        return [Text("Nothing is stored yet: `murp paper run all`.")]
    machines = sorted({run["environment"]["device"] for run in runs})
    settings = runs[0]["settings"]
    missing = [name for name in read_settings() if name != "training" and name not in items]
    epochs = " or ".join(f"{length:,}" for length in sorted({run["settings"]["epochs"] for run in runs}))
    every = settings["validate_every"]
    also = " Rates and initial values of the trials below table 2 are chosen on valid too." if "trials" in items else ""
    unnamed = len({run["name"] for run in runs} - {name for item in items.values() for name in every_name(item)})
    left = f" ({unnamed} of them belong to no table or figure today)" if unnamed else ""
    quick = any(item["quick"] for item in items.values())
    return [
        *([Text("**A toy**, to try the code: what follows says nothing about the paper.")] if quick else []),
        Text(
            f"{counted(len(runs), 'run')}{left} on {', '.join(machines)}, {epochs} epochs, batches "
            f"of {settings['batch_size']}, {settings['negatives']} negatives, {settings['dtype']}; murp "
            f"{runs[0]['murp']}. Every value on this page is read from stored results. {_commands(items)} makes these "
            "results; `murp paper report` writes this page from them."
        ),
        *_how_many_diverged(evidence),
        Text(
            f"**Seeds.** {_seeds(evidence, items)} A value with ± is the mean and the sample deviation over the seeds. "
            "Where a seed diverged, the row says so, and the mean is over the others. A deviation of two or three "
            "seeds is a rough estimate. The deviation of a difference is the root of the sum of both squares."
        ),
        Text(
            "**Selection.** Each run keeps the weights with the best MRR on valid (protocol `standard`, "
            f"{'after every epoch' if every == 1 else f'every {every} epochs'}). These are evaluated on test, once. "
            f"The learning rate of table 1 is chosen on valid, from the paper's grid.{also} For the other items it is "
            "fixed. Nothing is chosen on test."
        ),
        Text(
            "**Protocols.** `standard`: filtered ranks among all entities, in both directions. Ties get the mean of "
            "the best and the worst rank. Test triples with unseen entities are kept. NaN is an error. `paper`: the "
            "same, but the subject itself is taken out of its own ranking. The authors' code does this; the paper does "
            "not say it. We compare the paper's values with ours under `paper`."
        ),
        Text(
            f"**Code.** {history.summary(_by_name(evidence.every_run()), evidence.history, 'stored runs')} "
            f"{history.summary(items, evidence.history, 'items')} The last section has the details."
        ),
        *([Text(f"**Not stored yet**, so not on this page: {', '.join(missing)}.")] if missing else []),
    ]


def origins(evidence: Evidence) -> list[Block]:
    """Every stored result by the code that it names."""
    found = history.listed(evidence.results(), evidence.history)
    if not found:
        return []
    text = (
        f"{history.summary(evidence.results(), evidence.history)} `by the digest of its code`: the result names the "
        "digest of the package, and that commit's package has it. `not in the history`: no commit has that code, so "
        "this repository cannot say what exactly made the result."
    )
    rows = [[each.text, str(len(names)), ", ".join(names)] for each, names in found.items()]
    return [Heading("Where the results come from"), Text(text), Table(["code", "results", "which"], rows)]


def _by_name(runs: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {run["name"]: run for run in runs}


def diverged(evidence: Evidence) -> list[Block]:
    """Which stored runs did not reach their end, and when they stopped."""
    failed = _failed(evidence)
    if not failed:
        return []
    rows = [[name, "–" if epoch is None else str(epoch)] for name, epoch in failed.items()]
    text = "These runs stopped because a parameter became NaN or infinite."
    return [Heading(DIVERGED), Text(text), Table(["run", "in epoch"], rows)]


def _how_many_diverged(evidence: Evidence) -> list[Block]:
    failed = _failed(evidence)
    text = f"**Diverged.** {counted(len(failed), 'further run')} stopped because a parameter became NaN or infinite."
    return [Text(f'{text} The section "{DIVERGED}" lists them.')] if failed else []


def _failed(evidence: Evidence) -> dict[str, int | None]:
    return {run["name"]: failed_epoch(run) for run in evidence.every_run() if "failed" in run}


def run_names(item: dict[str, Any]) -> list[str]:
    """The runs an item's table or picture rests on; the runs that chose a learning rate are not among them."""
    return list(dict.fromkeys(name for cell in item.get("cells", []) for name in cell["runs"]))


def _seeds(evidence: Evidence, items: dict[str, dict[str, Any]]) -> str:
    """Which seeds each item was run with, items alike together."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, item in items.items():
        seeds = sorted({evidence.run(run)["settings"]["seed"] for run in run_names(item)})
        if seeds:
            alike.setdefault(tuple(seeds), []).append(name)
    parts = [
        f"{', '.join(names)}: {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
        for seeds, names in alike.items()
    ]
    return "; ".join(parts) + "."


def _commands(items: dict[str, dict[str, Any]]) -> str:
    """What makes the stored items again, each with as many seeds as it has."""
    by_seeds: dict[int, list[str]] = {}
    free = [name for name, item in items.items() if not item.get("cells")]  # no seeds to choose
    for name in (name for name in items if name not in free):
        by_seeds.setdefault(max(len(cell["runs"]) for cell in items[name]["cells"]), []).append(name)
    most = max(by_seeds, key=lambda seeds: len(by_seeds[seeds]), default=1)
    by_seeds.setdefault(most, []).extend(free)
    if len(by_seeds) == 1 and set(items) == set(read_settings()) - {"training"}:
        by_seeds = {most: ["all"]}
    quick = any(item["quick"] for item in items.values())
    return " and ".join(
        f"`{command('paper', 'run', *names, *(['--quick'] if quick else ['--seeds', str(seeds)]))}`"
        for seeds, names in by_seeds.items()
    )


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
        "How much the metrics on test rise when the subject is taken out of its own ranking: protocol `paper` minus "
        "protocol `standard`. The differences between models are no larger than this, so a metric without its protocol "
        "cannot be compared."
    )
    return [Heading("The effect of removing the subject"), Text(text), Table(["", "MRR", "hits@1"], rows)]


def flaws(evidence: Evidence) -> list[Block]:
    """Unseen entities and leaks, in MRR."""
    blocks: list[Block] = [Heading("Flaws of the data, and their effect")]
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
            "Some test triples hold an entity that is in no training fact. Training draws it only as a false answer, "
            "so the model learns what it is not, and never what it is. It can still rank such a triple by the other "
            "entity, the relation and the biases. The column `on them` shows how far that goes: nearly nowhere on some "
            "graphs, quite far on others. Some libraries drop these triples. MuRP, MRR on test, protocol `standard`:"
        )
        blocks += [Text(text), Table(["", "triples with unseen entities", "without them", "on them", "all"], rows)]
    leaky = evidence.item("nell")
    if leaky is not None:
        rows = [
            [
                _run_in_words(evidence.run(row["run"])["settings"]),
                f"{row['leaked']:,} of {row['test']:,}",
                decimals(row["standard"]["mrr"], 4),
                decimals(row["standard"]["mrr_without_leaks"], 4),
            ]
            for row in leaky["flaws"].values()
        ]
        text = "Some test facts are in train too. MRR (protocol `standard`) with and without them, one run each:"
        blocks += [Text(text), Table(["", "leaked", "MRR", "MRR without them"], rows)]
    audited = evidence.item("flaws")
    if audited is not None:
        rows = [[data, findings(found) or "none of these"] for data, found in audited["found"].items()]
        text = "What `murp data audit` finds in the published files. We repaired nothing."
        blocks += [Text(text), Table(["", "findings"], rows)]
    return blocks if len(blocks) > 1 else []


def _run_in_words(settings: dict[str, Any]) -> str:
    return f"{settings['data']}, {NAMES[settings['model']]} d={settings['dim']}, seed {settings['seed']}"


def findings(found: Iterable[dict[str, Any]]) -> str:
    """The serious findings in a line of their own."""
    return "; ".join(finding_text(finding["text"]) for finding in found if finding["check"] in SERIOUS)
