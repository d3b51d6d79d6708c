"""How a reader gets about the page: search, links, Back, and what is said when something is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import BROWSER, Page, dots, drag, expect, place, settled, visit

from murp.explorer.export import write_page
from murp.runs import Run

pytestmark = BROWSER
PHONE = {"viewport": {"width": 375, "height": 780}, "has_touch": True}


def type_and(page: Page, text: str, then: str) -> None:
    """Type and do something else at once, before the search can have been asked."""
    page.locator("#search").evaluate(
        """(input, [text, then]) => {
          input.focus();
          input.value = text;
          input.dispatchEvent(new Event("input"));
          if (then === "blur") input.blur();
          else input.dispatchEvent(new KeyboardEvent("keydown", { key: then }));
        }""",
        [text, then],
    )


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_a_completion_can_be_tapped_on_a_phone(page: Page, one: str) -> None:
    visit(page, one)
    page.locator("#search").fill("node 1")
    fifth = page.get_by_role("option").nth(4)
    fifth.wait_for()
    name, box = fifth.locator("strong").inner_text(), fifth.bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("#card-title", has_text=name).wait_for()
    settled(page)


def test_enter_takes_what_is_typed_and_not_what_was(page: Page, one: str) -> None:
    visit(page, one)
    page.locator("#search").fill("node 12")
    page.get_by_role("option").first.wait_for()
    type_and(page, "node 40", "Enter")
    page.locator("#card-title", has_text="node 40").wait_for()
    settled(page)
    type_and(page, "node 3", "blur")
    page.wait_for_timeout(250)
    assert not page.locator("#completions").is_visible()


def test_search_finds_by_gloss_and_by_relation(page: Page, one: str) -> None:
    visit(page, one)
    page.locator("#search").fill("木")  # in the name of one, and in the glosses of others
    page.get_by_role("option").first.wait_for()
    names = page.locator("#completions strong").all_inner_texts()
    assert any("木" not in name for name in names)
    page.locator("#search").fill("next")
    page.locator("#completions li", has_text="next").first.click()
    expect(page.locator("#relation")).to_have_value("next")
    settled(page)
    assert "relation=next" in page.url


def test_no_match_is_shown(page: Page, one: str) -> None:
    visit(page, one)
    page.locator("#search").fill("unheard of")
    said = page.locator("#completions li")
    expect(said).to_have_text("no entity contains “unheard of”")
    assert said.get_attribute("aria-disabled") == "true"
    assert said.is_visible()
    for key in ("ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.locator("#card-title").inner_text() == "tree <i>of names</i>"


def test_back_undoes_a_choice_and_not_a_drag(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9&edges=0")
    drag(page, (0.1, 0.1), (-0.4, 0.3))
    dragged = page.url
    assert "drag1=" in dragged
    page.locator("#card .name").first.click()
    settled(page)
    chosen = page.locator("#card-title code").inner_text()
    page.get_by_role("button", name="Question").click()
    settled(page)
    assert chosen in page.url
    assert page.title().startswith(page.locator("#card-title").inner_text().removesuffix(f" {chosen}"))
    page.go_back()
    page.wait_for_selector("body[data-ready][data-view=map]")
    assert page.locator("#card-title code").inner_text() == chosen
    page.go_back()
    page.locator("#card-title code", has_text="n9").wait_for()
    settled(page)
    assert page.title() == "node 9 · tree <i>of names</i> · murp explorer"
    assert page.url == dragged
    page.go_forward()
    page.locator("#card-title code", has_text=chosen).wait_for()
    settled(page)


def test_the_skip_link_leads_to_the_tables_and_keeps_the_view(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9")
    link = page.url
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "panel"
    assert page.url == link
    page.evaluate("location.hash = 'nothing-of-ours'")
    page.wait_for_timeout(50)
    settled(page)
    assert page.locator("#card-title code").inner_text() == "n9"


def test_a_link_of_another_graph_is_corrected(page: Page, one: str, complaints: list[str]) -> None:
    visit(page, f"{one}#entity=nodee 12&relation=nope&view=question")
    said = page.get_by_role("alert")
    expect(said).to_contain_text("“nope” is no relation of tree <i>of names</i>: <b>parent</b> is shown.")
    expect(said).to_contain_text("“nodee 12” names no single entity")
    assert "/api" not in said.inner_text()
    assert page.locator("#relation").input_value() == "parent"
    assert page.locator("#card-title").inner_text() == "tree <i>of names</i>"
    said.get_by_role("button", name="node 12 [n12]").click()
    page.locator("#card-title code", has_text="n12").wait_for()
    settled(page)
    assert not said.is_visible()
    page.evaluate("location.hash = 'entity=node 9'")  # a name will do
    page.locator("#card-title code", has_text="n9").wait_for()
    settled(page)
    assert "entity=n9" in page.url
    assert len(complaints) == 1
    assert "404" in complaints.pop()


def test_a_drag_that_is_none_is_not_followed(page: Page, one: str) -> None:
    texts = ["0,0,0,0,0", "1,0,5,0,0", "1,0,0,0", "NaN,0,0,0,0", "2,0,0,0,1"]
    visit(page, f"{one}#entity=n9&edges=0&drag1={texts[0]}")
    assert "drag1" not in page.url
    assert "Moved" not in page.locator("#projection-note").inner_text()
    *refused, far, again, near = page.evaluate(
        """async (texts) => {
          const { unpackDrag, packDrag } = await import("/page/link.js");
          const { carry, euclidean, poincare } = await import("/page/spaces.js");
          const far = carry(poincare, 0.999, 0, -0.999, 0.01);
          const back = (space, m) => unpackDrag(packDrag(m, true), space)?.isometry;
          const near = back(euclidean, [0.6, 0.8, 9, 7]);
          const read = (space) => texts.map((text) => unpackDrag(text, space) !== null);
          return [read(poincare), read(euclidean), far, back(poincare, far), near];
        }""",
        texts,
    )
    assert refused == [[False] * 5, [text == "1,0,5,0,0" for text in texts]]  # which the plane has
    assert again == pytest.approx(far, abs=1e-5)
    assert near == [0.6, 0.8, 9, 7]


def test_a_server_that_is_gone_leaves_the_page_as_it_was(page: Page, one: str, complaints: list[str]) -> None:
    visit(page, f"{one}#entity=n9&relation=parent&edges=0")
    said = page.get_by_role("alert")
    page.mouse.move(2, 2)
    seen, link = dots(page), page.url
    texts = page.locator("#panel").inner_text()

    def unchanged() -> None:
        settled(page)
        assert (page.url, page.locator("#panel").inner_text()) == (link, texts)
        assert page.locator("#relation").input_value() == "parent"
        assert dots(page) == seen

    page.route("**/api/**", lambda route: route.abort())
    page.locator("#card .name").first.click()
    expect(said).to_contain_text("The explorer does not answer. Is `murp explore` still running?")
    unchanged()
    page.get_by_role("button", name="Question").click()
    said.wait_for()
    page.wait_for_selector("body[data-view=map]")
    unchanged()
    page.locator("#relation").select_option("next")
    expect(page.locator("#relation")).to_have_value("parent")
    unchanged()
    said.get_by_role("button", name="Close").click()
    assert not said.is_visible()
    with page.expect_event("requestfailed", lambda request: "/api/search" in request.url):
        page.locator("#search").fill("node 1")
    said.wait_for()
    page.locator("#search").fill("")  # a later try would find something, and its list would cover the card
    expect(page.locator("#completions")).to_be_hidden()
    page.unroute("**/api/**")
    # The picture cannot be had, the card can: neither is shown.
    page.route("**/api/project*", lambda route: route.fulfill(status=503, body="busy"))
    page.keyboard.press("Escape")
    page.locator("#card .name").last.click()
    expect(said).to_contain_text("status 503")
    unchanged()
    page.unroute("**/api/project*")
    page.locator("#card .name").last.click()
    page.wait_for_url(lambda url: url != link)
    settled(page)
    assert not said.is_visible()
    assert complaints
    assert all("Failed to load resource" in complaint for complaint in complaints)
    complaints.clear()


def test_a_link_is_copied_where_the_browser_hides_the_clipboard(page: Page, one: str) -> None:
    page.add_init_script(
        """Object.defineProperty(navigator, "clipboard", { value: undefined });
        document.execCommand = () => { window.copied = document.activeElement.value; return !window.refuses; };"""
    )
    visit(page, f"{one}#entity=n9")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("window.copied") == page.url
    page.evaluate("window.refuses = true")
    page.locator("#link").click()
    expect(page.get_by_role("alert")).to_contain_text("address bar")


def test_a_tap_may_shake_a_little(page: Page, one: str) -> None:
    visit(page, one)
    near = page.request.get(f"{one}api/project?k=5").json()["nearest"][0]
    x, y = place(page, near["x"], near["y"])
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(12):
        page.mouse.move(x + (-1) ** i, y + 1)
    page.mouse.up()
    page.locator("#card-title code", has_text=near["id"]).wait_for()
    settled(page)


def test_an_exported_page_follows_any_link(page: Page, runs: list[Run], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_page(runs[0], file)
    visit(page, f"{file.as_uri()}#view=question&entity=n12")
    assert page.evaluate("document.body.dataset.view") == "map"
    page.locator("#card-title code", has_text="n12").wait_for()
    assert not page.get_by_role("alert").is_visible()
    page.evaluate("location.hash = 'relation=nope&entity=nobody&drag1=0,0,0,0,0'")
    said = page.get_by_role("alert")
    expect(said).to_contain_text("“nope” is no relation")
    expect(said).to_contain_text("“nobody” names no single entity")
    settled(page)
    assert page.locator("#card-title").inner_text() == "tree <i>of names</i>"
    page.go_back()
    page.locator("#card-title code", has_text="n12").wait_for()
    settled(page)
