"""The browser, the page and the explorers that the tests of the page share."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from explorer_runs import made_run, nasty_graph

from murp.graph import KnowledgeGraph
from murp.runs import Run

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page


class Shared:
    """What is opened once for one browser test after another."""

    def __init__(self) -> None:
        self.open = ExitStack()
        self.opened: dict[str, Any] = {}

    def once(self, name: str, manager: Callable[[], AbstractContextManager[Any]]) -> Any:
        """What a context manager gives, which stays open."""
        if name not in self.opened:
            self.opened[name] = self.open.enter_context(manager())
        return self.opened[name]

    def close(self) -> None:
        self.opened.clear()
        self.open.close()


SHARED = Shared()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests with a browser one after another, where the first of them is: each gap would be a new browser."""
    shown = [item for item in items if "browser" in getattr(item, "fixturenames", ())]
    if shown:
        first = items.index(shown[0])
        others = [item for item in items[first:] if "browser" not in getattr(item, "fixturenames", ())]
        items[first:] = shown + others


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Close all of it before a test without a browser: Playwright's loop would be in the way of asyncio."""
    if "browser" not in getattr(nextitem, "fixturenames", ()):
        SHARED.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, make_tree: Callable[..., KnowledgeGraph]) -> list[Run]:
    """MuRP and MuRE with random weights, on a graph of names that would be trouble as markup."""
    graph = nasty_graph(make_tree())
    folder = tmp_path_factory.mktemp("runs")
    return [made_run(folder / name, graph, model=name, seed=i) for i, name in enumerate(("murp", "mure"))]


@pytest.fixture
def one(browser: Any, runs: list[Run]) -> str:
    """The address of an explorer of the first run."""
    from browsing import exploring

    return str(SHARED.once("one", lambda: exploring(runs[0])))


@pytest.fixture
def two(browser: Any, runs: list[Run]) -> str:
    """The address of an explorer of both."""
    from browsing import exploring

    return str(SHARED.once("two", lambda: exploring(*runs)))


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `murp demo tree` makes, small: the furniture of WordNet, laid out, and embedded in 2 and 3 dimensions."""
    from murp.explorer import tree_demo

    path = tmp_path_factory.mktemp("demo") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_demo, "DIMENSIONS", (2, 3))
        patch.setattr(tree_demo, "EPOCHS", 1)
        tree_demo.grow(tree_demo.branch_of(KnowledgeGraph.load("wordnet-mini"), "furniture.n.01"), path)
    return path


@pytest.fixture
def browser() -> Any:
    """A Chromium."""
    from browsing import chromium

    return SHARED.once("browser", chromium)


def window(browser: Any, options: dict[str, Any]) -> BrowserContext:
    """A context for pages of one kind. A page kept open in it halves the cost of each further one."""

    def opened() -> BrowserContext:
        context: BrowserContext = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        context.new_page()
        return context

    return SHARED.once(json.dumps(options, sort_keys=True), opened)


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console calls errors."""
    return []


@pytest.fixture
def page(browser: Any, complaints: list[str], request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh page that may complain of nothing, ask no other host, and run nothing that a name brought along."""
    opened = window(browser, getattr(request, "param", {})).new_page()
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    asked: list[str] = []
    opened.on("request", lambda sent: asked.append(sent.url))
    try:
        yield opened
        if folder := os.environ.get("MURP_SCREENSHOTS"):
            opened.screenshot(path=Path(folder) / f"{request.node.name}.png")
        assert complaints == []
        assert all(re.match(r"http://127\.0\.0\.1:|file:|data:", url) for url in asked)
        assert opened.title() != "taken"
        assert opened.locator("#panel script, #panel img, #panel b, #disks script, #completions img").count() == 0
    finally:
        opened.evaluate("location.protocol === 'http:' && localStorage.clear()")  # the next page begins with nothing
        opened.close()
