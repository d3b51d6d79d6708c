"""The kinds of pictures of runs and their options; known without drawing anything.

A picture is drawn by a function that takes the runs and those options of its kind that were given, by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from murp.errors import ConfigError

Kind = Literal["disk", "spheres", "question", "convergence", "norms", "relations", "reliability"]
Colour = Literal["norm", "depth", "relation"]
Projection = Literal["distances", "paper"]


@dataclass(frozen=True)
class Picture:
    """The function that draws it (module:function), a description, its options, and whether it can show several
    runs."""

    place: str
    shows: str
    options: tuple[str, ...] = ()
    several: bool = False


_DISK = ("head", "relation", "centre", "edges", "colour", "projection")
_CHARTS = "murp.plots.run_charts"
# An option that a kind does not heed would be ignored, so it is refused.
KINDS: dict[Kind, Picture] = {
    "disk": Picture(f"{_CHARTS}:disk_of", "all entities, or a question's answers around its head", _DISK),
    "spheres": Picture(f"{_CHARTS}:spheres_of", "spheres of influence", ("centre",)),
    "question": Picture(f"{_CHARTS}:question_of", "the paper's figure 5", ("head", "relation"), several=True),
    "convergence": Picture(f"{_CHARTS}:convergence_of", "loss and MRR by epoch", several=True),
    "norms": Picture(f"{_CHARTS}:norms_of", "norm against bias", several=True),
    "relations": Picture(f"{_CHARTS}:relations_of", "hits@10 by relation", ("split", "protocol"), several=True),
    "reliability": Picture(f"{_CHARTS}:reliability_of", "calibrated probabilities against the share of true answers"),
}
SEVERAL = tuple(kind for kind, picture in KINDS.items() if picture.several)
OPTIONS = tuple(sorted({option for picture in KINDS.values() for option in picture.options}))


def check(kind: Kind, options: Mapping[str, Any], runs: int) -> None:
    """Raise if ``options`` do not fit ``kind`` or each other, or if it cannot show so many runs."""
    if kind not in KINDS:
        raise ConfigError(f"unknown picture {kind!r}: choose one of {', '.join(KINDS)}.")
    for option in OPTIONS:
        if options[option] is not None and option not in KINDS[kind].options:
            kinds = " and ".join(name for name, picture in KINDS.items() if option in picture.options)
            raise ConfigError(f"--{option} is for {kinds}, not for {kind}: leave it out.")
    if runs > 1 and kind not in SEVERAL:
        raise ConfigError(f"{kind} shows one run, not {runs}: draw a picture of each.")
    head = options["head"]
    if (head is None) != (options["relation"] is None) or (kind == "question" and head is None):
        raise ConfigError("a question has two parts: give both --head and --relation.")
    if head is not None and (options["centre"] or options["edges"] or options["colour"]):
        raise ConfigError("a question has its head at the centre: leave out --centre, --edges and --colour.")
