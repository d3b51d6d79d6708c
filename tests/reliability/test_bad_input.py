"""Input made to do harm: bombs, endless lines, bytes that are no text, indices beyond the graph, links out."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz_oracle import made_run, small_graph

from examples import PATIENCE
from murp.errors import DataError, MurpError, RunError
from murp.exchange import export, import_run
from murp.graph import KnowledgeGraph
from murp.graph.reading import parquet, streams
from murp.graph.reading.files import find_file, read_names, read_triples
from murp.graph.storage import MANIFEST, sha256
from murp.paper.experiments import stored_run
from murp.runs import load


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("row", [b"a\tr\tb\n", b"\n"])
def test_a_decompression_bomb(ending: str, row: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ALWAYS_UNPACKED", 1 << 20)
    path = tmp_path / f"facts.tsv{ending}"
    path.write_bytes(PACKERS[ending](row * (1 << 22)))
    with pytest.raises(DataError, match=r"facts\.tsv\.\w+: unpacks to more than \d MiB.* unpack it yourself"):
        read_triples(path)


@pytest.mark.parametrize("ending", PACKERS)
def test_honest_files_are_no_bombs(ending: str, tmp_path: Path) -> None:
    """Rows that repeat shrink a lot; up to the free amount nothing is refused."""
    path = tmp_path / f"facts.tsv{ending}"
    path.write_bytes(PACKERS[ending](b"a\tr\tb\n" * (1 << 20)))
    assert len(read_triples(path)) == 1 << 20
    path.write_bytes(PACKERS[ending](b"a\tr\t" + b"b" * (1 << 20) + b"\n"))
    assert read_triples(path)["tail"].to_pylist() == ["b" * (1 << 20)]


def test_a_bomb_within_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ALWAYS_UNPACKED", 1 << 20)
    long, rows = "x" * 10_000, 50_000
    path = tmp_path / "facts.parquet"
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [long])
    pq.write_table(pa.table({"head": column, "relation": column, "tail": column}), path, compression="zstd")
    assert path.stat().st_size < 30_000
    with pytest.raises(DataError, match=r"facts\.parquet: unpacks to more than"):
        read_triples(path)
    monkeypatch.setattr(parquet, "ROWS_ALWAYS", 10)
    monkeypatch.setattr(parquet, "ROWS_A_BYTE", 1)
    with pytest.raises(DataError, match=r"facts\.parquet: claims to have 50,000 rows in"):
        read_triples(path)


LONG_LINES = """
import re
import resource
import sys
from pathlib import Path
from murp.errors import DataError
from murp.graph.reading.files import read_names, read_triples
from murp.prediction.queries import read_rows
# What is imported takes from one to several GiB of addresses; only so much more than that.
size = 1024 * int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
resource.setrlimit(resource.RLIMIT_AS, (size + (768 << 20),) * 2)
for name in sys.argv[1:]:
    read = read_names if "names" in name else (lambda p: list(read_rows(p))) if "asked" in name else read_triples
    try:
        read(Path(name))
    except DataError as error:
        print(error)
