"""Negatives are weighted by how likely the model finds them."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from murp.kernels.self_adversarial import mean_loss
from murp.objectives.objective import Sampled
from murp.settings import Span, setting


class SelfAdversarial(Sampled):
    """½ [softplus(-φ⁺) + Σ_k w_k softplus(φ_k⁻)], the mean over the batch.

    The weights w = softmax(α φ⁻) of a true triple's negatives sum to 1 and are constants for the gradient. So a hard
    negative has more weight than an easy one. With α = 0 all have the same weight.

    With the factor ½ the weights of the true and the false side sum to 1, as in the authors' code. There is no margin
    γ: models here have biases, or scores that are not distances.

    Sun, Deng, Nie, Tang: RotatE, ICLR 2019, equations 4 and 5.
    """

    temperature: float = setting(
        0.5,
        "α: how much more weight negatives with high scores get; 0: all have the same weight",
        least=0,
        search=Span(0, 2),
    )

    def loss(self, scores: Tensor) -> Tensor:
        if scores.device.type == "cpu":
            return mean_loss(scores, self.temperature)
        true, false = scores[:, 0], scores[:, 1:]
        weights = (self.temperature * false.detach()).softmax(1)
        # From 40 on softplus(φ) is φ: see Bernoulli.
        of_false = (weights * softplus(false, threshold=40)).sum(1)
        return (softplus(-true, threshold=40) + of_false).mean() / 2
