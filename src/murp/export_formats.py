"""Formats of exports: a module of ``murp.exchange`` and a line in :data:`FORMATS` each; known without importing any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Format = Literal["npz", "parquet", "word2vec", "safetensors", "tensorboard", "hub-folder"]


@dataclass(frozen=True)
class ExportFormat:
    """One format.

    ``write`` and ``read`` are functions of ``murp.exchange``, as module:function: ``write(contents, run, path)`` and
    ``read(path) -> Contents``; without ``read`` it has only entities, and cannot be imported again. It is one file with
    an ``ending``, or a folder that is known by a file that it ``holds``.
    """

    words: str
    write: str
    read: str | None = None
    ending: str = ""
    holds: str = ""
    brings_graph: bool = False


FORMATS: dict[Format, ExportFormat] = {
    "npz": ExportFormat("one .npz file of NumPy arrays", "npz:write", "npz:read", ending=".npz"),
    "parquet": ExportFormat(
        "folder with entities.parquet and relations.parquet", "parquet:write", "parquet:read", holds="entities.parquet"
    ),
    "word2vec": ExportFormat(
        "folder with vectors.txt, text, and words.tsv; entities only", "text:write_word2vec", holds="vectors.txt"
    ),
    "safetensors": ExportFormat("one .safetensors file", "tensors:write", "tensors:read", ending=".safetensors"),
    "tensorboard": ExportFormat(
        "folder for TensorBoard's projector; entities only", "text:write_projector", holds="projector_config.pbtxt"
    ),
    "hub-folder": ExportFormat(
        "folder to publish: safetensors, config.json, a model card, the graph", "hub:write", "hub:read",
        holds="model.safetensors", brings_graph=True,
    ),
}  # fmt: skip
WHOLE = tuple(name for name, form in FORMATS.items() if form.read is not None)
"""Those of which a run can be made again."""
