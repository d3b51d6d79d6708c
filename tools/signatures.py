"""Write ``src/murp/api/settings.py``: every setting of every part by name, type, default and explanation.

    python tools/signatures.py            # after a part or a setting was added or changed
    python tools/signatures.py --check    # change nothing; exit 1 if the file is out of date

The registry knows the settings only when it runs. Type checkers, editors and ``help()`` know what is written in a file:
so it is written there, and a test compares the two.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path

from murp import registry
from murp.config import Config
from murp.settings import Setting

FILE = Path(__file__).parents[1] / "src" / "murp" / "api" / "settings.py"
LEFT_OUT = "data"  # the graph itself

HEAD = '''"""The settings of a run as keyword arguments. Written by ``python tools/signatures.py``: do not edit.

``Settings`` are what :func:`murp.train` takes, ``Grid`` what :func:`murp.sweep` takes: one value each, or several.
``EXPLAINED`` has the default of the usual run (``...`` where it has no such setting) and the explanation of each.
A part of your own may have further settings; they are taken too.
"""

# fmt: off
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict
'''


@dataclass
class Known:
    """One name with the settings that bear it, each with the parts it belongs to (none: it belongs to every run)."""

    settings: list[Setting] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def type(self) -> str:
        """As it is written in Python; a whole number will do for a number."""
        one = self.settings[0]
        assert len({s.kind for s in self.settings}) == 1, f"{one.name} is of two types"
        if one.choices:
            return f"Literal[{', '.join(map(_quoted, one.choices))}]"
        return str(one.kind.__name__)

    def words(self) -> str:
        """What it does; of whom, where it is no setting of every run."""
        of = f" (of {', '.join(self.parts)})" if self.parts else ""
        return self.settings[0].help + of


def known() -> dict[str, Known]:
    """Every setting by name, those of every run first."""
    found = {name: Known([one]) for name, one in Config.settings.items() if name != LEFT_OUT}
    for kind, names in registry.KINDS.items():
        for part in names:
            for name, one in registry.find(kind, part).settings.items():
                entry = found.setdefault(name, Known())
                entry.settings.append(one)
                entry.parts.append(part)
    for entry in found.values():
        if set(entry.parts) >= set(registry.MODELS):
            entry.parts = []
    found["recipe"] = Known([Setting("", "settings that go together, by name (murp.recipes.RECIPES)", name="recipe")])
    return found


def text() -> str:
    """The whole file."""
    usual = Config().to_dict()
    settings = known()
    lines = [HEAD, "", "class Settings(TypedDict, total=False):", '    """One value for each."""', ""]
    for name, one in settings.items():
        lines += [f"    {name}: {one.type()}", f'    """{one.words()}"""']
    lines += ["", "", "class Grid(TypedDict, total=False):", '    """One value for each, or several to try."""', ""]
    lines += [f"    {name}: {one.type()} | Sequence[{one.type()}]" for name, one in settings.items()]
    lines += ["", "", "EXPLAINED: dict[str, tuple[Any, str]] = {"]
    for name, one in settings.items():
        value = usual.get(name, ...)
        default = "..." if value is ... else _quoted(value) if isinstance(value, str) else repr(value)
        lines.append(f"    {_quoted(name)}: ({default}, {_quoted(one.words())}),")
    return "\n".join([*lines, "}", ""])


def _quoted(value: str) -> str:
    inner = value.replace("\\", "\\\\")
    return f"'{inner}'" if '"' in inner and "'" not in inner else '"' + inner.replace('"', '\\"') + '"'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the file is out of date")
    if parser.parse_args().check:
        return int(not FILE.exists() or FILE.read_text(encoding="utf-8") != text())
    FILE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
