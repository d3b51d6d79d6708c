"""From files of any size to a graph in coded form on disk: numbered, divided and written piece by piece."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import DataError
from murp.files import new_folder
from murp.graph import arrays
from murp.graph.assembly import tidied_names
from murp.graph.findings import Finding
from murp.graph.formats.text import alone
from murp.graph.indexing import vocabulary
from murp.graph.knowledge_graph import SPLITS
from murp.graph.large.pieces import Parquet, Piece, Text, ahead, opened
from murp.graph.large.plan import ReadingPlan
from murp.graph.large.progress import progress
from murp.graph.large.splitting import BLOCK, Held, OnDisk, blocks, hold_out
from murp.graph.large.work import Work, WorkStopped
from murp.graph.names.checks import check_names
from murp.graph.names.tidy import BLANKS, BlankName, Tidied, tidy_ids
from murp.graph.names.vocabulary import PLURALS, Vocabulary
from murp.graph.reading.columns import COLUMNS, not_understood
from murp.graph.reading.facts import NoFacts
from murp.graph.reading.files import read_names
from murp.graph.storage import finish_mapped
from murp.kernels import numba_numbering as loops

HALT_EVERY = 60.0  # seconds after which what was read is made safe
HEADER = 128  # bytes before the rows of a file of NumPy's


def code(plan: ReadingPlan, target: Path) -> list[Finding]:
    """Make the new folder ``target`` with the graph in coded form, and say what was found in reading.

    What was interrupted before goes on where it made a halt.
    """
    refuse_existing(target)
    for file in plan.names.values():
        read_names(file)  # what is wrong with them is said before the long work
    key = plan.key
    work = Work(target, key)
    try:
        _read(plan, work)
        if plan.key != key:
            others = " (or a file read with it)" if len(plan.files) > 1 else ""
            raise DataError(
                f"{plan.files[0]}{others} was changed while it was read: a part of the facts would be old. Start "
                "again when nothing writes there."
            )
        found = _finish(plan, work, target)
        work.remove()
        return found
    except DataError as error:
        if not isinstance(error, WorkStopped):
            work.remove()  # what is wrong with the data must be mended, and then all is read again
        raise
    finally:
        work.close()


def refuse_existing(target: Path) -> None:
    """Before hours of work."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} exists already. Choose another folder, or remove it first.")


def _read(plan: ReadingPlan, work: Work) -> None:
    """Number all facts as they come, into the work folder."""
    files = [(part, path) for part, paths in enumerate(plan.parts) for path in paths]
    sizes = np.array([path.stat().st_size for _, path in files], dtype=np.float64)
    before = np.cumsum(sizes) - sizes
    safe = time.monotonic()
    _refuse_titles(plan)
    with progress() as shown:
        for number in range(work.state.file, len(files)):
            part, path = files[number]
            source = _opened(path, plan, part)
            with contextlib.closing(_pieces(source, work)) as pieces:
                for piece in pieces:
                    _add(work, part, piece)
                    if isinstance(source, Text):
                        source.comments.extend(piece.comments)
                    done = (before[number] + piece.done * sizes[number]) / sizes.sum()
                    shown.show("reading", done, sum(work.state.rows))
                    if piece.end is not None:
                        work.state.place = piece.end
                        if time.monotonic() - safe > HALT_EVERY:
                            work.state.comments = source.comments if isinstance(source, Text) else []
                            work.halt()
                            safe = time.monotonic()
            work.state.told += [asdict(finding) for finding in source.findings()] if source else []
            work.state.file, work.state.place, work.state.row, work.state.comments = number + 1, 0, 0, []
    _refuse_empty(plan, work)
    work.halt()


def _opened(path: Path, plan: ReadingPlan, part: int) -> Text | Parquet | None:
    """The file; None if it is empty and may be: valid and test of a tree are."""
    try:
        return opened(path, plan.columns)
    except NoFacts:
        if part == 0:
            raise
        return None


