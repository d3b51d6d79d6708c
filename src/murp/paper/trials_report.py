"""The trials of an ablation that is far from the paper's: MRR on valid by rate and scale, the best of them on test."""

from __future__ import annotations

from typing import Any

from murp.models import Model
from murp.paper.document import Block, Table, Text
from murp.paper.evidence import ADAPTIVE, Evidence, Spread, decimals, signed, signed_spread
from murp.tables import MISSING


def trials_of(evidence: Evidence, cell: dict[str, Any], theirs: float, far: float) -> list[Block]:
    """The trials of one cell of table 2, ``theirs`` being the paper's MRR; a remark if there are none.

    Where the best of them is still ``far`` below the paper's, that is said.
    """
    item = evidence.item("trials")
    which = ("kind", "part", "model")
    found = [one for one in (item["cells"] if item else []) if all(one[name] == cell[name] for name in which)]
    if not found:
        return [Text("Neither more epochs nor other initial values were tried.")]
    trial = found[0]
    runs = [evidence.run(name) for name in trial["tried"]]
    rates = list(dict.fromkeys(run["settings"]["lr"] for run in runs))
    length, own = runs[0]["settings"]["epochs"], evidence.run(cell["runs"][0])["settings"]["epochs"]
    rows = [
        [f"initial scale {scale:g}", *(_told(_of(runs, scale, rate), own) for rate in rates)]
        for scale in dict.fromkeys(map(scale_of, runs))
    ]
    best = evidence.runs(trial)
    if not best:
        return [Text(f"Tried for {length:,} epochs, other initial values included: every run diverged.")]
    test, settings = evidence.spread(trial, "mrr", "paper"), best[0]["settings"]
    text = (
        f"Tried again for {length:,} epochs, by initial values (the standard deviation of entities and "
        f"translations; {Model.initial_scale:g} in every other run), one seed each: MRR on valid, protocol "
        f"`standard`, after {own} epochs and at its best."
    )
    outcome = (
        f"The best on valid, rate {settings['lr']:g} from initial scale {scale_of(best[0]):g}, on test under protocol "
        f"`paper`: {test} (seeds: {test.seeds}), which is {signed_spread(test.less(theirs))} to the paper's "
        f"{decimals(theirs)}."
    )
    if theirs - test.mean > far:
        outcome += " Rate, length and initial values do not explain that. We do not know the reason."
    return [Text(text), Table(["", *(f"rate {rate:g}" for rate in rates)], rows), Text(outcome)]


def adaptive_of(evidence: Evidence, cell: dict[str, Any], theirs: float) -> list[Block]:
    """What ``benchmarks/adaptive_ablation.py`` stored of a cell: each optimizer with its best rate; else nothing."""
    item = evidence.measured(ADAPTIVE)
    if item is None or any(cell[name] != value for name, value in item["figures"]["cell"].items()):
        return []
    rows, best = [], 0.0
    for name, found in item["figures"]["optimizers"].items():
        valid = max((one["valid_mrr"] or 0.0 for one in found["tried"]), default=0.0)
        if not found["runs"]:
            rows.append([name, "diverged at every rate", MISSING, MISSING, MISSING])
            continue
        test = Spread.of([run["paper"] for run in found["runs"]])
        best = max(best, test.mean)
        chosen = found["best"]
        rows.append([name, f"{chosen['lr']:g}", f"{chosen['initial_scale']:g}", decimals(valid), str(test)])
    text = (
        f"With other optimizers, {item['settings']['epochs']:,} epochs in batches of "
        f"{item['settings']['batch_size']:,}, rate and initial scale by MRR on valid "
        f"(protocol `standard`); on test under protocol `paper`, whose printed value is {decimals(theirs)}:"
    )
    header = ["optimizer", "rate", "initial scale", "valid", "test"]
    gap = f"The best of them is {signed(best - theirs)} to the paper's." if best else "None of them reached its end."
    return [Text(text), Table(header, rows), Text(gap)]


def scale_of(run: dict[str, Any]) -> float:
    """The run's initial scale; a run stored before there was a choice had the default."""
    return float(run["settings"].get("initial_scale", Model.initial_scale))


def _of(runs: list[dict[str, Any]], scale: float, rate: float) -> dict[str, Any]:
    return next(run for run in runs if (scale_of(run), run["settings"]["lr"]) == (scale, rate))


def _told(run: dict[str, Any], epochs: int) -> str:
    """MRR on valid after so many epochs and at its best: ``.268, .363 at 2,000``."""
    if "failed" in run:
        return "diverged"
    curve = dict(map(tuple, run["valid_curve"]))
    best, then = max(curve, key=lambda epoch: curve[epoch]), max(epoch for epoch in curve if epoch <= epochs)
    return f"{decimals(curve[then])}, {decimals(curve[best])} at {best:,}"
