"""The browser, the page and the explorers that the tests of the page share, each once a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from exhibits import made_run, nasty_graph

from murp.graph import KnowledgeGraph
from murp.runs import Run

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, make_tree: Callable[..., KnowledgeGraph]) -> list[Run]:
    """MuRP and MuRE with random weights, on a graph of names that would be trouble as markup."""
    graph = nasty_graph(make_tree())
    folder = tmp_path_factory.mktemp("runs")
    return [made_run(folder / name, graph, model=name, seed=i) for i, name in enumerate(("murp", "mure"))]


@pytest.fixture(scope="module")
def one(runs: list[Run]) -> Iterator[str]:
    """The address of an explorer of the first run."""
    from browsing import exploring

    with exploring(runs[0]) as address:
        yield address


@pytest.fixture(scope="module")
def two(runs: list[Run]) -> Iterator[str]:
    """The address of an explorer of both."""
    from browsing import exploring

    with exploring(*runs) as address:
        yield address


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `murp demo tree` makes, small: the furniture of WordNet, laid out, and embedded in 2 and 3 dimensions."""
    from murp.explorer import growing

    path = tmp_path_factory.mktemp("demo") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "DIMENSIONS", (2, 3))
        patch.setattr(growing, "EPOCHS", 1)
        growing.grow(growing.branch_of(KnowledgeGraph.load("wordnet-mini"), "furniture.n.01"), path)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium."""
    from browsing import ARGUMENTS, CHROMIUM, playwright

    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console calls errors."""
    return []


@pytest.fixture
def page(browser: Any, complaints: list[str], request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh page that may complain of nothing, ask no other host, and run nothing that a name brought along."""
    options = getattr(request, "param", {})
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
    opened = context.new_page()
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    asked: list[str] = []
    opened.on("request", lambda sent: asked.append(sent.url))
    yield opened
    if folder := os.environ.get("MURP_SCREENSHOTS"):
        opened.screenshot(path=Path(folder) / f"{request.node.name}.png")
    assert complaints == []
    assert all(re.match(r"http://127\.0\.0\.1:|file:|data:", url) for url in asked)
    assert opened.title() != "taken"
    assert opened.locator("#panel script, #panel img, #panel b, #disks script, #completions img").count() == 0
    context.close()
