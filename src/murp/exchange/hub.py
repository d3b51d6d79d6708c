"""A folder to publish: ``model.safetensors``, ``config.json``, a model card, the graph, and the run's history.

And its calibration, where it has one for these weights.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from murp.errors import DataError
from murp.exchange import tensors
from murp.exchange.contents import Contents
from murp.export_formats import FORMATS
from murp.files import new_folder, write_text
from murp.models import MultiRelational
from murp.runs import Run, folder

WEIGHTS, CONFIG, CARD = FORMATS["hub-folder"].holds, "config.json", "README.md"


def write(contents: Contents, run: Run, path: Path) -> None:
    """Make the folder ``path``, whole or not at all."""
    with new_folder(path, DataError) as part:
        tensors.write(contents, run, part / WEIGHTS)
        (part / CONFIG).write_text(contents.about_json(), encoding="utf-8")
        run.graph.save(part / folder.GRAPH)
        if (run.path / folder.METRICS).exists():
            shutil.copyfile(run.path / folder.METRICS, part / folder.METRICS)
        if run.calibration is not None:
            write_text(part / folder.CALIBRATION, run.calibration.to_json())
        (part / CARD).write_text(card(contents, run), encoding="utf-8")


def read(path: Path) -> Contents:
    """The contents of what :func:`write` made; graph and history lie beside them."""
    return tensors.read(path / WEIGHTS)


def card(contents: Contents, run: Run) -> str:
    """The model card, all of it from the run: what it is, what was measured under which protocol, how to use it."""
    about, graph, config = contents.about, run.graph, run.config
    published = isinstance(run.model, MultiRelational)
    title = f"{type(run.model).__name__} d={config.dim} on {graph.name}"
    sizes = f"{graph.num_entities:,} entities, {graph.num_relations:,} relations, {len(graph.train):,} training facts"
    space = (
        f"the Poincaré ball of curvature {about['curvature']:g}"
        if about["geometry"] == "poincare"
        else {"euclidean": "Euclidean space"}.get(about["geometry"], f"a {about['geometry']}")
    )
    rows = "\n".join(
        f"| `{name}` | {table['of']} | {' × '.join(map(str, table['shape']))} | {table['space']} |"
        for name, table in about["tables"].items()
    )
    named = ("objective", "optimizer", "lr", "batch_size", "negatives", "seed", "dtype")
    settings = ", ".join(f"{name} {value}" for name, value in config.to_dict().items() if name in named)
    by = (
        "the model of *Multi-relational Poincaré\nGraph Embeddings* (Balažević, Allen, Hospedales, NeurIPS 2019)"
        if published
        else f"the model {config.model}"
    )
    trained = folder.training_environment(run.path)
    trained_by = "" if trained is None else f" by murp {trained['murp']}"
    return f"""---
library_name: murp
tags:
- knowledge-graph
- link-prediction
- {"hyperbolic" if about["geometry"] in ("poincare", "hyperboloid") else about["geometry"]}
---

# {title}

Embeddings of the knowledge graph {graph.name} ({sizes}) in {space}, by {by}. Trained{trained_by} for
{run.state["epoch"]} epochs ({settings}).

## Metrics

{_figures(run)}

## Use

    murp import . --out runs/mine
    murp evaluate runs/mine
    murp predict runs/mine --head X --relation R

## Tables

`{WEIGHTS}` holds, described in full by `{CONFIG}`:

| table | of | shape | space |
|---|---|---|---|
{rows}

Coordinates: {about["coordinates_in_words"]}.

Score: {about["score"]}.

Rows: {about["rows"]}.
"""


def _figures(run: Run) -> str:
    epoch = run.state["epoch"]
    valid: dict[str, Any] | None = next((r.get("valid") for r in run.metrics() if r["epoch"] == epoch), None)
    if valid is None:
        return f"The run stored no validation for epoch {epoch}: `murp evaluate` measures it."
    names = {"MRR": "mrr", "H@1": "hits@1", "H@3": "hits@3", "H@10": "hits@10"}
    header, values = " | ".join(names), " | ".join(f"{valid[key]:.3f}" for key in names.values())
    chosen = ""
    if run.state["best_epoch"] == epoch:
        chosen = "\nThe checkpoint was chosen by MRR on this split, so an unseen split will be a little worse."
    return f"""| split | protocol | {header} | queries |
|---|---|{"---|" * len(names)}---|
| {valid["split"]} | {run.config.validated_by}, filtered | {values} | {valid["queries"]:,} |
{chosen}"""
