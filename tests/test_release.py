"""What a release must agree on: one version, and files that the checklist names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import murp
from murp import registry
from murp.cli.main import parser
from murp.export_formats import FORMATS
from murp.models.hierarchy import Distance
from murp.picture_kinds import KINDS

ROOT = Path(__file__).parents[1]


def test_the_version_has_one_home() -> None:
    """The package's metadata reads it from ``murp.__version__``; the citation repeats it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "murp.__version__"}
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == murp.__version__


def test_every_file_and_script_of_the_checklist_is_there() -> None:
    text = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    scripts = re.findall(r"`python ((?:tools|reliability)/\S+\.py)`", text)
    assert len(scripts) >= 2
    for name in (*scripts, "CITATION.cff", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md"):
        assert (ROOT / name).is_file(), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([\w-]+)`", text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_quickstart_installs_murp_alone() -> None:
    """The developers' tools are another target's: they are larger than all that a newcomer needs."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^(\S+): ?(.*(?:\n(?:\t|ifn?eq|endif).*)*)", makefile, re.MULTILINE))
    assert ".venv/tools" not in rules["quickstart"]
    assert "dev" not in rules[".venv/installed"]
    assert "$(INSTALL) -e ." in rules[".venv/installed"]
    assert "du -sm .venv" in rules[".venv/installed"]
    assert ".[dev," in rules[".venv/tools"]


def test_every_command_is_in_the_readme() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Commands")[2].partition("\n## ")[0]
    (commands,) = (action.choices for action in parser()._actions if isinstance(action.choices, dict))
    assert [name for name in commands if f"`murp {name}" not in table] == []


def test_the_readme_names_every_kind_of_picture_and_counts_the_formats_of_exports() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Commands")[2].partition("\n## ")[0]
    assert [kind for kind in KINDS if f"`{kind}`" not in table] == []
    numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"in {numbers[len(FORMATS) - 1]} formats" in table


def test_the_readme_names_what_a_training_can_be_made_of() -> None:
    """But for the models of one hierarchy, which `murp embed` trains."""
    (words,) = re.findall(
        r"^`murp train` has an option for each part: (.*?)\n\n",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    for kind in ("model", "objective", "optimizer", "regularizer"):
        (listed,) = re.findall(rf"`--{kind}`\s\(([^)]*)\)", words)
        named = [name.strip() for name in listed.replace("\n", " ").split(",")]
        known = [name for name in registry.KINDS[kind] if not issubclass(registry.find(kind, name), Distance)]
        assert sorted(known) == sorted(name for name in named if not name.startswith("or a class"))


def test_every_extra_is_explained_in_the_readme() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in extras if f"`murp[{name}]`" not in readme] == []
