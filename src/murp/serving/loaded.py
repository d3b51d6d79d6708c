"""A run held ready for many questions."""

from __future__ import annotations

import copy
import datetime
from typing import Any

import numpy as np
import torch

import murp
from murp.graph import KnownFacts, split_names
from murp.models import Model
from murp.prediction import Answers
from murp.prediction.answers import MANY
from murp.prediction.search import score, top_objects
from murp.runs import Run
from murp.shapes import Health
from murp.web.encoding import to_json
from murp.web.names import index_of
from murp.web.predictions import listed

BATCH = 16  # questions of one kind from which on they are answered together
SOME = 2**10  # entities that are enough to compile what searches more than MANY


class Loaded:
    """A run, its names by index, and what its answers share; ready means that what is compiled has been compiled.

    ``types``: type constraints hold for questions that do not say. Where they do not, the constraints are learned when
    the first question asks for them. ``approximate``: questions are answered by the index of the run.
    """

    def __init__(self, run: Run, *, types: bool = False, approximate: bool = False) -> None:
        self.run = run
        self.graph = graph = run.graph
        self.entities, self.relations = index_of(graph.entities), index_of(graph.relations)
        self.known = KnownFacts.of(graph)
        self.calibration = run.calibration
        self.types = types
        index = run.opened_index if approximate else None
        self._answers = Answers(run.model, graph, self.known, ready=True, index=index)
        self._typed = self._answers.with_types(run.types) if types else None
        self.since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        batch = np.zeros(BATCH, np.int64)
        if index is None and graph.num_entities > MANY:  # a search among all would read all weights
            top_objects(_some(run.model), batch, batch, 1)
            return
        self._answers.to_one(0, 0, 1)
        self._answers.best(batch, batch, 1)

    @property
    def types_learned(self) -> bool:
        """Whether a question with types can be answered at once."""
        return self._typed is not None

    def answers(self, *, types: bool) -> Answers:
        """What answers questions, with type constraints or without."""
        if not types:
            return self._answers
        if self._typed is None:
            self._typed = self._answers.with_types(self.run.types)
        return self._typed

    def health(self, reloads: int, error: str | None) -> Health:
        """What is served."""
        config, state = self.run.config, self.run.state
        return Health(
            status="ok",
            murp=murp.__version__,
            run=self.run.path.resolve().name,
            model=config.model,
            dim=config.dim,
            graph=self.graph.name,
            entities=self.graph.num_entities,
            relations=self.graph.num_relations,
            epoch=state["epoch"],
            best_mrr=state.get("best_mrr"),
            loaded=self.since,
            reloads=reloads,
            reload_error=error,
        )

    def relations_json(self) -> bytes:
        """Every relation with its id and name."""
        return to_json({"relations": [self.relations.reference(r) for r in range(len(self.relations))]})

    def scores(self, triples: np.ndarray[Any, np.dtype[np.int64]]) -> list[dict[str, Any]]:
        """Triples (n, 3) in numbers, each with its score, its probability and the split that states it."""
        values = score(self.run.model, triples)
        probabilities = torch.sigmoid(torch.from_numpy(values)).tolist()
        splits = self.known.split_of(triples[:, 0], triples[:, 1], triples[:, 2:])[:, 0]
        columns = zip(values.tolist(), probabilities, split_names(splits), strict=True)
        return [{"score": value, "probability": p, "known": split} for value, p, split in columns]

    def listed(self, ranking: Any, *, calibrated: bool) -> list[dict[str, Any]]:
        """The answers to one question as JSON has them."""
        return listed(ranking, self.entities, self.calibration if calibrated else None)


def _some(model: Model) -> Model:
    """The model of the first entities; it shares the tables."""
    some = copy.copy(model)
    some.num_entities = SOME
    of = {table.name: slice(SOME) if table.of == "entity" else slice(None) for table in model.tables}
    some.parameters = {name: values[of[name]] for name, values in model.parameters.items()}
    return some
