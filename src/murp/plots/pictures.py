"""Every kind of picture of a run by its name: what ``murp plot`` and :meth:`murp.Run.plot` draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from matplotlib.figure import Figure

from murp.picture_kinds import KINDS, Kind, check
from murp.runs import Run


def picture(runs: Sequence[Run], kind: Kind, options: Mapping[str, Any]) -> Figure:
    """One run or, where the kind can, several in one picture; ``options`` by name, None for what was not given.

    :meth:`murp.Run.plot` says what they mean.
    """
    check(kind, options, len(runs))
    module, _, draw = KINDS[kind].place.partition(":")
    figure: Figure = getattr(import_module(module), draw)(
        runs, **{name: value for name, value in options.items() if value is not None}
    )
    return figure
