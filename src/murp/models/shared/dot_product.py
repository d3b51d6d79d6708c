"""Base of models whose score is one inner product with the candidate."""

from __future__ import annotations

from torch import Tensor

from murp.models.model import Candidate, Model, Numbers, Query, Rows

Linear = tuple[Tensor, Tensor, Tensor | None, Tensor | None]


class DotProduct(Model):
    """φ = ⟨q(s, r), v⟩ + numbers of the query + numbers of the candidate.

    The bilinear models are of this form. They start farther from 0 than distances do: at 0 their gradient is 0.
    """

    initial_scale = 0.1
    drops_queries = True

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        """The point v, and its numbers where it has some; |v|² is not needed."""
        point = entity["entity"]
        return Candidate((point,), {name: one for name, one in entity.items() if one.dim() == point.dim() - 1})

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        (scores,) = products
        for number in (*query.values(), *candidate.values()):
            scores = scores + number
        return scores

    def linear(self, query: Query, candidate: Candidate) -> Linear:
        """q (B, d), v (N, d), a (B) and c (N) with φ = ⟨q, v⟩ + a + c; None: nothing is added."""
        (q,), (v,) = query.vectors, candidate.vectors
        return q, v, _sum(query.numbers), _sum(candidate.numbers)


def _sum(numbers: Numbers) -> Tensor | None:
    found: Tensor | None = None
    for number in numbers.values():
        found = number if found is None else found + number
    return found
