"""What a user mistypes is told by the command it was meant for; what ``--help`` shows can be copied."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import murp
from murp.cli.main import WITH_SETTINGS, main, parser
from murp.cli.manual import MANUAL
from murp.config import Config
from murp.errors import ConfigError


def misunderstood(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The message of words that are not understood: status 2, standard output empty, the usage before it."""
    return refused_by(main, line, capsys)


def refused_by(parse: Callable[[list[str]], object], line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        parse(shlex.split(line))
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert printed.out == ""
    return printed.err


@pytest.mark.parametrize(
    ("line", "command", "meant"),
    [
        ("trian", "murp", "train"),
        ("data audt x", "murp data", "audit"),
        ("evaluate runs/p --protocl paper", "murp evaluate", "--protocol"),
        ("evaluate runs/p --protocl=paper", "murp evaluate", "--protocol"),
        ("predict runs/p --haed x --relation r", "murp predict", "--head"),
        ("train --epoch-s 3", "murp train", "--epochs"),
        ("data convert a b --fromat csv", "murp data convert", "--format"),
        ("plot runs/p dsk", "murp plot", "disk"),
        ("train --model mrup", "murp train", "murp"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_one_that_is_close(
    line: str, command: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = misunderstood(line, capsys)
    assert message.startswith(f"usage: {command} ")
    assert f"{command}: error: " in message
    assert f"Did you mean {meant}?" in message


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("train --model rotate --curvature 2", "--curvature is a setting of model murp, "),
        ("train --model rotate --curvature=2", ", and not of rotate."),
        ("sweep --lr 1 5 --beta1 0.5", "--beta1 is a setting of optimizer adam, and not of sgd."),
        ("tune --regularizer-weight 1", "--regularizer-weight is a setting of regularizer l2, n3, dura"),
        (
            "train --objective one-vs-all --negatives 5",
            "--negatives is a setting of objectives that draw false triples: bernoulli, self-adversarial, softmax, "
            "margin, rank; not of one-vs-all.",
        ),
        ("train --model distmult --negatives 5", "; not of one-vs-all (the default of distmult)."),
        ("train --recipe fb15k-237 --negatives 5", "; not of one-vs-all (the default of rescal)."),
        (
            "sweep --model conve distmult complex --negatives 5",
            "; not of k-vs-all (the default of conve) or one-vs-all (the default of distmult, complex).",
        ),
        ("train --model distmult --temperature 1", ", and not of one-vs-all (the default of distmult)."),
        ("train --model distmult --objective k-vs-all --temperature 1", ", and not of k-vs-all."),
    ],
)
def test_a_setting_of_something_else_is_told_whose_it_is(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The closest option would be another one: --temperature for --curvature."""
    message = misunderstood(line, capsys)
    assert told in message
    assert "Did you mean" not in message


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("train --gama 3", "Did you mean --gamma? --gamma is a setting of model transe, "),
        (
            "train --model distmult --negativs 5",
            "Did you mean --negatives? --negatives is a setting of objectives that ",
        ),
        ("train --quit", "Did you mean --quiet?"),
    ],
)
def test_a_misspelt_setting_of_something_else_is_told_whose_it_is(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the options of MuRP, --data is the closest to --gama."""
    assert told in misunderstood(line, capsys)


def test_a_misspelt_keyword_of_something_else_is_told_whose_it_is() -> None:
    told = (
        r"^unknown setting 'gama'\. Did you mean 'gamma'\? 'gamma' is a setting of model transe, .*, and not of murp\.$"
    )
    with pytest.raises(ConfigError, match=told):
        Config(gama=3)
    with pytest.raises(ConfigError, match=r"Did you mean 'dim'\?$"):
        Config(dims=3)


def test_no_suggestion_where_nothing_is_close_or_nothing_is_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    message = misunderstood("train --model quaternions", capsys)
    assert "model 'quaternions' is not known. Choose one of murp, mure, transe" in message
    for line in ("info runs/p surplus", "evaluate runs/p --zzzzz", "evaluate --prot paper"):
        assert "Did you mean" not in misunderstood(line, capsys)


@pytest.mark.parametrize(("line", "verb"), [("", "train"), ("data", "audit"), ("paper", "report")])
def test_without_a_command_its_help_says_which_there_are(
    line: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = misunderstood(line, capsys)
    assert "error" not in message
    assert verb in message
    assert "examples:" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("train --dim -3", "argument --dim: must be at least 1, not -3"),
        ("train --dim many", "argument --dim: must be a whole number, not 'many'"),
        ("train --dim 1.5", "argument --dim: must be a whole number, not '1.5'"),
        ("train --lr=", "argument --lr: must be a number, not ''"),
        ("train --device gpu", "argument --device: invalid choice: 'gpu' (choose from auto, cpu, cuda)"),
        ("train --lr nan", "argument --lr: must be a finite number, not nan"),
        ("train --lr 0", "argument --lr: must be above 0, not 0.0"),
        ("train --batch-size 0", "argument --batch-size: must be at least 1, not 0"),
        ("sweep --out x --lr 10 -1", "argument --lr: must be above 0, not -1.0"),
        ("predict r --head x --relation r -k 0", "argument -k: must be at least 1, not 0"),
    ],
)
def test_a_value_no_option_takes_is_not_understood(
    options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in misunderstood(options, capsys)


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its parser; the settings of a command are there when it is given."""
    for name, command in parsers(parser()):
        yield name, dict(parsers(parser([name])))[name] if name in WITH_SETTINGS else command


def whole_numbers() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Every option that takes a whole number, as its command, its name and the command's parser."""
    for name, command in commands():
        for action in command._actions:
            if action.type is not None and action.metavar != "X":
                with contextlib.suppress(argparse.ArgumentTypeError, ValueError):
                    if isinstance(action.type("1"), int):  # type: ignore[operator]
                        yield name, action.option_strings[0], command


def test_no_option_takes_a_whole_number_beyond_the_machine_s(capsys: pytest.CaptureFixture[str]) -> None:
    options = list(whole_numbers())
    assert {("train", "--dim"), ("predict", "-k")} <= {(name, option) for name, option, _ in options}
    assert len(options) > 20
    for _, option, command in options:
        message = refused_by(command.parse_args, f"{option} 12345678901234567890123456", capsys)
        assert f"argument {option}: must be at most 9223372036854775807, not 1234" in message


def parsers(at: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, at
    for action in at._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, below in action.choices.items():
                yield from parsers(below, f"{name} {command}".strip())


def test_every_command_has_its_place_in_the_manual_and_its_examples_are_understood() -> None:
    found = dict(commands())
    assert found.keys() == MANUAL.keys()
    for name, command in found.items():
        text = command.format_help()
        for example in MANUAL[name][1]:
            assert f"\n  {example}\n" in text
            program, *words = shlex.split(example)
            assert program == "murp"
            assert example.startswith(f"murp {name}")
            parser(words).parse_args(words)


def test_no_help_ends_in_an_empty_default() -> None:
    for name, command in commands():
        for action in command._actions:
            words = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
            assert not words.rstrip().endswith(("default:", "default: None")), (name, action.dest)
    for command in ("train", "sweep"):
        assert "--quiet" in dict(commands())[command].format_help()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a file that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_told_without_a_traceback(unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "murp", "data", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert ended.returncode == 1
    assert ended.stderr == "murp: standard output cannot be written: No space left on device.\n"


def test_a_working_folder_that_was_removed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with contextlib.chdir(gone):
        gone.rmdir()
        assert main(["evaluate", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err.startswith("murp: the folder you are in was removed. ")


def test_a_fault_of_ours_is_not_taken_for_one_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("not from standard output")

    monkeypatch.setattr("murp.cli.data.run_list", broken)
    with pytest.raises(OSError, match="not from standard output"):
        main(["data", "list"])


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("model = 'mure'\n\n  batch_sze = 3\n", [], "f.toml, line 3: unknown setting 'batch_sze'"),
        ("model = 'mure'\nbatch_sze = 3\n", ["--dim", "4"], "f.toml, line 2: unknown setting 'batch_sze'"),
        ("dim = 'x'\n", [], "f.toml, line 1: dim must be a whole number"),
        ("dim = 4\n", ["--patience", "3", "--validate-every", "0"], "f.toml and the command line: patience needs"),
        ("[optimizer]\nlr = 0.1\n", [], "f.toml, line 1: optimizer must be a text"),
        ("model = 'rotate'\ncurvature = 3.0\n", [], "f.toml, line 2: curvature is a setting of model murp"),
        ("model = 'distmult'\nnegatives = 3\n", [], "f.toml, line 2: negatives is a setting of objectives that draw"),
        ("dim = 3\nthreads = 1\n", [], "f.toml, line 2: threads is not a setting of a run: give --threads N on"),
        ("epochs = 3\n'dim' = 0\n", [], "f.toml, line 2: dim must be at least"),
        ("dim = 4\nmodel = 'murpp'\n", [], "f.toml, line 2: model 'murpp' is not known. Did you mean murp?"),
        ("model = 'nowhere:Model'\n", [], "f.toml, line 1: model nowhere:Model cannot be imported"),
        ("dim = 4\nrecipe = 'papr'\n", [], "f.toml, line 2: recipe 'papr' is not known. Did you mean paper?"),
        ("recipe = 'auto'\nlr = 'a'\n", [], "f.toml, line 2: lr must be a number"),
        ("model = 'murp'\nregularizer = 'dura'\n", [], "f.toml, line 2: regularizer dura needs a model"),
    ],
)
def test_a_setting_in_a_file_is_named_with_its_line(
    text: str, more: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.toml").write_text(text, encoding="utf-8")
    assert main(["train", "--config", "f.toml", "--out", "run", *more]) == 1
    assert f"murp: {message}" in capsys.readouterr().err
    if not more:
        with pytest.raises(ConfigError, match=re.escape(message)):
            murp.train("wordnet-mini", config="f.toml", out="run")
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"graph": [("a", "r", "b")]},
            r"must be a KnowledgeGraph, or the name or .* not a list.*from_triples",
        ),
        ({"graph": None}, "not a NoneType"),
        ({"graph": "wordnet-mini", "out": 3}, "out must be the path of a folder, not 3"),
        ({"graph": "wordnet-mini", "progress": print}, "progress must derive from"),
    ],
)
def test_a_value_of_another_type_is_refused_before_anything_is_written(
    given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        murp.train(**{"dim": 4, "epochs": 1, "device": "cpu", **given})
    assert list(tmp_path.iterdir()) == []
