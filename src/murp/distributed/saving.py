"""Checkpoints of many ranks: every rank writes and reads its own rows.

All ranks write into a folder beside the checkpoint. After every file was written to disk and read back, the first rank
replaces the old folder with the new one. If one rank fails, the new folder is removed.

During training, a thread of each rank does this with a copy of the rows, while training continues. The threads have
their own connections, so that their messages do not mix with those of a step.
"""

from __future__ import annotations

import secrets
import shutil
import warnings
from pathlib import Path
from typing import Any

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

    def newest(self, path: Path, *, repair: bool = True) -> tuple[Path, dict[str, Any]]:
        """The folder of the newest complete checkpoint, and its state; with ``repair``, the previous one replaces a
        damaged one. Without, a training may be saving meanwhile.

        The ranks divide the files among them to check whether they are complete. Ranks that see other checkpoints
        are refused.
        """
        home = checkpoint.shards_of(path)
        self._same_saves(home, looks=1 if repair else checkpoint.LOOKS)
        faults = []
        for place in (home, checkpoint.previous(home)):
            try:
                state, fault = shards.verify(place, rank=self.ranks.rank, size=self.ranks.size), None
            except RunError as error:
                state, fault = {}, str(error)
            said = [text for text in self.ranks.gathered(fault) if text is not None]
            if not said:
                break
            faults.append(said[0])
        with self.ranks.together():
            if len(faults) == 2:
                raise RunError(" The one before it does not help: ".join(faults))
            if faults and self.ranks.first:
                warnings.warn(f"{faults[0]} Using the checkpoint before it, {place.name}.", stacklevel=2)
                if repair:
                    shutil.rmtree(home, ignore_errors=True)
                    place.replace(home)
        return home if repair else place, state

    def _same_saves(self, home: Path, looks: int) -> None:
        """Raise unless all ranks see the same checkpoints. If one looked before a save and another after it, or in
        between, they look again."""
        for _ in range(looks):
            saves = {place.name: shards.save_of(place) for place in (home, checkpoint.previous(home))}
            said = self.ranks.gathered(saves)
            if said[0][home.name] != shards.MISSING and all(other == said[0] for other in said):
                return
        self.ranks.same("checkpoints", saves, "See that every machine has the same run folder, not a copy of it.")

    def read(self, home: Path, names: dict[str, Tensor]) -> None:
        """Fill the tables ``names`` with this rank's rows of the checkpoint in the folder ``home``."""
        with self.ranks.together():
            expected = {name: [self._rows(name, values), *values.shape[1:]] for name, values in names.items()}
            found = shards.shapes(home)
            if wrong := [name for name, shape in expected.items() if found.get(name) != shape]:
                raise RunError(
                    f"{home} does not fit its run: of {', '.join(wrong)} it has "
                    f"{[found.get(name) for name in wrong]}, and the run {[expected[name] for name in wrong]}."
                )
        with self.ranks.together():
            host = {name: values if values.device.type == "cpu" else values.cpu() for name, values in names.items()}
            try:
                with missing():
                    shards.load(self._whole(host), shards.Reader(home), alone=self.ranks.size == 1)
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