def _pieces(source: Text | Parquet | None, work: Work) -> Any:
    if source is None:
        return ahead(iter(()))
    if isinstance(source, Text):
        source.comments.extend(work.state.comments)
    return ahead(source.pieces(work.state.place, work.state.row))


def _add(work: Work, part: int, piece: Piece) -> None:
    rows = np.empty((len(piece.facts), 3), np.int32)
    row = work.state.rows[part]
    # Heads of a split come before its tails; relations have one column a split.
    for column, role, kind, stage in ((0, "head", "entity", 2 * part), (2, "tail", "entity", 2 * part + 1)):
        rows[:, column] = work.names[kind].number(_whole(piece.facts[role]), stage, row)
    rows[:, 1] = work.names["relation"].number(_whole(piece.facts["relation"]), part, row)
    work.add(part, rows)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _refuse_titles(plan: ReadingPlan) -> None:
    """As murp.graph.sources does: stop where the first row, read as a fact, is the same in all files and comes once.

    The beginnings are read for this, before the long work and also where reading goes on after a stop.
    """
    found = [_beginning(plan, part) for part in range(len(plan.parts))]
    tables = [table for table in found if table is not None]
    if len(tables) < len(found):
        return
    firsts = {tuple(table[role][0].as_py() for role in COLUMNS) for table in tables}
    if len(firsts) == 1 and alone(pa.concat_tables([tables[0].slice(0, 1), *(table.slice(1) for table in tables)])):
        why = "holds nothing that comes again, like a header"
        raise not_understood(str(plan.files[0]), [*firsts.pop()], why)


def _beginning(plan: ReadingPlan, part: int) -> pa.Table | None:
    """The first rows of a part; None if there are none, or if its first row is a header or a fact without doubt."""
    for path in plan.parts[part]:
        source = _opened(path, plan, part)
        if source is not None and not source.doubtful:
            return None
        for piece in () if source is None else source.pieces(0, 0):
            if len(piece.facts):
                return piece.facts.slice(0, BLOCK)
    return None


def _refuse_empty(plan: ReadingPlan, work: Work) -> None:
    """Facts must be in every part; valid and test may both be empty, as a tree that was converted has them."""
    empty = [part for part in range(len(plan.parts)) if not work.state.rows[part]]
    if empty and empty != [1, 2]:
        path = plan.parts[empty[0]][0]
        raise NoFacts(f"{path}: holds no triples. Put rows of head, relation and tail into it.")


def _finish(plan: ReadingPlan, work: Work, target: Path) -> list[Finding]:
    """Put names in order, divide, and write the graph."""
    tidied, places = _in_order(plan, work)
    rows = list(work.state.rows)
    with progress() as shown:
        total = (4 if plan.divided else 1) * sum(rows)
        done = [0]

        def step(more: int) -> None:
            done[0] += more
            shown.show("numbering" if not plan.divided else "dividing", min(1.0, done[0] / max(1, total)), sum(rows))

        with _keeping(work, work.path):
            heads = _renumber(work, places, len(tidied["entity"].ids), step)
        with _keeping(work, target), new_folder(target, _NotMade) as part:
            if plan.divided:
                sizes = len(tidied["entity"].ids), len(tidied["relation"].ids)
                on_disk = OnDisk(work.path / "numbered0.bin", rows[0], *sizes, heads)
                del heads
                shares = {"valid": plan.valid, "test": plan.test}
                with _keeping(work, work.path):
                    held = hold_out(on_disk, work.path, seed=plan.seed, **shares, step=step)
                rows = _write_divided(on_disk, held, part, step)
            else:
                for number, split in enumerate(SPLITS):
                    _write_whole(work.path / f"numbered{number}.bin", rows[number], part / f"{split}.npy")
            vocabularies, named = _named(plan, tidied)
            finish_mapped(part, plan.name, vocabularies["entity"], vocabularies["relation"], rows)
    told = [Finding(**{**one, "examples": tuple(one["examples"])}) for one in work.state.told]
    return [*told, *tidied["entity"].findings, *tidied["relation"].findings, *named]


