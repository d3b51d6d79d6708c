"""The page in a real browser: what a reader clicks, drags, types and sees.

``MURP_SCREENSHOTS=folder pytest -m browser`` keeps a picture of every test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import BROWSER, Page, dots, expect, exploring, modules, place, settled, visit
from explorer_runs import NASTY, made_run, nasty_graph

from murp.explorer.export import write_page
from murp.graph import KnowledgeGraph
from murp.runs import Run

pytestmark = BROWSER


def test_search_completes_and_chooses(page: Page, one: str) -> None:
    visit(page, one)
    assert page.locator("#card-title").inner_text() == "tree <i>of names</i>"
    before = dots(page)
    page.get_by_role("combobox", name="Search").type("node 1")
    page.get_by_role("option").first.wait_for()
    names = page.locator("#completions strong")
    expect(names.filter(has_not_text="node 1")).to_have_count(0)  # what the first letters had found is replaced
    assert len(names.all_inner_texts()) > 3
    page.get_by_role("option", name="node 12").click()
    page.locator("#card-title", has_text="node 12").wait_for()
    settled(page)
    assert "entity=n12" in page.url
    assert dots(page) != before


def test_names_of_markup_stay_names(page: Page, one: str) -> None:
    visit(page, one)
    for i, name in enumerate(NASTY[:4]):
        page.locator("#search").fill(name)
        expect(page.locator("#completions strong").first).to_have_text(name.replace("\u2028", " "))
        page.keyboard.press("Enter")
        page.locator("#card-title code", has_text=f"n{i}").wait_for()
        settled(page)
        assert name in page.locator("#card-title").evaluate("e => e.textContent")
        x, y = place(page, 0, 0)
        page.mouse.move(x, y)
        page.locator(".tip small").first.wait_for()
        assert page.locator(".tip strong").evaluate("e => e.textContent") == name
        page.mouse.move(2, 2)


def test_click_brings_a_point_to_the_middle(page: Page, one: str) -> None:
    visit(page, one)
    near = page.request.get(f"{one}api/project?k=5").json()["nearest"][0]
    page.mouse.click(*place(page, near["x"], near["y"]))
    page.locator("#card-title code", has_text=near["id"]).wait_for()
    settled(page)
    page.mouse.move(*place(page, 0, 0))
    page.locator(".tip strong", has_text=near["name"]).wait_for()


def test_hover_tells_name_gloss_norm_bias_and_neighbours(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9")
    page.mouse.move(*place(page, 0, 0))
    page.locator(".tip small").nth(1).wait_for()
    told = page.locator(".tip").evaluate("e => e.textContent")
    card = page.request.get(f"{one}api/entity?entity=n9").json()
    assert card["name"] in told
    assert card["gloss"] in told
    assert f"norm {card['norm']:.3f}" in told
    assert f"head bias {card['biases']['head']:.2f}" in told
    assert all(n["name"] in told for n in card["neighbours"])


def test_drag_moves_the_disk_and_home_undoes_it(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9&edges=0")
    before, link = dots(page), page.url
    page.mouse.move(*place(page, 0.1, 0.1))
    page.mouse.down()
    page.mouse.move(*place(page, 0.5, -0.3), steps=8)
    page.mouse.up()
    assert dots(page) != before
    assert "Möbius translation" in page.locator("#projection-note").inner_text()
    assert "drag1=" in page.url
    assert page.url != link
    page.locator("canvas.overlay").press("Home")
    assert dots(page) == before
    assert "Möbius translation" not in page.locator("#projection-note").inner_text()


def test_a_link_restores_the_view(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9&relation=next&direction=head&edges=0")
    page.mouse.move(*place(page, 0.1, 0.1))
    page.mouse.down()
    page.mouse.move(*place(page, -0.4, 0.3), steps=5)
    page.mouse.up()
    page.mouse.move(2, 2)
    seen, link, rows = dots(page), page.url, page.locator("#answers tbody tr").all_inner_texts()
    page.goto("about:blank")
    visit(page, link)
    assert page.url == link
    assert page.locator("#relation").input_value() == "next"
    assert page.locator("#direction").input_value() == "head"
    assert page.locator("#answers tbody tr").all_inner_texts() == rows
    differing = page.evaluate(
        """async ([a, b]) => {
          const pixels = async (url) => {
            const image = new Image();
            image.src = url;
            await image.decode();
            const { width, height } = image;
            const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
            context.drawImage(image, 0, 0);
            return context.getImageData(0, 0, width, height).data;
          };
          const [p, q] = [await pixels(a), await pixels(b)];
          return p.reduce((sum, value, i) => sum + (Math.abs(value - q[i]) > 100), 0) / p.length;
        }""",
        [seen, dots(page)],
    )
    assert differing < 1e-4  # the link rounds the isometry


def test_answers_say_probability_and_known_or_new(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n5&relation=parent")
    page.locator("#answers tbody tr").first.wait_for()
    expected = page.request.get(f"{one}api/predict?head=n5&relation=parent&k=50").json()["predictions"]
    rows = page.locator("#answers tbody tr")
    assert rows.count() == len(expected)
    for i in (0, 1, 7, len(expected) - 1):
        text = rows.nth(i).evaluate("e => e.textContent")
        assert expected[i]["name"] in text
        assert f"{expected[i]['probability']:.3f}" in text
        assert (expected[i]["known"] or "new") in text
    assert {p["known"] for p in expected} > {None}


def test_the_page_says_whether_probabilities_are_calibrated(
    page: Page, one: str, tmp_path: Path, make_tree: Callable[..., KnowledgeGraph]
) -> None:
    question = "entity=n5&relation=parent"
    visit(page, f"{one}#{question}")
    heading = page.locator("#answers thead th").nth(2)
    expect(heading).to_have_text("prob. model's own")
    assert "murp calibrate" in (heading.locator("[title]").get_attribute("title") or "")
    run = made_run(tmp_path / "run", nasty_graph(make_tree()), save=True)
    calibration = run.calibrate()
    with exploring(run) as address:
        visit(page, f"{address}#{question}")
        expect(heading).to_have_text("prob. calibrated")
        best = page.request.get(f"{address}api/predict?head=n5&relation=parent&k=1").json()["predictions"][0]
        assert best["calibrated"] == pytest.approx(float(calibration.probability(best["score"], 1)))
        assert best["calibrated"] != pytest.approx(best["probability"], abs=1e-3)
        row = page.locator("#answers tbody tr").first
        assert f"{best['calibrated']:.3f}" in row.evaluate("e => e.textContent")


def test_a_question_names_new_missed_and_known_answers_in_turns(page: Page, one: str) -> None:
    modules(page, one)
    names = page.evaluate(
        """async () => {
          const { labelled } = await import("/page/labels.js");
          const classes = Uint8Array.from([0, 1, 1, 3, 2, 3, 1, 0, 3]);
          const ranked = [6, 2, 5, 1, 0, 3];
          const central = () => [7, 5];
          return labelled({ picture: { kinds: true }, classes, ranked, central, marks: [], subject: { point: 1 } });
        }"""
    )
    # New by rank 6, 2, 1; 4 was missed; known 5, 3, and 8 without a rank; 7 lies near, and 1 is the subject, which is
    # named by itself. The missed one comes early: those are what a reader looks for.
    assert names == [6, 4, 5, 2, 3, 8, 7]


def test_the_question_shows_four_colours_and_plays(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n5&relation=parent")
    page.get_by_role("button", name="Question").click()
    settled(page)
    after = dots(page)
    counts = page.request.get(f"{one}api/question?head=n5&relation=parent").json()["counts"]
    legend = page.locator("#legend").inner_text()
    assert all(f"{kind}: {number}" in legend for kind, number in counts.items())
    page.locator("#moment").fill("0")
    assert dots(page) != after
    page.get_by_role("button", name="Play").click()
    page.wait_for_url(lambda url: "moment" not in url)  # written at the end
    assert dots(page) == after
    page.locator("#projection").select_option("paper")
    settled(page)
    assert dots(page) != after
    assert "view=question" in page.url


def test_two_runs_side_by_side(page: Page, two: str) -> None:
    visit(page, f"{two}#entity=n5&relation=parent")
    assert page.locator("canvas.overlay").count() == 2
    page.locator("#answers table").nth(1).wait_for()
    captions = page.locator("figcaption").all_inner_texts()
    assert captions == ["MuRP d=5 murp", "MuRE d=5 mure"]
    assert dots(page, 0) != dots(page, 1)
    for number in (1, 2):
        best = page.request.get(f"{two}api/predict?head=n5&relation=parent&k=1&run={number}").json()["predictions"][0]
        row = page.locator("#answers table").nth(number - 1).locator("tbody tr").first
        assert best["name"] in row.evaluate("e => e.textContent")
    page.locator("#metrics table").wait_for()
    assert "MRR MuRE d=5" in page.locator("#metrics thead").inner_text()
    assert "standard" in page.locator("#metrics").inner_text()


def test_dark_follows_the_system_and_the_button(page: Page, one: str) -> None:
    page.emulate_media(color_scheme="dark")
    visit(page, f"{one}#entity=n9")
    background = "getComputedStyle(document.body).backgroundColor"
    dark, picture = page.evaluate(background), dots(page)
    assert page.get_by_role("button", name="Dark").count() == 0  # a button says what it does
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(background) != dark
    assert dots(page) != picture
    page.reload()
    settled(page)
    assert page.evaluate(background) != dark  # the browser keeps the choice
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(background) == dark


@pytest.mark.parametrize("page", [{"viewport": {"width": 340, "height": 780}}], indirect=True)
def test_a_phones_width(page: Page, two: str) -> None:
    visit(page, f"{two}#entity=n5&relation=parent")
    page.locator("#metrics table").wait_for()
    for width in (340, 412):
        page.set_viewport_size({"width": width, "height": 780})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for number in (0, 1):
            box = page.locator("canvas.overlay").nth(number).bounding_box()
            assert box is not None
            assert box["width"] > 0.85 * width


def test_the_keyboard_alone_is_enough(page: Page, one: str) -> None:
    visit(page, one)
    page.keyboard.press("/")
    page.keyboard.type("node 2")
    page.get_by_role("option").nth(1).wait_for()
    expect(page.locator("#completions strong").filter(has_not_text="node 2")).to_have_count(0)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    active = page.locator("#search").get_attribute("aria-activedescendant")
    chosen = page.locator(f"#{active} strong").inner_text()
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text=chosen).wait_for()
    settled(page)
    for _ in range(20):
        if page.evaluate("document.activeElement.className") == "overlay":
            break
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "overlay"
    before = dots(page)
    page.keyboard.press("ArrowRight")
    assert dots(page) != before
    page.keyboard.press("Home")
    assert dots(page) == before
    page.keyboard.press("n")
    page.keyboard.press("n")  # the first is the entity in the middle itself
    page.locator(".tip strong").wait_for()
    neighbour = page.locator(".tip strong").inner_text()
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text=neighbour).wait_for()
    settled(page)
    assert neighbour in page.locator("#status").inner_text()


def test_what_a_screen_reader_finds(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n5&relation=parent")
    for role, name in (
        ("combobox", "Search entities"), ("button", "Copy link"), ("button", "Question"), ("complementary", "Results"),
        ("application", "MuRP d=5"), ("table", "Most probable answers"), ("region", "Picture"),
    ):  # fmt: skip
        assert page.get_by_role(role, name=re.compile(re.escape(name))).count() == 1, (role, name)
    page.get_by_text("The picture as a table").click()
    rows = page.get_by_role("table", name="nearest to the middle").locator("tbody tr")
    nearest = page.request.get(f"{one}api/project?centre=n5&k=20").json()["nearest"]
    assert rows.count() == len(nearest)
    assert nearest[1]["name"] in rows.nth(1).evaluate("e => e.textContent")
    # Everything that can be operated has a name.
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, select, input')].filter((e) => !e.textContent.trim()"
        " && !e.labels?.length && !e.getAttribute('aria-label')).map((e) => e.outerHTML)"
    )
    assert unnamed == []


LAWS = """async () => {
  const { poincare, euclidean, carry } = await import("/page/spaces.js");
  const { traceEdges } = await import("/page/geodesics.js");
  const distance = {
    poincare: (p, q) => Math.acosh(1 + 2 * ((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2)
      / ((1 - p[0] ** 2 - p[1] ** 2) * (1 - q[0] ** 2 - q[1] ** 2))),
    euclidean: (p, q) => Math.hypot(p[0] - q[0], p[1] - q[1]),
  };
  let seed = 1;
  const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
  const point = () => {
    const [radius, angle] = [0.95 * Math.sqrt(random()), 7 * random()];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  };
  const worst = { isometry: 0, together: 0, carry: 0, inverse: 0, halfway: 0, drawn: 0, geodesic: 0 };
  const note = (law, error) => { worst[law] = Math.max(worst[law], Number.isFinite(error) ? error : 1e9); };
  for (const [name, space] of Object.entries({ poincare, euclidean })) {
    const d = distance[name];
    for (let i = 0; i < 300; i += 1) {
      const [p, q, x, y] = [point(), point(), point(), point()];
      const m = space.compose(space.rotation(7 * random()), carry(space, ...p, ...q));
      const move = (z) => space.image(m, ...z);
      note("isometry", Math.abs(d(move(x), move(y)) - d(x, y)) / (1 + d(x, y)));
      const together = new Float32Array(4);
      space.apply(m, Float32Array.from([...x, ...y]), together);
      note("together", Math.hypot(...[...move(x), ...move(y)].map((value, n) => value - together[n])));
      note("carry", d(space.image(carry(space, ...p, ...q), ...p), q));
      note("inverse", d(space.image(space.inverse(m), ...move(x)), x));
      note("halfway", Math.abs(2 * d([0, 0], space.share(...p, 0.5)) - d([0, 0], p)));
      note("drawn", d(space.undrawn(...space.drawn(...p)), p));
      // A geodesic is where the two distances add up.
      traceEdges(space, [...p, ...q], [0, 1], 9, (path, length) => {
        for (let n = 0; n < length; n += 1) {
          const z = space.undrawn(path[2 * n], path[2 * n + 1]);
          note("geodesic", Math.abs(d(p, z) + d(z, q) - d(p, q)));
        }
      });
    }
  }
  return worst;
}"""


def test_the_pages_geometry_obeys_its_laws(page: Page, one: str) -> None:
    modules(page, one)
    for law, error in page.evaluate(LAWS).items():
        # The path of a geodesic is kept in single precision, and its arcs are flattened by a thousandth.
        assert error < (3e-3 if law == "geodesic" else 1e-6), law


DRAWING = """async () => {
  const { Raster } = await import("/page/raster.js");
  const { traceEdges } = await import("/page/geodesics.js");
  const { poincare } = await import("/page/spaces.js");
  const raster = new Raster(document.createElement("canvas"));
  let seed = 1;
  const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
  const [paper, ink] = [[10, 200, 90], [250, 3, 170]];
  // Many dots of one place approach their colour as 1 - (1 - α)ⁿ does.
  let dots = 0;
  for (const alpha of [0.25, 0.5, 0.875]) {
    for (const n of [1, 2, 3]) {
      raster.begin(40, paper);
      const order = Uint32Array.from({ length: n }, (_, i) => i);
      raster.dots(new Float32Array(2 * n), order, new Uint8Array(n), [{ colour: ink, alpha, radius: 4 }]);
      raster.show();
      const [r, g, b, a] = raster.context.getImageData(20, 20, 1, 1).data;
      [r, g, b].forEach((value, i) => {
        dots = Math.max(dots, Math.abs(value - ink[i] - (paper[i] - ink[i]) * (1 - alpha) ** n), 255 - a);
      });
    }
  }
  // What is shown is cut to the disk: a cover of π/4 of the square, all within, nothing in a corner.
  raster.begin(200, paper);
  raster.show();
  const cover = raster.context.getImageData(0, 0, 200, 200).data.filter((_, i) => i % 4 === 3);
  const disk = Math.abs(cover.reduce((sum, value) => sum + value / 255, 0) / 200 ** 2 - Math.PI / 4);
  const within = cover[100 * 200 + 2] === 255 && cover[2 * 200 + 100] === 255 && cover[20 * 200 + 20] === 0;
  // A line has the ink of its longer side, and it lies where the line does.
  let [lines, away] = [0, 0];
  for (let i = 0; i < 200; i += 1) {
    const ends = Float32Array.from({ length: 4 }, () => 1.8 * random() - 0.9);
    raster.begin(200, [0, 0, 0]);
    raster.line(ends, 2, [0, 255, 0], 1);
    const [x, y, X, Y] = ends.map((value, n) => 100 + (n % 2 ? -100 : 100) * value);
    const length = Math.hypot(X - x, Y - y);
    let sum = 0;
    raster.words.forEach((word, at) => {
      const cover = ((word >>> 8) & 255) / 255;
      sum += cover;
      const [px, py] = [at % 200, Math.floor(at / 200)];
      if (cover > 0.02) away = Math.max(away, Math.abs((X - x) * (py - y) - (Y - y) * (px - x)) / length);
    });
    const steps = Math.max(1, Math.round(Math.max(Math.abs(X - x), Math.abs(Y - y))));
    lines = Math.max(lines, Math.abs(sum - steps) / steps);
  }
  // Edges drawn with breaks are those drawn at once.
  const points = Float32Array.from({ length: 600 }, () => 1.2 * random() - 0.6);
  const edges = Uint32Array.from({ length: 4000 }, () => Math.floor(300 * random()));
  const drawn = (until) => {
    const all = [];
    let [at, breaks] = [0, -1];
    while (at < edges.length) {
      const draw = (path, length) => all.push(...path.slice(0, 2 * length));
      at = traceEdges(poincare, points, edges, 1500, draw, at, until);
      breaks += 1;
    }
    return [all.join(), breaks];
  };
  const [whole, parts] = [drawn(Infinity), drawn(-1)];
  return { dots, disk: within ? disk : 1, lines, away, same: whole[0] === parts[0] && whole[1] === 0 && parts[1] > 3 };
}"""


def test_the_pages_drawing_obeys_its_laws(page: Page, one: str) -> None:
    modules(page, one)
    worst = page.evaluate(DRAWING)
    assert worst["dots"] <= 2  # of 255, rounded at every dot
    assert worst["disk"] < 1e-3
    assert worst["lines"] < 0.08  # a column may be met twice, and ink on ink is less than both
    assert worst["away"] < 1.5
    assert worst["same"]


@pytest.mark.parametrize("page", [{"device_scale_factor": 2}], indirect=True)
def test_motion_is_coarser_where_it_is_slow_and_rest_never(page: Page, one: str) -> None:
    visit(page, f"{one}#entity=n9")
    pace = page.evaluate(
        """async () => {
          const { Pace } = await import("/page/pace.js");
          const [fast, slow] = [new Pace(), new Pace()];
          for (let i = 0; i < 40; i += 1) { fast.frame(17, 2, 3); slow.frame(17, 2, 30); }
          return [fast.sharpness(2), slow.sharpness(2), slow.sharpness(1), slow.edges < fast.edges];
        }"""
    )
    assert pace == [2, 1, 1, True]
    page.mouse.move(*place(page, 0.1, 0.1))
    page.mouse.down()
    page.mouse.move(*place(page, 0.5, -0.3), steps=20)
    page.mouse.up()
    dots(page)
    for name in ("dots", "overlay"):
        width, seen = page.locator(f"canvas.{name}").evaluate("c => [c.width, c.clientWidth]")
        assert width == 2 * seen


def test_trouble_is_said(page: Page, one: str, complaints: list[str]) -> None:
    page.goto(f"{one}#entity=nobody")
    page.get_by_role("alert").wait_for()
    assert "“nobody” names no single entity" in page.get_by_role("alert").inner_text()
    settled(page)
    assert page.locator("#card-title").inner_text() == "tree <i>of names</i>"
    assert "nobody" not in page.url
    page.evaluate("location.hash = 'entity=n5'")
    page.locator("#card-title", has_text="n5").wait_for()
    settled(page)
    assert not page.get_by_role("alert").is_visible()
    assert complaints
    assert all("404" in complaint for complaint in complaints)
    complaints.clear()


def test_the_exported_page_works_from_a_file(page: Page, runs: list[Run], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_page(runs[0], file)
    visit(page, file.as_uri())
    before = dots(page)
    page.locator("#search").fill("node 12")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.locator("#card-title", has_text="node 12").wait_for()
    settled(page)
    assert dots(page) != before
    page.mouse.move(*place(page, 0, 0))
    page.locator(".tip strong", has_text="node 12").wait_for()
    assert "Möbius translation" in page.locator("#projection-note").inner_text()
    assert not page.locator("#view-question").is_visible()
    assert not page.locator("#answers").is_visible()
    # The page promises likely facts, and has those that the model of the run finds.
    rows = page.locator(".likely tbody tr")
    assert rows.count() > 0
    assert rows.first.locator(".new").count() == 1
    page.mouse.move(2, 2)
    centred, link = dots(page), page.url
    page.locator("#relation").select_option("next")
    settled(page)
    assert dots(page) != centred  # other edges
    page.locator("#origin").click()
    settled(page)
    page.locator("#relation").select_option("parent")
    settled(page)
    assert dots(page) == before
    page.goto("about:blank")
    visit(page, f"{file.as_uri()}#entity=n12&relation=parent")
    assert dots(page) == centred
    page.goto("about:blank")
    visit(page, link)
    assert page.url == link
