"""The paper's claims with our numbers: how the models learn, and the effect of their parts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from murp.analysis import spearman
from murp.analysis.correlation import mean_ranks
from murp.paper.convergence import best_on_valid, epochs, first_at, near, validated_every
from murp.paper.evidence import NAMES, Evidence, Spread, correlations, counted, decimals, number, signed, signed_spread
from murp.paper.experiments import published
from murp.paper.relations import leads_by_relation
from murp.paper.verdicts import listed, verdict

Row = list[str]
MRR, HITS, SPEARMAN = "test MRR, `paper`", "test hits@10, `paper`", "Spearman, over all entities"


def convergence(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """MuRP converges faster, read in two ways."""
    cells = {cell["model"]: cell for cell in item["cells"]}
    if not all(evidence.runs(cell) for cell in cells.values()):
        return []
    what = f"epochs, by valid MRR, `standard`, in steps of {counted(validated_every(evidence, item), 'epoch')}"
    own = {model: near(evidence, cells[model], 0.95) for model in NAMES}
    level = evidence.over(cells["mure"], best_on_valid).mean
    there = {
        "mure": evidence.over(cells["mure"], lambda run: first_at(run, best_on_valid(run))),
        "murp": evidence.over(cells["murp"], lambda run: first_at(run, level)),
    }
    return [
        [
            "MuRP converges faster: each to 95 % of its own best",
            verdict([own["mure"].less(own["murp"])]),
            _after(own),
            what,
        ],
        [
            "MuRP converges faster: to the best that MuRE has",
            verdict([there["mure"].less(there["murp"])]),
            _after(there),
            what,
        ],
    ]


def _after(found: dict[str, Spread]) -> str:
    told = {model: epochs(found[model]) for model in ("murp", "mure")}
    return ", ".join(f"{NAMES[m]} {text if text == 'never' else f'after {text}'}" for m, text in told.items())


def ablated(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """Any change of the architecture makes both models worse."""
    rows = []
    for (model, name), metric in itertools.product(NAMES.items(), ("mrr", "hits@1")):  # the columns of the table
        cells = [cell for cell in item["cells"] if cell["model"] == model]
        ours = {cell["part"]: evidence.spread(cell, metric, "paper") for cell in cells}
        best = ours.pop("published")
        ours.pop("both", None)
        leads = {part: best.less(spread) for part, spread in ours.items()}
        told = [lead for lead in leads.values() if lead.n]  # a variant that diverged is not ahead
        what = MRR if metric == "mrr" else f"test {metric}, `paper`"
        claim = f"the published {name} ahead of every ablation"
        rows.append([claim, verdict(told), f"published {best}, ahead of {listed(leads)}", what])
    return rows


def norm_biases(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """Norms instead of biases make MuRP much worse."""
    ours = {cell["part"]: evidence.spread(cell, "mrr", "paper") for cell in item["cells"] if cell["model"] == "murp"}
    paper = published()["table2"]["biases"]
    kinds = [kind for kind in ("norm", "transformed-norm") if kind in ours]
    if "published" not in ours or not kinds:
        return []
    leads = {kind: ours["published"].less(ours[kind]) for kind in kinds}
    theirs = {kind: paper["both"][2] - paper[kind][2] for kind in kinds}
    claim = "norms in the place of biases make MuRP significantly worse"
    return [[claim, verdict(list(leads.values())), f"worse by {listed(leads, theirs)}", MRR]]


def relation_claims(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """Comparable on relations without hierarchy, ahead on the others, and more so on deep ones."""
    found = leads_by_relation(evidence, item)
    graphs = {row["relation"]: row for row in item["relations"] if row["relation"] in found}
    flat = [name for name, row in graphs.items() if row["krackhardt"] == 0]
    deep = [name for name in graphs if name not in flat]
    rows = []
    if flat:
        # Comparable is what no lead contradicts: none is larger than its deviation and than what the paper allows.
        paper = published()["table3"]
        allowed = max((abs(row[1] - row[0]) for row in paper.values() if len(row) == 3), default=0.0)
        close = all(abs(found[name].mean) <= max(found[name].deviation or 0.0, allowed) for name in flat)
        numbers = listed({name.strip("_"): found[name] for name in flat})
        claim = "both models comparable on relations of score 0"
        rows.append([claim, "yes" if close else "no", f"{numbers}; in the paper up to {decimals(allowed)}", HITS])
    if deep:
        numbers = listed({name.strip("_"): found[name] for name in deep})
        claim = "MuRP generally ahead on hierarchical relations"
        rows.append([claim, verdict([found[name] for name in deep]), numbers, HITS])
    ours = spearman([graphs[name]["longest_path"] for name in deep], [found[name].mean for name in deep]).rho
    if ours is not None:
        known = [row for row in published()["table3"].values() if len(row) > 3]
        theirs = spearman([row[3] for row in known], [row[1] - row[0] for row in known]).rho
        numbers = f"rank correlation of lead and longest path {signed(ours, 2)} over {len(deep)} relations"
        numbers += "" if theirs is None else f" (the paper's own values: {signed(theirs, 2)})"
        chance = _chance([graphs[name]["longest_path"] for name in deep], [found[name].mean for name in deep])
        holds = "yes" if ours > 0 and chance < 0.05 else "no" if ours <= 0 else "not clear"
        numbers += f"; chance of as much in a random order {chance:.0%}"
        rows.append(["the lead generally larger for relations that form deeper trees", holds, numbers, HITS])
    return rows


def _chance(x: list[float], y: list[float]) -> float:
    """How often as large a rank correlation comes of y in a random order: 10,000 draws, the same every time."""
    one, other = (mean_ranks(np.array(values)) - (len(values) + 1) / 2 for values in (x, y))
    shuffled = np.random.default_rng(0).permuted(np.tile(other, (10_000, 1)), axis=1)
    return float(np.mean(shuffled @ one >= other @ one - 1e-9))


def correlated(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """Norm and bias correlate."""
    found = {name: rho for name, rho in correlations(item).items() if not math.isnan(rho.mean)}
    if not found:
        return []
    numbers = ", ".join(f"{name} {signed_spread(value, 2)}" for name, value in found.items())
    return [["norm and bias correlate, for both models", verdict([*found.values()]), numbers, SPEARMAN]]


def balanced(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """The paper's example: MuRP has more false positives and misses nothing."""
    rows = []
    for kind, claim in (
        ("false positive", "more false positives by MuRP than by MuRE"),
        ("false negative", "fewer false negatives by MuRP than by MuRE"),
    ):
        counts = {cell["model"]: Spread.of(cell["counts"][kind], len(cell["runs"])) for cell in item["cells"]}
        quoted = {model: published()["figure5"][model][kind.replace(" ", "_") + "s"]["count"] for model in counts}
        more = counts["murp"].less(counts["mure"])
        numbers = ", ".join(f"{NAMES[model]} {number(counts[model])} (paper {quoted[model]})" for model in counts)
        what = f"objects of {item['subject']} under {item['relation'].strip('_')}"
        rows.append([claim, verdict([more if kind == "false positive" else -more]), numbers, what])
    return rows
