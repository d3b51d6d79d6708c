"""Commands that are printed can be copied into a shell, whatever the names in them."""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import murp
from murp.cli.main import parser
from murp.commands import command

NAMES = st.binary(min_size=1, max_size=30).filter(lambda name: b"\0" not in name and b"/" not in name).map(os.fsdecode)


def test_a_plain_path_stays_plain() -> None:
    assert command("train", "--resume", Path("runs/first")) == "murp train --resume runs/first"
    assert command("evaluate", Path("my runs/it's")) == """murp evaluate 'my runs/it'"'"'s'"""


@given(NAMES.filter(str.isprintable))
def test_a_shell_reads_what_was_meant(name: str) -> None:
    (program, verb, path) = shlex.split(command("evaluate", Path(name)))
    assert (program, verb) == ("murp", "evaluate")
    assert Path(path) == Path(name)
    assert parser([verb, path]).parse_args([verb, path]).path == [path]


@pytest.mark.parametrize("name", ["line\nend", "caf\udce9", "\x1b[31mred's \\", "-k", "é 東 \udcff1"])
def test_what_a_terminal_would_spoil_is_escaped(name: str) -> None:
    text = command("evaluate", Path(name))
    assert text.isprintable()
    words = subprocess.run(
        ["bash", "-c", f"murp() {{ printf '%s\\0' \"$@\"; }}; {text}"], capture_output=True, check=True
    ).stdout.split(b"\0")
    assert words == [b"evaluate", os.fsencode("./-k" if name == "-k" else name), b""]


@pytest.mark.parametrize("path", sorted(Path(murp.__file__).parent.rglob("*.py")), ids=lambda path: path.name)
def test_no_command_is_put_together_by_hand(path: Path) -> None:
    """A value right behind the words of a command would not be quoted: :func:`murp.commands.command` does that."""
    assert by_hand(path.read_text(encoding="utf-8")) == []


def by_hand(source: str) -> list[int]:
    """The lines of texts in which a value follows ``murp`` and a command, within one pair of backticks."""
    found = []
    for node in ast.walk(ast.parse(source)):
        text = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif _is_command(text.rpartition("`")[2]):
                found.append(node.lineno)
    return found


def _is_command(text: str) -> bool:
    _, murp, words = text.rpartition("murp ")
    return bool(murp) and words.split(" ")[0] in ("train", "evaluate", "calibrate", "paper", "import", "explore")


def test_the_search_finds_what_it_looks_for() -> None:
    assert by_hand('f"go on with `murp train --resume {path}`"') == [1]
    assert by_hand('f"next: murp evaluate {path}"') == [1]
    assert by_hand('f"murp {version} of {path}: run `murp data list`, then {that}"') == []
