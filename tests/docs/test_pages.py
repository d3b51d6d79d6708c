"""Code on pages that are no guides: it runs, or at least its commands are understood, and no page is forgotten."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from page_code import ROOT, commands, fenced, page

import guides
import murp
from murp.cli.main import main, parser

PAGES = ["README.md", *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md")))]
# Pages with code that are no guides, and who runs it.
RUN_BY = {
    "README.md": "tests/docs/test_pages.py",
    "docs/README.md": "tests/docs/test_pages.py",
    "docs/data.md": "tests/docs/test_pages.py",
    "docs/extending.md": "tests/docs/test_pages.py",
    "docs/field.md": "tests/docs/test_long_commands.py",
    "docs/gallery.md": "tests/docs/test_long_commands.py",
    "docs/large-graphs.md": "tests/docs/test_long_commands.py",
    "docs/nearest-neighbours.md": "tests/exchange/test_guide.py",
    "docs/scale.md": "tests/docs/test_long_commands.py",
    "docs/serving.md": "tests/serving/test_serving_page.py",
    "docs/tuning.md": "tests/tuning/test_tuning_page.py",
    "docs/types.md": "tests/docs/test_pages.py",
}

known = cache(parser)


def understood(line: str) -> None:
    """Options depend on the words of three commands; the parser of the others is made once."""
    words = tuple(shlex.split(line, comments=True)[1:])
    known(words if words[0] in ("train", "sweep", "tune") else ()).parse_args(words)


def test_every_page_with_code_is_run_by_a_test() -> None:
    for name in PAGES:
        if name.startswith("docs/guides/"):
            assert Path(name).stem in guides.GUIDES, f"{name}: name it in GUIDES of tools/guides.py"
        elif re.search(r"^```(sh|python)$|^    murp ", page(name), re.MULTILINE):
            assert name in RUN_BY, f"{name} has code: run it in a test, and say here which"
            assert Path(name).name in (ROOT / RUN_BY[name]).read_text(encoding="utf-8")


def test_every_fence_says_its_language() -> None:
    """A fence without one would be neither run nor coloured."""
    for name in PAGES:
        opened = re.findall(r"^ *```(\w*)\n.*?^ *```$", page(name), re.DOTALL | re.MULTILINE)
        assert set(opened) <= {"sh", "python", "text", "toml", "bibtex", "json", "dockerfile"}, name


def test_the_commands_are_understood() -> None:
    """Of every page, those that say how a long training was made among them."""
    found = {path: commands(path) for path in PAGES if not path.startswith("docs/guides/")}
    for path in ("README.md", "docs/gallery.md", "docs/field.md", "docs/scale.md"):
        assert found[path], path
    for lines in found.values():
        for line in lines:
            understood(line)


def test_a_mistyped_command_is_found() -> None:
    with pytest.raises(SystemExit):
        understood("murp predict runs/first --haed asia.n.01")


def test_the_first_minute_is_a_part_of_guides_that_are_run() -> None:
    """As the README and the site's first page have it; :mod:`test_guides` runs the guides."""
    (first,) = fenced("docs/README.md", "sh")
    assert first in fenced("README.md", "sh")
    install, *lines = guides.commands(first)
    assert install == "pip install murp"
    run = [
        line
        for name in guides.GUIDES
        for code in fenced(f"docs/guides/{name}.md", "sh")
        for line in guides.commands(code)
    ]
    assert set(lines) <= set(run)


def test_graphs_from_python_are_made_as_the_page_says() -> None:
    pytest.importorskip("pandas", reason="needs pandas: pip install 'murp[pandas]'")
    pytest.importorskip("networkx", reason="needs networkx: pip install 'murp[networkx]'")
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'murp[rdf]'")
    names: dict[str, Any] = {}
    for code in fenced("docs/data.md", "python"):
        exec(code, names)
    assert len(names["graph"]) == 3


def test_a_run_is_extended_and_constrained_as_the_pages_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    quick = {"model": "distmult", "dim": 4, "epochs": 1, "validate_every": 0}
    names: dict[str, Any] = {"run": murp.train("wordnet-mini", out="runs/first", **quick)}
    for name in ("docs/extending.md", "docs/types.md"):
        for code in fenced(name, "python"):
            exec(code, names)
    assert names["second"].graph.num_entities == names["run"].graph.num_entities + 1


PEOPLE = ("Ada Lovelace", "Mary Shelley", "Emmy Noether")
FACTS = [(name, verb, f"book {i}") for name in PEOPLE for verb in ("wrote", "read") for i in range(20)]


def run_here(line: str) -> None:
    """One command of a page; a training makes few steps."""
    words = shlex.split(line, comments=True)[1:]
    if words[0] in ("train", "sweep"):
        words = [*(word for word in words if not word.isdecimal() or "--lr" in words), "--validate-every", "0"]
        words = [word for word in words if word != "--epochs"] + ["--epochs", "1"]
    assert main(words) == 0, line


def test_the_commands_of_these_pages_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the pages; `murp serve` does not return, and is run in tests/serving."""
    monkeypatch.chdir(tmp_path)
    rows = "".join("\t".join(fact) + "\n" for fact in FACTS)
    Path("my-facts.tsv").write_text(rows, encoding="utf-8")
    Path("more-facts.tsv").write_text(f"{rows}Ada Lovelace\twrote\ta letter\n", encoding="utf-8")
    (facts,) = re.findall(r"```text\n(.*?)```", page("docs/extending.md"), re.DOTALL)
    Path("new-facts.tsv").write_text(facts, encoding="utf-8")
    murp.train("wordnet-mini", out="runs/first", epochs=1, validate_every=0)
    own = re.findall(r"^    (murp .*)$", page("README.md"), re.MULTILINE)
    lines = [*own, *commands("docs/extending.md"), *commands("docs/types.md")]
    assert len(lines) == 4 + 4 + 4
    for line in lines:
        if not line.startswith("murp serve "):
            run_here(line)
    run_here(re.findall(r"`(murp sweep --data my-facts.tsv .*?)`", page("README.md"))[0])
    told = capsys.readouterr().out
    for words in ("placed 2 entities, 1 relation", "protocol types", "saved in runs/my-facts-sweep-lr"):
        assert words in told
