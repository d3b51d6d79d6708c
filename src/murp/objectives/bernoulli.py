"""The paper's objective: binary cross-entropy of true and false triples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor
from torch.nn.functional import softplus

from murp.objectives.objective import Sampled


class Bernoulli(Sampled):
    """Mean Bernoulli negative log-likelihood (the paper's equation 6).

    With p = σ(φ), -[y log p + (1 - y) log(1 - p)] = softplus(φ) - yφ. The mean is over all 1 + k scores of a true
    triple, so with k = 50 gradients are small, and the paper's learning rate for SGD, 50, is large.
    """

    usual: ClassVar[Mapping[str, Any]] = {}  # the defaults of all settings are the paper's, for this objective

    def loss(self, scores: Tensor) -> Tensor:
        # PyTorch takes softplus(φ) for φ, and its slope for 1, from a threshold on: by default 20, where in float64 a
        # probability is still 2·10⁻⁹ from 1. From 40 on the two are one number, and exp(40) overflows in no precision.
        return (softplus(scores, threshold=40).sum() - scores[:, 0].sum()) / scores.numel()
