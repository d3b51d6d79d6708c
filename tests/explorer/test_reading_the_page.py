"""What the page says beside the picture: that it is true, can be told apart, and stays within its place."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from browsing import BROWSER, Page, drag, expect, exploring, place, settled, visit
from explorer_runs import made_run

from murp.explorer.export import write_page
from murp.graph import KnowledgeGraph, Vocabulary
from murp.runs import Run

pytestmark = BROWSER


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory, make_tree: Callable[..., KnowledgeGraph]) -> list[Run]:
    """Two MuRP of two dimensions, on a graph of long names of which every one is given twice."""
    tree = make_tree()
    names = [f"{'long_name_without_a_gap_' * 3}{i // 2}" for i in range(tree.num_entities)]
    entities = Vocabulary("entity", [f"n{i}" for i in range(tree.num_entities)], names)
    graph = KnowledgeGraph("twins", entities, tree.relations, tree.train, tree.valid, tree.test)
    folder = tmp_path_factory.mktemp("flat")
    return [made_run(folder / name, graph, dim=2, seed=i) for i, name in enumerate(("first", "second"))]


@pytest.fixture(scope="module")
def alike(flat: list[Run]) -> Iterator[str]:
    """The address of an explorer of both."""
    with exploring(*flat) as address:
        yield address


def near(page: Page) -> tuple[str, list[tuple[str, str]]]:
    """The heading of the table of what is near the middle, and its rows: id and distance."""
    table = page.locator("#near table").first
    rows = table.evaluate(
        "t => [...t.tBodies[0].rows].map((row) => [row.querySelector('button').title, row.cells[1].textContent])"
    )
    return table.evaluate("t => t.tHead.rows[0].cells[1].textContent"), [(id, distance) for id, distance in rows]


def told(answer: Any) -> list[tuple[str, str]]:
    return [(n["id"], f"{n['distance']:.3f}") for n in answer.json()["nearest"]]


def test_what_is_near_the_middle_follows_a_drag(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9&edges=0")
    page.get_by_text("The picture as a table").click()
    before = near(page)
    assert before == ("distance", told(page.request.get(f"{one}api/project?centre=n9")))
    drag(page, (0.1, 0.1), (0.5, -0.3))
    heading, rows = near(page)
    assert heading == "distance in the picture"
    assert rows != before[1]
    assert [float(d) for _, d in rows] == sorted(float(d) for _, d in rows)
    page.mouse.move(*place(page, 0, 0))
    assert page.locator("#near details").get_attribute("open") is not None  # a reader keeps it open
    page.locator("canvas.overlay").press("Home")
    assert near(page) == before


def test_what_is_near_the_middle_of_a_question(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n5&relation=parent&view=question")
    answer = page.request.get(f"{one}api/question?head=n5&relation=parent&projection=distances").json()
    ids = page.request.get(f"{one}api/entities").json()["ids"]
    for moment, which in ((None, "after"), ("0", "before")):
        if moment is not None:
            page.locator("#moment").fill(moment)
        points = np.frombuffer(base64.b64decode(answer[which]["base64"]), "<f4").reshape(-1, 2).astype(float)
        distances = 2 * np.arctanh(np.linalg.norm(points, axis=1))
        heading, rows = near(page)
        assert heading == "distance in the picture"
        assert [float(d) for _, d in rows] == pytest.approx(np.sort(distances)[:20], abs=6e-4)
        assert all(abs(distances[ids.index(id)] - float(d)) < 6e-4 for id, d in rows)
        drag(page, (0.1, 0.1), (0.5, -0.3))
        assert near(page)[1] != rows
        page.locator("canvas.overlay").press("Home")  # to the same moment
        assert near(page)[1] == rows


def test_an_exported_page_of_two_dimensions_moves_the_model_itself(page: Page, flat: list[Run], alike: str) -> None:
    """Its one picture is the model, so that around any entity it tells what the server would compute anew."""
    file = flat[0].path.parent / "page.html"
    if not file.exists():
        write_page(flat[0], file)
    visit(page, file.as_uri())
    assert near(page) == ("distance", told(page.request.get(f"{alike}api/project")))
    page.locator("#search").fill("n12")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.locator("#card-title code", has_text="n12").wait_for()
    settled(page)
    heading, rows = near(page)
    expected = told(page.request.get(f"{alike}api/project?centre=n12"))
    assert heading == "distance"
    assert [id for id, _ in rows] == [id for id, _ in expected]
    assert [float(d) for _, d in rows] == pytest.approx([float(d) for _, d in expected], abs=2e-3)
    assert "are still the model's" in page.locator("#projection-note").inner_text()


def test_the_note_says_whose_distances_a_moved_picture_shows(page: Page, two: str, alike: str) -> None:
    note = page.locator("#projection-note")
    visit(page, f"{alike}#entity=n9")
    drag(page, (0.1, 0.1), (0.5, -0.3))
    still_true = (
        "MuRP d=2 first: Moved since by a Möbius translation: distances from the new middle are still the model's."
    )
    expect(note).to_contain_text(still_true)
    page.get_by_role("button", name="Question").click()
    settled(page)
    drag(page, (0.1, 0.1), (0.5, -0.3))
    expect(note).to_contain_text("Möbius translation of the picture: distances from the new middle are the picture's")
    visit(page, f"{two}#entity=n9")
    page.locator("canvas.overlay").nth(1).press("ArrowLeft")
    expect(note).to_contain_text("MuRE d=5: Moved since by a plain translation of the picture")
    expect(note).not_to_contain_text("Möbius")


def test_runs_of_one_kind_and_entities_of_one_name_are_told_apart(page: Page, alike: str) -> None:
    visit(page, f"{alike}#entity=n9&relation=parent")
    page.locator("#metrics table").wait_for()
    titles = ["MuRP d=2 first", "MuRP d=2 second"]
    assert page.locator("figcaption").all_inner_texts() == titles
    assert page.locator("#answers h3").all_inner_texts() == titles
    assert page.locator("#card table").first.locator("thead th").all_inner_texts()[1:] == titles
    for title in titles:
        assert f"MRR {title}" in page.locator("#metrics thead").inner_text()
        assert page.get_by_role("application", name=title).count() == 1
    assert page.locator("#about").inner_text() == "twins · MuRP d=2 first and MuRP d=2 second"
    name = page.locator("#card-title").evaluate("e => e.firstChild.textContent")
    assert page.locator("#answers h2").inner_text() == f"Answers to ({name}, parent, ?)"
    answers = page.locator("#answers table").first.locator(".name").all_inner_texts()
    assert len(set(answers)) == len(answers) == 50
    written = page.evaluate(
        """async () => {
          const { labelling } = await import("/page/labels.js");
          const entities = { ids: ["a", "b", "c", "d"], names: ["Mongolia", "Mongolia", "India", "Asia"] };
          const classes = Uint8Array.from([0, 0, 0, 0]);
          const disk = { entities, picture: { kinds: true }, classes, ranked: [], marks: [], central: () => [0, 1, 2] };
          return labelling({ ...disk, subject: { id: "d", name: "India" } }).texts;
        }"""
    )
    assert written == ["India (d)", "Mongolia (a)", "Mongolia (b)", "India (c)"]


def test_tables_stay_in_the_panel(page: Page, alike: str) -> None:
    visit(page, f"{alike}#entity=n9&relation=parent")
    page.locator("#differences table").wait_for(state="attached")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for width in (375, 1000, 1280):
        page.set_viewport_size({"width": width, "height": 860})
        outside = page.evaluate(
            """() => [...document.querySelectorAll("#panel td, #panel th, #panel h2")].filter((cell) => {
              const box = cell.closest("section").getBoundingClientRect();
              const { left, right } = cell.getBoundingClientRect();
              return left < box.left || right > box.right + 0.5;
            }).map((cell) => cell.textContent)"""
        )
        assert outside == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_keyboard_goes_on_where_it_was(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9&relation=parent")
    rings = "document.querySelector('canvas.overlay').toDataURL()"
    frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    before = page.evaluate(f"{frame}.then(() => {rings})")
    button = page.locator("#answers .name").nth(3)
    name = button.inner_text()
    button.focus()
    assert page.evaluate(f"{frame}.then(() => {rings})") != before  # its point is marked
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text=name).wait_for()
    settled(page)
    assert page.evaluate("document.activeElement.id") == "card-title"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#card') !== null")


@pytest.mark.parametrize("page", [{"reduced_motion": "reduce"}], indirect=True)
def test_a_question_is_played_once_it_is_there(page: Page, one: str) -> None:
    held: list[Any] = []
    page.route("**/api/question*", lambda route: held.append(route))
    visit(page, f"{one}#entity=n5&relation=parent")
    page.get_by_role("button", name="Question").click()
    play, moment = page.locator("#play"), page.locator("#moment")
    expect(play).to_be_disabled()
    expect(moment).to_be_disabled()
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()
    settled(page)
    expect(play).to_be_enabled()
    play.click()  # who wants no motion sees the one, then the other
    assert moment.input_value() == "0"
    assert "moment=0" in page.url
    play.click()
    assert moment.input_value() == "100"
