"""For a lecture: the tree that grows with its sliders, presenter keys, large type, full screen, two fingers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import BROWSER, Page, dots, expect, exploring, place, settled, visit
from explorer_runs import made_run, nasty_graph, serving

from murp.errors import ConfigError
from murp.explorer.animation import write_animation
from murp.explorer.app import create_live_app
from murp.explorer.collection import Collection
from murp.explorer.live import Live
from murp.graph import KnowledgeGraph
from murp.runs import Run

pytestmark = BROWSER
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark"}

# The first disk's zoom and the height of its letters, once it is drawn.
DRAWN = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const { shared } = await import("/page/shared.js");
  const [disk] = shared.disks;
  return { zoom: disk.zoom, isometry: disk.isometry, letters: disk.written[0].box[3] };
}"""


@pytest.fixture
def live(laid_out: Path) -> Iterator[str]:
    with serving(create_live_app(Live(laid_out))) as (host, port):
        yield f"http://{host}:{port}/"


@pytest.mark.parametrize("page", [{}, PHONE], indirect=True, ids=["desktop", "phone"])
def test_curvature_and_dimension_are_sliders(page: Page, live: str, laid_out: Path, tmp_path: Path) -> None:
    visit(page, live)
    write_animation(laid_out, tmp_path / "tree.html")
    for address in (live, (tmp_path / "tree.html").as_uri()):  # the page that is sent has them too
        visit(page, address)
        assert "room" in page.locator("#explained").inner_text()
        layout = dots(page)
        current = page.locator("#compared tr[aria-current] th")
        expect(current).to_have_text("−1")
        page.locator("#curvature").focus()
        page.keyboard.press("Home")
        expect(current).to_have_text("0, flat")
        expect(page.locator("#note")).to_contain_text("flat space")
        flat = dots(page)
        assert flat != layout
        page.locator("#dimension").focus()
        page.keyboard.press("End")
        expect(current).to_have_text("3")
        expect(page.locator("#curvature-said")).to_have_text("−1")
        expect(page.locator("#note")).to_contain_text("A Poincaré embedding in 3 dimensions")
        page.wait_for_timeout(500)  # it glides there
        assert dots(page) not in (layout, flat)
        page.keyboard.press("Home")
        page.wait_for_timeout(500)
        assert dots(page) == layout
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_presenter_steps_plays_and_enlarges_a_film(page: Page, live: str) -> None:
    visit(page, live)
    said = page.locator("#epoch-said")
    last = said.inner_text()
    page.keyboard.press("PageUp")
    expect(said).not_to_have_text(last)
    page.keyboard.press("PageDown")
    expect(said).to_have_text(last)
    page.keyboard.press("Space")  # plays from the beginning
    expect(page.locator("#play")).to_have_text("Stop")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_text("Play")
    before = page.locator("#note").evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
    page.keyboard.press("l")
    assert page.locator("#large").get_attribute("aria-pressed") == "true"
    assert page.locator("#note").evaluate("e => parseFloat(getComputedStyle(e).fontSize)") > 1.3 * before


def test_a_presenter_goes_through_the_questions(page: Page, one: str) -> None:
    visit(page, one)
    slides = page.locator(".suggestion").all_inner_texts()
    letters = page.evaluate(DRAWN)["letters"]
    page.keyboard.press("l")
    assert page.evaluate(DRAWN)["letters"] == pytest.approx(1.6 * letters)
    page.keyboard.press("l")
    asked = page.locator(".asked")
    for slide in slides:
        page.keyboard.press("PageDown")
        expect(asked).to_have_text(slide)
        settled(page)
    page.keyboard.press("PageUp")
    expect(asked).to_have_text(slides[-2])
    settled(page)
    page.locator("#search").fill("node")
    page.keyboard.press("PageDown")  # belongs to who is typing
    expect(asked).to_have_text(slides[-2])


