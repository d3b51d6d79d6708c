"""Relation by relation: table 3, the flat graph's statistics, and the Krackhardt scores of whole graphs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from murp.paper.document import Block, Heading, Table, Text
from murp.paper.evidence import NAMES, Evidence, Spread, below_one, decimals, seeds_of, signed, signed_spread
from murp.paper.experiments import published


def table3(evidence: Evidence) -> list[Block]:
    """By relation; the flat graph's statistics."""
    item = evidence.item("table3")
    if item is None:
        return []
    paper, leads = published(), leads_by_relation(evidence, item)
    cells = {cell["model"]: cell for cell in item["cells"]}
    rows = []
    for relation in sorted(item["relations"], key=lambda row: papers_order(row["relation"])):
        name = relation["relation"]
        theirs = paper["table3"].get(name.strip("_"), [])
        row = [name.strip("_")]
        for i, model in enumerate(NAMES):
            hits = evidence.by_relation(cells[model], name, "hits@10", "paper")
            row += ["–" if hits is None else str(hits), decimals(theirs[i]) if theirs else "–"]
        row += [
            signed_spread(leads[name]) if name in leads else "–",
            signed(theirs[1] - theirs[0]) if theirs else "–",
        ]
        row += [below_one(relation["krackhardt"], 4), decimals(theirs[2], 2) if theirs else "–"]
        row += [str(relation["longest_path"]), str(theirs[3]) if len(theirs) > 3 else "–"]
        mean = relation["mean_path"]
        row += ["–" if mean is None else f"{mean:.1f}", f"{theirs[4]:.1f}" if len(theirs) > 4 else "–"]
        rows.append(row)
    columns = ["MuRE", "paper", "MuRP", "paper", "MuRP − MuRE", "paper"]
    columns += ["score", "paper", "longest path", "paper", "mean path", "paper"]
    seeds = seeds_of({model: evidence.spread(cell, "hits@10", "paper") for model, cell in cells.items()})
    what = (
        f"Hits@10 on test under protocol `paper`, d={item['settings']['dim']}, learning rate {item['settings']['lr']}, "
        f"seeds: {seeds}. The Krackhardt score and the shortest paths are of each relation's graph over train, valid "
        "and test; the paper leaves out the paths of its last three relations."
    )
    return [
        Heading("Table 3: by relation"),
        Text(what),
        Table(["", *columns], rows),
        Text(scores_compared(item["relations"])),
        *_flat(item["flat"], paper["flat"]),
    ]


def leads_by_relation(evidence: Evidence, item: dict[str, Any]) -> dict[str, Spread]:
    """Hits@10 of MuRP less that of MuRE, protocol paper, of every relation that the test set asks about."""
    cells = {cell["model"]: cell for cell in item["cells"]}
    found = {}
    for row in item["relations"]:
        name = row["relation"]
        mure, murp = (evidence.by_relation(cells[model], name, "hits@10", "paper") for model in ("mure", "murp"))
        if mure is not None and murp is not None:
            found[name] = murp.less(mure)
    return found


def scores_compared(relations: Sequence[Mapping[str, Any]]) -> str:
    """Our Krackhardt scores beside the two digits that the paper prints, relation by relation."""
    quoted = published()["table3"]
    both = {row["relation"].strip("_"): row for row in relations if row["relation"].strip("_") in quoted}
    theirs = {name: quoted[name][2] for name in both}
    rounded = {name for name, row in both.items() if round(row["krackhardt"], 2) == theirs[name]}
    # A cut of .29 is .29, though its binary number is a little less.
    cut = {name for name, row in both.items() if math.floor(100 * row["krackhardt"] + 1e-9) / 100 == theirs[name]}
    parts = [
        "Our score counts pairs of different nodes.",
        f"In two digits it is the paper's for {len(rounded)} of {len(both)} relations if we round, and for {len(cut)} "
        f"of {len(both)} if we drop the other digits.",
    ]
    if others := [name for name in both if name not in rounded | cut]:
        figures = "; ".join(
            f"{name}: {below_one(both[name]['krackhardt'], 4)} here, {decimals(theirs[name], 2)} in the paper"
            for name in others
        )
        parts.append(f"In neither way for {figures}.")
    circular = [name for name, row in both.items() if row["krackhardt"] == 0 and row["longest_path"]]
    if circular:
        parts.append(f"A score of 0 says that every path has a way back: {', '.join(circular)}.")
    return " ".join(parts)


