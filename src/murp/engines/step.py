"""One training step in PyTorch: gather rows, score, differentiate, update the touched rows.

The definition of a step. Its cost depends on the batch, never on the number of entities: gradients
are taken with respect to the gathered rows, summed for rows that occur more than once, and only
those rows move.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from murp.models.model import Model, Role, Rows


def bernoulli_loss(scores: Tensor) -> Tensor:
    """Mean Bernoulli negative log-likelihood (the paper's equation 6).

    ``scores`` (B, 1 + k): the true object first, then the false ones. With p = σ(φ),
    -[y log p + (1 - y) log(1 - p)] = softplus(φ) - yφ.
    """
    # PyTorch takes softplus(φ) for φ, and its slope for 1, from a threshold on: by default 20, where in float64 a
    # probability is still 2·10⁻⁹ from 1. From 40 on the two are the same number, and exp(40) overflows in no precision.
    return (softplus(scores, threshold=40).sum() - scores[:, 0].sum()) / scores.numel()


def loss_of_rows(model: Model, subject: Rows, relation: Rows, objects: Rows) -> Tensor:
    """The loss of a batch as a function of the rows it reads, which is what the gradient is taken of."""
    return bernoulli_loss(model.score_rows(subject, relation, objects))


def row_gradients(
    model: Model,
    subjects: Tensor,
    relations: Tensor,
    objects: Tensor,
    loss_of: Callable[[Model, Rows, Rows, Rows], Tensor] = loss_of_rows,
) -> tuple[Tensor, dict[str, list[tuple[Tensor, Tensor]]]]:
    """The loss of one batch and, for each table, the (indices, gradients) of the rows it read.

    ``subjects``, ``relations`` (B,) and ``objects`` (B, 1 + k). An index may occur several times;
    its row's gradient is the sum over the occurrences. ``loss_of`` may be a compiled :func:`loss_of_rows`.
    """
    indices: dict[Role, Tensor] = {"subject": subjects, "relation": relations, "object": objects}
    rows: dict[Role, Rows] = {
        role: {name: values.requires_grad_() for name, values in model.rows(role, where).items()}
        for role, where in indices.items()
    }
    with torch.enable_grad():
        loss = loss_of(model, rows["subject"], rows["relation"], rows["object"])
        leaves = [(name, role) for role, part in rows.items() for name in part]
        gradients = torch.autograd.grad(loss, [rows[role][name] for name, role in leaves])
    touched: dict[str, list[tuple[Tensor, Tensor]]] = {table.name: [] for table in model.tables}
    for (name, role), gradient in zip(leaves, gradients, strict=True):
        where = indices[role]
        touched[name].append((where.flatten(), gradient.reshape(where.numel(), *gradient.shape[where.dim() :])))
    return loss.detach(), touched


class RowUpdater:
    """(Riemannian) SGD on the touched rows of one model: θ_i ← exp_{θ_i}(-η ∇_R L), only where i occurs.

    Repeated rows are merged without sorting: every occurrence writes its position into
    ``claim[row]``, one of them stays, and all occurrences add their gradient at that position.
    Every shape is fixed by the batch, so that the step can be captured in a CUDA graph.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        sizes = {"entity": model.num_entities, "relation": model.num_relations}
        self.claim = {of: torch.zeros(rows, dtype=torch.int64, device=model.device) for of, rows in sizes.items()}

    @torch.no_grad()
    def update(self, touched: dict[str, list[tuple[Tensor, Tensor]]], lr: float | Tensor) -> None:
        """Move every touched row of every table by one step."""
        for table in self.model.tables:
            parts = touched[table.name]
            where = _joined(*(index for index, _ in parts))
            gradient = _joined(*(value for _, value in parts))
            claim = self.claim[table.of]
            claim[where] = torch.arange(len(where), device=where.device)
            owner = claim.index_select(0, where)
            summed = torch.zeros_like(gradient).index_add_(0, owner, gradient)
            values = self.model.parameters[table.name]
            moved = table.geometry.step(values.index_select(0, where), summed, lr)
            # Every occurrence of a row writes its owner's value: the same bits, whatever the order.
            values.index_copy_(0, where, moved.index_select(0, owner))


def _joined(first: Tensor, *others: Tensor) -> Tensor:
    """One after the other; a single one as it is, since joining would copy it."""
    return torch.cat([first, *others]) if others else first
