"""Checkpoints: a model's tables and the state of its training in one safetensors file, and the one before it.

A new checkpoint is written beside the old one, flushed, read back from the disk and compared with its checksums. Only
then is the old one renamed, ``last.safetensors`` → ``last.previous.safetensors``, and the new one put in its place. If
the machine crashes at any moment, one of the two is complete.

Other processes may read meanwhile. A file is never changed after it was put in place, and a reader opens everything
before it reads. Between the two renames there is no ``last.safetensors``, but the new file is beside it: a reader then
uses the previous one, which is the newest, without a warning. No hard links are needed.

A run on many ranks has folders instead of files, ``last.shards``: see :mod:`murp.runs.shards`. They are replaced in the
same way, and reading ``last.safetensors`` reads them.
"""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from murp.commands import command
from murp.errors import RunError, why_not
from murp.files import parts, replacing
from murp.runs import tensor_file
from murp.runs.tensor_file import DamagedError, MissingError, verify

if TYPE_CHECKING:
    from murp.runs.shards import Opened

SUFFIX, SHARDS = ".safetensors", ".shards"
# A writer is between its two renames for microseconds: a reader that finds no file looks again at once.
LOOKS = 8
LARGE = 256 * 2**20  # bytes: smaller files are read in a moment, and compared with their checksums
Contents = tuple[dict[str, Tensor], dict[str, Any]]


def previous(path: Path) -> Path:
    """The path of the checkpoint before the one at ``path``."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def shards_of(path: Path) -> Path:
    """The folder that a run on many ranks has instead of the checkpoint ``path``."""
    return path.with_suffix(SHARDS)


def place(path: Path) -> Path:
    """``path``, or that folder where it is there."""
    folder = shards_of(path)
    return folder if folder.exists() or previous(folder).exists() or parts(folder) else path


def exists(path: Path) -> bool:
    """Whether there is a checkpoint at ``path``, or one before it."""
    path = place(path)
    # Asked twice: :func:`recover` may have put the one before in its place meanwhile.
    return path.exists() or previous(path).exists() or path.exists()


def write(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write tables and state to ``path``, check that they can be read, and keep the checkpoint before. Raises OSError.

    The state is JSON; no pickle is involved. No table on the CPU is copied, neither to write nor to read back.
    """
    tables = {name: values.detach().cpu().contiguous() for name, values in tables.items()}
    with replacing(path, keep=previous(path)) as part:
        tensor_file.write(part, tables, state)
        try:
            verify(part)
        except DamagedError as error:
            raise OSError(f"what was written cannot be read back ({error})") from error


