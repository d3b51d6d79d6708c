"""Initial points for training: a tree's nodes in nested sectors of the disk; the narrower the sector, the farther out.

Let u be a point at distance r from the centre, and x a point far out. x is nearer to u than to the centre exactly if
the angle between them is below θ with cos θ = tanh(r/2). So u has a sector of half-angle θ. Suppose that the sectors of
a node's children are side by side within its own sector, and that none of them contains the node's own direction. Then
the nodes nearer to x than the centre are the nodes above x, and the hierarchy can be reconstructed from the points. The
width of a sector grows with the number of nodes below, so that each of n leaves is about 2 log(n) from the centre:
float64 is enough for 10⁷ leaves.

Only a tree has nested sectors. A node with several parents is outside the sectors of some of its ancestors. The rank of
such an ancestor is about the number of nodes with a wider sector: thousands, if few nodes are below it. These few ranks
make up nearly the whole mean rank. So the tree is chosen that has few of them (:func:`_kept`, :func:`_over_most`). The
width of a sector follows from the number of nodes below its node in the taxonomy, not only in the tree. Training has to
do the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from murp.hierarchy.taxonomy import Pairs, Taxonomy

Parents = NDArray[np.int64]  # (n,) each node's parent in the tree, TOP where it has none
TOP = -1  # also the index of the last list of children
WIDEST = 0.499 * math.pi  # half a sector: beyond a right angle there is no distance for it


def sectors(taxonomy: Taxonomy, dim: int = 2, seed: int = 0) -> NDArray[np.float64]:
    """Positions (n, d) in the ball. Several roots share the circle, as if there were one root above them in the centre.

    The sectors of a node's children lie along a great circle through the middle of its own, in two dimensions the only
    one, in more a random one for each node: sectors, then cones, are nested and apart all the same.
    """
    n, pairs = len(taxonomy), taxonomy.closure()
    sizes = np.bincount(pairs[:, 1], minlength=n).astype(np.float64) + 1
    children, order = _tree(_over_most(_kept(taxonomy, sizes), pairs, taxonomy.order))
    tops = children[TOP]
    for node in reversed(order):
        sizes[node] = max(sizes[node], 1 + sum(sizes[child] for child in children[node]))
    random = np.random.default_rng(seed)
    middle, width = np.zeros((n, dim)), np.zeros(n)
    place = np.zeros(n)  # along the great circle of the node above, or its own
    own = np.zeros((n, dim))
    first = np.eye(dim)[0]
    if len(tops) == 1:
        width[tops[0]], middle[tops[0]] = 2 * math.pi, first
    else:
        _divide(tops, sizes, 2 * math.pi, 0.0, place, width)
        middle[tops] = _along(first, _across(first, random), place[tops])
    for node in order:
        own[node] = middle[node]
        if children[node]:
            across = _across(middle[node], random)
            gap = _divide(children[node], sizes, width[node], width[node] / sizes[node], place, width)
            own[node] = _along(middle[node], across, np.array([gap]))[0]
            middle[children[node]] = _along(middle[node], across, place[children[node]])
    radius = np.cos(np.minimum(width / 2, WIDEST))
    if len(tops) == 1:
        radius[tops[0]] = 0.0
    positions: NDArray[np.float64] = radius[:, None] * own
    return positions


def _kept(taxonomy: Taxonomy, sizes: NDArray[np.float64]) -> Parents:
    """One parent (n,) of each node: the one that keeps the ancestors that would have the worst ranks.

    About n/m nodes of a taxonomy have m nodes or more below them. So the rank of an ancestor that is not kept is taken
    to be proportional to 1/m, where m is its size.
    """
    parents = np.full(len(taxonomy), TOP)
    worth = 1 / sizes  # of a node and the ancestors that it keeps
    for node in taxonomy.order:
        if taxonomy.parents[node]:
            parents[node] = max(taxonomy.parents[node], key=worth.__getitem__)
            worth[node] += worth[parents[node]]
    return parents


def _over_most(parents: Parents, pairs: Pairs, order: Sequence[int]) -> Parents:
    """Move nodes directly above the largest tree of nodes below them that another parent has kept.

    Only a node moves that has less below it in its own tree, and this goes to its parent. In WordNet person is kept by
    organism, and nearly all causal agents are persons: so causal agent moves in between.
    """
    parents, n = parents.copy(), len(parents)
    sizes = np.ones(n, np.int64)
    for node in reversed(order):
        if parents[node] != TOP:
            sizes[parents[node]] += sizes[node]
    by_ancestor = pairs[np.argsort(pairs[:, 1], kind="stable")]
    starts = np.searchsorted(by_ancestor[:, 1], np.arange(n + 1))
    below = np.diff(starts)
    moves = []
    for node in np.flatnonzero(below >= sizes).tolist():
        found = set(by_ancestor[starts[node] : starts[node + 1], 0].tolist())
        elsewhere = [one for one in found if parents[one] != node and parents[one] not in found]
        largest = max(elsewhere, key=lambda one: (sizes[one], one))
        if sizes[largest] >= sizes[node]:
            moves.append((-below[node], node, largest))
    children, _ = _tree(parents)
    for _, node, largest in sorted(moves):  # those with most below them first: the next ones come under them
        for child in children[node]:
            if parents[child] == node:
                parents[child] = parents[node]
                children[parents[node]].append(child)
        parents[node] = parents[largest]
        children[parents[node]].append(node)
        parents[largest] = node
        children[node] = [largest]
    return parents


def _tree(parents: Parents) -> tuple[list[list[int]], list[int]]:
    """The children of each node and, as the last list, the nodes at the top; all nodes, each after its parent."""
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for node, parent in enumerate(parents.tolist()):
        children[parent].append(node)
    order = list(children[TOP])
    for node in order:
        order.extend(children[node])
    return children, order


def _across(direction: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """A direction at right angles to one; in two dimensions the one to its left."""
    if len(direction) == 2:
        return np.array([-direction[1], direction[0]])
    drawn = random.normal(size=len(direction))
    drawn -= (drawn @ direction) * direction
    found: NDArray[np.float64] = drawn / np.linalg.norm(drawn)
    return found


def _along(
    direction: NDArray[np.float64], across: NDArray[np.float64], angles: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The directions (k, d) at some angles from one on a great circle."""
    turned: NDArray[np.float64] = np.outer(np.cos(angles), direction) + np.outer(np.sin(angles), across)
    return turned


def _divide(
    nodes: list[int],
    sizes: NDArray[np.float64],
    room: float,
    gap: float,
    place: NDArray[np.float64],
    width: NDArray[np.float64],
) -> float:
    """Give nodes their parts of a sector, large ones outside, and leave a gap between the halves: return its middle.

    The gap is where the node itself stands, in no sector of its children.
    """
    halves: tuple[list[int], list[int]] = ([], [])
    weights = [0.0, 0.0]
    for node in sorted(nodes, key=lambda node: -sizes[node]):
        side = 0 if weights[0] <= weights[1] else 1
        halves[side].append(node)
        weights[side] += sizes[node]
    unit = (room - gap) / sum(weights)
    at = -room / 2
    for node in halves[0]:
        width[node] = sizes[node] * unit
        place[node] = at + width[node] / 2
        at += width[node]
    found = at + gap / 2
    at += gap
    for node in reversed(halves[1]):
        width[node] = sizes[node] * unit
        place[node] = at + width[node] / 2
        at += width[node]
    return found
