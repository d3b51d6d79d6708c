"""What the explorer answers: plain functions from a collection and indices to what JSON can hold.

``run`` is 1 or 2; a row is a relation r, or r + R where its heads are asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import murp
from murp.evaluation import Report
from murp.explorer import columns
from murp.explorer.collection import MOST_NAMED, Collection, PreparedRun
from murp.explorer.disk_scaling import DiskScaling
from murp.explorer.facts import known_facts_of, likely_of, supports
from murp.explorer.snapshots import epochs_of
from murp.explorer.suggestions import suggested
from murp.prediction.nearest import nearest_to
from murp.projection import Projection, question
from murp.web.encoding import packed
from murp.web.predictions import listed

KINDS = ("other", "new", "missed", "known")
Answer = dict[str, Any]


def about(collection: Collection) -> Answer:
    """What is shown: the runs, their graph, its relations."""
    graph, relations = collection.graph, collection.relations
    return {
        "murp": murp.__version__,
        "graph": {
            "name": graph.name,
            "entities": graph.num_entities,
            "train": len(graph.train),
            "valid": len(graph.valid),
            "test": len(graph.test),
        },
        "drawn": len(collection.shown),
        "relations": [
            {**relations.reference(r), "facts": int(relations.weights[r])} for r in range(graph.num_relations)
        ],
        "relation": collection.relations.ids[collection.default_relation],
        "hierarchy": None
        if collection.hierarchy.relation is None
        else collection.relations.ids[collection.hierarchy.relation],
        "suggestions": suggested(collection),
        "columns": [{"name": name} for name in columns.names(collection)],
        "training": bool(epochs_of(collection.prepared[0].run.path)),
        "runs": [_run(prepared) for prepared in collection.prepared],
    }


def _run(prepared: PreparedRun) -> Answer:
    config, state, geometry = prepared.run.config, prepared.run.state, prepared.model.geometry
    return {
        "name": prepared.run.path.resolve().name,
        "model": config.model,
        "dim": config.dim,
        "geometry": geometry.name,
        "curvature": None if geometry.is_flat else geometry.c,
        "epoch": state.get("epoch"),
        "best_mrr": state.get("best_mrr"),
    }


def drawn(collection: Collection) -> Answer:
    """Ids and names of the entities that are drawn, in the order of their points."""
    ids, names = collection.entities.ids, collection.entities.names
    named = collection.shown[:MOST_NAMED].tolist()
    return {"ids": [ids[i] for i in named], "names": [names[i] for i in named]}


def search(collection: Collection, text: str, k: int) -> Answer:
    """Completions of what has been typed."""
    names = collection.entities
    results = [
        {**names.reference(i), "gloss": collection.graph.entities.gloss(i), "facts": int(names.weights[i])}
        for i in names.search(text, k)
    ]
    return {"query": text, "results": results}


def entity(collection: Collection, run: int, index: int, k: int) -> Answer:
    """What is known of one entity, and its neighbours."""
    prepared = collection.prepared[run - 1]
    return {
        "run": run,
        **collection.entities.reference(index),
        "gloss": collection.graph.entities.gloss(index),
        "facts": int(collection.entities.weights[index]),
        "norm": prepared.norms[index],
        "biases": {role: values[index] for role, values in prepared.biases.items()},
        "neighbours": _nearest(collection, prepared, index, k),
        "path": [collection.entities.reference(i) for i in prepared.tree.path(index)],
        "known_facts": known_facts_of(collection, index),
        "likely": likely_of(collection, prepared, index),
    }


def why(collection: Collection, run: int, given: int, relation: int, answer: int, k: int, *, heads: bool) -> Answer:
    """The known facts nearest to an answer."""
    prepared = collection.prepared[run - 1]
    row = relation + len(collection.relations) if heads else relation
    return {
        "run": run,
        "relation": collection.relations.reference(relation),
        "facts": supports(collection, prepared, given, row, answer, k),
    }


def neighbours(collection: Collection, run: int, index: int, k: int) -> Answer:
    """The entities at the smallest distance."""
    prepared = collection.prepared[run - 1]
    found = _nearest(collection, prepared, index, k)
    return {"run": run, "entity": collection.entities.reference(index), "neighbours": found}


def _nearest(collection: Collection, prepared: PreparedRun, index: int, k: int) -> list[Answer]:
    return [
        {"rank": rank, **collection.entities.reference(i), "distance": distance}
        for rank, (i, distance) in enumerate(nearest_to(prepared.model, index, k), start=1)
    ]


def predict(collection: Collection, run: int, given: int, relation: int, k: int, *, heads: bool) -> Answer:
    """The ``k`` most probable tails of (given, relation, ?), or heads of (?, relation, given).

    ``given`` itself is among them only where the relation has facts of an entity with itself.
    """
    names = collection.entities
    row = relation + len(collection.relations) if heads else relation
    prepared = collection.prepared[run - 1]
    best = prepared.answers.to_one(given, row, k)
    query = {"relation": collection.relations.reference(relation), "tail" if heads else "head": names.reference(given)}
    predictions = listed(best, names, prepared.calibration)
    return {"run": run, "query": query, "predictions": predictions}


def project(collection: Collection, run: int, centre: int | None, k: int, *, points: bool) -> Answer:
    """The picture around an entity, or around the origin: the ``k`` nearest by name, all points where asked."""
    prepared = collection.prepared[run - 1]
    entities = prepared.model.parameters["entity"]
    picture = prepared.home if centre is None else prepared.points.around(entities[centre])
    positions, scaling = prepared.scaling(picture, from_origin=centre is None)
    nearest = torch.topk(torch.from_numpy(picture.distances), min(k, len(picture.distances)), largest=False).indices
    answer = {
        "run": run,
        "centre": None if centre is None else collection.entities.reference(centre),
        "projection": projection_in_words(prepared, scaling, has_centre=centre is not None),
        "scale": scaling.scale,
        "cut": scaling.cut,
        "nearest": [
            {
                **collection.entities.reference(int(collection.shown[p])),
                "distance": float(picture.distances[p]),
                "x": float(positions[p, 0]),
                "y": float(positions[p, 1]),
            }
            for p in nearest.tolist()
        ],
    }
    if points:
        answer["points"] = packed(positions, "float32")
        answer["levels"] = prepared.levels
    return answer


def projection_in_words(prepared: PreparedRun, scaling: DiskScaling, *, has_centre: bool) -> str:
    """What a reader of the picture must know."""
    middle = "the chosen entity" if has_centre else "the origin"
    space = "Euclidean" if prepared.model.geometry.is_flat else "hyperbolic"
    if prepared.model.dim <= 2:
        return f"The model's own points, {middle} in the middle."
    stretched = f", {scaling.scale:.2g} times as long" if scaling.scale > 1.005 else ""
    cut = f"; no entity is nearer than {scaling.cut:.2g}, and that much is cut out of the middle" if scaling.cut else ""
    return (
        f"{prepared.model.dim} dimensions shown in two: the distance from the middle is the {space} distance from "
        f"{middle}{stretched}{cut}. The angle is projected."
    )


def grown(collection: Collection, run: int) -> Answer:
    """The tree that the embedding implies: a place, a parent and a depth for every drawn entity in the hierarchy.

    Depth goes by the norm, the angle by the tree; ``parents`` are places among the points, the entity's own at the top.
    """
    prepared, shown = collection.prepared[run - 1], collection.shown
    place = np.full(len(collection.entities), -1)
    place[shown] = np.arange(len(shown))
    parent = np.where(prepared.tree.parent < 0, -1, place[prepared.tree.parent])[shown]
    alone = parent < 0
    angles = prepared.tree.angles()[shown]
    norms = np.array(prepared.norms)[shown]
    low, high = np.quantile(norms, [0.002, 0.995]) if len(norms) else (0.0, 1.0)
    radius = 0.06 + 0.9 * np.clip((norms - low) / max(high - low, 1e-12), 0, 1)
    outside = np.isnan(angles)
    angles = np.where(outside, 0.0, angles)
    places = radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return {
        "run": run,
        "relation": None
        if collection.hierarchy.relation is None
        else collection.relations.reference(collection.hierarchy.relation),
        "points": packed(places, "float32"),
        "parents": packed(np.where(alone, np.arange(len(shown)), parent), "uint32"),
        "inside": packed(~outside, "uint8"),
        "depth": packed(np.clip(collection.hierarchy.rank[shown], 0, 255), "uint8"),
        "below": packed(prepared.tree.below[shown], "uint32"),
    }


def asked(collection: Collection, run: int, given: int, relation: int, how: Projection, *, heads: bool) -> Answer:
    """The paper's figure 5: the given entity and its answers before and after the relation moves them, in colours."""
    prepared = collection.prepared[run - 1]
    row = relation + len(collection.relations) if heads else relation
    seen = question(prepared.model, prepared.points, given, row, how)
    known = np.zeros(len(collection.entities), dtype=bool)
    known[collection.known.objects_of([given], [row])[1]] = True
    kinds = 2 * known + (prepared.answers.scores(given, row) >= 0)
    if not prepared.answers.may_answer_itself(row):
        kinds[given] = 0
    return {
        "run": run,
        "given": {"before": seen.subject_before.tolist(), "after": seen.subject_after.tolist()},
        "before": packed(seen.before, "float32"),
        "after": packed(seen.after, "float32"),
        "kinds": packed(kinds[collection.shown], "uint8"),
        "counts": dict(zip(KINDS, np.bincount(kinds, minlength=4).tolist(), strict=True)),
    }


def edges(collection: Collection, relation: int) -> Answer:
    """The facts of one relation as pairs of drawn points."""
    return {"relation": collection.relations.reference(relation), **collection.edges(relation)}


def metrics(collection: Collection, run: int, report: Report) -> Answer:
    """The metrics of a run, over all and by relation."""
    vocabulary = collection.graph.relations
    return {
        "run": run,
        "split": report.split,
        "protocol": report.protocol,
        "overall": report.overall.to_dict(),
        "relations": [
            {**collection.relations.reference(vocabulary.find(id)), **part.to_dict()}
            for id, part in report.by_relation.items()
        ],
    }
