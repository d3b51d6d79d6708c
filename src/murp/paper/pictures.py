"""The report's figures, drawn from stored results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from murp import plots
from murp.paper.convergence import epochs, near, validated_every
from murp.paper.document import Block, Heading, Picture, Table, Text
from murp.paper.evidence import NAMES, Evidence, Spread, correlations, counted, seeds_of, signed_spread
from murp.paper.experiments import published
from murp.paper.relations import papers_order
from murp.paper.wrong_answers import wrong_answers


def draw(figure: Figure, folder: Path, name: str, caption: str) -> Picture:
    """Write PNG, SVG and PDF; the picture is the PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("svg", "pdf", "png"):
        plots.save(figure, folder / f"{name}.{kind}")
    return Picture(folder / f"{name}.png", caption)


def figure3a(evidence: Evidence, folder: Path) -> list[Block]:
    """MRR by dimension."""
    item = evidence.item("figure3a")
    if item is None:
        return []
    dims = item["settings"]["dims"]
    spreads = {
        NAMES[model]: [evidence.spread(cell, "mrr", "paper") for cell in item["cells"] if cell["model"] == model]
        for model in NAMES
    }
    figure = plots.mrr_by_dimension(dims, {name: _bars(values) for name, values in spreads.items()})
    caption = f"Figure 3a: MRR on the test set of {item['settings']['data']} by dimension, protocol paper"
    rows = [
        [str(dim), str(mure), str(murp), signed_spread(murp.less(mure)), seeds_of({"mure": mure, "murp": murp})]
        for dim, mure, murp in zip(dims, spreads["MuRE"], spreads["MuRP"], strict=True)
    ]
    text = (
        f"MRR on test, protocol `paper`, learning rate {item['settings']['lr']:g} for both models at every dimension. "
        "The paper has a picture, and no numbers to compare with."
    )
    table = Table(["dimension", "MuRE", "MuRP", "MuRP − MuRE", "seeds"], rows)
    return [Heading("Figure 3a: dimension"), draw(figure, folder, "figure3a", caption), Text(text), table]


def figure3b(evidence: Evidence, folder: Path) -> list[Block]:
    """MRR by epoch, and how soon each model is near its best."""
    item = evidence.item("figure3b")
    if item is None:
        return []
    curves = {
        NAMES[model]: {
            "epoch": [point["epoch"] for point in curve["points"]],
            "train": [point["train_standard"] for point in curve["points"]],
            "valid": [point["valid_standard"] for point in curve["points"]],
        }
        for model, curve in item["curves"].items()
    }
    what = f"{item['settings']['data']}, d={item['settings']['dim']}"
    caption = f"Figure 3b: MRR by epoch, {what}, protocol standard; valid solid, train dashed"
    picture = draw(plots.convergence(curves), folder, "figure3b", caption)
    cells = {cell["model"]: cell for cell in item["cells"]}
    rows = []
    for share in (0.9, 0.95, 0.99):
        soon = {model: near(evidence, cells[model], share) for model in NAMES}
        rows.append([f"{share:.0%}", *(epochs(soon[model]) for model in NAMES), seeds_of(soon)])
    steps = counted(validated_every(evidence, item), "epoch")
    text = (
        "How many epochs a run needs until its MRR on valid (protocol `standard`) first reaches a share of its own "
        f"best; mean over seeds. Runs are validated every {steps}, so no value is more exact than that. Each curve of "
        "the picture is one run, which was stopped, evaluated and continued."
    )
    table = Table(["share of its best", *NAMES.values(), "seeds"], rows)
    return [Heading("Figure 3b: convergence"), picture, Text(text), table]


