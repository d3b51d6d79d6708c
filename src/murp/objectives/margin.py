"""True triples score a margin above false ones."""

from __future__ import annotations

from torch import Tensor

from murp.objectives.objective import Sampled
from murp.settings import Span, setting


class Margin(Sampled):
    """max(0, γ - φ⁺ + φ⁻), the mean over all pairs of a true triple and one of its false ones.

    Bordes, Usunier, Garcia-Durán, Weston, Yakhnenko: Translating embeddings for modeling multi-relational data,
    NeurIPS 2013, where the pairs are summed.
    """

    margin: float = setting(
        1.0, "γ: how far a true triple is to be scored above a false one", above=0, search=Span(0.2, 10, log=True)
    )

    def loss(self, scores: Tensor) -> Tensor:
        return (self.margin - scores[:, :1] + scores[:, 1:]).relu().mean()
