"""Checkpoints of many ranks: every rank writes and reads its own rows.

All ranks write into a folder beside the checkpoint. After every file was written to disk and read back, the first rank
replaces the old folder with the new one. If one rank fails, the new folder is removed.

During training, a thread of each rank does this with a copy of the rows, while training continues. The threads have
their own connections, so that their messages do not mix with those of a step.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from murp.commands import command
from murp.distributed.ranks import Ranks, missing
from murp.distributed.shares import Share
from murp.errors import RunError
from murp.files import flush_folder
from murp.models import Model
from murp.optimizers.optimizer import TABLES
from murp.runs import checkpoint, shards
from murp.runs.tensor_file import DamagedError


class Saver:
    """Writes and reads the checkpoints of one model, of which this rank has some rows."""

    def __init__(self, ranks: Ranks, model: Model) -> None:
        self.ranks, self.writers = ranks, ranks.aside()
        self.entities = {table.name for table in model.tables if table.of == "entity"}
        self.share = Share(model.num_entities, ranks.rank, ranks.size)
        self.mesh = DeviceMesh("cpu", range(ranks.size)) if ranks.size > 1 else None

    def save(self, path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Replace the checkpoint ``path`` of a run in progress; an error says how to continue.

        For a thread: nothing may change ``tables`` meanwhile, and one save ends before the next begins.
        """
        try:
            self.write(path, tables, state)
        except OSError as error:
            kept = "The previous checkpoint is untouched." if checkpoint.exists(path) else "None was written."
            raise RunError(
                f"could not write {checkpoint.shards_of(path)}: {error}. {kept} Free some space or repair the "
                f"folder, then continue with `{command('train', '--resume', path.parent)}`, with torchrun or "
                "without it."
            ) from error

    def write(self, path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
        """The same; raises OSError, on every rank where files fail and on the first where the folder does."""
        home = checkpoint.shards_of(path)
        part = self._new_part(home)
        try:
            writer = shards.Writer(part, state, self.ranks.rank, self.ranks.size)
            with missing():
                shards.save(self._whole(tables), writer, self.writers.group, alone=self.ranks.size == 1)
            if self.ranks.first:
                _put(part, home)
        except BaseException:
            if self.ranks.first:
                shutil.rmtree(part, ignore_errors=True)
            raise

    @contextlib.contextmanager
    def newest(self, path: Path, *, repair: bool = True) -> Iterator[shards.Opened]:
        """The newest complete checkpoint, open; with ``repair``, the previous one replaces a damaged one. Without, a
        training may be saving meanwhile.

        The ranks divide the files among them to check whether they are complete. Ranks that see other checkpoints
        are refused.
        """
        home = checkpoint.shards_of(path)
        with contextlib.ExitStack() as held:
            faults: list[str] = []
            for found in self._same_saves(home, held, looks=1 if repair else checkpoint.LOOKS):
                said = [text for text in self.ranks.gathered(self._fault(found)) if text is not None]
                if not said:
                    break
                faults.append(said[0])
            if len(faults) == 2:
                self._lost(home, *faults)
            assert isinstance(found, shards.Opened)
            with self.ranks.together():
                if faults and self.ranks.first:
                    warnings.warn(checkpoint.using(found.folder, found.state, faults[0]), stacklevel=4)
                    if repair:
                        shutil.rmtree(home, ignore_errors=True)
                        found.folder.replace(home)
            if repair:
                found.folder = home
            yield found

    def _same_saves(self, home: Path, held: contextlib.ExitStack, looks: int) -> list[shards.Opened | DamagedError]:
        """The newest checkpoint and the one before it, open, or what is wrong with them. ``held`` closes them.

        Raises unless all ranks see the same ones. If one looked before a save and another after it, or in between,
        they look again.
        """
        for _ in range(looks):
            with self.ranks.together():
                seen = {place.name: shards.look(place) for place in (home, checkpoint.previous(home))}
            held.pop_all().close()
            found = [held.enter_context(one) if isinstance(one, shards.Opened) else one for _, one in seen.values()]
            saves = {name: save for name, (save, _) in seen.items()}
            said = self.ranks.gathered(saves)
            if said[0][home.name] != shards.MISSING and all(other == said[0] for other in said):
                return found
        self.ranks.same("checkpoints", saves, "See that every machine has the same run folder, not a copy of it.")
        return found

    def _fault(self, found: shards.Opened | DamagedError) -> str | None:
        """What is wrong with a checkpoint, as far as this rank looks; None if nothing is."""
        try:
            if not isinstance(found, shards.Opened):
                return str(found)
            found.verify(rank=self.ranks.rank, size=self.ranks.size)
        except RunError as error:
            return str(error)
        return None

    def _lost(self, home: Path, fault: str, another: str) -> NoReturn:
        """Stop all ranks: neither the checkpoint at ``home`` can be used nor the one before it."""
        text = self.ranks.gathered(checkpoint.lost(home, fault, another) if self.ranks.first else None)[0]
        with self.ranks.together():
            raise RunError(text)

    def read(self, found: shards.Opened, names: dict[str, Tensor]) -> None:
        """Fill the tables ``names`` with this rank's rows of a checkpoint."""
        with self.ranks.together():
            expected = {name: [self._rows(name, values), *values.shape[1:]] for name, values in names.items()}
            shapes, kinds = found.shapes(), found.kinds()
            if wrong := [name for name, shape in expected.items() if shapes.get(name) != shape]:
                raise RunError(
                    f"{found.folder} does not fit its run: of {', '.join(wrong)} it has "
                    f"{[shapes.get(name) for name in wrong]}, and the run {[expected[name] for name in wrong]}."
                )
            if wrong := [name for name, values in names.items() if kinds[name] != values.dtype]:
                raise RunError(
                    f"{found.folder}: table {wrong[0]} is {kinds[wrong[0]]}, the run's settings say "
                    f"{names[wrong[0]].dtype}."
                )
        with self.ranks.together():
            host = {name: values if values.device.type == "cpu" else values.cpu() for name, values in names.items()}
            try:
                with missing():
                    shards.load(self._whole(host), shards.Reader(found), alone=self.ranks.size == 1)
            except OSError as error:
                raise RunError(f"{error}.") from error
            for name, values in names.items():
                if values is not host[name]:
                    values.copy_(host[name])

    def _new_part(self, home: Path) -> Path:
        """A new folder beside ``home``; the first rank makes it and sends its name to all."""
        part = home.parent / f".{home.name}.{secrets.token_hex(4)}.part"
        refusal = None
        if self.ranks.first:
            try:
                part.mkdir()
            except OSError as error:
                refusal = error.strerror
        said, why = self.writers.gathered((str(part), refusal))[0]
        if why is not None:
            raise OSError(why)
        return Path(said)

    def _whole(self, tables: dict[str, Tensor]) -> dict[str, Any]:
        """The tables in the form of torch.distributed.checkpoint: those of entities as parts of larger tables."""
        if self.mesh is None:
            return dict(tables)
        found: dict[str, Any] = {}
        for name, values in tables.items():
            values = values.detach()
            if not self._sharded(name):
                found[name] = values
                continue
            shape = torch.Size([self.share.rows, *values.shape[1:]])
            stride = torch.empty(shape, device="meta").stride()
            found[name] = DTensor.from_local(
                values.cpu(), self.mesh, [Shard(0)], run_check=False, shape=shape, stride=stride
            )
        return found

    def _rows(self, name: str, values: Tensor) -> int:
        return self.share.rows if self._sharded(name) else len(values)

    def _sharded(self, name: str) -> bool:
        return name.removeprefix(TABLES).partition(".")[0] in self.entities


def _put(part: Path, home: Path) -> None:
    """Replace ``home`` with the folder ``part``. The old ``home`` becomes the previous checkpoint; the older one is
    removed."""
    flush_folder(part)
    older = checkpoint.previous(home)
    aside = older.parent / f".{home.name}.{secrets.token_hex(4)}.part"
    if home.exists():
        if older.exists():
            older.replace(aside)
        home.replace(older)
    part.replace(home)
    flush_folder(home.parent)
    shutil.rmtree(aside, ignore_errors=True)
