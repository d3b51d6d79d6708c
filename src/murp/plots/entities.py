"""All entities of a run in the disk: as trained or around one of them, with a relation's edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import ConfigError
from murp.graph import KnowledgeGraph
from murp.models import MultiRelational
from murp.picture_kinds import Colour, Projection
from murp.plots.answers import SUBJECT
from murp.plots.arcs import arcs
from murp.plots.labels import write_names
from murp.plots.layout import along, around, described, entity_points, in_unit_disk, new_disk, scale_note
from murp.plots.style import BLUE, GREEN, GREY, INK, NORMAL, ORANGE, PURPLE, SKY, SMALL, VERMILION
from murp.runs import Run
from murp.widths import shortened

MANY = 1000  # from so many on, points and arcs are pixels in vector files too
_RELATIONS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)


@torch.no_grad()
def entities_disk(
    run: Run,
    *,
    centre: int | None = None,
    edges: int | None = None,
    colour: Colour = "norm",
    projection: Projection = "distances",
    labels: int = 40,
) -> Figure:
    """Every entity around ``centre``, an entity, or around the origin of the space.

    ``edges``: the relation whose facts are drawn as geodesics of the picture. ``projection``: distances from the
    centre kept (:func:`murp.plots.layout.around`; with d = 2 this is the model itself), or the paper's, along the
    centre's own vector (:func:`murp.plots.layout.along`). A point's area grows with the entity's bias, of the
    subject where there are two.
    """
    model, graph, geometry = run.model, run.graph, run.model.geometry
    points = entity_points(model)
    if projection == "paper":
        if centre is None:
            raise ConfigError("the paper's projection is relative to an entity: name it with --centre.")
        plane, note = (
            along(geometry, points, points[centre]),
            "the paper's projection: along the centre's vector, and the rest",
        )
        if geometry.is_flat:
            note += "; x drawn at x/(1 + |x|)"
    else:
        origin = torch.zeros_like(points[0]) if centre is None else points[centre]
        plane, note = around(geometry, points, origin), scale_note(geometry)
    if edges is not None:
        note += f"; lines: {shortened(graph.relations.name(edges))}"
    if (learned := bias(model)) is not None:
        note += f"; area: {learned.name}"
    what = graph.name if centre is None else f"{graph.name} around {shortened(graph.entities.label(centre))}"
    positions = in_unit_disk(geometry, plane)
    figure, axes = new_disk(f"{what}   {described(run)}", note, positions, half=projection == "paper")
    if edges is not None:
        _draw_edges(axes, model, _pairs(graph, edges), centre, plane)
    _draw_points(axes, run, positions, edges, colour)
    if centre is not None:
        axes.scatter(*positions[centre], s=90, c=SUBJECT, marker="*", linewidths=0, zorder=4)
    shown = _worth_a_name(graph, centre, edges)[: 3 * labels]
    names = [graph.entities.name(int(i)) for i in shown]
    write_names(axes, names, positions[shown], limit=labels, disk=True)
    return figure


def degrees(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """How many facts each entity is part of: (N,)."""
    return np.bincount(graph.facts()[:, [0, 2]].ravel(), minlength=graph.num_entities)


class Bias(NamedTuple):
    """The entities' biases (N,), and which they are: ``head bias`` or ``tail bias``."""

    name: str
    values: NDArray[np.float64]


def bias(model: MultiRelational) -> Bias | None:
    """The entities' biases, those as heads where there are both; None if the model learns none."""
    for name, role in (("subject_bias", "head"), ("object_bias", "tail")):
        if name in model.parameters:
            return Bias(f"{role} bias", np.asarray(model.parameters[name].double().cpu()))
    return None


def learns_no_bias(run: Run) -> str:
    """That a run has no biases, and by which setting, for errors."""
    settings = run.config.to_dict()
    return f"bias = {settings['bias']!r} learns no bias" if "bias" in settings else f"{run.config.model} learns no bias"


def _pairs(graph: KnowledgeGraph, relation: int) -> NDArray[np.int64]:
    """The facts of a relation: (E, 2), heads and tails."""
    facts = graph.facts().astype(np.int64)
    pairs: NDArray[np.int64] = facts[facts[:, 1] == relation][:, [0, 2]]
    return pairs


def _worth_a_name(graph: KnowledgeGraph, centre: int | None, edges: int | None) -> NDArray[np.int64]:
    """Entities (N,): the centre, those that an edge drawn joins to it, then by falling number of facts."""
    count = degrees(graph)
    nearness = np.zeros(len(count), dtype=np.int64)
    if centre is not None:
        if edges is not None:
            pairs = _pairs(graph, edges)
            nearness[pairs[(pairs == centre).any(1)]] = 1
        nearness[centre] = 2
    return np.lexsort((-count, -nearness))


