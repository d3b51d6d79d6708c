"""Reading in pieces gives what the ordinary readers give, to the last number; it goes on after a stop."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import re
import resource
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import murp
from murp import files
from murp.cli.main import main
from murp.errors import DataError
from murp.graph import SPLITS, KnowledgeGraph, arrays, cache, sources
from murp.graph import large as package
from murp.graph.large import coding, numbering, pieces, progress, splitting
from murp.graph.reading.columns import EACH_BY_TITLE, Columns
from murp.graph.reading.streams import open_output
from murp.graph.storage import verify

Reader = Callable[..., KnowledgeGraph]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pieces, blocks and buckets of a few rows, so that a small file has many."""
    for module, name, value in (
        (pieces, "PIECE", 97),
        (pieces, "BATCH", 5),
        (splitting, "BLOCK", 7),
        (splitting, "BUCKET", 6),
        (coding, "BLOCK", 7),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Load with every file taken for large."""

    def read(path: Path, **options: object) -> KnowledgeGraph:
        with monkeypatch.context() as patch:
            patch.setattr(package, "LARGE", 0)
            return quietly(path, **options)

    return read


def quietly(path: Path, **options: object) -> KnowledgeGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KnowledgeGraph.load(path, **options)  # type: ignore[arg-type]


def same(a: KnowledgeGraph, b: KnowledgeGraph) -> None:
    assert (a.name, a.split_seed, a.source) == (b.name, b.split_seed, b.source)
    assert a.entities == b.entities
    assert a.relations == b.relations
    for split in SPLITS:
        assert a.split(split).dtype == b.split(split).dtype == np.int32
        np.testing.assert_array_equal(a.split(split), b.split(split))
    assert {(f.check, f.count) for f in a.findings} == {(f.check, f.count) for f in b.findings}


def facts(seed: int, count: int = 120, entities: int = 25) -> list[tuple[str, str, str]]:
    """With duplicates, loops, names that the rule for names changes and some that it makes equal, and long ones."""
    draw = random.Random(seed)
    names = [f"n{i}" for i in range(entities - 5)] + ["é", "e\u0301", " n1", "x" * 60, "日本"]
    rows = [(draw.choice(names), f"r{draw.randrange(4)}", draw.choice(names)) for _ in range(count)]
    return rows + rows[:9] + [("n2", "r0", "n2")]


def written(path: Path, rows: list[tuple[str, str, str]], header: bool = False, comment: bool = False) -> Path:
    form = path.name.partition(".")[2]
    if form == "parquet":
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(columns, names=["head", "relation", "tail"]), path, row_group_size=17)
        return path
    between = "," if form.startswith("csv") else "\t"
    lines = ["head,relation,tail".replace(",", between)] if header else []
    lines += [between.join(row) for row in rows]
    if comment:
        lines.insert(len(lines) // 2, "# a comment")
        lines.insert(3, "   ")
    data = ("\n".join(lines) + "\n" * (len(rows) % 2)).encode()
    with pa.output_stream(str(path), compression="gzip" if form.endswith("gz") else None) as stream:
        stream.write(data)
    return path


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", ["tsv", "csv", "parquet", "tsv.gz"])
def test_one_file_is_read_and_divided_as_it_always_was(form: str, seed: int, tmp_path: Path, in_pieces: Reader) -> None:
    path = written(tmp_path / f"facts.{form}", facts(seed), header=seed == 1, comment=seed == 2)
    (tmp_path / "entity_names.tsv").write_text("n0\tnought\t\nn3\tthree\tthe third\n" if seed else "n0\tnought\n")
    for split_seed in (0, 5):
        same(in_pieces(path, seed=split_seed), quietly(path, seed=split_seed))


def test_quoted_fields_may_hold_line_ends_and_other_columns_are_left_out(tmp_path: Path, in_pieces: Reader) -> None:
    rows = [f'"a ""{i}""\nb{i % 7}",note {i},rel{i % 3},"c{i % 5}\r\n{"long " * (i % 9)}"' for i in range(60)]
    path = tmp_path / "facts.csv"
    path.write_text("\n".join(["subject,comment,predicate,object", *rows]) + "\n", newline="")
    same(in_pieces(path), quietly(path))


def test_quotes_that_open_no_field_are_a_part_of_a_name(tmp_path: Path, in_pieces: Reader) -> None:
    """As in 5" pipe. Later fields are quoted, and hold line ends."""
    rows = [f"n{i % 13},r{i % 3},n{(i * 7) % 11}" for i in range(200)]
    rows[20] = '5" pipe,r1,n3'
    for i in range(21, 200, 5):
        rows[i] = f'"n{i % 13}, or\n""another""",r{i % 3},"n1""\n"'
    rows[7] = '"n1" or n2,r1,n0'
    path = tmp_path / "facts.csv"
    for mark in ("", "\ufeff"):
        for line_end in ("\n", "\r\n"):
            path.write_bytes((mark + '"' + rows[0][:2] + '"' + rows[0][2:] + line_end + line_end.join(rows)).encode())
            same(in_pieces(path), quietly(path))


def test_a_byte_order_mark_within_a_file_is_a_part_of_a_name(tmp_path: Path, in_pieces: Reader) -> None:
    """Files that were put together; also where a piece begins with the mark."""
    rows = [f"n{i % 13}\tr{i % 3}\tn{(i * 7) % 11}" for i in range(40)]
    path = tmp_path / "facts.tsv"
    for i in range(7, 13):
        path.write_text("\n".join([*rows[:i], "\ufeff" + rows[i], *rows[i + 1 :]]))
        same(in_pieces(path), quietly(path))


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_other_line_ends_and_a_byte_order_mark(line_end: str, tmp_path: Path, in_pieces: Reader) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + line_end.join("\t".join(row) for row in facts(4)).encode())
    same(in_pieces(path), quietly(path))


