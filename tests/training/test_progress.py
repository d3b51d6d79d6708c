"""What is said while a model trains: a line that fits the terminal, lines for a log, or nothing."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import Progress

import murp
from murp.graph import KnowledgeGraph
from murp.training import progress

SMALL = {"dim": 2, "batch_size": 32, "negatives": 2, "lr": 1.0, "device": "cpu", "engine": "torch"}


def shown(width: int, epochs: int) -> str:
    """The line as it is drawn, without colours."""
    console = Console(file=io.StringIO(), width=width)
    bar = Progress(*progress.columns(width, epochs), console=console)
    task = bar.add_task(
        "", total=4, epoch=f"{epochs}/{epochs}", loss="0.1234", mrr="0.123", speed="9,999,999 triples/s"
    )
    bar.update(task, advance=1)
    console.print(bar.get_renderable())
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@given(st.integers(26, 200), st.sampled_from([1, 60, 500, 10_000]))
def test_the_line_fits_and_is_never_cut(width: int, epochs: int) -> None:
    (line,) = shown(width, epochs).splitlines()
    assert len(line) <= width
    assert "…" not in line
    assert f"epoch {epochs}/{epochs}" in line
    assert ":--:--" in line
    # What is dropped first stands last.
    parts = [part in line for part in ("loss 0.1234", "valid MRR 0.123", "━", "9,999,999 triples/s")]
    assert parts == sorted(parts, reverse=True)


def test_a_narrow_terminal_drops_the_speed_then_the_bar() -> None:
    assert "triples/s" in shown(100, 500)
    assert "triples/s" not in shown(80, 500)
    assert "━" in shown(80, 500)
    assert "━" not in shown(50, 500)
    assert "valid MRR 0.123" in shown(50, 500)


def test_a_log_has_a_line_for_every_validation(
    small_tree: KnowledgeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", epochs=5, validate_every=2, **SMALL)
    lines = capsys.readouterr().err.splitlines()
    validated = [record for record in run.metrics() if "valid" in record]
    assert [record["epoch"] for record in validated] == [2, 4, 5]
    for line, record in zip(lines, validated, strict=True):
        assert line.startswith(f"epoch {record['epoch']}/5: loss {record['loss']:.4f}, ")
        assert f"valid MRR {record['valid']['mrr']:.3f}" in line


def test_a_validation_among_candidates_has_another_name(
    small_tree: KnowledgeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    murp.train(small_tree, out=tmp_path / "run", epochs=1, validate_every=1, validate_candidates=9, **SMALL)
    said = capsys.readouterr().err
    assert "sampled MRR 0." in said
    assert "valid MRR" not in said


def test_a_log_hears_of_long_epochs_between_validations(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    murp.train(small_tree, out=tmp_path / "run", epochs=2, validate_every=0, **SMALL)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("in epoch 1/2: loss ")
    assert lines[-1].startswith("in epoch 2/2: loss ")
    assert all(line.endswith(" triples/s") for line in lines)


def test_what_the_options_ask_for(
    small_tree: KnowledgeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = progress.chosen(json=False, quiet=True)
    assert not quiet.begun
    murp.train(small_tree, out=tmp_path / "run", epochs=1, progress=quiet, **SMALL)
    assert quiet.begun
    assert capsys.readouterr() == ("", "")
    for json in (True, False):
        assert isinstance(progress.chosen(json=json, quiet=False), progress.JsonLines if json else progress.Lines)
    again = progress.chosen(json=False, quiet=False)
    murp.resume(tmp_path / "run", progress=again)
    assert not again.begun


@pytest.mark.parametrize("stream", ["missing", "closed", "refusing"])
@pytest.mark.parametrize("kind", [None, progress.JsonLines, progress.Bar, progress.Lines])
def test_training_goes_on_without_its_display(
    stream: str,
    kind: type[progress.Silent] | None,
    small_tree: KnowledgeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In Python, too: there may be no standard error at all (``sys.stderr`` is None), or a terminal that has gone."""
    with open(os.devnull) as unwritable:  # open for reading: every write is an OSError
        streams = {"missing": None, "closed": io.StringIO(), "refusing": Terminal(unwritable.fileno())}
        streams["closed"].close()
        monkeypatch.setattr(sys, "stderr", streams[stream])
        monkeypatch.setattr(sys, "stdout", streams[stream])
        run = murp.train(small_tree, out=tmp_path / "run", epochs=3, progress=kind and kind(), **SMALL)
        assert len(run.metrics()) == 3


class Terminal(io.TextIOWrapper):
    """Says that it is a terminal."""

    def __init__(self, number: int) -> None:
        super().__init__(io.FileIO(os.dup(number), "rb+"), write_through=True)

    def isatty(self) -> bool:
        return True


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "rb+", buffering=0) as nothing:
        monkeypatch.setattr(sys, "stderr", Terminal(nothing.fileno()))
        monkeypatch.setenv("TERM", "xterm")
        assert isinstance(progress.usual(), progress.Bar)
        monkeypatch.setenv("TERM", "dumb")
        assert isinstance(progress.usual(), progress.Lines)
