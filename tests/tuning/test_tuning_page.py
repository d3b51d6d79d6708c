"""The code of docs/tuning.md runs, with a smaller graph and few trials."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from murp.cli.main import main, parser
from trees import tree

PAGE = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text()


def test_its_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna", reason="needs Optuna: pip install murp[tune]")
    monkeypatch.chdir(tmp_path)
    tree().save(tmp_path / "graph")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(code.replace("wordnet-mini", "graph").replace("trials=40, epochs=45", "trials=2, epochs=1, dim=2"), {})
    assert Path(capsys.readouterr().out.splitlines()[-1]) == Path("runs/tune.db.report")


def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna", reason="needs Optuna: pip install murp[tune]")
    monkeypatch.chdir(tmp_path)
    tree().save(tmp_path / "graph")
    commands = [line for line in PAGE.splitlines() if line.startswith("murp ")]
    assert len(commands) == 4
    for number, command in enumerate(commands):
        words = shlex.split(command.replace("wordnet-mini", "graph"))[1:]
        parser(words).parse_args(words)
        for name, value in {"--trials": "1", "--epochs": "1", "--dim": "2", "--storage": f"runs/{number}.db"}.items():
            if name in words:
                words[words.index(name) + 1] = value
            else:
                words += [name, value]
        assert main(words) == 0, command
    assert capsys.readouterr().out.count("best run: ") == 4