def test_three_files_and_a_tree_with_nothing_held_out(tmp_path: Path, in_pieces: Reader) -> None:
    for split, seed in zip(SPLITS, (6, 7, 8), strict=True):
        written(tmp_path / f"{split}.tsv", facts(seed, 30))
    same(in_pieces(tmp_path), quietly(tmp_path))
    tree = [(f"c{i}", "part_of", "all") for i in range(1, 40)]  # each fact is the only mention of its head
    path = written(tmp_path / "tree.tsv", tree)
    found = in_pieces(path)
    same(found, quietly(path))
    assert len(found.valid) == len(found.test) == 0
    folder = tmp_path / "tree"
    folder.mkdir()
    written(folder / "train.tsv", tree)
    for split in ("valid", "test"):
        (folder / f"{split}.tsv").touch()
    same(in_pieces(folder), quietly(folder))


def test_columns_by_number_and_whole_numbers_of_64_bits(tmp_path: Path, in_pieces: Reader) -> None:
    path = written(tmp_path / "facts.tsv", [(t, h, r) for h, r, t in facts(9)])
    same(in_pieces(path, columns=[1, 2, 0]), quietly(path, columns=[1, 2, 0]))
    large = np.arange(40, dtype=np.int64) % 9 + 2**62
    table = pa.table({"subject": large, "predicate": np.arange(40) % 3, "object": large[::-1], "extra": large})
    pq.write_table(table, tmp_path / "numbers.parquet", row_group_size=9)
    same(in_pieces(tmp_path / "numbers.parquet"), quietly(tmp_path / "numbers.parquet"))


def test_many_files_are_one(tmp_path: Path) -> None:
    rows = facts(10, 200)
    whole = quietly(written(tmp_path / "facts.parquet", rows))
    folder = tmp_path / "facts"
    folder.mkdir()
    for part in range(4):
        written(folder / f"part-{part}.parquet", rows[53 * part : 53 * part + 53])
    (folder / "_SUCCESS").touch()
    for source in (folder, f"{folder}/*.parquet", f"{tmp_path}/fac*/part-?.parquet"):
        found = quietly(source)  # type: ignore[arg-type]
        assert found.entities == whole.entities
        for split in SPLITS:
            np.testing.assert_array_equal(found.split(split), whole.split(split))
    assert (quietly(folder, seed=3).split_seed, quietly(folder).name) == (3, "facts")
    for split, seed in zip(SPLITS, (1, 2, 3), strict=True):
        (tmp_path / "divided" / split).mkdir(parents=True)
        (tmp_path / "together").mkdir(exist_ok=True)
        rows = facts(seed, 40)
        written(tmp_path / "divided" / split / "a.tsv", rows[:20])
        written(tmp_path / "divided" / split / "b.tsv", rows[20:])
        written(tmp_path / "together" / f"{split}.tsv", rows)
    divided, together = quietly(tmp_path / "divided"), quietly(tmp_path / "together")
    assert divided.entities == together.entities
    np.testing.assert_array_equal(divided.test, together.test)
    with pytest.raises(DataError, match=r"no such folder or file.*nothing-\*"):
        KnowledgeGraph.load(f"{folder}/nothing-*")


