"""Where runs differ most: held-out facts that one ranks high and another low."""

from __future__ import annotations

from typing import Any

import numpy as np

from murp.evaluation.ranks import rank
from murp.explorer.collection import Collection
from murp.graph import SPLITS, Split

ASKED = 1000  # facts of the newest split that has some; of more, evenly chosen ones
SHOWN = 30


def differences(collection: Collection) -> dict[str, Any]:
    """The questions whose answer the runs rank most differently, by the logarithm of the ranks."""
    graph = collection.graph
    split: Split = next((name for name in reversed(SPLITS) if len(graph.split(name))), "test")
    facts = graph.split(split)
    facts = facts[np.linspace(0, len(facts) - 1, min(ASKED, len(facts))).astype(np.int64)] if len(facts) else facts
    found = [
        rank(prepared.model, facts, collection.known, num_relations=graph.num_relations)
        for prepared in collection.prepared
    ]
    tails, heads = (np.stack([getattr(ranks, side) for ranks in found]) for side in ("tail", "head"))
    ranks = np.concatenate([tails, heads], axis=1)
    apart = np.log(ranks.max(0)) - np.log(ranks.min(0))
    order = np.lexsort((ranks.min(0), -apart))[:SHOWN]
    names, relations = collection.entities, collection.relations
    questions = []
    for i in order.tolist():
        h, r, t = facts[i % len(facts)].tolist()
        given, answer, direction = (h, t, "tail") if i < len(facts) else (t, h, "head")
        questions.append(
            {
                "entity": names.reference(given),
                "relation": relations.reference(r),
                "direction": direction,
                "answer": names.reference(answer),
                "ranks": ranks[:, i].tolist(),
            }
        )
    return {"split": split, "asked": 2 * len(facts), "questions": questions}
