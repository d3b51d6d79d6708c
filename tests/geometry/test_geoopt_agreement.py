"""Agreement with geoopt (curvature k = -c there) at points where its clamps are idle."""

from __future__ import annotations

import pytest
import torch
from ball_points import random_points

from murp.geometry import poincare

geoopt_math = pytest.importorskip("geoopt.manifolds.stereographic.math", reason="needs geoopt as an oracle")


@pytest.mark.parametrize("c", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("d", [1, 2, 40])
def test_agrees_with_geoopt(c: float, d: int) -> None:
    k = torch.tensor(-c, dtype=torch.float64)
    x, y = (random_points(50, d, c, 4.0, torch.float64, seed) for seed in (1, 2))
    v = random_points(50, d, c, 2.0, torch.float64, seed=3)
    m = torch.randn(d, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    pairs = [
        (poincare.conformal_factor(x, c=c).squeeze(-1), geoopt_math.lambda_x(x, k=k)),
        (poincare.mobius_add(x, y, c=c), geoopt_math.mobius_add(x, y, k=k)),
        (poincare.distance(x, y, c=c), geoopt_math.dist(x, y, k=k)),
        (poincare.exp0(v, c=c), geoopt_math.expmap0(v, k=k)),
        (poincare.log0(x, c=c), geoopt_math.logmap0(x, k=k)),
        (poincare.exp(x, 0.1 * v, c=c), geoopt_math.expmap(x, 0.1 * v, k=k)),
        (poincare.log(x, y, c=c), geoopt_math.logmap(x, y, k=k)),
        (
            poincare.mobius_diagonal(m, x, c=c),
            geoopt_math.mobius_fn_apply(lambda tangent: m * tangent, x, k=k),
        ),
        (poincare.riemannian_gradient(x, v, c=c), geoopt_math.egrad2rgrad(x, v, k=k)),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)