"""


def test_a_line_of_a_gigabyte(tmp_path: Path) -> None:
    """Refused at the line it stands on, by a process that may not hold it."""
    paths = [tmp_path / name for name in ("facts.tsv", "facts.csv", "entity_names.tsv", "asked.jsonl", "asked.tsv")]
    for path in paths:
        separator = "," if path.suffix == ".csv" else "\t"
        good = '{"head": "a", "relation": "r"}' if path.suffix == ".jsonl" else separator.join("arb")
        path.write_text(f"{good}\n{good}\n")
        with path.open("rb+") as file:
            file.truncate(1 << 30)  # a hole: a gigabyte of NUL on a disk that has less

    command = [sys.executable, "-c", LONG_LINES, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    for path, message in zip(paths, done.stdout.splitlines(), strict=True):
        assert message.startswith(f"{path}, line 3: longer than 8 MiB.")


@pytest.mark.parametrize("read", [read_triples, read_names])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\tr\tb\na\tr\t\xff\xfe\n", r"line 2: not UTF-8: 'a r \\\\xff\\\\xfe'"),
        (b"a\tr\tb\n\xed\xa0\x80\tr\tb\n", r"line 2: not UTF-8"),
        (b"a\tr\tb\n\0\0\0\n", r"line 2: 1 field instead of 3"),
    ],
)
def test_bytes_that_are_no_text(read: Callable[[Path], object], content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words):
        read(path)


def test_nul_within_a_name_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(b"a\0\tr\tb\n")
    assert read_triples(path)["head"].to_pylist() == ["a\0"]


@pytest.mark.parametrize(
    ("split", "role", "value", "words"),
    [
        (
            "train",
            "head",
            1_000_000_000,
            r"train\.parquet, row 3: the head is 1000000000, and there are 12 of its kind",
        ),
        ("test", "relation", 3, r"test\.parquet, row 3: the relation is 3, and there are 3"),
        ("valid", "tail", -1, r"valid\.parquet, row 3: the tail is -1"),
    ],
)
def test_an_index_beyond_the_graph(split: str, role: str, value: int, words: str, tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    small_graph().save(graph)
    columns = {name: values.to_numpy().copy() for name, values in _columns(graph / f"{split}.parquet").items()}
    columns[role][2] = value
    _rewritten(graph, split, pa.table(columns))
    with pytest.raises(DataError, match=words):
        KnowledgeGraph.load(graph)


@pytest.mark.parametrize(
    ("name", "columns", "words"),
    [
        ("train", {"head": [0], "relation": [0], "tail": [0]}, "no column 'head' of 32-bit integers"),
        ("train", {"head": pa.array([0], pa.int32())}, "no column 'relation'"),
        ("entities", {"id": ["e1", "e1"]}, "do not each have an id of their own"),
        ("entities", {"name": ["e1"]}, "do not each have an id of their own"),
        ("relations", {"id": [1, 2, 3]}, "column 'id' holds int64 and not strings"),
    ],
)
def test_a_coded_graph_of_other_columns(name: str, columns: dict[str, object], words: str, tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    small_graph().save(graph)
    _rewritten(graph, name, pa.table(columns))
    with pytest.raises(DataError, match=words):
        KnowledgeGraph.load(graph)


def _columns(path: Path) -> dict[str, pa.ChunkedArray]:
    table = pq.read_table(path)
    return dict(zip(table.column_names, table.columns, strict=True))


def _rewritten(graph: Path, name: str, table: pa.Table) -> None:
    """Another table in a coded graph whose manifest agrees with it."""
    pq.write_table(table, graph / f"{name}.parquet")
    manifest = json.loads((graph / MANIFEST).read_text())
    manifest["rows"][name], manifest["sha256"][name] = len(table), sha256(graph / f"{name}.parquet")
    (graph / MANIFEST).write_text(json.dumps(manifest))


def test_a_file_of_a_dataset_that_leads_out(tmp_path: Path) -> None:
    secret, data = tmp_path / "secret.tsv", tmp_path / "data"
    secret.write_text("a\tr\tb\n")
    data.mkdir()
    (data / "train.tsv").symlink_to(secret)
    with pytest.raises(DataError, match=r"train\.tsv is a symbolic link that leads out of its folder, to .*secret"):
        find_file(data, "train")
    (data / "here.tsv").write_text("a\tr\tb\n")
    (data / "valid.tsv").symlink_to("here.tsv")
    assert find_file(data, "valid") == data / "valid.tsv"
    (tmp_path / "other").symlink_to(data)
    assert find_file(tmp_path / "other", "valid") is not None


@pytest.mark.parametrize("member", ["config.toml", "metrics.jsonl", "last.safetensors", "graph", "graph/train.parquet"])
def test_a_link_within_a_run_folder(member: str, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    (run / member).rename(tmp_path / "elsewhere")
    (run / member).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MurpError, match=r"is a symbolic link\. Put the file itself there"):
        load(run)


def test_a_link_within_an_export(tmp_path: Path) -> None:
    run = load(made_run(tmp_path / "run"))
    export(run, "hub-folder", tmp_path / "hub")
    (tmp_path / "hub" / "metrics.jsonl").unlink()
    (tmp_path / "hub" / "metrics.jsonl").symlink_to("/etc/hostname")
    with pytest.raises(DataError, match=r"metrics\.jsonl is a symbolic link"):
        import_run(tmp_path / "hub", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_names_do_not_climb(tmp_path: Path) -> None:
    """What a file calls its graph, or an item its run, never becomes a path."""
    run = made_run(tmp_path / "run")
    manifest = json.loads((run / "graph" / MANIFEST).read_text())
    (run / "graph" / MANIFEST).write_text(json.dumps({**manifest, "name": "../../climbed"}))
    opened = load(run)
    assert opened.graph.name == "../../climbed"
    for form in ("npz", "parquet", "word2vec", "hub-folder"):
        export(opened, form, tmp_path / f"out.{form}")  # type: ignore[arg-type]
    assert not list(tmp_path.parent.rglob("climbed*"))
    for name in ("../a", "/etc/passwd", "a/b", "", "..", None):
        with pytest.raises(RunError, match=r"no file's name|cannot be read"):
            stored_run(tmp_path, name)  # type: ignore[arg-type]
