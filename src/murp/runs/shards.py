"""Checkpoints of which every rank has written its own rows: a folder of safetensors files, one per rank.

    last.shards/0000-of-0004.safetensors, 0001-of-0004.safetensors, …

torch.distributed.checkpoint plans which rank writes and reads what, on any number of ranks; this module has the files.
Each file has the rows of its rank, their checksum, the state of training, and which save it belongs to. So a file that
is missing, damaged or from another save is noticed. No pickle is used.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.distributed import ProcessGroup
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_loader import load as planned_load
from torch.distributed.checkpoint.state_dict_saver import save as planned_save
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from murp.errors import RunError, first_line
from murp.files import fields
from murp.runs import mapping, tensor_file
from murp.runs.tensor_file import DamagedError, MissingError

SHARDS = "shards"  # in the state of a file: which part it is, and of what
MISSING = "missing"  # in place of a save
PART = {"number": int, "of": int, "save": str, "offsets": dict, "rows": dict}


def file_name(number: int, of: int) -> str:
    """Of the file that rank ``number`` writes."""
    return f"{number:04}-of-{of:04}.safetensors"


class Shard(NamedTuple):
    """One file, and what it is a part of."""

    file: tensor_file.File
    part: dict[str, Any]

    @property
    def tables(self) -> dict[str, tensor_file.Place]:
        """Where the rows of each table stand in the file."""
        places = self.file.tables.items()
        return {name: table for name, table in places if not name.startswith(mapping.PADDING)}


class Opened:
    """A checkpoint that has all its files, which are kept open: what is read is of one save, whatever is saved
    meanwhile.

    Raises DamagedError if a file is missing or of another save, and MissingError if a save has put another folder in
    the place of ``folder`` while its files were opened.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        there = _which(folder)
        with contextlib.ExitStack() as held:
            try:
                self.shards = _shards(folder, held)
            except DamagedError:
                if _which(folder) != there:
                    raise MissingError(f"{folder} was replaced while it was opened.") from None
                raise
            self._held = held.pop_all()
        self.state = self.shards[0].file.state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._held.close()

    def verify(self, *, rank: int = 0, size: int = 1) -> None:
        """Raise DamagedError unless it is whole. Ranks share the files out."""
        for shard in self.shards[rank::size]:
            shard.file.verify()

    def shapes(self) -> dict[str, list[int]]:
        """Of every table as a whole."""
        return {name: shape for name, (shape, _) in self._whole().items()}

    def kinds(self) -> dict[str, torch.dtype]:
        """The type of every table."""
        return {name: kind for name, (_, kind) in self._whole().items()}

    def digest(self) -> str:
        """The checksums of all files, as these say them."""
        return "-".join(shard.file.digest() for shard in self.shards)

    def _whole(self) -> dict[str, tuple[list[int], torch.dtype]]:
        """Shape and type of every table as a whole; raises DamagedError if the files do not have all of its rows."""
        whole, there = {}, dict[str, int]()
        for shard in self.shards:
            for name, table in shard.tables.items():
                whole[name] = [shard.part["rows"].get(name, table.shape[0]), *table.shape[1:]], table.dtype
                there[name] = there.get(name, 0) + table.shape[0]
        for name, (shape, _) in whole.items():
            if there[name] != shape[0]:
                raise DamagedError(f"{self.folder} is damaged: it does not have all rows of {name}.")
        return whole

    def tables(self) -> dict[str, Tensor]:
        """All tables, if all of it is whole, in this process."""
        self.verify()
        tables = {name: torch.empty(shape, dtype=dtype) for name, (shape, dtype) in self._whole().items()}
        load(tables, Reader(self))
        return tables

    def mapped(self) -> dict[str, Tensor]:
        """The same with tables that are mapped: see :mod:`murp.runs.mapping` and
        :meth:`murp.runs.tensor_file.File.mapped`."""
        pieces: dict[str, list[tuple[int, mapping.Piece]]] = {}
        for shard in self.shards:
            for name in shard.tables:
                pieces.setdefault(name, []).append((shard.part["offsets"].get(name, 0), shard.file.piece(name)))
        with tensor_file.faults(self.folder):
            return {
                name: mapping.mapped(shape, dtype, [piece for _, piece in sorted(pieces[name], key=lambda one: one[0])])
                for name, (shape, dtype) in self._whole().items()
            }


def _which(folder: Path) -> tuple[int, int]:
    """Which folder stands at this path; MissingError if there is none."""
    try:
        found = folder.stat()
    except OSError:
        raise MissingError(f"there is no checkpoint at {folder}.") from None
    return found.st_dev, found.st_ino


def _shards(folder: Path, held: contextlib.ExitStack) -> list[Shard]:
    """All files of a checkpoint, opened, which ``held`` closes; raises DamagedError if they are not of one save."""
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    if not names:
        raise DamagedError(f"{folder} is damaged: it has no files.")
    found = [_shard(held.enter_context(tensor_file.File(folder / name))) for name in names]
    first = found[0].part
    whole = [file_name(number, first["of"]) for number in range(first["of"])]
    if missing := [name for name in whole if name not in names]:
        raise DamagedError(
            f"{folder} is not whole: of its {first['of']} files {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing."
        )
    for shard, name in zip(found, whole, strict=False):
        if shard.file.path.name != name or shard.part["save"] != first["save"]:
            raise DamagedError(f"{folder} is damaged: {shard.file.path.name} is not of the same save as {names[0]}.")
    return found


