"""Where training begins: a tree's nodes in nested sectors of the disk, each as far out as its sector is narrow.

A point u at the distance r from the middle is nearer to a point x far out than the middle is exactly if the angle
between them is below θ with cos θ = tanh(r/2). So u has a sector of half the angle θ. Suppose that the sectors of a
node's children lie beside each other within its own, and that none of them holds its own direction. Then the nodes that
are nearer to x than the middle are those above x, and the hierarchy can be read from the points. A sector is as wide as
its node has nodes below it, so that each of n leaves is about 2 log(n) from the middle: float64 holds 10⁷ of them.

Only a tree has nested sectors. Of several parents of a node the highest counts here, and training has to do the rest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from murp.hierarchy.taxonomy import Taxonomy

WIDEST = 0.499 * math.pi  # half a sector: beyond a right angle there is no distance for it


def sectors(taxonomy: Taxonomy) -> NDArray[np.float64]:
    """Positions (n, 2) in the disk. Several roots share the circle as if one stood above them, in the middle."""
    n, order = len(taxonomy), taxonomy.order
    children: list[list[int]] = [[] for _ in range(n)]
    tops = []
    place = {node: i for i, node in enumerate(order)}
    for node in order:
        above = taxonomy.parents[node]
        if above:
            children[min(above, key=place.__getitem__)].append(node)
        else:
            tops.append(node)
    sizes = np.ones(n)
    for node in reversed(order):
        sizes[node] += sum(sizes[child] for child in children[node])
    direction, width = np.zeros(n), np.zeros(n)
    if len(tops) == 1:
        width[tops[0]] = 2 * math.pi
    else:
        _divide(tops, sizes, 0.0, 2 * math.pi, 0.0, direction, width)
    for node in order:
        if children[node]:
            unit = width[node] / sizes[node]
            direction[node] = _divide(children[node], sizes, direction[node], width[node], unit, direction, width)
    radius = np.cos(np.minimum(width / 2, WIDEST))
    if len(tops) == 1:
        radius[tops[0]] = 0.0
    positions: NDArray[np.float64] = radius[:, None] * np.column_stack([np.cos(direction), np.sin(direction)])
    return positions


def _divide(
    nodes: list[int],
    sizes: NDArray[np.float64],
    middle: float,
    room: float,
    gap: float,
    direction: NDArray[np.float64],
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
    at = middle - room / 2
    for node in halves[0]:
        width[node] = sizes[node] * unit
        direction[node] = at + width[node] / 2
        at += width[node]
    found = at + gap / 2
    at += gap
    for node in reversed(halves[1]):
        width[node] = sizes[node] * unit
        direction[node] = at + width[node] / 2
        at += width[node]
    return found
