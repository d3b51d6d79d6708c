"""Initial points for training in many dimensions: wide caps of the sphere, which a node with two parents can share.

As in :mod:`.sectors`, a point u at distance r from the centre has a cap of half-angle θ with cos θ = tanh(r/2) = |u|: a
point far out is nearer to u than to the centre exactly if it is in that direction. Sectors side by side are as narrow
as the circle demands, and a leaf can be in one of two far sectors only. A sphere of d - 1 dimensions has far more room:
caps can be so wide that a node is within the caps of two parents, or nearly so.

A node with m nodes below it, itself counted, has the half-angle and the place

    θ = π/2 (m/n)^(1/D),   D = √d,        |u| = cos θ,
    angle to its parent's direction = √(θ_p² - θ²), or 0.3 θ_p if that is more: its cap ends where the parent's ends.

The direction of a node with several parents is taken from the sum of theirs, weighted by 1/θ_p, and θ_p is the
narrowest. The rest is random. So caps overlap, and even a tree is not reconstructed exactly, but no pair is far off,
and training can do the rest: the objective has to be ``rank``, which does not drive points farther out.

Caps that fill the sphere without overlap would have D = d - 1. For WordNet's nouns at d = 10, D = 3 had a lower mean
rank and a higher MAP after training than D = 4, and sectors are what D = 1 is in two dimensions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from murp.hierarchy.sectors import WIDEST
from murp.hierarchy.taxonomy import Taxonomy

FEWEST = 5  # dimensions: in less, sectors are better, also where nodes have several parents
LEAST = 0.3  # of the parent's half-angle: an only child, too, is apart from its parent


def caps(taxonomy: Taxonomy, dim: int, seed: int = 0) -> NDArray[np.float64]:
    """Positions (n, d) in the ball. A single root is in the centre; several have random directions."""
    n = len(taxonomy)
    sizes = np.bincount(taxonomy.closure()[:, 1], minlength=n) + 1.0
    angles = np.minimum(math.pi / 2 * (sizes / n) ** (1 / math.sqrt(dim)), WIDEST)
    directions = np.zeros((n, dim))
    random = np.random.default_rng(seed)
    alone = len(taxonomy.roots) == 1
    for node in taxonomy.order:
        above = taxonomy.parents[node]
        drawn = random.normal(size=dim)
        middle = (directions[above] / angles[above, None]).sum(0)
        length = np.linalg.norm(middle)
        if length > 0:
            middle /= length
            drawn -= (drawn @ middle) * middle
            drawn /= np.linalg.norm(drawn)
            narrowest = angles[above].min()
            off = math.sqrt(max(narrowest**2 - angles[node] ** 2, (LEAST * narrowest) ** 2))
            directions[node] = math.cos(off) * middle + math.sin(off) * drawn
        elif above or not alone:
            directions[node] = drawn / np.linalg.norm(drawn)
    positions: NDArray[np.float64] = np.cos(angles)[:, None] * directions
    return positions
