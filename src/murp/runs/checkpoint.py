"""Checkpoints: a model's tables and the state of its training in one safetensors file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from murp.errors import RunError
from murp.files import replacing

FORMAT = 1


def write(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write tables and state to ``path``; until it is complete, whatever was there stays. Raises OSError.

    The state is JSON and the file carries a checksum of the tables; no pickle is involved.
    """
    tables = {name: values.detach().cpu().contiguous() for name, values in tables.items()}
    metadata = {"format": str(FORMAT), "checksum": _checksum(tables), "state": json.dumps(state)}
    with replacing(path) as part:
        try:
            safetensors.torch.save_file(tables, part, metadata)
        except SafetensorError as error:
            raise OSError(str(error)) from error


def save(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """:func:`write` for a run in progress: a failure says how to go on."""
    try:
        write(path, tables, state)
    except OSError as error:
        kept = "The previous checkpoint is untouched." if path.exists() else "No checkpoint was written."
        raise RunError(
            f"could not write {path}: {error}. {kept} Free some space or repair the folder, then continue with "
            f"`murp train --resume {path.parent}`."
        ) from error


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tables and state of a checkpoint; a damaged file is refused."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tables = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        state = json.loads(metadata["state"])
    except FileNotFoundError:
        raise RunError(f"there is no checkpoint at {path}.") from None
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise _damaged(path, f"it cannot be read ({error})") from error
    if metadata.get("format") != str(FORMAT):
        raise RunError(f"{path} has format {metadata.get('format')!r}; this version of murp reads {FORMAT}.")
    if metadata.get("checksum") != _checksum(tables):
        raise _damaged(path, "its checksum does not match its content")
    return tables, state


def _checksum(tables: dict[str, Tensor]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tables):
        digest.update(f"{name} {tuple(tables[name].shape)} {tables[name].dtype}".encode())
        digest.update(tables[name].numpy().data)
    return digest.hexdigest()


def _damaged(path: Path, why: str) -> RunError:
    others = sorted(p.stem for p in path.parent.glob("*.safetensors") if p != path)
    advice = f" Try the other checkpoint with `--checkpoint {others[0]}`." if others else ""
    return RunError(f"the checkpoint {path} is damaged: {why}.{advice}")
