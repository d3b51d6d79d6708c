"""The first view, and how a reader looks around: zoom, labels, undo, files, colours, the tree, a selection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import BROWSER, Page, dots, drag, expect, modules, place, settled, visit

from murp.runs import Run

pytestmark = BROWSER
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark"}

# What the first disk shows: window positions of the points, boxes of the names, zoom.
SEEN = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const { shared } = await import("/page/shared.js");
  const [disk] = shared.disks;
  const points = [...disk.seen].map((x) => x * disk.zoom);
  const size = disk.raster.size;
  const at = (point) => [(size / 2) * (1 + points[2 * point]), (size / 2) * (1 - points[2 * point + 1])];
  return { points, zoom: disk.zoom, names: disk.written.map(({ text, box }) => ({ text, box })),
    dots: disk.labels.map(at), isometry: disk.isometry, size };
}"""


def seen(page: Page) -> Any:
    return page.evaluate(SEEN)


def covers(box: list[float], other: list[float]) -> bool:
    (x, y, w, h), (u, v, p, q) = box, other
    return x < u + p and u < x + w and y < v + q and v < y + h


def test_the_first_view_is_filled_named_by_importance_and_asks_questions(page: Page, one: str) -> None:
    visit(page, one)
    about = page.request.get(f"{one}api/run").json()
    assert page.locator("#relation").input_value() == about["relation"] == "parent"  # which has levels; next has none
    found = seen(page)
    radii = sorted((x * x + y * y) ** 0.5 for x, y in zip(found["points"][::2], found["points"][1::2], strict=True))
    assert radii[len(radii) // 10] < 0.75
    assert radii[-1] > 0.85
    questions = page.locator(".suggestion")
    assert 1 <= questions.count() == len(about["suggestions"]) <= 3
    questions.first.click()
    page.wait_for_selector("body[data-ready][data-view=question]")
    assert page.locator("#answers tbody tr").count() > 3


def test_names_cover_no_point_that_counts_and_no_other_name(page: Page, one: str) -> None:
    visit(page, one)
    for key in ("Escape", "+"):
        page.locator("canvas.overlay").press(key)
        found = seen(page)
        names = found["names"]
        assert len(names) > 5
        for i, name in enumerate(names):
            assert not any(covers(name["box"], other["box"]) for other in names[:i])
            assert not any(covers(name["box"], [x - 2, y - 2, 4, 4]) for x, y in found["dots"])


def test_more_points_count_as_one_zooms(page: Page, one: str) -> None:
    modules(page, one)
    far, near, first = page.evaluate("""async () => {
      const { prominent } = await import("/page/labels.js");
      const seen = Float32Array.from({ length: 8000 }, (_, i) => 0.7 * Math.sin(i * (i % 2 ? 1.7 : 2.3)));
      const disk = { seen, zoom: 1, width: 500, named: 4000, classes: new Uint8Array(4000), isShown: () => true };
      return [prominent(disk), prominent({ ...disk, zoom: 4 }), prominent(disk)[0]];
    }""")
    assert first == 0  # the most important
    assert len(far) < 130
    assert len(set(near) - set(far)) > 30


def test_zoom_keeps_what_is_under_the_pointer_and_geodesics(page: Page, one: str) -> None:
    visit(page, f"{one}#edges=0")
    before = seen(page)
    pairs = list(zip(before["points"][::2], before["points"][1::2], strict=True))
    point = min(range(len(pairs)), key=lambda i: abs(pairs[i][0] ** 2 + pairs[i][1] ** 2 - 0.1))
    here = before["points"][2 * point : 2 * point + 2]
    page.mouse.move(*place(page, *here))
    page.mouse.wheel(0, -400)
    page.wait_for_url("**zoom1=**")
    after = seen(page)
    assert after["zoom"] > 1.5
    assert after["points"][2 * point : 2 * point + 2] == pytest.approx(here, abs=0.01)
    a, ai, b, bi = after["isometry"]  # of the disk, which takes geodesics to geodesics; the zoom magnifies
    assert a * a + ai * ai - b * b - bi * bi == pytest.approx(1, abs=1e-6)
    assert page.locator(".minimap").first.is_visible()
    link = page.url
    page.locator("canvas.overlay").press("Home")
    assert seen(page)["zoom"] == 1
    page.locator("#undo").click()
    settled(page)
    assert page.url == link
    assert seen(page)["zoom"] == pytest.approx(after["zoom"], abs=1e-2)
    page.locator("canvas.overlay").press("-")
    page.locator("#nearer").click()
    page.keyboard.press("Control+z")
    settled(page)


def test_no_drag_leaves_the_disk_blank(page: Page, one: str) -> None:
    visit(page, f"{one}#edges=0")
    for _ in range(5):
        drag(page, (-0.8, 0), (0.9, 0))
    points = seen(page)["points"]
    for side in (0, 1):
        for sign in (1, -1):
            share = sum(sign * x > 0.1 for x in points[side::2]) / (len(points) / 2)
            assert share > 0.04, "one half of the disk is empty"


def test_pictures_are_saved_as_png_and_svg(page: Page, one: str, tmp_path: Path) -> None:
    visit(page, one)
    for name, begins in (("png", b"\x89PNG"), ("svg", b"<svg ")):
        with page.expect_download() as waiting:
            page.locator(f"#{name}").click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        assert file.suffix == f".{name}"
        assert file.read_bytes().startswith(begins)
    text = file.read_text(encoding="utf-8")
    assert "<script" not in text
    assert text.count("<circle") > 60
    assert "<path" in text


def test_colours_sizes_and_a_legend_that_filters(page: Page, one: str) -> None:
    visit(page, f"{one}#edges=0")
    before = dots(page)
    page.locator("#colour").select_option("depth")
    settled(page)
    coloured = dots(page)
    assert coloured != before
    assert page.locator("#legend .entry").count() > 3
    page.locator("#size").select_option("degree")
    settled(page)
    assert dots(page) != coloured
    hide = page.locator("#legend .entry").first
    sized = dots(page)
    hide.click()
    assert hide.get_attribute("aria-pressed") == "false"
    assert dots(page) != sized
    hide.click()
    assert dots(page) == sized
    assert "colour=depth&size=degree" in page.url


def test_the_tree_beside_the_disk_is_linked(page: Page, one: str) -> None:
    visit(page, f"{one}#tree=1&entity=n5")
    assert page.locator("canvas.overlay").count() == 2
    rows = page.locator("#tree-table tbody tr").all_inner_texts()
    path = [part["name"] for part in page.request.get(f"{one}api/entity?entity=n5").json()["path"]]
    assert len(path) == 3  # two levels above it in a tree of twos
    assert "chosen" in rows[2]
    assert [row.split("\t")[1] for row in rows[:3]] == [" ".join(name.split()) for name in reversed(path)]
    page.locator("#tree-table .name").last.click()
    page.wait_for_url("**entity=n1**")
    settled(page)
    page.locator("#tree").uncheck()
    settled(page)
    assert not page.locator("#tree-figure").is_visible()


def test_the_card_states_facts_with_their_split_and_why(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n5&relation=parent")
    card = page.request.get(f"{one}api/entity?entity=n5").json()
    known = {fact["id"] for group in card["known_facts"] for fact in group["facts"]}
    assert known == {fact for fact in ("n2", "n11", "n12") if fact in known}
    assert page.locator(".known-facts .facts .name").count() == sum(
        len(group["facts"]) for group in card["known_facts"]
    )
    assert page.locator(".likely tbody tr").count() == len(card["likely"]) > 0
    assert page.locator(".path strong").evaluate("e => e.textContent") == card["name"]
    page.locator(".why").first.click()
    page.locator(".because li").first.wait_for()
    assert page.locator(".why").first.get_attribute("aria-expanded") == "true"
    page.locator(".why").first.click()
    expect(page.locator(".because")).to_have_count(0)


def test_a_lasso_selects_and_the_list_is_saved(page: Page, one: str, tmp_path: Path) -> None:
    visit(page, f"{one}#edges=0")
    page.keyboard.down("Shift")
    page.mouse.move(*place(page, -0.6, -0.6))
    page.mouse.down()
    for corner in ((0.6, -0.6), (0.6, 0.6), (-0.6, 0.6)):
        page.mouse.move(*place(page, *corner), steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.locator("#selection table").wait_for()
    points = seen(page)["points"]
    inside = sum(abs(x) < 0.6 and abs(y) < 0.6 for x, y in zip(points[::2], points[1::2], strict=True))
    assert f"Selected: {inside} entities" in page.locator("#selection h2").inner_text()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as a table").click()
    waiting.value.save_as(tmp_path / "rows.tsv")
    assert (tmp_path / "rows.tsv").read_text(encoding="utf-8").count("\n") == inside + 1
    page.get_by_role("button", name="Clear").click()
    assert not page.locator("#selection").is_visible()


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_on_a_phone_the_answers_begin_above_the_fold(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n5&relation=parent&view=question")
    box = page.locator("#answers tbody tr").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 844
    assert not page.locator(".help p").first.is_visible()  # the keys of a keyboard
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_one_is_one(page: Page, one: str) -> None:
    modules(page, one)
    said = page.evaluate("""async () => {
      const { plural } = await import("/page/dom.js");
      const of = (n) => plural(n, "entity", "entities");
      return [plural(1, "relation"), plural(2, "relation"), of(1), of(1200)];
    }""")
    assert said == ["1 relation", "2 relations", "1 entity", "1,200 entities"]


def test_the_script_is_small(runs: list[Run]) -> None:
    from murp.explorer.export import joined

    assert len(joined("app.js").encode()) < 400_000
