"""Compiled code: who is told of it, where it is kept, whose is not taken, and that nothing depends on keeping it."""

from __future__ import annotations

import errno
import importlib
import io
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from examples import PATIENCE
from murp import compiling, display
from murp.graph import KnowledgeGraph

CODE = """
import numpy as np
from murp.analysis import numba_distances
numba_distances.ones(np.uint64(3))
numba_distances.ones(np.uint32(3))
"""


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_compiling_is_told_once_on_a_new_machine_and_never_after(variable: str, tmp_path: Path) -> None:
    """The second process finds the code, in a folder that is the user's alone."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment[variable] = str(tmp_path)
    said = [
        subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert said == ["murp: compiling the analysis, once for this machine …\n", ""]
    kept = list(tmp_path.rglob("*.nbc"))
    assert kept
    home = tmp_path / "kernels" if variable == "NUMBA_CACHE_DIR" else tmp_path / "murp" / "kernels"
    assert all(home in file.parents for file in kept)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_kernels_of_others_are_not_ours_to_speak_of(tmp_path: Path) -> None:
    code = "import murp.analysis.numba_distances, numba\nassert numba.njit(lambda x: x + 1)(1) == 2"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == ""


@pytest.fixture
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder is looked for again, here and by whoever comes next."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    compiling._folder.cache_clear()
    yield
    compiling._folder.cache_clear()


@pytest.fixture
def places(_asked_anew: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where kernels are kept in the user's cache, and in the temporary folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(temporary))
    return tmp_path / "cache" / "murp" / "kernels", temporary / f"murp-{os.geteuid()}" / "kernels"


def found() -> Path | None:
    """The folder that a new process would use."""
    compiling._folder.cache_clear()
    return compiling._folder()


def test_the_users_cache_comes_first_and_what_was_named_before_it(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found() == places[0] / compiling._digest()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    assert found() == tmp_path / "named" / "kernels" / compiling._digest()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o1777])
@pytest.mark.parametrize("below", ["", "digest"])
def test_a_folder_that_others_may_write_to_is_not_used(mode: int, below: str, places: tuple[Path, Path]) -> None:
    """What is found there is run."""
    spoiled = places[0] / compiling._digest() if below else places[0]
    spoiled.mkdir(parents=True)
    places[0].chmod(0o700)
    spoiled.chmod(mode)
    assert found() == places[1] / compiling._digest()


@pytest.mark.parametrize("below", ["", "digest"])
def test_a_symbolic_link_is_not_followed(below: str, places: tuple[Path, Path], tmp_path: Path) -> None:
    link = places[0] / compiling._digest() if below else places[0]
    link.parent.mkdir(parents=True, mode=0o700)
    (tmp_path / "other").mkdir()
    link.symlink_to(tmp_path / "other")
    assert found() == places[1] / compiling._digest()
    assert not list((tmp_path / "other").iterdir())


def test_another_users_folder_is_not_used(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    places[0].mkdir(parents=True, mode=0o700)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert found() is None


def test_a_temporary_folder_that_another_made_first_is_not_used(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write to the folder above can put another one in our place at any moment."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert found() == places[1] / compiling._digest()
    places[1].parent.chmod(0o777)
    assert found() is None


@pytest.mark.parametrize("refused", [os.W_OK, os.X_OK])
def test_a_folder_that_cannot_be_written_to_or_entered_is_not_used(
    refused: int, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's answer is made up here, since root may write everywhere."""
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & refused and Path(path).parent == places[0]))
    assert found() == places[1] / compiling._digest()


def test_of_many_states_of_the_sources_the_newest_are_kept_and_the_one_in_use(places: tuple[Path, Path]) -> None:
    home = places[0]
    for age in range(12):
        old = home / f"state {age}"
        old.mkdir(parents=True, mode=0o700)
        (old / "code.nbc").touch()
        os.utime(old, (1e9 - age, 1e9 - age))
    home.chmod(0o700)
    mine = home / compiling._digest()
    mine.mkdir(mode=0o700)
    os.utime(mine, (1, 1))  # the oldest of all: nothing was added for long
    assert found() == mine
    newest = {f"state {age}" for age in range(compiling._KEPT - 1)}
    assert {folder.name for folder in home.iterdir()} == {mine.name} | newest


