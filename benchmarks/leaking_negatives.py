"""Negatives that use facts of valid and test, as in some other systems: only to measure the effect.

They are not in murp's registry, and raise an error unless a script gives them these facts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.graph import KnowledgeGraph
from murp.negatives.checked import Checked

_further: list[Tensor] = []


@contextlib.contextmanager
def leaking(graph: KnowledgeGraph) -> Iterator[str]:
    """While this lasts: the place of negatives that are checked against the valid and test facts of ``graph`` too."""
    held_out = graph.with_reciprocals(np.concatenate([graph.valid, graph.test]))
    _further.append(torch.from_numpy(held_out))
    try:
        yield f"{Leaking.__module__}:{Leaking.__name__}"
    finally:
        _further.pop()


class Leaking(Checked):
    """The object replaced by any entity; where that makes a fact of train, valid or test, it is drawn again."""

    def prepare(self, triples: Tensor, num_entities: int, num_relations: int) -> None:
        if not _further:
            raise ConfigError(
                "these negatives know facts of valid and test, so a model trained with them is not judged by its test "
                "figures. They are for benchmarks/protocols.py alone: choose corruption = checked."
            )
        super().prepare(torch.cat([triples, _further[-1].to(triples)]), num_entities, num_relations)