def _flat(flat: dict[str, Any], quoted: dict[str, float]) -> list[Block]:
    """The flat graph's statistics under both readings of a self-loop."""
    readings = {
        name: {**values, "longer_of_all": values["longer_than_two"] * values["score_one"]}
        for name, values in flat["readings"].items()
    }
    # The paper says "2.7 % relations": of those with score 1, or of all.
    paper = {**quoted, "longer_of_all": quoted["longer_than_two"]}
    names = {
        "score_one": "relations with score 1",
        "mean_longest": "mean of their longest paths",
        "longer_than_two": "of them, paths longer than 2",
        "longer_of_all": "of all relations: score 1 and paths longer than 2",
    }
    shown = {key: (lambda v: f"{v:.2f}") if key == "mean_longest" else (lambda v: f"{v:.1%}") for key in names}
    rows = [
        [name, *(shown[key](values[key]) for values in readings.values()), shown[key](paper[key])]
        for key, name in names.items()
    ]
    digits = {"score_one": 2, "mean_longest": 2, "longer_than_two": 3}  # as the paper prints them
    agree = {
        name: sum(round(values[key], digits[key]) == quoted[key] for key in digits) for name, values in readings.items()
    }
    text = (
        f"{flat['data']}, {flat['relations']} relations. The paper's definition does not say whether a fact that "
        "relates an entity to itself is a cycle. Its text does not say whether the last share is of all relations. "
        "Here is every reading:"
    )
    counts = ", ".join(f"{name}: {count} of {len(digits)}" for name, count in agree.items())
    end = "what the paper counted is not known" if max(agree.values()) < len(digits) else "one reading has them all"
    return [
        Text(text),
        Table(["", *readings, "paper"], rows),
        Text(f"How many of the paper's values each reading gives, to the digits that it prints: {counts}; {end}."),
    ]


def papers_order(relation: str) -> tuple[int, str]:
    """Sorts relations as the paper's table 3 does; those it does not name follow."""
    names, name = list(published()["table3"]), relation.strip("_")
    return (names.index(name) if name in names else len(names), name)


def hierarchy(evidence: Evidence) -> list[Block]:
    """The scores of whole graphs, in one line each."""
    item = evidence.item("hierarchy")
    if item is None:
        return []
    rows, remarks = [], []
    for data, relations in item["graphs"].items():
        scores, paths = ([row[key] for row in relations] for key in ("krackhardt", "longest_path"))
        one, deep = sum(score == 1 for score in scores), sum(path >= 3 for path in paths)
        least, mean = below_one(min(scores), 2), below_one(fmean(scores), 2)
        rows.append([data, str(len(relations)), str(one), mean, least, str(deep), str(max(paths))])
        if data == ALL_HIERARCHICAL:
            remarks.append(
                f"The paper calls all {len(relations)} relations of {data} hierarchical and does not say by what rule. "
                f"A score of 1 is not it: {one} of them have it, the mean is {mean} and the least {least}. What they "
                f"share in the published files is depth: {deep} of {len(relations)} have a shortest path of 3 edges or "
                "more."
            )
    header = ["", "relations", "score 1", "mean score", "least score", "paths of 3 edges or more", "longest path"]
    return [Heading("Appendix: Krackhardt scores"), Table(header, rows), *map(Text, remarks)]


ALL_HIERARCHICAL = "NELL-995-h100"  # made by the paper of the relations it calls hierarchical
