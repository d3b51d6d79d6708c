"""A run into one of the formats of exports."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from murp.errors import ConfigError, DataError, why_not
from murp.exchange.contents import contents_of
from murp.exchange.coordinates import Coordinates
from murp.export_formats import FORMATS, Format
from murp.runs import Run


def format_of(out: Path) -> Format:
    """The format that a name's ending says."""
    endings = {form.ending: to for to, form in FORMATS.items() if form.ending}
    if out.suffix in endings:
        return endings[out.suffix]
    raise ConfigError(
        f"{out}: its ending says no format. End the name in {' or '.join(endings)}, or say which of these it is to be: "
        f"{', '.join(FORMATS)}."
    )


def function_of(place: str) -> Any:
    """The function of this package that a format names, as module:function."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"murp.exchange.{module}"), name)


def export(run: Run, to: Format, out: Path, coordinates: Coordinates | None = None) -> None:
    """Write ``run`` to ``out``, a file or a folder that must not exist, whole or not at all.

    ``coordinates`` are those of the points of a ball, by default Poincaré's, in which nothing is rounded.
    """
    if to not in FORMATS:
        raise ConfigError(f"unknown format {to!r}: choose one of {', '.join(FORMATS)}.")
    form = FORMATS[to]
    if form.ending and out.suffix != form.ending:
        raise ConfigError(f"{out}: the name must end in {form.ending}.")
    if out.exists() or out.is_symlink():
        raise DataError(f"{out} exists already. Choose another --out, or remove it first.")
    contents = contents_of(run, coordinates)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        function_of(form.write)(contents, run, out)
    except OSError as error:
        raise DataError(f"{out} cannot be written: {why_not(error)}. Nothing was kept.") from error
