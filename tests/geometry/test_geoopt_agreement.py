"""Agreement with geoopt (curvature k = -c there, radius 1 on the sphere) at points where its clamps are idle."""

from __future__ import annotations

import pytest
import torch
from ball_points import random_points

from murp.geometry import Euclidean, Geometry, Hyperboloid, PoincareBall, Product, Sphere, poincare

geoopt = pytest.importorskip("geoopt", reason="needs geoopt as an oracle")
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
        (poincare.transport(x, y, v, c=c), geoopt_math.parallel_transport(x, y, v, k=k)),
        (poincare.inner(x, v, y, c=c), geoopt_math.inner(x, v, y, k=k, keepdim=True)),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


PARTS = ((PoincareBall(), 3), (Sphere(), 4), (Euclidean(), 2))
# Each with its counterpart there. Its Lorentz has k = 1/c, its sphere transports by projection alone.
SPACES = {
    "hyperboloid": (Hyperboloid(), lambda: geoopt.Lorentz(k=1.0), 5),
    "flatter hyperboloid": (Hyperboloid(0.5), lambda: geoopt.Lorentz(k=2.0), 5),
    "sphere": (Sphere(), geoopt.Sphere, 5),
    "ball": (PoincareBall(0.7), lambda: geoopt.PoincareBall(c=0.7), 5),
    "product": (
        Product(PARTS),
        lambda: geoopt.ProductManifold((geoopt.PoincareBall(), 3), (geoopt.Sphere(), 4), (geoopt.Euclidean(1), 2)),
        9,
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_spaces_agree_with_geoopt(name: str) -> None:
    space: Geometry
    space, make, width = SPACES[name]
    judge = make().double()
    generator = torch.Generator().manual_seed(1)
    x, y = (space.random(generator, (50, width), 0.2, torch.float64) for _ in range(2))
    drawn = 0.3 * torch.randn(50, width, dtype=torch.float64, generator=generator)
    v = space.project_tangent(x, drawn)
    pairs = {
        "tangent": (v, judge.proju(x, drawn)),
        "inner": (space.inner(x, v, v), judge.inner(x, v, v, keepdim=True).expand(50, -1)[:, :1]),
        "distance": (space.distance(x, y), judge.dist(x, y)),
        "exp": (space.exp(x, v), judge.expmap(x, v)),
        "log": (space.log(x, y), judge.logmap(x, y)),
        "gradient": (space.riemannian_gradient(x, drawn), judge.egrad2rgrad(x, drawn)),
    }
    if name not in ("sphere", "product"):
        pairs["transport"] = (space.transport(x, y, v), judge.transp(x, y, v))
    for what, (found, expected) in pairs.items():
        # Its ball keeps c by way of a float32, so that c = 1 is off by 10⁻⁷ there.
        torch.testing.assert_close(found, expected, rtol=3e-6, atol=1e-6, msg=lambda text, what=what: f"{what}: {text}")
