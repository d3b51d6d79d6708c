"""Checkpoints: a model's tables and the state of its training in one safetensors file, and the one before it.

A new checkpoint is written beside the old one, flushed, read back from the disk and compared with its checksums.
Only then is the old one renamed, ``last.safetensors`` → ``last.previous.safetensors``, and the new one put in its
place. Whenever the machine dies, one of the two is whole.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import safetensors
from safetensors import SafetensorError
from torch import Tensor

from murp.commands import command
from murp.errors import RunError
from murp.files import replacing
from murp.runs import tensor_file
from murp.runs.tensor_file import DamagedError, verify

SUFFIX = ".safetensors"


def previous(path: Path) -> Path:
    """Where the checkpoint that stood at ``path`` before the newest is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def exists(path: Path) -> bool:
    """Whether there is a checkpoint at ``path``, or one before it."""
    return path.exists() or previous(path).exists()


def write(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write tables and state to ``path``, prove that they can be read, keep what was there before. Raises OSError.

    The state is JSON; no pickle is involved. No table on the CPU is copied, neither to write nor to read back.
    """
    tables = {name: values.detach().cpu().contiguous() for name, values in tables.items()}
    with replacing(path) as part:
        tensor_file.write(part, tables, state)
        try:
            verify(part)
        except DamagedError as error:
            raise OSError(f"what was written cannot be read back ({error})") from error
        if path.exists():
            path.replace(previous(path))


def save(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """:func:`write` for a run in progress: a failure says how to go on."""
    try:
        write(path, tables, state)
    except OSError as error:
        if not path.parent.exists():
            raise vanished(path.parent) from error
        kept = "The previous checkpoint is untouched." if exists(path) else "No checkpoint was written."
        raise RunError(
            f"could not write {path}: {error}. {kept} Free some space or repair the folder, then continue with "
            f"`{command('train', '--resume', path.parent)}`."
        ) from error


def vanished(folder: Path) -> RunError:
    """What to say when a run folder is gone while it is being trained."""
    return RunError(
        f"the run folder {folder} is gone: it was moved or removed while it was being trained. If it was moved, "
        "continue with `murp train --resume` and its new place; if not, start again."
    )


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tables and state of a checkpoint; of the one before, with a warning, where the newest is damaged or missing."""
    try:
        return read(path)
    except DamagedError as error:
        return read(_before(path, error))


def recover(path: Path) -> None:
    """Before a run goes on: where the newest checkpoint is damaged or missing, put the one before in its place.

    Otherwise the next save would keep the damaged one and drop the whole one.
    """
    try:
        verify(path)
    except DamagedError as error:
        _before(path, error).replace(path)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tables and state of the checkpoint at ``path`` and no other; raises DamagedError where it is not whole."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tables = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        return tables, tensor_file.checked_state(path, metadata, tensor_file.checksum(tables))
    except FileNotFoundError:
        raise DamagedError(f"there is no checkpoint at {path}.") from None
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"{path} is damaged: it cannot be read ({error}).") from error


def _before(path: Path, error: DamagedError) -> Path:
    """The checkpoint before the damaged one at ``path``, which must be whole; says that it is used."""
    older = previous(path)
    try:
        epoch = verify(older)["epoch"]
    except DamagedError as another:
        too = f" The one before it does not help: {another}" if older.exists() else ""
        others = [name for name in ("best", "last") if name != path.stem and exists(path.with_name(name + SUFFIX))]
        advice = "".join(
            f" {path.with_name(name + SUFFIX)} is another: evaluate and predict with `--checkpoint {name}`."
            for name in others
        )
        raise RunError(f"{error}{too}{advice}") from error
    warnings.warn(f"{error} Using the checkpoint before it, {older.name}, of epoch {epoch}.", stacklevel=4)
    return older