@pytest.mark.usefixtures("_asked_anew")
def test_where_nothing_can_be_written_kernels_are_compiled_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/proc/none")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/proc/none")
    assert found() is None
    assert compiling.kernel(lambda x: x + 1)(1) == 2


def _doubled(x: int) -> int:
    return 2 * x


def refuse(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_keeps_nothing_and_stops_nothing(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_save_index", "_save_data"):
        monkeypatch.setattr(IndexDataCacheFile, name, refuse)
    assert compiling.kernel(_doubled)(3) == 6


@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("left", [0, 10, 100])
def test_a_damaged_file_is_compiled_again_and_replaced(kind: str, left: int, places: tuple[Path, Path]) -> None:
    """A machine that lost its power, a disk that fails."""
    assert compiling.kernel(_doubled)(3) == 6
    (file,) = places[0].rglob(kind)
    whole = file.read_bytes()
    file.write_bytes(whole[:left])
    assert compiling.kernel(_doubled)(3) == 6
    after = compiling.kernel(_doubled)
    assert after(3) == 6
    assert sum(after.stats.cache_hits.values()) == 1


def times(factor: int) -> Any:
    """A kernel that holds another one, as loops with a formula inside do."""
    inner = compiling.kernel(lambda x: factor * x, key=f"by-{factor}")

    def outer(x: int) -> Any:
        return inner(x)

    return compiling.kernel(outer, key=f"by-{factor}")


def test_kernels_that_are_made_anew_are_told_apart_by_their_keys(places: tuple[Path, Path]) -> None:
    assert [times(2)(3), times(5)(3)] == [6, 15]
    files = sorted(places[0].rglob("*.nbc"))
    again = times(2), times(5)
    assert [kernel(3) for kernel in again] == [6, 15]
    assert [sum(kernel.stats.cache_hits.values()) for kernel in again] == [1, 1]
    assert sorted(places[0].rglob("*.nbc")) == files


@pytest.mark.usefixtures("places")
def test_what_another_process_compiles_meanwhile_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is made up: it compiles, and keeps what it made, while this one waits for the lock."""
    asked: list[int] = []

    def lock(handle: int) -> None:
        asked.append(os.fstat(handle).st_ino)
        if len(asked) == 1:
            raise BlockingIOError
        if len(asked) == 2:
            assert compiling.kernel(_doubled)(3) == 6

    monkeypatch.setattr(compiling, "lock", lock)
    waiting = compiling.kernel(_doubled)
    assert waiting(3) == 6
    assert [sum(counts.values()) for counts in (waiting.stats.cache_hits, waiting.stats.cache_misses)] == [1, 0]
    assert asked == [os.stat(f"{waiting._cache._cache_file._index_path}.lock").st_ino] * 3


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EWOULDBLOCK])
def test_where_nothing_can_be_locked_or_a_lock_stays_all_compile(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(compiling, "lock", refuse)
    monkeypatch.setattr(compiling._Cache, "_patience", 0.05)
    assert compiling.kernel(_doubled)(3) == 6


def test_a_lock_is_given_back_when_the_kernel_is_there(places: tuple[Path, Path]) -> None:
    assert compiling.kernel(_doubled)(3) == 6
    (file,) = places[0].rglob("*.lock")
    with file.open() as handle:
        compiling.lock(handle.fileno())  # or an error: it is held


class Broken(io.StringIO):
    """A stream whose disk is full."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


def compile_one_of_ours() -> None:
    """As Numba tells of it."""
    compiling._Teller().on_start(SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=_ours)}))


def _ours() -> None:
    """Stands for a kernel."""


@pytest.fixture
def _told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_WHAT", {__name__: "the test"})
    monkeypatch.setattr(display, "_quiet", False)


