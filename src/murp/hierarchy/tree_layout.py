"""A tree laid out in the Poincaré disk: with edges of one length (:func:`layout`), or by levels (:func:`by_levels`).

With edges of one length, the m neighbours of a node (its parent and its children) are at equal angles 2π/m around it,
all at the distance τ. If τ is large enough, subtrees stay in separate sectors, so no two edges cross. For τ → ∞ the
distance of any two nodes, divided by τ times their distance in the tree, goes to 1: two dimensions can represent any
tree as exactly as wanted.

The position of a node is stored as an isometry of the disk, z ↦ (a z + b)/(b̄ z + ā) with |a|² - |b|² = 1. Children
follow from products, which lose no digits. Digits are lost when a position is written as a point: at distance r from
the centre a float64 has an error of about eʳ·10⁻¹⁶. So r is limited to 30, where a distance is right to a thousandth.

Sarkar: Low Distortion Delaunay Embedding of Trees in Hyperbolic Plane, Graph Drawing 2011. De Sa, Gu, Ré, Sala:
Representation Tradeoffs for Hyperbolic Embeddings, ICML 2018.

By levels, the distance of a node from the centre is its depth, and it is in the middle of a sector whose width grows
with the number of nodes below. Edges are longer than the step between levels, and distances are less exact, but the
layout is only as large as the tree is deep, and its picture is readable.
"""

from __future__ import annotations

import cmath
import math

import numpy as np
from numpy.typing import NDArray

from murp.errors import ConfigError, DataError

FARTHEST = 30.0  # from the middle, where float64 still tells points a thousandth apart


def least_scale(neighbours: int) -> float:
    """τ from which on no edges cross in a tree whose nodes have at most so many neighbours: -2 log tan(π/2m).

    At that length the geodesic from a neighbour, at right angles to the edge, still keeps within the angle π/m on
    either side of the edge, seen from the node; three neighbours at least are assumed.
    """
    return -2 * math.log(math.tan(math.pi / (2 * max(3, neighbours))))


def layout(parents: NDArray[np.integer], scale: float = 0.0) -> NDArray[np.float64]:
    """Positions (n, 2) in the disk of a tree given by each node's parent, -1 for its one root, which is in the middle.

    ``scale`` is τ; 0: :func:`least_scale`, or less where the tree is too deep for it.
    """
    children = _children(parents)
    root = int(np.flatnonzero(np.asarray(parents) < 0)[0])
    depth = _depth(children, root)
    degrees = [len(below) + (node != root) for node, below in enumerate(children)]
    most = FARTHEST / max(1, depth)
    if scale < 0 or not math.isfinite(scale):
        raise ConfigError(f"the scale of a tree layout must be a positive number, or 0 for a usual one, not {scale}.")
    if scale > most:
        raise ConfigError(
            f"a tree of depth {depth} with edges of length {scale:g} reaches {depth * scale:.4g} from the centre, but "
            f"float64 can tell points apart only up to {FARTHEST:g}: choose a scale of "
            f"{math.floor(most * 1e4) / 1e4:g} or less."
        )
    length = scale or min(least_scale(max(degrees)), most)
    positions = np.zeros((len(children), 2))
    # a, b of each view; the parent is seen in the direction of the negative axis.
    stack = [(root, 1.0 + 0.0j, 0.0 + 0.0j)]
    cosh, sinh = math.cosh(length / 2), math.sinh(length / 2)
    while stack:
        node, a, b = stack.pop()
        z = b / a.conjugate()
        positions[node] = z.real, z.imag
        angle = 2 * math.pi / max(1, degrees[node])
        for i, child in enumerate(children[node]):
            turn = cmath.exp(0.5j * ((i + 1) * angle + math.pi if node != root else i * angle))
            # First turn, then move by τ along the positive axis: the node is then behind, on the negative one.
            turned_a, turned_b = a * turn, b / turn
            stack.append((child, turned_a * cosh + turned_b * sinh, turned_a * sinh + turned_b * cosh))
    return positions


def by_levels(parents: NDArray[np.integer], step: float) -> NDArray[np.float64]:
    """Positions (n, 2) in the disk of the trees that parents make, -1 for a root: each level ``step`` farther out.

    One root is in the centre; several roots are all in the centre, and their trees share the circle.
    """
    angles = sector_angles(parents)
    radius = np.tanh(step * _depths(parents) / 2)
    positions: NDArray[np.float64] = radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return positions


def sector_angles(parents: NDArray[np.integer]) -> NDArray[np.float64]:
    """The direction (n,) of each node in radians: the middle of its sector.

    The width of a sector is the number of its nodes, and the children share it, the largest first. A node leaves half
    of its own width free on both sides of its children, so that no two nodes of a level have the same direction.
    """
    depths = _depths(parents)
    levels = [np.flatnonzero(depths == depth) for depth in range(int(depths.max(initial=0)) + 1)]
    sizes = np.ones(len(depths), dtype=np.int64)
    for members in reversed(levels[1:]):
        np.add.at(sizes, parents[members], sizes[members])
    start = np.zeros(len(depths))
    for members in levels:
        above = parents[members]
        order = np.lexsort((members, -sizes[members], above))
        members, above = members[order], above[order]
        begins = np.cumsum(sizes[members]) - sizes[members]
        first = np.searchsorted(above, above)  # of the same parent
        start[members] = begins - begins[first] + np.where(above < 0, 0.0, start[above] + 0.5)
    angles: NDArray[np.float64] = 2 * np.pi * (start + sizes / 2) / max(1, len(depths))
    return angles


def _depths(parents: NDArray[np.integer]) -> NDArray[np.int64]:
    """How far each node is below its root; an error if nodes are their own ancestors."""
    depths = np.where(parents < 0, 0, -1)
    level = 0
    while (found := (depths < 0) & (depths[parents] == level)).any():
        level += 1
        depths[found] = level
    if (depths < 0).any():
        raise DataError(f"{int((depths < 0).sum())} nodes are their own ancestors: the parents make a cycle.")
    return depths


def _children(parents: NDArray[np.integer]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(len(parents))]
    roots = 0
    for node, parent in enumerate(parents.tolist()):
        if parent < 0:
            roots += 1
        else:
            children[parent].append(node)
    if roots != 1:
        raise DataError(f"a tree has one root, but here {roots} nodes have no parent.")
    return children


def _depth(children: list[list[int]], root: int) -> int:
    """The longest path down; an error if there are nodes without a path from the root, which means a cycle."""
    level, depth, seen = [root], 0, 1
    while level := [child for node in level for child in children[node]]:
        depth += 1
        seen += len(level)
    if seen != len(children):
        raise DataError(f"{len(children) - seen} nodes are their own ancestors: the parents make a cycle.")
    return depth
