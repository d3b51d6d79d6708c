"""PyKEEN in both directions: a PyKEEN dataset as a graph, a trained run as a PyKEEN model.

    from pykeen.datasets import Nations
    from pykeen.evaluation import RankBasedEvaluator
    from murp.bridges.pykeen import from_pykeen, to_pykeen

    dataset = Nations()
    run = murp.train(from_pykeen(dataset), dim=10, epochs=50, lr=5)
    RankBasedEvaluator().evaluate(
        model=to_pykeen(run),
        mapped_triples=dataset.testing.mapped_triples,
        additional_filter_triples=[dataset.training.mapped_triples, dataset.validation.mapped_triples],
    )

The graph keeps PyKEEN's numbers of entities and relations, so that triples mean the same in both libraries.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp.errors import DataError, MurpError
from murp.graph import KnowledgeGraph, Triples, Vocabulary
from murp.runs import Run

try:
    from pykeen.models import Model
    from pykeen.triples import TriplesFactory
    from pykeen.triples.triples_factory import KGInfo
    from pykeen.utils import NoRandomSeedNecessary
except ImportError:
    raise MurpError("murp.bridges.pykeen needs PyKEEN: pip install 'murp[judges]'.") from None


def from_pykeen(dataset: Any, *, name: str | None = None) -> KnowledgeGraph:
    """The graph of a PyKEEN dataset, in its numbers; without labels an id is the number. ``name``: what to call it."""
    training = dataset.training
    parts = (training, dataset.validation, dataset.testing)
    for split, part in zip(("validation", "testing"), parts[1:], strict=True):
        if part is not None and (part.num_entities, part.real_num_relations) != (
            training.num_entities,
            training.real_num_relations,
        ):
            raise DataError(
                f"the {split} triples of {dataset} have entities or relations of their own (an inductive dataset): "
                "a graph has one numbering. Choose a transductive dataset."
            )
    train, valid, test = (_triples(part) for part in parts)
    entities = _labels(getattr(training, "entity_to_id", None), training.num_entities)
    relations = _labels(getattr(training, "relation_to_id", None), training.real_num_relations)
    called = name or (getattr(dataset, "metadata", None) or {}).get("name") or type(dataset).__name__.lower()
    return KnowledgeGraph(
        called, Vocabulary("entity", entities), Vocabulary("relation", relations), train=train, valid=valid, test=test
    )


def factories(graph: KnowledgeGraph) -> dict[str, Any]:
    """The splits of a graph as PyKEEN's triples factories, in the graph's numbers: training, validation, testing."""
    numbers = {
        "entity_to_id": {id: i for i, id in enumerate(graph.entities.ids.to_pylist())},
        "relation_to_id": {id: i for i, id in enumerate(graph.relations.ids.to_pylist())},
    }
    splits = {"training": graph.train, "validation": graph.valid, "testing": graph.test}
    return {
        name: TriplesFactory(mapped_triples=torch.from_numpy(triples.astype(np.int64)), **numbers)
        for name, triples in splits.items()
    }


def to_pykeen(run: Run) -> RunModel:
    """A trained run as a PyKEEN model, for PyKEEN's evaluators and prediction functions."""
    return RunModel(run)


class RunModel(Model):  # type: ignore[misc]
    """The scores of a run. Heads are predicted with the reciprocal relation, as in murp."""

    can_slice_h = can_slice_r = can_slice_t = False

    def __init__(self, run: Run) -> None:
        graph = run.graph
        info = KGInfo(graph.num_entities, graph.num_relations, create_inverse_triples=False)
        super().__init__(triples_factory=info, random_seed=NoRandomSeedNecessary)
        self._model = copy.copy(run.model)  # its own tables, which follow this module to another device
        self.tables = torch.nn.ParameterDict(run.model.parameters).requires_grad_(False)

    def score_hrt(self, hrt_batch: Tensor, *, mode: Any = None) -> Tensor:
        """φ(h, r, t): (B, 3) → (B, 1)."""
        heads, relations, tails = hrt_batch.T
        return self._asked("score", heads, relations, tails)[:, None]

    def score_t(self, hr_batch: Tensor, *, slice_size: Any = None, mode: Any = None, tails: Any = None) -> Tensor:
        """φ(h, r, ·): (B, 2) → (B, N), or those of ``tails``."""
        heads, relations = hr_batch.T
        return _chosen(self._asked("score_objects", heads, relations), tails)

    def score_h(self, rt_batch: Tensor, *, slice_size: Any = None, mode: Any = None, heads: Any = None) -> Tensor:
        """φ(t, r⁻¹, ·), what murp ranks heads by: (B, 2) → (B, N), or those of ``heads``."""
        relations, tails = rt_batch.T
        return _chosen(self._asked("score_objects", tails, relations + self.num_relations), heads)

    def score_r(self, ht_batch: Tensor, *, slice_size: Any = None, mode: Any = None, relations: Any = None) -> Tensor:
        """φ(h, ·, t): (B, 2) → (B, R), or those of ``relations``."""
        heads, tails = (column.repeat_interleave(self.num_relations) for column in ht_batch.T)
        every = torch.arange(self.num_relations, device=ht_batch.device).repeat(len(ht_batch))
        return _chosen(self._asked("score", heads, every, tails).view(len(ht_batch), -1), relations)

    def collect_regularization_term(self) -> Tensor:
        """0: there is nothing to train."""
        return torch.zeros((), device=self.device)

    def _reset_parameters_(self) -> None:
        """A run keeps what it has learned."""

    def _get_entity_len(self, *, mode: Any) -> int:
        return int(self.num_entities)

    def _asked(self, question: str, *numbers: Tensor) -> Tensor:
        self._model.parameters = dict(self.tables)
        # PyKEEN ranks in inference mode, whose tensors the threads of murp may not write into.
        with torch.inference_mode(False), torch.no_grad():
            found: Tensor = getattr(self._model, question)(*(n.clone().contiguous() for n in numbers))
        return found


def _triples(factory: Any) -> Triples:
    if factory is None:
        return np.zeros((0, 3), np.int32)
    triples: Triples = factory.mapped_triples.cpu().numpy().astype(np.int32)
    return triples


def _labels(numbers: dict[str, int] | None, count: int) -> list[str]:
    if numbers is None:
        return [str(i) for i in range(count)]
    return sorted(numbers, key=numbers.__getitem__)


def _chosen(scores: Tensor, which: Tensor | None) -> Tensor:
    """All columns (B, n), or those numbered (k) for every row, or (B, k) for each."""
    if which is None:
        return scores
    return scores[:, which] if which.dim() == 1 else scores.gather(1, which)
