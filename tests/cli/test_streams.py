"""Standard output and error that are closed, full, gone or in ASCII: the work is done, the status tells the truth."""

from __future__ import annotations

import errno
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typed import TRAIN, ok

from forked import Forked
from murp.cli.main import main
from murp.paper import Experiments
from murp.runs import checkpoint
from trees import tree

EPOCHS = 3
full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a file that is always full")


class Refusing(io.StringIO):
    """A stream that the system refuses to write: full, or a pipe whose reader has gone."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, os.strerror(self.number))


FULL, GONE = errno.ENOSPC, errno.EPIPE


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "family"
    tree().save(folder)
    return folder


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "first"
    ok(*TRAIN, "--data", data, "--out", path)
    return path


@contextmanager
def streams(out: io.TextIOBase | None, err: io.TextIOBase | None) -> Iterator[None]:
    """These in place of standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


def is_whole(path: Path) -> bool:
    """Whether a run was trained to its end and all of it is in its folder."""
    _, state = checkpoint.load(path / "last.safetensors")
    return state["epoch"] == EPOCHS == len((path / "metrics.jsonl").read_text().splitlines())


@pytest.mark.parametrize("kind", ["missing", "closed", "full", "gone"])
@pytest.mark.parametrize("which", ["out", "err"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_training_goes_on_without_its_display(
    kind: str, which: str, options: list[str], data: Path, tmp_path: Path
) -> None:
    broken = {"missing": None, "closed": closed(), "full": Refusing(FULL), "gone": Refusing(GONE)}[kind]
    other = io.StringIO()
    path = tmp_path / "run"
    with streams(*((broken, other) if which == "out" else (other, broken))):
        status = main([*TRAIN, *options, "--validate-every", "1", "--data", str(data), "--out", str(path)])
    assert is_whole(path)
    # A full standard output is told; a reader that went away, or was never there, has what it wanted.
    refused = which == "out" and kind == "full"
    assert status == (1 if refused else 0)
    assert ("standard output cannot be written: No space left" in other.getvalue()) == refused
    if which == "err":
        assert ("trained" in other.getvalue()) == (not options)
        assert len(other.getvalue().splitlines()) == (EPOCHS + 1 if options else 4)


def test_a_reader_that_takes_one_line_leaves_a_whole_run(data: Path, tmp_path: Path) -> None:
    """As ``murp train --json | head -1``."""
    path = tmp_path / "run"
    words = [*TRAIN, "--validate-every", "1", "--json", "--data", str(data), "--out", str(path)]
    ours, theirs = os.pipe()
    process = Forked(*words, out=theirs)
    os.close(theirs)
    with open(ours) as reader:
        assert json.loads(reader.readline())["epoch"] == 1
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert is_whole(path)


@full_device
def test_a_full_standard_error_changes_nothing(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    words = [*TRAIN, "--validate-every", "1", "--data", str(data), "--out", str(path)]
    with open("/dev/full", "w") as full:
        process = Forked(*words, err=full.fileno())
        printed, _ = process.communicate()
    assert process.returncode == 0
    assert printed.startswith("trained murp d=5")
    assert is_whole(path)


@pytest.mark.parametrize("number", [FULL, GONE])
def test_a_sweep_tells_of_failed_runs_though_nobody_reads_its_table(number: int, data: Path, tmp_path: Path) -> None:
    # The second is refused: it would draw its points outside the ball.
    words = ["sweep", *TRAIN[1:], "--data", str(data), "--out", str(tmp_path / "sweep"), "--initial-scale"]
    err = io.StringIO()
    with streams(Refusing(number), err):
        assert main([*words, "0.001", "900"]) == 1
    assert "1 of 2 runs failed" in err.getvalue()
    with streams(Refusing(number), io.StringIO()):
        assert main([*words, "0.001"]) == (1 if number == FULL else 0)


@pytest.mark.parametrize(("number", "status"), [(FULL, 1), (GONE, 0)])
def test_experiments_of_the_paper_go_on_unread(
    number: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def item(experiments: Experiments) -> None:
        experiments.say("training")
        done.append(experiments)

    monkeypatch.setattr("murp.paper.running.ITEMS", {"first": item, "second": item})
    with streams(Refusing(number), io.StringIO()):
        assert main(["paper", "run", "all", "--again", "--out", str(tmp_path)]) == status
    assert len(done) == 2


@pytest.mark.parametrize(("number", "status"), [(FULL, 1), (GONE, 0)])
def test_the_explorer_serves_though_nobody_reads_its_address(
    number: int, status: int, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = []
    monkeypatch.setattr("murp.explorer.server.serve", lambda *given: served.append(given))
    with streams(Refusing(number), io.StringIO()):
        assert main(["explore", str(run), "--port", "0"]) == status
    assert len(served) == 1
    served[0][1].close()


PRINTING = [
    "evaluate RUN", "evaluate RUN --json", "info RUN", "predict RUN --head n9 --relation parent", "nearest RUN n9",
    "discover RUN --relation parent -k 2", "compare RUN RUN --samples 100", "data list", "recipes", "paper list",
]  # fmt: skip


@pytest.mark.parametrize("line", PRINTING)
def test_what_only_prints_fails_where_it_cannot(line: str, run: Path) -> None:
    words = [str(run) if word == "RUN" else word for word in line.split()]
    for stream, why in (
        (Refusing(FULL), "No space left on device"),
        (Refusing(GONE), ""),
        (None, "it is closed"),
        (closed(), "it is closed"),
    ):
        err = io.StringIO()
        with streams(stream, err):
            assert main(words) == (1 if why else 0)
        lines = [line for line in err.getvalue().splitlines() if line.startswith("murp:")]
        told = [line for line in lines if not line.startswith("murp: compiling ")]  # on a new machine
        assert told == ([f"murp: standard output cannot be written: {why}."] if why else [])


def test_what_is_in_a_file_needs_no_standard_output(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.csv"
    with streams(None, io.StringIO()):
        assert main(["discover", str(run), "--relation", "parent", "-k", "2", "--out", str(out)]) == 0
        assert main(["export", str(run), "--to", "npz", "--out", str(tmp_path / "x.npz")]) == 0
    assert len(out.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "broken", [None, Refusing(FULL), Refusing(GONE), closed()], ids=["none", "full", "gone", "closed"]
)
def test_an_error_that_cannot_be_told_is_still_an_error(broken: io.StringIO | None) -> None:
    """Neither a traceback nor words on standard output, where a program may read."""
    out = io.StringIO()
    with streams(out, broken):
        assert main(["data", "info", "no such dataset"]) == 1
        with pytest.raises(SystemExit) as stop:
            main(["data", "inof"])
    assert stop.value.code == 2
    assert out.getvalue() == ""


@full_device
def test_an_error_that_cannot_be_told_keeps_its_status() -> None:
    """The interpreter would end with status 120 for what is left in its buffers."""
    program = f"{shlex.quote(sys.executable)} -m murp"
    for end, status in (("info nothing 2>/dev/full", 1), ("info nothing 2>&-", 1), ("list 2>&- <&- >&-", 1)):
        assert subprocess.run(f"{program} data {end}", shell=True).returncode == status


@full_device
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_that_cannot_be_written_is_told(unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "murp", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (ended.returncode, "cannot be written" in ended.stderr) == (1, True)


def test_closed_standard_streams_leave_their_numbers_to_no_file() -> None:
    """Else what is printed, by whichever library, would go into the next file that is opened."""
    code = (
        "import os, sys; from murp.cli.main import main; main(['data', 'list']); "
        "sys.exit(os.open(os.devnull, os.O_RDONLY) < 3)"
    )
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} <&- >&- 2>&-"
    assert subprocess.run(command, shell=True).returncode == 0


def in_ascii(*words: str) -> str:
    """What a command prints on a standard output that is ASCII."""
    encoded = io.BytesIO()
    with streams(io.TextIOWrapper(encoded, "ascii"), io.StringIO()):
        try:
            status = main(words)
        except SystemExit as stop:
            status = int(stop.code or 0)
        sys.stdout.flush()
        assert status == 0
        return encoded.getvalue().decode("ascii")


@pytest.mark.parametrize("line", ["train --help", "paper list --out nowhere", "data info NELL-995-h50"])
def test_an_ascii_standard_output_shows_other_characters_as_escapes(line: str) -> None:
    plain = ok(*line.split())
    assert not plain.isascii()
    assert in_ascii(*line.split()) == "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in plain)


def test_json_is_json_on_an_ascii_standard_output(tmp_path: Path) -> None:
    facts = "".join(f"{i}\t“é 東 😀”\t{i % 3}\n" for i in range(30))
    (tmp_path / "facts.tsv").write_text(facts, encoding="utf-8")
    words = ["analyze", str(tmp_path / "facts.tsv"), "--json"]
    assert "😀" in ok(*words)
    assert json.loads(in_ascii(*words)) == json.loads(ok(*words))
