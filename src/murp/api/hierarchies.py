"""``murp.embed``: one hierarchy of a graph, embedded or laid out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from murp.api.run import Run
from murp.graph import KnowledgeGraph
from murp.hierarchy import Taxonomy, make
from murp.training.progress import Silent


def embed(
    graph: KnowledgeGraph | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    relation: str | Sequence[str] = (),
    above: Literal["tail", "head"] = "tail",
    model: Literal["poincare", "lorentz", "layout"] = "poincare",
    scale: float | None = None,
    progress: Silent | None = None,
    dim: int | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    objective: str | None = None,
    softness: float | None = None,
    optimizer: str | None = None,
    lr_schedule: str | None = None,
    warmup: int | None = None,
    negatives: int | None = None,
    corruption: str | None = None,
    batch_size: int | None = None,
    seed: int | None = None,
) -> Run:
    """Embed one hierarchy of a graph, or lay out its tree, into the new run folder ``out``.

    ``relation``: one or several relations that make the hierarchy; by default the only one. ``above``: which side of a
    fact is the higher node: the tail of (chair, hypernym, furniture), the head of (Asia, has_part, Japan). ``model``:
    "poincare" and "lorentz" are trained, on the ball and the hyperboloid; "layout" lays out the tree in two dimensions,
    with edges of length ``scale``. The other settings are those of :func:`murp.train`. :meth:`Run.reconstruct` measures
    how well the hierarchy can be reconstructed from the points.
    """
    given = {
        "dim": dim,
        "epochs": epochs,
        "lr": lr,
        "objective": objective,
        "softness": softness,
        "optimizer": optimizer,
        "lr_schedule": lr_schedule,
        "warmup": warmup,
        "negatives": negatives,
        "corruption": corruption,
        "batch_size": batch_size,
        "seed": seed,
    }
    loaded = graph if isinstance(graph, KnowledgeGraph) else KnowledgeGraph.load(graph)
    taxonomy = Taxonomy.of(loaded, [relation] if isinstance(relation, str) else relation, above=above)
    settings = {name: value for name, value in given.items() if value is not None}
    return Run.of(
        make(
            taxonomy,
            out=out,
            model=model,
            scale=scale,
            name=loaded.name,
            source=loaded.source,
            progress=progress,
            **settings,
        )
    )