@pytest.mark.usefixtures("_told_of")
@pytest.mark.parametrize(
    "stream",
    [None, Broken(), closed(), io.TextIOWrapper(io.BytesIO(), "ascii")],
    ids=["none", "full", "closed", "ascii"],
)
def test_a_standard_error_that_takes_nothing_does_not_matter(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    compile_one_of_ours()


@pytest.mark.usefixtures("_told_of")
def test_whoever_asked_for_quiet_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    compile_one_of_ours()
    told = sys.stderr.getvalue()
    assert told == "murp: compiling the test, once for this machine …\n"
    display.be_quiet()
    compile_one_of_ours()
    assert sys.stderr.getvalue() == told


def test_numba_is_asked_once_to_tell_when_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Any]] = []
    monkeypatch.setattr(compiling, "_WHAT", {})
    monkeypatch.setattr(compiling.event, "register", lambda kind, listener: asked.append((kind, listener)))
    for module in ("one", "another"):
        compiling.announce(module, "the test")
    ((kind, listener),) = asked
    assert kind == "numba:compile"
    assert isinstance(listener, compiling._Teller)


def test_every_module_that_announces_does_so_under_its_own_name() -> None:
    package = Path(display.__file__).parent
    users = [source for source in package.rglob("*.py") if "\nannounce(" in source.read_text(encoding="utf-8")]
    modules = [".".join(("murp", *source.relative_to(package).with_suffix("").parts)) for source in users]
    assert "murp.prediction.numba_top" in modules
    for module in modules:
        importlib.import_module(module)
        assert compiling._WHAT[module].startswith("the "), module


SCRIPT = "import sys\nfrom murp.cli.main import main\nsys.exit(main())\n"  # what an installer writes to bin/murp
MARKER = "open({!r}, 'a').write(__name__)\n"


def test_a_training_in_a_strangers_folder_with_nowhere_to_write_runs_none_of_its_code_and_is_quiet(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    """Everything is compiled here: no home, no cache. At 535de4f a child compiled, with the folder on its path.

    Not the fused step, which takes several times as long to compile as loops of one model and its validation.
    """
    stranger, marker, script = tmp_path / "stranger", tmp_path / "marker", tmp_path / "bin" / "murp"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    small_tree.save(tmp_path / "tree")
    stranger.mkdir()
    for name in ("torch", "numba", "murp", "numpy", "llvmlite"):
        (stranger / f"{name}.py").write_text(MARKER.format(str(marker)))
    environment = {name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "TMPDIR")}
    environment.update(HOME="/proc/none", NUMBA_CACHE_DIR="/proc/none", MURP_CACHE="off", NUMBA_OPT="0")  # sooner done
    command = [
        sys.executable, str(script), "train", "--data", str(tmp_path / "tree"), "--out", str(tmp_path / "run"),
        "--model", "distmult", "--dim", "3", "--lr", "1", "--epochs", "2", "--batch-size", "16",
        "--negatives", "2", "--objective", "bernoulli",
        "--validate-every", "1", "--device", "cpu", "--engine", "torch", "--quiet",
    ]  # fmt: skip
    ended = subprocess.run(
        command,
        cwd=stranger,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "trained distmult d=3 on tree: epoch " in ended.stdout
    assert not marker.exists(), marker.read_text()
    assert sorted(file.name for file in stranger.iterdir()) == [
        f"{name}.py" for name in ("llvmlite", "murp", "numba", "numpy", "torch")
    ]


def test_code_for_another_processor_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may be written for the processor, and Numba's own key does not know how."""
    digest = compiling._digest.__wrapped__
    for setting, value in (("CPU_NAME", None), ("CPU_FEATURES", None), ("ENABLE_AVX", 1)):
        monkeypatch.setattr(numba.config, setting, value)
    usual = digest()
    assert compiling.for_this_processor()
    for setting, value in (("CPU_NAME", "generic"), ("CPU_FEATURES", "-avx512f"), ("ENABLE_AVX", 0)):
        with monkeypatch.context() as changed:
            changed.setattr(numba.config, setting, value)
            assert digest() != usual
            assert not compiling.for_this_processor()
