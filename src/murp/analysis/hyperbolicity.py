"""How tree-like a graph is: Gromov's δ by the four-point condition, edges taken both ways."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from murp.analysis.directed import Directed, Edges, Numbers

ENTITIES = 200
QUADRUPLES = 100_000


@dataclass(frozen=True)
class Hyperbolicity:
    """δ over quadruples of entities of the largest connected part.

    For four entities x, y, z, w the three sums d(x, y) + d(z, w), d(x, z) + d(y, w), d(x, w) + d(y, z) are formed;
    δ is half the difference of the two largest: 0 in a tree, and larger the rounder the cycles. ``mean`` and
    ``largest`` are over ``quadruples`` drawn by ``seed`` among ``sampled`` of the part's ``entities``;
    ``exhaustive`` where these are all there are. ``diameter`` is the largest distance met from a sampled entity to any,
    and from the one met there: that of the part where all are sampled, as in a tree, and else a lower bound, like
    ``largest``. ``relative`` = 2 · largest / diameter, between 0 (a tree) and 1.
    """

    entities: int
    sampled: int
    quadruples: int
    exhaustive: bool
    seed: int
    mean: float
    largest: float
    diameter: int
    relative: float

    def sentence(self) -> str:
        """For people."""
        all_sampled = self.sampled == self.entities
        which = "all quadruples" if self.exhaustive else f"{self.quadruples:,} drawn quadruples"
        among = "" if all_sampled else f" of {self.sampled:,} of its {self.entities:,} entities"
        return (
            f"Gromov's δ of the largest connected part, edges taken both ways, is {self.mean:.2f} on average and at "
            f"most {self.largest:g} (a tree: 0) over {which}{among}; the part's diameter is "
            f"{'' if all_sampled else 'at least '}{self.diameter}."
        )


def hyperbolicity(
    edges: Edges, *, entities: int = ENTITIES, quadruples: int = QUADRUPLES, seed: int = 0
) -> Hyperbolicity | None:
    """δ of the graph of ``edges`` (E, 2); None if its largest connected part has fewer than four entities.

    ``entities`` are drawn without repetition, then ``quadruples`` of four different ones among them. Time is a
    breadth-first search for each drawn entity, and one more from the farthest entity they find.
    """
    graph = Directed.of(np.concatenate([edges, edges[:, ::-1]]))
    part = graph.components()
    sizes = np.bincount(part, minlength=1)
    members = np.flatnonzero(part == sizes.argmax())
    if len(members) < 4:
        return None
    generator = np.random.default_rng(seed)
    drawn = generator.choice(members, size=min(entities, len(members)), replace=False)
    rows = map(graph.distances, drawn[:, None])
    apart = np.empty((len(drawn), len(drawn)), dtype=np.int64)
    diameter, farthest = 0, drawn[:1]
    for i, row in enumerate(rows):
        apart[i] = row[drawn]
        if row.max() > diameter:
            diameter, farthest = int(row.max()), np.array([row.argmax()])
    # From one end of a long path the other end is found: in a tree always, in other graphs often.
    diameter = max(diameter, int(graph.distances(farthest).max()))
    every = comb(len(drawn), 4) <= quadruples
    chosen = np.array(list(combinations(range(len(drawn)), 4))) if every else _draw(generator, len(drawn), quadruples)
    delta = four_point(apart, chosen)
    return Hyperbolicity(
        entities=len(members),
        sampled=len(drawn),
        quadruples=len(chosen),
        exhaustive=every and len(drawn) == len(members),
        seed=seed,
        mean=float(delta.mean()),
        largest=float(delta.max()),
        diameter=diameter,
        relative=float(2 * delta.max() / diameter),
    )


def four_point(apart: Numbers, quadruples: Numbers) -> NDArray[np.float64]:
    """δ (Q,) of quadruples (Q, 4) of rows of the distances ``apart`` (m, m)."""
    x, y, z, w = quadruples.T
    sums = np.stack([apart[x, y] + apart[z, w], apart[x, z] + apart[y, w], apart[x, w] + apart[y, z]])
    sums.sort(axis=0)
    delta: NDArray[np.float64] = (sums[2] - sums[1]) / 2
    return delta


def _draw(generator: np.random.Generator, count: int, quadruples: int) -> Numbers:
    """(quadruples, 4) numbers below ``count`` ≥ 4, different within a row: each next skips those before it."""
    drawn = np.stack([generator.integers(0, count - place, size=quadruples) for place in range(4)], axis=1)
    for place in range(1, 4):
        for earlier in np.sort(drawn[:, :place], axis=1).T:
            drawn[:, place] += drawn[:, place] >= earlier
    return drawn
