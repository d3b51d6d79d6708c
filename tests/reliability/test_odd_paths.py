"""Paths and names that are no text, and paths of what is no file: refused with a plain sentence, never waited for."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from fuzz_oracle import made_run, small_graph

import murp
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError, DataError, MurpError, RunError, UnknownNameError
from murp.exchange import import_run
from murp.graph import KnowledgeGraph
from murp.paths import not_a_file, not_text
from murp.prediction.queries import read_queries

FACTS = "".join(f"{i}\tr\t{i // 2}\n" for i in range(40))
NO_TEXT = os.fsdecode(b"caf\xe9")

pytestmark = pytest.mark.skipif(sys.getfilesystemencoding() != "utf-8", reason="names are told apart in UTF-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd") / "run"
    made_run(path)
    return path


def pipe(path: Path) -> None:
    """A named pipe that nobody writes to: whoever opens it to read waits for ever."""
    os.mkfifo(path)


def socket_file(path: Path) -> None:
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:  # the whole path may be too long for a socket
        bound.bind(path.name)


READERS: list[tuple[str, Callable[[Path], object]]] = [
    ("facts.tsv", KnowledgeGraph.load),
    ("facts.csv.gz", KnowledgeGraph.load),
    ("facts.parquet", KnowledgeGraph.load),
    ("model.npz", lambda path: import_run(path, path.parent / "out")),
    ("model.safetensors", lambda path: import_run(path, path.parent / "out")),
    ("entity_names.tsv", lambda path: KnowledgeGraph.load(path.parent / "given.tsv")),
    ("settings.toml", Config.read),
    ("questions.tsv", lambda path: list(read_queries(path, small_graph()))),
    ("questions.jsonl", lambda path: list(read_queries(path, small_graph()))),
]


@pytest.mark.parametrize(("make", "words"), [(pipe, "is a pipe"), (socket_file, "is a socket")])
@pytest.mark.parametrize(("name", "read"), READERS)
def test_what_is_no_file_is_refused(
    make: Callable[[Path], None], words: str, name: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "given.tsv").write_text(FACTS)
    make(tmp_path / name)
    with pytest.raises(MurpError, match=f"{name} {words}"):
        read(tmp_path / name)


@pytest.mark.parametrize(("name", "read"), READERS[5:])  # data and exports may be folders
def test_a_folder_where_a_file_is_wanted(name: str, read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "given.tsv").write_text(FACTS)
    (tmp_path / name).mkdir()
    with pytest.raises(MurpError, match=f"{name} is a folder, where a file is wanted"):
        read(tmp_path / name)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_pipe_within_a_dataset(split: str, tmp_path: Path) -> None:
    for name in {"train", "valid", "test"} - {split}:
        (tmp_path / f"{name}.tsv").write_text(FACTS)
    pipe(tmp_path / f"{split}.tsv")
    with pytest.raises(DataError, match=rf"{split}\.tsv is a pipe"):
        KnowledgeGraph.load(tmp_path)


def test_a_pipe_beside_names_that_are_worth_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MURP_CACHE", "on")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "entity_names.tsv").write_text("".join(f"{i}\t{'x' * 1000}\n" for i in range(3000)))
    pipe(tmp_path / "facts.tsv")
    with pytest.raises(DataError, match="is a pipe"):
        KnowledgeGraph.load(tmp_path / "facts.tsv")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin"])
def test_a_device_is_no_file(device: str) -> None:
    if not Path(device).is_char_device():
        pytest.skip(f"needs {device} as a device")
    assert not_a_file(Path(device)) == "is a device, where a file is wanted"
    with pytest.raises(ConfigError, match="is a device"):
        Config.read(Path(device))


@pytest.mark.parametrize(
    "member",
    [
        "metrics.jsonl",
        "calibration.json",
        "best.safetensors",
        "last.safetensors",
        "environment.json",
        "graph/train.parquet",
    ],
)
def test_a_pipe_within_a_run_folder(member: str, run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / member).unlink(missing_ok=True)
    pipe(copy / member)
    for read in (murp.load, murp.resume):
        with pytest.raises(MurpError, match=f"{member} is a pipe"):
            read(copy)


def test_a_word_that_is_no_text_is_not_understood(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (
        ["train", "--data", NO_TEXT],
        ["train", "--out", NO_TEXT],
        ["predict", "run", "--head", NO_TEXT, "--relation", "r"],
        ["nearest", "run", NO_TEXT],
        ["explore", "run", "--host", NO_TEXT],
        ["data", "convert", "facts.tsv", NO_TEXT],
        [NO_TEXT],
    ):
        with pytest.raises(SystemExit) as stop:
            main(line)
        assert stop.value.code == 2
        message = capsys.readouterr().err
        assert r"error: 'caf\udce9' holds bytes that are no UTF-8: choose another name" in message
        assert "Did you mean" not in message


def test_in_python_names_that_are_no_text_are_refused_too(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown entity 'caf\\udce9': it holds bytes that are no UTF-8"):
        murp.load(run).nearest(NO_TEXT)
    graph = murp.load(run).graph
    with pytest.raises(RunError, match=r"caf\\udce9 cannot be made: its name holds bytes that are no UTF-8"):
        murp.train(graph, out=tmp_path / NO_TEXT, epochs=1, dim=2, engine="torch", validate_every=0)
    with pytest.raises(DataError, match="holds bytes that are no UTF-8"):
        graph.save(tmp_path / NO_TEXT)
    (tmp_path / f"{NO_TEXT}.tsv").write_text(FACTS)
    with pytest.raises(DataError, match="holds bytes that are no UTF-8"):
        KnowledgeGraph.load(tmp_path / f"{NO_TEXT}.tsv")


def test_a_working_folder_that_is_no_text(tmp_path: Path) -> None:
    """The run would keep the whole path of its data, and no file of settings can hold that."""
    (tmp_path / NO_TEXT).mkdir()
    (tmp_path / NO_TEXT / "facts.tsv").write_text(FACTS)
    with chdir(tmp_path / NO_TEXT), pytest.raises(ConfigError, match="holds bytes that are no UTF-8"):
        murp.train("facts.tsv", out="run", epochs=1, dim=2, validate_every=0)
    assert sorted(os.listdir(tmp_path / NO_TEXT)) == ["facts.tsv"]


def test_what_another_locale_could_read_is_told() -> None:
    """Without UTF-8, é arrives as bytes that the locale does not know; the file is not to blame."""
    code = "import sys; from murp.paths import not_text; print(not_text(sys.argv[1]))"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run([sys.executable, "-c", code, "été"], env=environment, capture_output=True, text=True)
    assert "set PYTHONUTF8=1" in ended.stdout
    assert not_text("été") is None
