"""Files and folders that appear whole, with the permissions of any other."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from murp.errors import RunError
from murp.files import new_folder, parts, write_text


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("strict_umask")
def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    """Also where many threads write at once: none of them may change the umask, which is the whole process's."""

    def write(number: int) -> tuple[int, int]:
        file, folder = tmp_path / f"{number}.txt", tmp_path / f"{number}"
        write_text(file, "text")
        with new_folder(folder, RunError) as part:
            (part / "inner").write_text("text")
        return mode(file), mode(folder)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(64))) == {(0o640, 0o750)}
    assert os.umask(0o027) == 0o027


def test_the_folder_one_is_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (".", "", str(tmp_path)):
        with (
            pytest.raises(RunError, match=r"is the folder you are in.*Name a new folder within it"),
            new_folder(Path(name), RunError),
        ):
            pass
    assert not list(tmp_path.iterdir())


def test_of_two_that_make_one_folder_the_second_is_told_so(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    said = pytest.raises(RunError, match=r"folder exists already: another process has made it meanwhile\. Choose")
    with said, new_folder(folder, RunError):
        folder.mkdir()
        (folder / "of the first").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "of the first"]


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "half a character: \ud800")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    assert parts(file) == []