def test_full_screen_by_key_and_button(page: Page, one: str) -> None:
    visit(page, one)
    button = page.locator("#full")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.keyboard.press("f")
        expect(button).to_have_text("Leave full screen")
        assert page.evaluate("document.fullscreenElement.id") == "stage"
        assert page.locator("canvas.overlay").first.is_visible()
        button.click()
        expect(button).to_have_text("Full screen")
        assert page.evaluate("document.fullscreenElement") is None


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_two_fingers_zoom_around_what_is_between_them(page: Page, one: str) -> None:
    visit(page, f"{one}#edges=0")
    screen = page.context.new_cdp_session(page)
    x, y = place(page, 0.2, 0.1)

    def touch(kind: str, *apart: float) -> None:
        fingers = [{"x": x + sign * half, "y": y, "id": i} for half in apart for i, sign in enumerate((-1, 1))]
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    middle = """() => import("/page/shared.js").then(({ shared: { disks: [disk] } }) =>
      disk.space.image(disk.space.inverse(disk.isometry), 0.2 / disk.zoom, 0.1 / disk.zoom))"""
    before = page.evaluate(middle)
    touch("touchStart", 20)
    for half in (30, 40, 50, 60):
        touch("touchMove", half)
    touch("touchEnd")
    page.wait_for_url("**zoom1=**")
    drawn = page.evaluate(DRAWN)
    assert 2.5 < drawn["zoom"] < 3.5  # three times as far apart
    assert page.evaluate(middle) == pytest.approx(before, abs=0.03)
    assert page.locator(".minimap").first.is_visible()
    page.locator("#undo").click()
    settled(page)
    assert page.evaluate(DRAWN)["zoom"] == 1


def test_calibrated_stands_beside_calibrated_and_raw_beside_raw(
    page: Page, tmp_path: Path, make_tree: Callable[..., KnowledgeGraph]
) -> None:
    graph = nasty_graph(make_tree())
    runs: list[Run] = [made_run(tmp_path / name, graph, model=name, save=True) for name in ("murp", "mure")]
    question = "entity=n5&relation=parent"

    def shown(address: str) -> tuple[list[str], list[str], list[list[dict[str, Any]]]]:
        visit(page, f"{address}#{question}")
        expect(page.locator("#answers table")).to_have_count(2)
        heads = page.locator("#answers thead th:nth-child(3)").all_inner_texts()
        best = page.locator("#answers tbody tr:first-child .probability").all_inner_texts()
        ask = f"{address}api/predict?head=n5&relation=parent&k=1&run="
        return heads, best, [page.request.get(f"{ask}{run}").json()["predictions"] for run in (1, 2)]

    runs[0].calibrate()
    with exploring(*runs) as address:
        heads, best, told = shown(address)
        assert ["model's own" in head for head in heads] == [True, True]
        assert best == [f"{one[0]['probability']:.3f}" for one in told]
        likely = page.locator(".likely h3").all_inner_texts()
        assert len(likely) == 2
        assert all("model's own" in head for head in likely)
    runs[1].calibrate()
    with exploring(*runs) as address:
        heads, best, told = shown(address)
        assert ["calibrated" in head for head in heads] == [True, True]
        assert best == [f"{one[0]['calibrated']:.3f}" for one in told]
        assert all("calibrated" in head for head in page.locator(".likely h3").all_inner_texts())


def test_a_selection_is_linked_between_two_runs_and_the_tree(page: Page, two: str) -> None:
    visit(page, f"{two}#edges=0&tree=1")
    page.locator("canvas.overlay").first.press("n")
    page.locator("canvas.overlay").first.press("x")
    expect(page.locator("#selection h2")).to_have_text("Selected: 1 entity")
    chosen = page.evaluate("""() => import("/page/shared.js").then(({ shared }) =>
      [...shared.disks, ...shared.trees].map((disk) => [...disk.chosen]))""")
    assert len(chosen) == 3
    assert chosen[0] == chosen[1] == chosen[2]
    assert len(chosen[0]) == 1
    page.keyboard.press("x")  # once more lets it go
    expect(page.locator("#selection h2")).to_have_count(0)


def test_three_runs_stand_side_by_side(page: Page, runs: list[Run], tmp_path: Path) -> None:
    third = made_run(tmp_path / "third", runs[0].graph, seed=7)
    with exploring(*runs, third) as address:
        visit(page, f"{address}#entity=n5&relation=parent&edges=0")
        assert page.locator("figure").count() == 3
        expect(page.locator("#answers table")).to_have_count(3)
        page.locator("#differences summary").click()
        first = page.locator("#differences tbody tr").first
        ranks = [int(text.replace(",", "")) for text in first.locator(".number").all_inner_texts()]
        asked = page.request.get(f"{address}api/differences").json()["questions"]
        assert ranks == [round(rank) for rank in asked[0]["ranks"]]
        apart = [max(one["ranks"]) / min(one["ranks"]) for one in asked]
        assert apart == sorted(apart, reverse=True)
        page.locator("canvas.overlay").nth(2).press("+")
        page.wait_for_url("**zoom3=**")
        link = page.url
        page.goto("about:blank")
        visit(page, link)
        zooms = """() => import("/page/shared.js").then(({ shared }) => shared.disks.map((disk) => disk.zoom))"""
        assert page.evaluate(zooms) == pytest.approx([1, 1, 1.3])
    with pytest.raises(ConfigError, match="5 runs do not fit side by side"):
        Collection([*runs, *runs, third])
