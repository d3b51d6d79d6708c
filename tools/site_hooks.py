"""What `mkdocs` does to our pages on the way to the site: see `hooks` in mkdocs.yml.

- Some pages outside docs/ (CONTRIBUTING.md, …) become pages of the site.
- A link that leaves docs/ would be dead there. A file it names is copied into the site, under ``repository/``. A link
  to a folder becomes plain text.
- ``<!-- python: … -->``, ``<!-- parts: … -->`` and ``<!-- commands -->`` in the reference are filled from the package
  itself, so that nothing is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

import murp
from murp import registry
from murp.config import known_settings
from murp.recipes import completed

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Pages of the site that lie elsewhere in the repository.
OUTSIDE = {
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "SECURITY.md": "SECURITY.md",
    "predictions.md": "benchmarks/PREDICTIONS.md",
}
# The README's readers find the site's first page instead.
INSIDE = {"README.md": "README.md", **{path: uri for uri, path in OUTSIDE.items()}}
COPIED = "repository"
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^][]*(?:\[[^][]*\][^][]*)?)\]\((?P<target>[^()\s]+)\)")
PLACE = re.compile(r"^<!-- (?P<what>python|parts|commands)(?:: (?P<which>\w+))? -->$", re.MULTILINE)
ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):<code>~?")
FENCED = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """The pages outside docs/, and every file of the repository that a page links to."""
    for uri, path in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    for path in sorted(linked_files()):
        files.append(File.generated(config, f"{COPIED}/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links that hold on the site and with its part of the reference."""
    filled = PLACE.sub(lambda place: "\n".join(_reference(place["what"], place["which"])), markdown)
    return moved(filled, page.file.src_uri)


def on_page_content(html: str, **_: Any) -> str:
    """Roles such as ``:func:`` are for editors; here the name alone is shown."""
    return ROLE.sub("<code>", html)


def source(uri: str) -> PurePosixPath:
    """The place in the repository of a page of the site."""
    return PurePosixPath(OUTSIDE.get(uri, f"docs/{uri}"))


def moved(markdown: str, uri: str) -> str:
    """``markdown`` with every link that leaves docs/ changed to where the site has its target."""
    up = "../" * uri.count("/")

    def link(match: re.Match[str]) -> str:
        path, mark, anchor = match["target"].partition("#")
        where = target(match["target"], source(uri))
        if where is None:
            return match[0]
        if where.parts[:1] == ("docs",):
            inside = up + str(where).removeprefix("docs/")
        elif str(where) in INSIDE:
            inside = up + INSIDE[str(where)]
        elif (ROOT / where).is_file():
            inside = f"{up}{COPIED}/{where}"
        else:
            return match["text"]
        return f"{match['picture']}[{match['text']}]({inside}{mark}{anchor})" if path else match[0]

    return "".join(part if part.startswith("`") else LINK.sub(link, part) for part in FENCED.split(markdown))


def target(link: str, page: PurePosixPath) -> PurePosixPath | None:
    """What a link names, as a path in the repository; None where it stays among the pages, or leaves the repository."""
    path = link.partition("#")[0]
    if not path or "://" in path or path.startswith("mailto:"):
        return None
    parts: list[str] = []
    for part in (page.parent / path).parts:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    where = PurePosixPath(*parts)
    stays = page.parts[0] == "docs" and where.parts[:1] == ("docs",)
    return None if stays else where


def linked_files() -> set[str]:
    """The files outside docs/ to which the pages link, those that are pages of the site aside."""
    found = set()
    for uri in (*OUTSIDE, *(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))):
        text = FENCED.sub("", (ROOT / source(uri)).read_text(encoding="utf-8"))
        for match in LINK.finditer(text):
            where = target(match["target"], source(uri))
            if where is None or where.parts[:1] == ("docs",) or str(where) in INSIDE:
                continue
            if (ROOT / where).is_file():
                found.add(str(where))
    return found


def _reference(what: str, which: str | None) -> Iterator[str]:
    if what == "python":
        for name, home in sorted(murp._HOMES.items()):
            if name != "MurpError" and name[0].isupper() == (which == "classes"):
                yield _documented(f"{home}.{name}", 3, inherited_members=which == "classes")
    elif what == "parts":
        for name, place in getattr(registry, str(which)).items():
            described = _documented(place.replace(":", "."), 4, members=False, show_bases=False)
            yield f"### {name}\n\n{described}\n{_settings(place)}\n{_usual(name) if which == 'MODELS' else ''}"
    else:
        yield from _commands()


def _documented(place: str, level: int, **options: object) -> str:
    """What mkdocstrings reads."""
    given = "".join(
        f"\n      {name}: {str(value).lower()}" for name, value in {"heading_level": level, **options}.items()
    )
    return f"::: {place}\n    options:{given}\n"


def _settings(place: str) -> str:
    """The settings that a part declares, as a table."""
    module, _, name = place.partition(":")
    rows = [
        f"| `{setting.name}` | `{setting.default}` | {setting.help} |"
        for setting in getattr(import_module(module), name).settings.values()
    ]
    return "\n".join(["| setting | default | meaning |", "| --- | --- | --- |", *rows, ""]) if rows else ""


def _usual(model: str) -> str:
    """The defaults that a model declares for a run of it, beside the general ones, as a table."""
    values = completed({"model": model})
    known = known_settings(values)
    rows = [
        f"| `{name}` | `{values[name]}` | `{known[name].default}` |" for name in registry.find("model", model).usual
    ]
    head = [f"| in a run of {model} | default | otherwise |", "| --- | --- | --- |"]
    return "\n".join([*head, *rows, ""]) if rows else ""


def _commands() -> Iterator[str]:
    """``--help`` of every command, and of every verb of those that have verbs."""
    from murp.cli.main import parser

    os.environ["COLUMNS"] = "100"  # as wide as the page, whatever terminal builds it
    for words, command in _parsers(parser(), ()):
        if words:
            yield f"## murp {' '.join(words)}\n\n```text\n{command.format_help().rstrip()}\n```\n"


def _parsers(parser: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    verbs = [action for action in parser._actions if isinstance(getattr(action, "choices", None), dict)]
    if not verbs:
        yield words, parser
    for action in verbs:
        for name, inner in action.choices.items():
            yield from _parsers(inner, (*words, name))