def test_heads_are_bucketed_so_that_keys_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With more than 2⁶³ possible facts a key is counted from the first head of its bucket."""
    heads = np.array([3, 0, 2, 5, 1], np.int64)
    huge = splitting.OnDisk(tmp_path / "none", 11, 5, 2**61, heads)
    bounds, bucket_of = splitting._bounds(huge)
    assert bounds.tolist() == [0, 1, 2, 3, 4]
    assert bucket_of.tolist() == [0, 1, 2, 3, 4]
    usual = splitting.OnDisk(tmp_path / "none", 11, 5, 2, heads)
    assert splitting._bounds(usual)[0].tolist() == [0, 4]  # before head 4 stand 10 rows, 6 to a bucket


class _Stopped(Exception):
    pass


@pytest.mark.parametrize("form", ["tsv", "parquet", "csv.gz"])
def test_a_reading_that_was_stopped_goes_on(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / f"facts.{form}", facts(11, 300), header=True, comment=form != "parquet")
    whole, out, numbered = quietly(path), tmp_path / "graph", numbering.Names.number
    read_at_once = []
    monkeypatch.setattr(coding, "HALT_EVERY", 0.0)

    def stopping(at: int) -> Callable[..., object]:
        calls = iter(range(1, 10_000))

        def number(self: numbering.Names, *of: object) -> object:
            read_at_once.append(len(of[0]))  # type: ignore[arg-type]
            if next(calls) == at:
                raise _Stopped
            return numbered(self, *of)  # type: ignore[arg-type]

        return number

    for at in (14, 16, 25):
        monkeypatch.setattr(numbering.Names, "number", stopping(at))
        with pytest.raises(_Stopped):
            sources.code_source(path, out)
        assert not out.exists()
    monkeypatch.setattr(numbering.Names, "number", stopping(0))
    before = sum(read_at_once)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = sources.code_source(path, out)
    assert sum("1 comment line (#) passed over" in str(one.message) for one in told) == (form != "parquet")
    assert sum(read_at_once) - before < 3 * len(whole), "all was read again"
    assert found.entities == whole.entities
    for split in SPLITS:
        np.testing.assert_array_equal(found.split(split), whole.split(split))
    assert [one.name for one in tmp_path.iterdir() if "work" in one.name] == []
    verify(str(out))


def test_bad_rows_are_named_and_nothing_is_left(tmp_path: Path, in_pieces: Reader) -> None:
    good = ["\t".join(row) for row in facts(12)]
    cases: dict[str, tuple[list[str], str]] = {
        "short": (["a\tb"], r"short.tsv, line 101: 2 fields instead of 3"),
        "empty": (["a\t\tb"], r"empty.tsv, line 101: the relation is empty"),
        "blank": (["a\tb\t \u2003"], r"blank.tsv, line 101: the tail is blank"),
    }
    for name, (bad, message) in cases.items():
        path = tmp_path / f"{name}.tsv"
        path.write_text("\n".join([*good[:100], *bad, *good[100:]]))
        with pytest.raises(DataError, match=message):
            in_pieces(path)
        with pytest.raises(DataError, match=message):
            sources.code_source(path, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    (tmp_path / "latin.tsv").write_bytes("\n".join(good).encode() + b"\na\tb\t\xe9\n")
    with pytest.raises(DataError, match=rf"latin.tsv, line {len(good) + 1}: not UTF-8"):
        in_pieces(tmp_path / "latin.tsv")
    table = pa.table({"head": ["a"] * 30, "relation": ["r"] * 30, "tail": [*["b"] * 25, None, *["b"] * 4]})
    pq.write_table(table, tmp_path / "null.parquet", row_group_size=8)
    with pytest.raises(DataError, match=r"null.parquet, row 26: column 'tail' is empty"):
        in_pieces(tmp_path / "null.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "null.parquet").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cut.parquet: cannot be read as Parquet"):
        in_pieces(tmp_path / "cut.parquet")
    floats = pa.table({"head": [1.5], "relation": ["r"], "tail": ["b"]})
    pq.write_table(floats, tmp_path / "floats.parquet")
    with pytest.raises(DataError, match=r"column 'head' holds double"):
        in_pieces(tmp_path / "floats.parquet")
    left = {path.name for path in tmp_path.iterdir()} - {"cache"}
    assert left == {*(f"{name}.tsv" for name in cases), "latin.tsv", "null.parquet", "cut.parquet", "floats.parquet"}


def test_files_of_other_kinds_are_read_whole(tmp_path: Path, in_pieces: Reader) -> None:
    lines = "\n".join(f'{{"head": "{h}", "relation": "{r}", "tail": "{t}"}}' for h, r, t in facts(13))
    (tmp_path / "facts.jsonl").write_text(lines)
    same(in_pieces(tmp_path / "facts.jsonl"), quietly(tmp_path / "facts.jsonl"))
    made = sources.code_source(tmp_path / "facts.jsonl", tmp_path / "graph")
    assert KnowledgeGraph.load(tmp_path / "graph").entities == made.entities


def test_the_command_makes_a_graph_that_is_mapped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "facts.tsv", facts(14))
    assert main(["data", "convert", str(path), str(tmp_path / "graph"), "--format", "graph"]) == 0
    assert "wrote facts to" in capsys.readouterr().out
    found, expected = KnowledgeGraph.load(tmp_path / "graph"), quietly(path)
    assert found.entities == expected.entities
    np.testing.assert_array_equal(found.train, expected.train)
    assert isinstance(found.train.base, np.memmap)
    assert murp.convert(path, tmp_path / "again", format="graph") == tmp_path / "again"
    assert main(["data", "convert", str(path), str(tmp_path / "graph"), "--format", "graph"]) == 1
    assert "exists already" in capsys.readouterr().err


def test_a_damaged_graph_is_refused(tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    sources.code_source(written(tmp_path / "facts.tsv", facts(15)), graph)
    train = graph / "train.npy"
    whole = train.read_bytes()
    train.write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"train.npy: is damaged"):
        KnowledgeGraph.load(graph)
    train.write_bytes(whole[:-4] + (99).to_bytes(4, "little"))
    with pytest.raises(DataError, match=r"train.npy, row \d+: the tail is 99, and there are"):
        KnowledgeGraph.load(graph)
    changed = bytearray(whole)
    changed[140] ^= 1
    train.write_bytes(bytes(changed))
    with pytest.raises(DataError, match=r"train.npy: is damaged"):
        verify(graph)
    train.write_bytes(whole)
    (graph / "entities.arrow").unlink()
    with pytest.raises(DataError, match=r"entities.arrow: cannot be read"):
        KnowledgeGraph.load(graph)


@pytest.fixture
def plan(tmp_path: Path) -> package.plan.ReadingPlan:
    path = written(tmp_path / "facts.tsv", facts(16))
    found = sources.plan_of(path)
    assert found is not None
    return found


def test_two_readings_of_the_same_do_not_meet(plan: package.plan.ReadingPlan, tmp_path: Path) -> None:
    from murp.graph.large.work import Work

    held = Work(tmp_path / "graph", plan.key)
    with pytest.raises(DataError, match="another process is reading the same data"):
        coding.code(plan, tmp_path / "graph")
    held.close()
    coding.code(plan, tmp_path / "graph")


def test_a_late_process_waits_for_what_another_makes_and_removes_nothing(
    tmp_path: Path, in_pieces: Reader, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache, "LEAST_BYTES", 0)
    monkeypatch.delenv("MURP_CACHE", raising=False)
    path = written(tmp_path / "facts.tsv", facts(16))
    first = in_pieces(path)
    (entry,) = (tmp_path / "cache" / "murp" / cache.FOLDER).iterdir()
    entry.rename(tmp_path / "made")
    held = cache._held(entry.with_name(f".{entry.name}.lock"))
    assert held is not None

    def the_other_is_done(seconds: float) -> None:
        (tmp_path / "made").rename(entry)
        entry.with_name(f".{entry.name}.lock").unlink()
        os.close(held)

    monkeypatch.setattr(cache.time, "sleep", the_other_is_done)
    monkeypatch.setattr(coding, "code", None)  # nothing is read again
    same(in_pieces(path), first)
    assert capsys.readouterr().err.count("another process is reading the same data") == 1
    assert [left.name for left in entry.parent.iterdir()] == [entry.name]


def test_a_lock_that_was_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, locked = tmp_path / ".key.lock", cache.lock

    def late(handle: int) -> None:
        path.unlink()
        locked(handle)

    with monkeypatch.context() as patch:
        patch.setattr(cache, "lock", late)
        assert cache._held(path) is None
    held = cache._held(path)
    assert held is not None
    assert cache._held(path) is None
    os.close(held)


def test_a_lock_on_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There only a file that is open for writing can be locked, and it may have another number each time."""
    import fcntl

    path, locked = tmp_path / ".key.lock", cache.lock

    def on_a_network(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        locked(handle)

    monkeypatch.setattr(cache, "lock", on_a_network)
    monkeypatch.setattr(cache.os.path, "samestat", lambda one, other: False)
    held = cache._held(path)
    assert held is not None
    assert cache._held(path) is None
    os.close(held)


def test_a_full_disk_keeps_what_was_read(plan: package.plan.ReadingPlan, tmp_path: Path) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("murp.graph.large.work.os.fsync", full)
        with pytest.raises(DataError, match=r"work cannot be written: No space left.*what was read so far is kept"):
            coding.code(plan, tmp_path / "graph")
    assert not (tmp_path / "graph").exists()
    coding.code(plan, tmp_path / "graph")
    assert KnowledgeGraph.load(tmp_path / "graph").num_entities > 10


class _Full(io.BufferedWriter):
    """A file on a full disk."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("numbered0.bin", r"\.graph\.work"),
        ("bucket0.bin", r"\.graph\.work"),
        ("distinct.bin", r"\.graph\.work"),
        ("train.npy", "graph"),
        ("test.npy", "graph"),
    ],
)
def test_a_disk_that_is_full_after_reading_keeps_what_was_read(
    file: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "facts.tsv", facts(16))
    opened = Path.open

    def full(path: Path, mode: str = "r", *of: Any, **how: Any) -> IO[Any]:
        is_full = path.name == file and mode == "wb"
        return _Full(io.FileIO(path, "w")) if is_full else opened(path, mode, *of, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(
            DataError, match=rf"/{place} cannot be written: No space left.*what was read so far is kept"
        ):
            sources.code_source(path, tmp_path / "graph")
    assert not (tmp_path / "graph").exists()
    kept = {left.name for left in (tmp_path / ".graph.work").iterdir()}
    assert kept == {"state.json", "names1", *(f"facts{part}.bin" for part in range(3))}
    monkeypatch.setattr(numbering.Names, "number", None)  # nothing is read again
    found = sources.code_source(path, tmp_path / "graph")
    np.testing.assert_array_equal(found.train, quietly(path).train)


def test_a_graph_that_cannot_be_flushed_keeps_what_was_read(
    plan: package.plan.ReadingPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems find out only then that they are full."""

    flushed = files.flush_folder

    def full(folder: Path) -> None:
        if folder.suffix == ".part":
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        flushed(folder)

    with monkeypatch.context() as patch:
        patch.setattr(files, "flush_folder", full)
        with pytest.raises(DataError, match=r"/graph cannot be written: .*quota.*what was read so far is kept"):
            coding.code(plan, tmp_path / "graph")
    assert (tmp_path / ".graph.work" / "state.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("rows", [1, 1 << 16])
def test_few_numbers_and_many_are_missed_on_a_full_disk(rows: int) -> None:
    with (
        pytest.raises(OSError, match="No space left") as refused,
        Path("/dev/full").open("wb") as file,
    ):
        arrays.write(file, np.zeros((rows, 3), np.int32))
    assert refused.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space left"):
        arrays.save(Path("/dev/full"), np.zeros((rows, 3), np.int32))


@pytest.mark.parametrize("shape", [(0, 3), (5, 3), (7,)])
def test_an_array_is_stored_as_numpy_does(shape: tuple[int, ...], tmp_path: Path) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    arrays.save(tmp_path / "ours.npy", array)
    np.save(tmp_path / "theirs.npy", array)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Read a file into ``graph``, and stop after some halts; the folder of the work."""

    def read(path: Path, at: int = 16) -> Path:
        with monkeypatch.context() as patch:
            numbered, calls = numbering.Names.number, iter(range(1, 10_000))
            patch.setattr(coding, "HALT_EVERY", 0.0)

            def number(self: numbering.Names, *of: Any) -> object:
                if next(calls) == at:
                    raise _Stopped
                return numbered(self, *of)

            patch.setattr(numbering.Names, "number", number)
            with pytest.raises(_Stopped):
                sources.code_source(path, tmp_path / "graph")
        return tmp_path / ".graph.work"

    return read


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 3)


@pytest.mark.parametrize(
    "damage", [_cut, lambda file: os.truncate(file, 0), Path.unlink, lambda file: np.save(file, np.zeros(2, np.int64))]
)
@pytest.mark.parametrize("file", ["entity.names.npy", "entity.ends.npy", "relation.first.npy"])
def test_names_that_a_power_cut_damaged_are_read_again(
    file: str,
    damage: Callable[[Path], None],
    stopped: Callable[[Path], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path / "facts.tsv", facts(16))
    (names,) = stopped(path).glob("names*")
    damage(names / file)
    found = sources.code_source(path, tmp_path / "graph")
    assert re.search(rf"murp: {names} is damaged \(.+\): everything is read again", capsys.readouterr().err)
    np.testing.assert_array_equal(found.train, quietly(path).train)


def test_names_are_on_the_disk_before_the_state_says_so(
    plan: package.plan.ReadingPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def noted(handle: int) -> None:
        flushed.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        real(handle)

    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not tell the name of an open file")
    monkeypatch.setattr(os, "fsync", noted)
    coding.code(plan, tmp_path / "graph")
    state = next(i for i, name in enumerate(flushed) if name.startswith(".state.json"))
    names = {f"{kind}.{part}.npy" for kind in ("entity", "relation") for part in ("names", "ends", "first")}
    assert names | {"names1", "facts0.bin"} <= {*flushed[:state]}


TITLED = [("alpha", "beta", "gamma"), *((f"n{i % 11}", f"r{i % 3}", f"n{(i * 7) % 11}") for i in range(150))]


def test_a_header_that_nobody_knows_is_noticed_before_the_long_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the ordinary reader notices it."""
    monkeypatch.setattr(pieces, "PIECE", 997)
    monkeypatch.setattr(coding, "BLOCK", 70)
    path = written(tmp_path / "facts.tsv", TITLED)
    with pytest.raises(DataError, match="holds nothing that comes again, like a header: 'alpha', 'beta', 'gamma'"):
        quietly(path)
    monkeypatch.setattr(numbering.Names, "number", None)
    with pytest.raises(DataError, match="holds nothing that comes again, like a header: 'alpha', 'beta', 'gamma'"):
        sources.code_source(path, tmp_path / "graph")


def test_a_row_after_a_stop_is_not_taken_for_a_header(
    stopped: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading goes on with a row of which nothing comes again."""
    monkeypatch.setattr(pieces, "PIECE", 997)
    monkeypatch.setattr(coding, "BLOCK", 70)
    rows = [(f"n{i % 11}", f"r{i % 3}", f"n{(i * 7) % 11}") for i in range(2000)]
    path = written(tmp_path / "facts.tsv", rows)
    work = stopped(path)
    place = json.loads((work / "state.json").read_text())["place"]
    text = path.read_bytes()
    end = text.index(b"\n", place)
    odd = b"odd\to\t".ljust(end - place, b"d")
    before = path.stat()
    path.write_bytes(text[:place] + odd + text[end:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    sources.code_source(path, tmp_path / "graph")


def test_a_header_after_long_comments_is_one_after_a_stop(stopped: Callable[..., Path], tmp_path: Path) -> None:
    rows = ["# " + "of what this is " * 4] * 3 + ["head\trelation\ttail", *map("\t".join, facts(11))]
    path = tmp_path / "facts.tsv"
    path.write_text("\n".join(rows))
    stopped(path, at=5)
    with pytest.warns(UserWarning, match="3 comment lines"):
        found = sources.code_source(path, tmp_path / "graph")
    assert found.entities == quietly(path).entities


def test_more_buckets_than_a_process_may_open_files(tmp_path: Path, in_pieces: Reader) -> None:
    """As with very many relations, where few heads fit into a bucket."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not tell which files are open")
    path = written(tmp_path / "facts.tsv", [(f"n{i}", f"r{i % 3}", f"n{i * 7 % 400}") for i in range(400)])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = set(map(int, os.listdir("/proc/self/fd")))
    few = [number for number in range(len(taken) + 40) if number not in taken][30]
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        found = in_pieces(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    same(found, quietly(path))


def test_a_file_that_changes_while_it_is_read_makes_no_graph(
    plan: package.plan.ReadingPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some facts would be of before, others of after; from the cache, they would be taken for those of before."""
    numbered = numbering.Names.number

    def number(self: numbering.Names, *of: Any) -> object:
        os.utime(plan.files[0], ns=(0, 0))
        return numbered(self, *of)

    monkeypatch.setattr(numbering.Names, "number", number)
    with pytest.raises(DataError, match=r"facts\.tsv was changed while it was read: .* Start again"):
        coding.code(plan, tmp_path / "graph")
    assert [path.name for path in tmp_path.iterdir()] == ["facts.tsv"]


def test_progress_tells_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    path = written(tmp_path / "facts.tsv", facts(18))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sources.code_source(path, tmp_path / "graph")
    told = capsys.readouterr().err
    assert re.search(r"murp: reading: \d+ facts, \d+%, about \d+ s left", told)
    assert "murp: dividing: 130 facts, 100%" in told


@pytest.mark.parametrize("packed", ["", ".gz", ".xz", ".zst"])
def test_progress_of_packed_text_counts_packed_bytes(
    packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1 << 16)
    draw = random.Random(1)
    path = tmp_path / f"facts.tsv{packed}"
    lines = [f"n{draw.random()}\tr{draw.randrange(4)}\tn{draw.random()}\n" for _ in range(40_000)]
    with open_output(path) as stream:
        stream.write("".join(lines).encode())
    done = [piece.done for piece in pieces.opened(path, EACH_BY_TITLE).pieces(0, 0)]
    assert done == sorted(done)
    assert done[-1] == 1
    # Decompressors read ahead, by up to 64 KiB of this file of less than 1 MiB.
    assert np.abs(np.array(done) - np.arange(1, len(done) + 1) / len(done)).max() < 0.2


def test_what_is_asked_decides_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "facts.tsv", facts(17))
    plan = sources.plan_of(tmp_path / "facts.tsv", seed=4, columns=Columns(header=False))
    assert plan is not None
    assert (plan.seed, plan.divided, plan.columns.header) == (4, True, False)
    assert sources.plan_of(tmp_path / "facts.tsv", columns=EACH_BY_TITLE) is not None
    assert not package.is_large([tmp_path / "facts.tsv"])
    monkeypatch.setattr(package, "LARGE", 4 * (tmp_path / "facts.tsv").stat().st_size)
    assert package.is_large([tmp_path / "facts.tsv"] * 4)
    shutil.copy(tmp_path / "facts.tsv", tmp_path / "facts.parquet")
    assert package.is_large([tmp_path / "facts.parquet"])
    assert not package.is_large([tmp_path / "facts.jsonl", *[tmp_path / "facts.tsv"] * 4])


def test_a_file_of_the_reading_that_was_cut_short_is_no_source_of_facts(tmp_path: Path) -> None:
    """What is missing must not become numbers by chance."""
    path = tmp_path / "facts.bin"
    np.arange(9, dtype=np.int32).tofile(path)
    assert [rows.tolist() for rows in splitting.blocks(path, 3)] == [[[0, 1, 2], [3, 4, 5], [6, 7, 8]]]
    with pytest.raises(DataError, match=r"facts\.bin was cut short"):
        list(splitting.blocks(path, 4))


def test_a_bucket_that_was_cut_short_is_no_source_of_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its length on the disk is not the number of facts that were written to it."""
    rows = np.array([[head, 0, tail] for head in range(5) for tail in range(5)], np.int32)
    rows.tofile(tmp_path / "facts.bin")
    facts = splitting.OnDisk(tmp_path / "facts.bin", len(rows), 5, 1, np.bincount(rows[:, 0]))
    assert len(splitting._sorted(facts, tmp_path, lambda _: None).keys) == len(rows)
    opened = Path.open

    def cut(path: Path, mode: str = "r") -> IO[Any]:
        if path.name.startswith("bucket") and mode == "rb":
            os.truncate(path, 8)
        return opened(path, mode)

    monkeypatch.setattr(Path, "open", cut)
    with pytest.raises(DataError, match=r"bucket0\.bin was cut short"):
        splitting._sorted(facts, tmp_path, lambda _: None)
