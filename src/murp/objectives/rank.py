"""How many negatives score above the true triple, smoothly counted."""

from __future__ import annotations

from torch import Tensor

from murp.objectives.objective import Sampled
from murp.settings import Span, setting


class Rank(Sampled):
    """Σ_k σ((φ_k⁻ - φ⁺)/τ), the mean over the batch; σ(y) = 1/(1 + exp(-y)).

    For τ → 0 this is the number of negatives that score above the true triple: with k negatives that are drawn
    uniformly from N entities, k/N times its rank less 1. So the loss is bounded, and a triple that cannot be ranked
    well has hardly a gradient. Other losses (softmax, margin) grow with the difference of the scores, and give much to
    such triples. Where scores differ by far more than τ there is nothing to follow, so initial values have to be good
    ones: see :mod:`murp.hierarchy.spherical_caps`.

    Taylor, Guiver, Robertson, Minka: SoftRank: optimizing non-smooth rank metrics, WSDM 2008, where the smooth rank
    follows from noise in the scores.
    """

    softness: float = setting(
        0.3,
        "τ: how far two scores have to be apart for their order to count fully",
        above=0,
        search=Span(0.05, 2, log=True),
    )

    def loss(self, scores: Tensor) -> Tensor:
        return ((scores[:, 1:] - scores[:, :1]) / self.softness).sigmoid().sum(1).mean()