class _NotMade(DataError):
    """The folder of the graph cannot be made or written."""


@contextlib.contextmanager
def _keeping(work: Work, place: Path) -> Iterator[None]:
    """If ``place`` cannot be written in this block, such as on a full disk, what was read is kept."""
    try:
        yield
    except (OSError, _NotMade) as error:
        refusal = error.__cause__ if isinstance(error, _NotMade) else error
        if not isinstance(refusal, OSError):
            raise  # the folder exists, for example
        with contextlib.suppress(OSError):
            work.clear()
        raise work.refused(place, refusal) from error


def _in_order(plan: ReadingPlan, work: Work) -> tuple[dict[str, Tidied], dict[str, NDArray[np.int32]]]:
    """The names of each kind by the rule for names, and the place of each number among them."""
    tidied, places = {}, {}
    for kind in ("entity", "relation"):
        ids, of_number = work.names.pop(kind).in_order()
        try:
            tidied[kind] = tidy_ids(ids, kind, PLURALS[kind])
        except BlankName as error:
            raise _blank(plan) or error from None
        codes = tidied[kind].codes
        places[kind] = of_number if codes is None else codes[of_number]
    return tidied, places


def _blank(plan: ReadingPlan) -> DataError | None:
    """The error that says where the first blank name stands."""
    for path in (path for paths in plan.parts for path in paths):
        source, row = opened(path, plan.columns), 0
        for piece in source.pieces(0, 0):
            for role in COLUMNS:
                at = pc.index(pc.equal(pc.utf8_trim(piece.facts[role], characters=BLANKS), ""), True).as_py()
                if at >= 0:
                    return DataError(f"{source.place(row + at)}: the {role} is blank. Fill it in or remove the row.")
            row += len(piece.facts)
    return None


def _renumber(work: Work, places: Mapping[str, NDArray[np.int32]], entities: int, step: Any) -> NDArray[np.int64]:
    """Facts with their last numbers, in files of their own; how often each entity is a head."""
    heads = np.zeros(entities, np.int64)
    for part, rows in enumerate(work.state.rows):
        with (work.path / f"numbered{part}.bin").open("wb") as out:
            for block in blocks(work.facts(part), rows):
                loops.renumber(block, places["entity"], places["relation"], heads)
                arrays.write(out, block)
                step(len(block))
    return heads


def _write_divided(facts: OnDisk, held: Held, folder: Path, step: Any) -> list[int]:
    """The rows of each split into its file; how many there are of each."""
    counts = [0, 0, 0]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context((folder / f"{split}.npy").open("wb")) for split in SPLITS]
        for file in files:
            file.write(bytes(HEADER))
        for rows in blocks(facts.path, facts.rows):
            parts = held.parts(rows)
            for number, file in enumerate(files):
                own = rows[parts == number]
                arrays.write(file, own)
                counts[number] += len(own)
            step(len(rows))
        for file, count in zip(files, counts, strict=True):
            file.seek(0)
            file.write(_header(count))
    facts.path.unlink()
    return counts


def _write_whole(source: Path, rows: int, out: Path) -> None:
    with out.open("wb") as file:
        file.write(_header(rows))
        for block in blocks(source, rows):
            arrays.write(file, block)
    source.unlink()


def _header(rows: int) -> bytes:
    """What stands before ``rows`` triples of int32 in a file of NumPy's, always as long."""
    words = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({rows}, 3), }}".encode()
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + words.ljust(HEADER - 11) + b"\n"


def _named(plan: ReadingPlan, tidied: Mapping[str, Tidied]) -> tuple[dict[str, Vocabulary], list[Finding]]:
    """Vocabularies with the names that files beside the facts have for them."""
    made, found = {}, []
    for kind, of_kind in tidied.items():
        file = plan.names.get(f"{kind}_names")
        table = None if file is None else read_names(file)
        made[kind] = vocabulary(kind, of_kind.ids, None if table is None else tidied_names(table))
        if file is not None:
            found += check_names(file, table, made[kind])
    return made, found