def save(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """:func:`write` for a run in progress: a failure says how to go on."""
    try:
        write(path, tables, state)
    except OSError as error:
        if not path.parent.exists():
            raise vanished(path.parent) from error
        kept = "The previous checkpoint is untouched." if exists(path) else "No checkpoint was written."
        raise RunError(
            f"could not write {path}: {why_not(error)}. {kept} Free some space or repair the folder, then continue "
            f"with `{command('train', '--resume', path.parent)}`."
        ) from error


def vanished(folder: Path) -> RunError:
    """The error if a run folder disappears during training."""
    return RunError(
        f"the run folder {folder} is gone: it was moved or removed while it was being trained. If it was moved, "
        "continue with `murp train --resume` and its new place; if not, start again."
    )


def load(path: Path, *, map_large: bool = False) -> Contents:
    """Tables and state of a checkpoint; of the one before, with a warning, where the newest is damaged or missing.

    ``map_large``: a large file is mapped into memory, see :meth:`murp.runs.tensor_file.File.mapped`.
    """
    found: Contents = _newest(place(path), _map_or_read if map_large else read)[1]
    return found


def is_large(path: Path) -> bool:
    """Whether a checkpoint is mapped rather than read where it is only asked."""
    path = place(path)
    try:
        files = list(path.iterdir()) if path.suffix == SHARDS else [path]
        return sum(file.stat().st_size for file in files) >= LARGE
    except OSError:
        return False


def _map_or_read(path: Path) -> Contents:
    if not is_large(path):
        return read(path)
    with _opened(path) as file:
        return file.mapped(), file.state


def recover_best(path: Path) -> None:
    """:func:`recover` for the best checkpoint, without which training can go on; nothing where there is none."""
    if not exists(path):
        return
    try:
        recover(path)
    except RunError as error:
        raise RunError(f"{error} Training can go on without it: remove {place(path)}, and resume again.") from error


def recover(path: Path) -> None:
    """Before a run continues: if the newest checkpoint is damaged or missing, replace it with the one before.

    Otherwise the next save would keep the damaged one and remove the good one.
    """
    path = place(path)
    whole, _ = _newest(path, lambda file: ({}, _verified(file)))
    if whole != path:
        if path.suffix == SHARDS:
            shutil.rmtree(path, ignore_errors=True)
        whole.replace(path)


def read(path: Path) -> Contents:
    """Tables and state of the checkpoint at ``path`` and no other; raises DamagedError if it is not whole."""
    if path.suffix != SHARDS:
        return tensor_file.read(path)
    with _opened_shards(path) as found:
        return found.tables(), found.state


def state_of(path: Path) -> dict[str, Any]:
    """The state of a checkpoint, of which no table stays in memory; otherwise as :func:`load`."""
    return about(path).state


def noted_state(path: Path) -> dict[str, Any]:
    """The same where tables need no check, because they were just written, or are checked when they are read."""
    found: dict[str, Any] = _newest(place(path), lambda file: ({}, _noted(file)))[1][1]
    return found


def _noted(path: Path) -> dict[str, Any]:
    with _opened(path) as file:
        return file.state


def digest(path: Path) -> tuple[str, dict[str, Any]]:
    """What tells the tables of a checkpoint from those of another, as its files say it, and its state; takes a moment
    for any size."""
    found: tuple[str, dict[str, Any]] = _newest(place(path), _digest)[1]
    return found


def _digest(path: Path) -> tuple[str, dict[str, Any]]:
    with _opened(path) as file:
        return file.digest(), file.state


class About(NamedTuple):
    """``shapes`` of the tables, the ``state`` of training, and how many ``files`` there are: more than one if several
    ranks have written them."""

    shapes: dict[str, list[int]]
    state: dict[str, Any]
    files: int


def about(path: Path) -> About:
    """What a checkpoint says, of which no table stays in memory; otherwise as :func:`load`."""
    found: About = _newest(place(path), _about)[1]
    return found


def _about(path: Path) -> About:
    with _opened(path) as file:
        file.verify()
        return About(file.shapes(), file.state, 1 if isinstance(file, tensor_file.File) else len(file.shards))


def _verified(path: Path) -> dict[str, Any]:
    """The state of the checkpoint at ``path`` and no other; raises DamagedError if it is not whole."""
    return _about(path).state


def _opened(path: Path) -> tensor_file.File | Opened:
    """The checkpoint at ``path`` and no other, open: all that is asked of it is of one save."""
    return tensor_file.File(path) if path.suffix != SHARDS else _opened_shards(path)


def _opened_shards(folder: Path) -> Opened:
    from murp.runs import shards  # what it stands on takes a second to import

    return shards.Opened(folder)


def _newest(path: Path, read: Callable[[Path], tuple[Any, dict[str, Any]] | About]) -> tuple[Path, Any]:
    """The newest whole checkpoint, and what ``read`` makes of it; says so if that is not the one at ``path``."""
    for _ in range(LOOKS):
        try:
            return path, read(path)
        except MissingError as error:
            fault: DamagedError = error
            if parts(path):  # a save is between its renames
                with contextlib.suppress(DamagedError):
                    return previous(path), read(previous(path))
        except DamagedError as error:
            fault = error
            break
    older = previous(path)
    try:
        found = read(older)
    except DamagedError as another:
        raise RunError(lost(path, str(fault), str(another))) from fault
    warnings.warn(using(older, found[1], str(fault)), stacklevel=4)
    return older, found


def using(older: Path, state: dict[str, Any], fault: str) -> str:
    """What is said where the checkpoint ``older`` with this ``state`` takes the place of the newest."""
    return f"{fault} Using the checkpoint before it, {older.name}, of epoch {state['epoch']}."


def lost(path: Path, fault: str, another: str) -> str:
    """What is said where neither the checkpoint at ``path`` can be used nor the one before it."""
    too = f" The one before it does not help: {another}" if previous(path).exists() else ""
    others = [path.with_name(name + SUFFIX) for name in ("best", "last") if name != path.stem]
    advice = "".join(
        f" {place(other)} is another: evaluate and predict with `--checkpoint {other.stem}`."
        for other in others
        if _readable(other)
    )
    again = command("train", "--config", path.parent / "config.toml")
    return f"{fault}{too}{advice or f' Take it from a backup, or train again: `{again}`.'}"


def _readable(path: Path) -> bool:
    """Whether there is a whole checkpoint at ``path``, or before it."""
    there = place(path)
    for one in (there, previous(there)):
        with contextlib.suppress(DamagedError):
            _verified(one)
            return True
    return False
