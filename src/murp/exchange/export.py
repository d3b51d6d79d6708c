"""A run into one of six formats."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from murp.errors import ConfigError, DataError
from murp.exchange import hub, npz, parquet, tensors, text
from murp.exchange.contents import contents_of
from murp.exchange.coordinates import Coordinates
from murp.runs import Run

Format = Literal["npz", "parquet", "word2vec", "safetensors", "tensorboard", "hub-folder"]

FORMATS: dict[Format, str] = {
    "npz": "one .npz file of NumPy arrays",
    "parquet": "folder with entities.parquet and relations.parquet",
    "word2vec": "folder with vectors.txt, text, and words.tsv; entities only",
    "safetensors": "one .safetensors file",
    "tensorboard": "folder for TensorBoard's projector; entities only",
    "hub-folder": "folder to publish: safetensors, config.json, a model card, the graph",
}


def format_of(out: Path) -> Format:
    """The format that a name's ending says."""
    for to in ("npz", "safetensors"):
        if out.suffix == f".{to}":
            return to
    raise ConfigError(
        f"{out}: its ending says no format. End the name in .npz or .safetensors, or say which of these it is to be: "
        f"{', '.join(FORMATS)}."
    )


def export(run: Run, to: Format, out: Path, coordinates: Coordinates | None = None) -> None:
    """Write ``run`` to ``out``, a file or a folder that must not exist, whole or not at all.

    ``coordinates`` are those of the points of a ball, by default Poincaré's, in which nothing is rounded.
    """
    if to not in FORMATS:
        raise ConfigError(f"unknown format {to!r}: choose one of {', '.join(FORMATS)}.")
    if to in ("npz", "safetensors") and out.suffix != f".{to}":
        raise ConfigError(f"{out}: the name must end in .{to}.")
    if out.exists() or out.is_symlink():
        raise DataError(f"{out} exists already. Choose another --out, or remove it first.")
    contents = contents_of(run, coordinates)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if to == "hub-folder":
            hub.write(contents, run, out)
        else:
            write = {
                "npz": npz.write,
                "parquet": parquet.write,
                "word2vec": text.write_word2vec,
                "safetensors": tensors.write,
                "tensorboard": text.write_projector,
            }[to]
            write(contents, out)
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error}. Nothing was kept.") from error
