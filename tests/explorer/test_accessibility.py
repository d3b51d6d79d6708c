"""Every view by axe-core, in the light and in the dark, on a desktop and on a phone; and all of it by keyboard.

Axe-core is no part of murp: ``npm pack axe-core`` fetches it, and MURP_AXE names its axe.min.js.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import BROWSER, Page, expect, exploring, serving, settled, visit
from explorer_runs import made_run

from murp.explorer.animation import write_animation
from murp.explorer.app import create_live_app
from murp.explorer.live import Live
from murp.explorer.snapshots import Recorder
from murp.runs import Run
from murp.training import train
from murp.training.progress import Silent
from trees import tree

pytestmark = BROWSER
AXE = os.environ.get("MURP_AXE")
DEVICES = {
    "light": {"viewport": {"width": 1280, "height": 860}},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
    "dark phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark"},
}
CARD = "#entity=n5&relation=parent"
VIEWS = {
    "first": "", "card": CARD, "question": f"{CARD}&view=question", "tree": "#tree=1&colour=branch&entity=n5",
    "colours": "#colour=community&size=degree&zoom1=3",
}  # fmt: skip


def serious(page: Page) -> list[Any]:
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes[0].html]))")
    return [one for one in found if one[0] in ("serious", "critical")]


@pytest.fixture
def trained(tmp_path: Path) -> Iterator[str]:
    """The page of a training."""
    train(tree(), out=tmp_path / "run", epochs=2, progress=Recorder(Silent()), dim=5, engine="torch", validate_every=1)
    with serving(create_live_app(Live(tmp_path / "run"))) as (host, port):
        yield f"http://{host}:{port}/"


@pytest.fixture(scope="module")
def four(runs: list[Run]) -> Iterator[str]:
    """The address of an explorer of four runs, as many as fit side by side."""
    more = [made_run(runs[0].path.parent / f"run {seed}", runs[0].graph, seed=seed) for seed in (7, 8)]
    with exploring(*runs, *more) as address:
        yield address


@pytest.mark.skipif(AXE is None, reason="needs axe-core: name its axe.min.js in MURP_AXE")
@pytest.mark.parametrize("device", DEVICES)
def test_axe_finds_nothing_serious(
    browser: Any, one: str, two: str, four: str, trained: str, laid_out: Path, tmp_path: Path, device: str
) -> None:
    context = browser.new_context(bypass_csp=True, **DEVICES[device])
    page = context.new_page()
    found: dict[str, Any] = {}
    for name, view in VIEWS.items():
        for runs, address in (("one", one), ("two", two), ("four", four)):
            page.goto("about:blank")
            visit(page, address + view)
            if name == "first":
                page.locator(".help summary").click()
                page.locator("#search").fill("node")
                page.get_by_role("option").first.wait_for()
            if name == "card":
                page.locator(".why").first.click()
                page.locator(".because").first.wait_for()
                page.locator("canvas.overlay").first.press("n")
                page.keyboard.press("x")
                page.locator("#selection table").wait_for()
                page.locator("#near summary").click()
            page.locator("#metrics table").wait_for()
            assert page.locator("#disks figure").count() == {"one": 1, "two": 2, "four": 4}[runs] + (name == "tree")
            found[f"{name}, {runs}"] = serious(page)
    write_animation(laid_out, tmp_path / "tree.html")
    for name, address in {"training": trained, "tree that grows": (tmp_path / "tree.html").as_uri()}.items():
        visit(page, address)
        page.locator(".help summary").click()
        found[name] = serious(page)
        page.keyboard.press("l")
        found[f"{name}, large"] = serious(page)
    assert {view: what for view, what in found.items() if what} == {}
    context.close()


def test_every_picture_has_a_table_and_everything_a_key(page: Page, two: str) -> None:
    """With Tab alone a reader reaches every control of the page and every picture; five answers stand for fifty."""
    page.route("**/api/predict?*", lambda route: route.continue_(url=route.request.url.replace("k=50", "k=5")))
    visit(page, f"{two}#entity=n5&relation=parent&tree=1")
    page.locator("#metrics table").wait_for()
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, summary, a[href], canvas[tabindex]")]
          .filter((e) => !e.disabled && e.checkVisibility()).map((e, i) => { e.dataset.n = i; return i; })"""
    )
    page.evaluate("addEventListener('focusin', ({ target }) => (window.reached ??= []).push(target.dataset.n))")
    for _ in range(len(wanted) + 5):
        page.keyboard.press("Tab")
    assert len(wanted) > 60
    assert {str(n) for n in wanted} <= set(page.evaluate("window.reached"))
    figures = page.locator("figure").count()
    assert figures == 3  # two runs and the tree
    tables = page.locator("#near table").count() + page.locator("#tree-table table").count()
    assert tables == figures
    assert page.locator("canvas:not([aria-hidden]):not([aria-label])").count() == 0


def test_the_page_of_a_training_has_its_picture_and_curves_as_tables(page: Page, trained: str) -> None:
    visit(page, trained)
    settled(page)
    assert page.locator("#validations tbody tr").count() == 2
    page.locator("canvas.overlay").focus()
    page.keyboard.press("n")
    expect(page.locator("#status")).not_to_be_empty()
    assert page.locator("#near tbody tr").count() > 10
