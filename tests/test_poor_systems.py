"""Systems that lack what others have: calls that a file system refuses, modules that Python was built without."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import murp
from examples import PATIENCE
from murp.errors import DataError, RunError
from murp.files import new_folder, write_text
from murp.graph import KnowledgeGraph
from murp.graph.reading import streams

QUICK: dict[str, Any] = {
    "dim": 3, "epochs": 2, "lr": 1.0, "batch_size": 16, "negatives": 2, "device": "cpu", "engine": "torch",
    "validate_every": 1, "save_every": 0,
}  # fmt: skip


def refusal(number: int) -> Any:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_that_flushes_no_folders_and_has_no_links(
    number: int, small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Network and user-space file systems. What cannot be flushed is not, and all else works."""
    real = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("link", "symlink", "posix_fadvise"):
        monkeypatch.setattr(os, name, refusal(number), raising=False)
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK)
    assert len(murp.resume(run.path, epochs=3).metrics()) == 3
    small_tree.save(tmp_path / "graph")
    assert len(KnowledgeGraph.load(tmp_path / "graph").train) == len(small_tree.train)


def test_a_disk_that_fails_is_not_mistaken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", refusal(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        write_text(tmp_path / "file", "text")
    with pytest.raises(RunError, match="Input/output"), new_folder(tmp_path / "folder", RunError) as part:
        (part / "file").touch()
    assert not list(tmp_path.iterdir())


WITHOUT = """
import sys
for name in ("fcntl", "lzma", "_lzma", "bz2", "_bz2", "sqlite3", "_sqlite3", "readline", "curses", "termios", "pwd"):
    sys.modules[name] = None
import murp
from murp.cli.main import main
from murp.graph import KnowledgeGraph
KnowledgeGraph.load(sys.argv[1])
sys.exit(main(["data", "audit", sys.argv[2]]))
"""


def test_modules_that_python_may_be_built_without_are_named_when_they_are_needed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "facts.tsv", tmp_path / "facts.tsv.xz"
    plain.write_text("a\tr\tb\n")
    packed.write_bytes(b"whatever")
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(plain), str(packed)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (told.returncode, told.stdout) == (1, ""), told.stderr
    assert f"{packed}: this Python was built without the module lzma, which .xz needs." in told.stderr
    assert "Traceback" not in told.stderr


def test_nothing_is_packed_without_the_module_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "lzma", None)
    with pytest.raises(DataError, match="built without the module lzma"), streams.open_output(tmp_path / "x.tsv.xz"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_that_may_not_be_read_is_told_of(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "iterdir", refusal(errno.EACCES))
    with pytest.raises(DataError, match=r"cannot be read: Permission denied"):
        KnowledgeGraph.load(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + "/run", "a\0b"])
def test_names_that_no_file_system_has(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for open_run in (murp.load, murp.resume):
        with pytest.raises(RunError, match="there is no run folder at"):
            open_run(name)
    with pytest.raises(DataError, match="there is no such folder or file"):
        KnowledgeGraph.load(name)
