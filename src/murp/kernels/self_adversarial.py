"""The loss of self-adversarial negatives and its gradient on the CPU, in one pass over the scores.

    ½ [softplus(-φ⁺) + Σ_k w_k softplus(φ_k⁻)]  with  w = softmax(α φ⁻), constants for the gradient,

the mean over the batch. Its gradient is known with its value: w_k σ(φ_k⁻) / 2B by a negative's score, -σ(-φ⁺) / 2B by
the true triple's. PyTorch takes some fifteen passes for both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from murp.kernels.operators import differentiable, operator


def mean_loss(scores: Tensor, temperature: float) -> Tensor:
    """The mean loss of scores (B, 1 + k) on the CPU, the true triple first. Differentiable once."""
    value: Tensor = _mean_loss(scores, temperature)[0]
    return value


def _loss(scores: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The mean loss and its gradient (B, 1 + k)."""
    from murp.kernels import numba_self_adversarial

    return numba_self_adversarial.loss(scores.detach().contiguous(), temperature)


_registered = torch.library.custom_op("murp::self_adversarial", mutates_args=())(_loss)


@_registered.register_fake
def _(scores: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    return scores.new_empty(()), scores.new_empty(scores.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1])


def _multiply(ctx: Any, of_value: Tensor | None, of_gradient: Tensor | None) -> tuple[Tensor | None, None]:
    if of_gradient is not None:
        raise RuntimeError("the self-adversarial loss can be differentiated once, not twice")
    (gradient,) = ctx.saved_tensors
    return None if of_value is None else of_value * gradient, None


_registered.register_autograd(_multiply, setup_context=_keep)
_mean_loss = operator(_registered, differentiable(_loss, _keep, _multiply))