def _shard(file: tensor_file.File) -> Shard:
    try:
        return Shard(file, fields(file.state.pop(SHARDS), PART))
    except (KeyError, ValueError) as error:
        raise DamagedError(f"{file.path} is damaged: it does not say what it is a part of ({error}).") from None


def look(folder: Path) -> tuple[str, Opened | DamagedError]:
    """Which save a checkpoint is of, as far as its first file says, for comparing; and the checkpoint, or its fault."""
    try:
        found = Opened(folder)
        return _said(found.shards[0]), found
    except MissingError as error:
        return MISSING, error
    except DamagedError as error:
        fault = error
    try:
        with tensor_file.File(min(folder.glob("*.safetensors"))) as file:
            return _said(_shard(file)), fault
    except (ValueError, DamagedError):
        return "damaged", fault


def _said(shard: Shard) -> str:
    return f"epoch {shard.file.state.get('epoch')} (saved as {shard.part['save']})"


def load(tables: dict[str, Any], reader: Reader, *, alone: bool = True) -> None:
    """Fill ``tables`` with what ``reader`` reads: all of them, or the rows of this rank."""
    with _plain(reader.checkpoint.folder, "read"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one process is not many
        planned_load(tables, storage_reader=reader, no_dist=alone)


def save(tables: dict[str, Any], writer: Writer, group: ProcessGroup | None, *, alone: bool) -> None:
    """Write ``tables``, on every rank of ``group`` its own rows. Raises OSError."""
    if alone:  # without a plan, which would warn that one process is not many: a thread cannot silence it
        writer.write(tables, dict.fromkeys(tables, 0), {name: len(values) for name, values in tables.items()})
        return
    with _plain(writer.folder, "written"):
        planned_save(tables, storage_writer=writer, process_group=group)


@contextlib.contextmanager
def _plain(folder: Path, done: str) -> Iterator[None]:
    """What a rank failed with in the place of torch.distributed.checkpoint's collection of tracebacks."""
    try:
        yield
    except CheckpointException as error:
        rank, (fault, _) = min(error.failures.items(), key=lambda failure: failure[0])
        if isinstance(fault, RunError):
            raise fault from error
        what = fault.strerror if isinstance(fault, OSError) and fault.strerror else first_line(fault)
        raise OSError(f"{folder} could not be {done} by rank {rank}: {what}") from error


class Writer(StorageWriter):
    """Writes the rows of a rank into its file, and reads them back."""

    def __init__(self, folder: Path, state: dict[str, Any], rank: int, size: int) -> None:
        self.folder, self.state, self.rank, self.size = folder, state, rank, size

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        pass

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        tables, offsets, rows, results = {}, {}, {}, []
        for item in plan.items:
            assert item.tensor_data is not None
            name = item.index.fqn
            values = planner.resolve_data(item)
            assert isinstance(values, Tensor)
            tables[name] = values
            offsets[name] = item.index.offset[0] if item.index.offset else 0
            rows[name] = item.tensor_data.size[0]
            results.append(WriteResult(item.index, values.nbytes, None))
        self.write(tables, offsets, rows)
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def write(self, tables: dict[str, Tensor], offsets: dict[str, int], rows: dict[str, int]) -> None:
        """Write tables that begin at ``offsets`` of larger ones with so many ``rows``, and read them back."""
        part = {"number": self.rank, "of": self.size, "save": self.folder.name, "offsets": offsets, "rows": rows}
        path = self.folder / file_name(self.rank, self.size)
        host = {name: values.detach().cpu().contiguous() for name, values in tables.items()}
        starts = {name: offsets[name] * values[:1].nbytes for name, values in host.items()}
        tensor_file.write(path, mapping.padded(host, starts), {**self.state, SHARDS: part})
        try:
            tensor_file.verify(path)
        except DamagedError as error:
            raise OSError(f"what was written cannot be read back ({error})") from error

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        pass  # each file says what it is

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


class Reader(StorageReader):
    """Reads the rows that a plan asks for, from the files that have them."""

    def __init__(self, checkpoint: Opened) -> None:
        self.checkpoint = checkpoint
        self.places: dict[tuple[str, int], tensor_file.File] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        pass

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        about: dict[str, Any] = {}
        shapes = self.checkpoint.shapes()
        for shard in self.checkpoint.shards:
            for name, table in shard.tables.items():
                offset, size = shard.part["offsets"].get(name, 0), torch.Size(shapes[name])
                one = about.setdefault(name, TensorStorageMetadata(TensorProperties(table.dtype), size, []))
                first = torch.Size([offset] + [0] * (len(size) - 1))
                one.chunks.append(ChunkStorageMetadata(first, torch.Size(table.shape)))
                self.places[name, offset] = shard.file
        return Metadata(about, storage_data={MetadataIndex(name, (first,)): None for name, first in self.places})

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not self.places:
            self.read_metadata()

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        for item in plan.items:
            index = item.storage_index
            target = planner.resolve_tensor(item).detach()
            rows = torch.empty(target.shape, dtype=target.dtype) if target.is_cuda else target
            offset = index.offset[0] if index.offset else 0
            self.places[index.fqn, offset].rows(index.fqn, item.storage_offsets[0], rows)
            if rows is not target:
                target.copy_(rows)
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True
