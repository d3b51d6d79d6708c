"""Softmax over the true triple and its negatives."""

from __future__ import annotations

from torch import Tensor

from murp.objectives.objective import Sampled


class Softmax(Sampled):
    """log(exp φ⁺ + Σ_k exp φ_k⁻) - φ⁺, the mean over the batch: cross-entropy of the true one among 1 + k.

    Toutanova, Chen: Observed versus latent features for knowledge base and text inference, 2015.
    """

    def loss(self, scores: Tensor) -> Tensor:
        return (scores.logsumexp(1) - scores[:, 0]).mean()
