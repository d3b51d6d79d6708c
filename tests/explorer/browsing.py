"""A browser and an explorer to look at with it; what the tests of the page do again and again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from explorer_runs import serving

from murp.explorer.app import create_app
from murp.explorer.collection import Collection
from murp.runs import Run

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install 'murp[dev]'")
Page, expect = playwright.Page, playwright.expect

CHROMIUM = os.environ.get("MURP_CHROMIUM") or shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs a browser: apt-get install chromium, or name one in MURP_CHROMIUM"
    ),
]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser."""
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@contextmanager
def exploring(*runs: Run) -> Iterator[str]:
    """The address of an explorer in a thread."""
    with serving(create_app(Collection(list(runs)))) as (host, port):
        yield f"http://{host}:{port}/"


def settled(page: Page) -> None:
    """Wait until the page shows what was chosen."""
    page.wait_for_selector("body[data-ready]")


def visit(page: Page, address: str) -> None:
    """Open an address and wait for what it shows."""
    page.goto(address)
    settled(page)


def modules(page: Page, address: str) -> None:
    """An empty page that may import the modules of the real one: their functions need nothing around them."""
    empty = "<!doctype html><link rel=icon href=data:,>"
    page.route(f"{address}empty", lambda route: route.fulfill(content_type="text/html", body=empty))
    page.goto(f"{address}empty")


def dots(page: Page, number: int = 0) -> str:
    """The picture as it is now, once nothing is left to draw."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return str(page.locator("canvas.dots").nth(number).evaluate("canvas => canvas.toDataURL()"))


def place(page: Page, x: float, y: float, number: int = 0) -> tuple[float, float]:
    """A position of the unit disk on the screen."""
    page.locator("canvas.overlay").nth(number).scroll_into_view_if_needed()
    box = page.locator("canvas.overlay").nth(number).bounding_box()
    assert box is not None
    return box["x"] + (1 + x) * box["width"] / 2, box["y"] + (1 - y) * box["height"] / 2


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From one position of the unit disk to another, and the pointer away."""
    page.mouse.move(*place(page, *start))
    page.mouse.down()
    page.mouse.move(*place(page, *end), steps=5)
    page.mouse.up()
    page.mouse.move(2, 2)
