"""Advice: is this graph hierarchical, and will hyperbolic space help?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from murp.analysis.hierarchy import score_text
from murp.analysis.hyperbolicity import Hyperbolicity
from murp.analysis.relations import LEAST_PATH, LEAST_SCORE, RelationProfile

# Drawn from the paper's results: WN18RR and the subsets of NELL-995, where MuRP leads at 40 dimensions, lie above
# PARTLY and DEEP, FB15k-237 below PARTLY; at 200 dimensions the lead stays only on what lies above MOSTLY, and small.
MOSTLY, PARTLY = 0.5, 0.2
DEEP = 2.0
LOW_DIMENSION = 50


@dataclass(frozen=True)
class Advice:
    """Sentences, and the numbers on which they rest.

    ``share`` of facts under hierarchical relations, how many ``relations`` these are, and their ``mean_path``,
    weighted by facts (None if there are none).
    """

    share: float
    relations: int
    mean_path: float | None
    dim: int
    sentences: tuple[str, ...]


def advise(profiles: Sequence[RelationProfile], curved: Hyperbolicity | None, dim: int) -> Advice:
    """How hierarchical a graph with these relations is, and whether hyperbolic space should help at dimension ``dim``.

    The rule: it should help if the dimension is low (at most 50), at least a fifth of the facts are under hierarchical
    relations, and their paths have two edges on average. It may help a little if only one is true: the low dimension,
    or at least half of the facts in deep hierarchies. Otherwise it is not expected to help.
    """
    chosen = [profile for profile in profiles if profile.hierarchical]
    facts = sum(profile.edges for profile in chosen)
    share = facts / max(sum(profile.edges for profile in profiles), 1)
    mean_path = sum(p.edges * (p.mean_path or 0.0) for p in chosen) / facts if facts else None
    degree = "mostly" if share >= MOSTLY else "partly" if share >= PARTLY else "hardly"
    depth = "" if mean_path is None else f"; their paths have {mean_path:.1f} edges on average"
    described = (
        f"The graph is {degree} hierarchical: {len(chosen)} of {len(profiles)} relations, with {share:.0%} of the "
        f"facts, have a Krackhardt score of at least {LEAST_SCORE} and paths of at least {LEAST_PATH} edges{depth}."
    )
    return Advice(share, len(chosen), mean_path, dim, _sentences(described, curved, share, mean_path, dim))


def advise_on_relation(profile: RelationProfile, curved: Hyperbolicity | None, dim: int) -> Advice:
    """:func:`advise` as if ``profile`` were the graph's only relation, in words that say so."""
    alone = advise([profile], curved, dim)
    longest = "1 edge" if profile.longest_path == 1 else f"{profile.longest_path} edges"
    why = f"a Krackhardt score of {score_text(profile.krackhardt)} and paths of up to {longest}"
    bars = f"{LEAST_SCORE} and {LEAST_PATH} are what it takes"
    described = f"The relation is {'' if profile.hierarchical else 'not '}hierarchical: {why} ({bars})."
    sentences = _sentences(described, curved, alone.share, alone.mean_path, dim)
    return replace(alone, sentences=sentences)


def _sentences(
    described: str, curved: Hyperbolicity | None, share: float, mean_path: float | None, dim: int
) -> tuple[str, ...]:
    return (
        described,
        *([] if curved is None else [curved.sentence()]),
        _verdict(share, mean_path or 0.0, dim),
        "This is a rule of thumb: in the paper's few datasets hyperbolic space gains most at low dimension and under "
        "deep hierarchies. `murp train --model mure` beside `--model murp`, judged on valid, decides.",
    )


def _verdict(share: float, mean_path: float, dim: int) -> str:
    low, deep = dim <= LOW_DIMENSION, mean_path >= DEEP
    space = f"At dimension {dim} hyperbolic space (MuRP)"
    if low and deep and share >= PARTLY:
        return f"{space} should pay: few dimensions, deep hierarchies."
    if low:
        return f"{space} may pay a little: the dimension is low, but there is little deep hierarchy to hold."
    if deep and share >= MOSTLY:
        return f"{space} may pay a little: so many dimensions hold a hierarchy in flat space too."
    return f"{space} is not expected to pay: Euclidean space (MuRE) should do as well."
