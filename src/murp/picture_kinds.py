"""Which pictures of runs there are, and what each can be told: known without drawing anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from murp.errors import ConfigError

Kind = Literal["disk", "spheres", "question", "convergence", "norms", "relations", "reliability"]
Colour = Literal["norm", "depth", "relation"]
Projection = Literal["distances", "paper"]

# Each kind with the options it heeds; the others would be ignored, so they are refused.
KINDS: dict[Kind, tuple[str, ...]] = {
    "disk": ("head", "relation", "centre", "edges", "colour", "projection"),
    "spheres": ("centre",),
    "question": ("head", "relation"),
    "convergence": (),
    "norms": (),
    "relations": ("split", "protocol"),
    "reliability": (),
}
SEVERAL: tuple[Kind, ...] = ("question", "convergence", "norms", "relations")


def check(kind: Kind, options: Mapping[str, Any], runs: int) -> None:
    """Raise where ``options`` do not go with ``kind`` or with each other, or it does not show so many runs."""
    if kind not in KINDS:
        raise ConfigError(f"unknown picture {kind!r}: choose one of {', '.join(KINDS)}.")
    for option in sorted(set().union(*KINDS.values())):
        if options[option] is not None and option not in KINDS[kind]:
            kinds = " and ".join(name for name, heeded in KINDS.items() if option in heeded)
            raise ConfigError(f"--{option} is for {kinds}, not for {kind}: leave it out.")
    if runs > 1 and kind not in SEVERAL:
        raise ConfigError(f"{kind} shows one run, not {runs}: draw a picture of each.")
    head = options["head"]
    if (head is None) != (options["relation"] is None) or (kind == "question" and head is None):
        raise ConfigError("a question has two parts: give both --head and --relation.")
    if head is not None and (options["centre"] or options["edges"] or options["colour"]):
        raise ConfigError("a question has its head at the centre: leave out --centre, --edges and --colour.")
