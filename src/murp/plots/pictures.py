"""Every kind of picture of a run by its name: what ``murp plot`` and :meth:`murp.Run.plot` draw."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from murp.evaluation import Protocol
from murp.graph import Split
from murp.picture_kinds import Colour, Kind, Projection, check
from murp.plots import disk, entities, run_charts
from murp.plots.spheres import spheres
from murp.runs import Run


def picture(
    runs: Sequence[Run],
    kind: Kind,
    *,
    head: str | None = None,
    relation: str | None = None,
    centre: str | None = None,
    edges: str | None = None,
    colour: Colour | None = None,
    projection: Projection | None = None,
    split: Split | None = None,
    protocol: Protocol | None = None,
) -> Figure:
    """One run or, where the kind can, several in one picture; names are ids or names of the graph."""
    options = {
        "head": head, "relation": relation, "centre": centre, "edges": edges, "colour": colour,
        "projection": projection, "split": split, "protocol": protocol,
    }  # fmt: skip
    check(kind, options, len(runs))
    if kind == "convergence":
        return run_charts.convergence_of(runs)
    if kind == "norms":
        return run_charts.norms_of(runs)
    if kind == "relations":
        return run_charts.relations_of(runs, split or "test", protocol or "standard")
    if kind == "reliability":
        return run_charts.reliability_of(runs[0])
    if head is not None and relation is not None:
        if kind == "question" or projection == "paper":
            return run_charts.question_of(runs, head, relation)
        graph = runs[0].graph
        return disk.answers_disk(runs[0], graph.entities.find(head), graph.relations.find(relation))
    graph = runs[0].graph
    middle = None if centre is None else graph.entities.find(centre)
    if kind == "spheres":
        return spheres(runs[0], centre=middle)
    return entities.entities_disk(
        runs[0],
        centre=middle,
        edges=None if edges is None else graph.relations.find(edges),
        colour=colour or "norm",
        projection=projection or "distances",
    )