def _draw_edges(axes: Any, model: MultiRelational, pairs: NDArray[np.int64], centre: int | None, plane: Tensor) -> None:
    """Geodesics between heads and tails; those that end at the centre stand out."""
    heads, tails = (plane[torch.from_numpy(pairs[:, side]).to(plane.device)] for side in (0, 1))
    drawn = arcs(model.geometry, heads, tails)
    at_centre = (pairs == centre).any(1)
    faint = float(np.clip(100 / max(len(drawn), 1), 0.03, 0.6))
    for chosen, colour, width, alpha in ((~at_centre, INK, 0.4, faint), (at_centre, VERMILION, 0.8, 0.9)):
        if not chosen.any():
            continue  # an empty one between arcs and points would make two images of them in a vector file
        lines = LineCollection(list(drawn[chosen]), colors=colour, linewidths=width, alpha=alpha, zorder=1)
        lines.set_rasterized(int(chosen.sum()) > MANY)
        axes.add_collection(lines, autolim=False)


def _draw_points(axes: Any, run: Run, positions: NDArray[np.float64], edges: int | None, colour: Colour) -> None:
    """The points, with a scale or a legend of what their colours mean."""
    learned = bias(run.model)
    area = np.full(len(positions), 4.0)
    if learned is not None:
        low, high = np.quantile(learned.values, [0.02, 0.98])
        area = 2 + 16 * np.clip((learned.values - low) / max(high - low, 1e-12), 0, 1)
    area *= np.clip((6000 / len(positions)) ** 0.7, 0.2, 1.5)  # many points, small points
    order = np.argsort(-area, kind="stable")  # small points above large ones
    many = {"linewidths": 0, "zorder": 2, "rasterized": len(positions) > MANY}
    if colour == "relation":
        groups = main_relations(run.graph)
        for name, (members, shade) in groups.items():
            chosen = order[members[order]]
            if len(chosen):
                label = shortened(name, 24)
                axes.scatter(*positions[chosen].T, s=area[chosen], c=shade, label=label, **many)
        axes.figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=NORMAL, labelcolor=INK)
        return
    values, label = _scale(run, edges, colour)
    axes.scatter(*positions[order].T, s=area[order], c=GREY, **many)
    order = order[np.isfinite(values[order])]
    drawn = axes.scatter(*positions[order].T, s=area[order], c=values[order], cmap="viridis_r", **many)
    bar_options: dict[str, Any] = {"ticks": MaxNLocator(integer=True)}
    if colour == "norm":
        drawn.set_clim(*np.quantile(values[order], [0.01, 0.99]))  # a few far out would take all the colours
        bar_options = {"extend": "both"}
    bar = axes.figure.colorbar(drawn, ax=axes, location="bottom", shrink=0.4, aspect=40, pad=0.01, **bar_options)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    bar.set_label(label, fontsize=NORMAL, color=INK)


def _scale(run: Run, edges: int | None, colour: Colour) -> tuple[NDArray[np.float64], str]:
    if colour == "norm":
        norms = torch.linalg.vector_norm(entity_points(run.model), dim=1)
        return np.asarray(norms.cpu()), "norm of the embedding"
    from murp.analysis.depth import find_levels
    from murp.analysis.relations import relation_edges

    of_relation = relation_edges(run.graph)
    relation = int(np.argmax([len(part) for part in of_relation])) if edges is None else edges
    levels = find_levels(of_relation[relation])
    depths = np.full(run.graph.num_entities, np.nan)
    depths[levels.nodes] = levels.rank
    return depths, f"depth under {shortened(run.graph.relations.name(relation))}; grey: not part of it"


def main_relations(graph: KnowledgeGraph) -> dict[str, tuple[NDArray[np.bool_], str]]:
    """Entities by the relation they have most facts of: name → (which (N,), colour); the rarer relations together."""
    facts = graph.facts().astype(np.int64)
    pairs = np.concatenate([facts[:, [0, 1]], facts[:, [2, 1]]])
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    main = np.full(graph.num_entities, -1)
    rarest_first = np.argsort(counts, kind="stable")  # the last one written stays
    main[distinct[rarest_first, 0]] = distinct[rarest_first, 1]
    frequent = np.argsort(-np.bincount(main[main >= 0], minlength=graph.num_relations), kind="stable")
    frequent = frequent[: len(_RELATIONS)]
    groups = {"another relation": (~np.isin(main, frequent), GREY)}
    for relation, shade in zip(frequent.tolist(), _RELATIONS, strict=False):
        groups[graph.relations.name(relation)] = (main == relation, shade)
    return groups