def figure4(evidence: Evidence, folder: Path) -> list[Block]:
    """Norms against biases."""
    item = evidence.item("figure4")
    if item is None:
        return []
    models = {NAMES[model]: (values["norms"], values["biases"]) for model, values in item["models"].items()}
    order = {name: models[name] for name in ("MuRP", "MuRE")}
    caption = f"Figure 4: norm against subject bias, {item['settings']['data']}, d={item['settings']['dim']}"
    found = correlations(item)
    rows = [
        [
            NAMES[model],
            signed_spread(found[NAMES[model]], 2),
            f"{values['entities']:,}",
            found[NAMES[model]].seeds,
        ]
        for model, values in item["models"].items()
    ]
    text = (
        f"Rank correlation of norm and bias, over all entities ({item['settings']['points']:,} of them are drawn, of "
        "the first seed). The paper gives no number."
    )
    table = Table(["", "Spearman", "entities", "seeds"], rows)
    return [
        Heading("Figure 4: norms and biases"),
        draw(plots.norms_against_biases(order), folder, "figure4", caption),
        Text(text),
        table,
    ]


def figure5(evidence: Evidence, folder: Path) -> list[Block]:
    """One question in the plane, and its wrong answers."""
    item = evidence.item("figure5")
    if item is None:
        return []
    asked = {NAMES[model]: _question(item, item["models"][model]) for model in ("murp", "mure")}
    what = f"{item['subject']} under {item['relation']}"
    picture = draw(plots.question(asked), folder, "figure5", f"Figure 5: {what}, before (light) and after the relation")
    return [Heading("Figure 5: one question"), picture, *wrong_answers(evidence)]


def figure6(evidence: Evidence, folder: Path) -> list[Block]:
    """How far MuRP is ahead, by share of hierarchical relations."""
    item = evidence.item("nell")
    if item is None:
        return []
    settings, paper = item["settings"], published()["nell"]
    ahead = {
        f"d={dim}": [evidence.lead(item, data=data, dim=dim) for data in settings["data"]] for dim in settings["dims"]
    }
    printed = {
        f"d={dim}": {
            share: paper[data]["murp"][str(dim)][0] - paper[data]["mure"][str(dim)][0]
            for share, data in zip(settings["shares"], settings["data"], strict=True)
            if data in paper and str(dim) in paper[data]["murp"]
        }
        for dim in settings["dims"]
    }
    printed = {name: values for name, values in printed.items() if values}
    series = {name: _bars(values) for name, values in ahead.items()}
    figure = plots.difference_by_share(settings["shares"], series, printed)
    caption = "Figure 6: MRR of MuRP less that of MuRE by share of hierarchical relations, protocol paper"
    return [Heading("Figure 6: share of hierarchical relations"), draw(figure, folder, "figure6", caption)]


def table3_bars(evidence: Evidence, folder: Path) -> list[Block]:
    """The picture of table 3."""
    item = evidence.item("table3")
    if item is None:
        return []
    asked = evidence.runs(item["cells"][0])[0]["metrics"]["test"]["paper"]["by_relation"]
    relations = [row for row in item["relations"] if row["relation"] in asked]
    relations.sort(key=lambda row: papers_order(row["relation"]))
    hits = {}
    for cell in item["cells"]:
        spreads = [evidence.by_relation(cell, row["relation"], "hits@10", "paper") for row in relations]
        hits[NAMES[cell["model"]]] = [np.nan if spread is None else spread.mean for spread in spreads]
    names = [row["relation"].strip("_") for row in relations]
    scores = [f"{row['krackhardt']:.2f}" for row in relations]
    caption = "Hits@10 by relation, protocol paper, in the paper's order, with Krackhardt scores"
    return [draw(plots.relation_bars(names, hits, scores), folder, "table3", caption)]


def _bars(spreads: list[Spread]) -> tuple[list[float], list[float]]:
    return [spread.mean for spread in spreads], [spread.deviation or 0.0 for spread in spreads]


def _question(item: dict[str, Any], values: dict[str, Any]) -> plots.Question:
    return plots.Question(
        subject=item["subject"],
        relation=item["relation"],
        names=tuple(values["names"]),
        before=np.array(values["before"]),
        after=np.array(values["after"]),
        subject_before=values["subject_before"],
        subject_after=values["subject_after"],
        probabilities=np.array(values["probabilities"]),
        known=np.array(values["known"]),
        disk=values["disk"],
    )
