"""The documentation site builds without a warning, names everything, and no link or anchor in it is dead."""

from __future__ import annotations

import logging
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs", reason="needs mkdocs: pip install 'murp[site]'")
pytest.importorskip("mkdocstrings", reason="needs mkdocstrings: pip install 'murp[site]'")

from mkdocs.commands.build import build
from mkdocs.config import load_config

import murp
import site_hooks
from made_once import once
from murp import registry
from murp.cli.main import parser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it: a warning is an error."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NO_MKDOCS_2_WARNING", "1")
            patch.setenv("COLUMNS", "100")  # which the build sets
            logging.getLogger("mkdocs").setLevel(logging.INFO)  # what it counts
            build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)))

    return once(tmp_path_factory, "site", make)


class Page(HTMLParser):
    """The links and the anchors of a page, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("id", "name"):
                self.anchors.add(str(value))
            elif name == "src" or (name == "href" and tag == "link"):
                self.loaded.append(str(value))
            elif name == "href":
                self.links.append(str(value))


def dead(folder: Path) -> list[str]:
    """Every link to a file or an anchor that is not there, and everything that is loaded from another host."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html") if path.name != "404.html"}
    found = []
    for path, page in pages.items():
        found += [f"{path.name} loads {link}" for link in page.loaded if urlsplit(link).netloc]
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not aim.is_file():
                found.append(f"{path.name}: {link}")
            elif parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].anchors:
                found.append(f"{path.name}: {link}, which has no such anchor")
    return found


def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert dead(site) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html">b</a><a href="#there">x</a><img src="https://else.where/x.png">')
    assert dead(tmp_path) == [
        "a.html loads https://else.where/x.png",
        "a.html: b.html",
        "a.html: #there, which has no such anchor",
    ]


def test_the_reference_has_every_name(site: Path) -> None:
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in set(murp.__all__) - {"__version__"}:
        assert re.search(rf'id="murp\.[\w.]*\b{name}"', python), name
    for name in ("recipes.completed", "threads.use"):
        assert f'id="murp.{name}"' in python
    for file, parts in {
        "models": registry.MODELS,
        "training": {**registry.OBJECTIVES, **registry.NEGATIVES, **registry.OPTIMIZERS, **registry.REGULARIZERS},
    }.items():
        text = (site / "reference" / f"{file}.html").read_text(encoding="utf-8")
        for place in parts.values():
            assert f'id="{place.replace(":", ".")}"' in text, place
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for words, _ in site_hooks._parsers(parser(), ()):
        assert f'id="murp-{"-".join(words)}"' in commands


def test_the_reference_has_the_usual_settings_of_every_model(site: Path) -> None:
    text = (site / "reference" / "models.html").read_text(encoding="utf-8")
    for name in registry.MODELS:
        section = re.split("<h[23] ", text.partition(f'<h3 id="{name}">')[2])[0]
        assert section, name
        cells = re.findall(r"<td><code>(.*?)</code></td>\s*<td><code>(.*?)</code></td>\s*<td><code>", section)
        usual = registry.find("model", name).usual
        assert cells == [(setting, str(value)) for setting, value in usual.items()], name
    assert re.search(r"<code>lr</code></td>\s*<td><code>0.003</code></td>\s*<td><code>0.001</code></td>", text)


def test_no_role_of_an_editor_is_left(site: Path) -> None:
    for path in (site / "reference").glob("*.html"):
        assert not re.search(r":(func|class|meth|mod|attr|data):", path.read_text(encoding="utf-8")), path.name


def test_a_link_that_leaves_the_pages_is_moved() -> None:
    moved = site_hooks.moved
    assert moved("[a](../CONTRIBUTING.md#benchmarks)", "README.md") == "[a](CONTRIBUTING.md#benchmarks)"
    assert moved("[a](../../pyproject.toml)", "guides/x.md") == "[a](../repository/pyproject.toml)"
    assert moved("[the results](../results/)", "x.md") == "the results"
    assert moved("[a](docs/data.md)", "CONTRIBUTING.md") == "[a](data.md)"
    for kept in ("[a](data.md)", "[a](#there)", "[a](https://faiss.ai)", "`[a](../results/)`"):
        assert moved(kept, "x.md") == kept
