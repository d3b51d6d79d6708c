"""What the distance to v ⊕ r on the Poincaré ball needs of a query: for tensors, for numbers, and in compiled loops."""

from __future__ import annotations

from typing import Any


def query_coefficients(xx: Any, rr: Any, xr: Any, c: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """(q₀, …, q₄, s) of a query's |x|², |r|² and ⟨x,r⟩, x the moved subject and r the translation, with

        sinh²(√c d(x, v ⊕ r)/2) = s/(1 - c|v|²) · [q₀ + q₁|v|² + q₂⟨x,v⟩ + ⟨v,r⟩(q₃ + q₄⟨x,v⟩)],

        q₀ = |x - r|²,   q₁ = 1 + 2c⟨x,r⟩ + c²|x|²|r|²,   q₂ = -2(1 + c|r|²),   q₃ = 2(1 + c|x|²),   q₄ = -4c,
        s = c/((1 - c|x|²)(1 - c|r|²)).

    See :func:`murp.geometry.poincare.squared_distance_to_sum_from_products`. Numbers, or tensors that broadcast.
    """
    q0 = xx - 2 * xr + rr
    q1 = 1 + 2 * c * xr + c * c * xx * rr
    return q0, q1, -2 * (1 + c * rr), 2 * (1 + c * xx), -4 * c, c / ((1 - c * xx) * (1 - c * rr))
