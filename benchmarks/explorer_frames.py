"""How smoothly the explorer's disk moves: milliseconds from frame to frame while it is dragged, zoomed and recentred.

    python benchmarks/explorer_frames.py --run runs/wn18rr --out results/explorer_frames.json
    python benchmarks/explorer_frames.py --entities 1000000 --out results/explorer_million.json

A headless Chromium without a GPU shows the page of ``murp explore``, at one and at two device pixels a CSS pixel,
without edges and with those of the relation that has most. The browser's frame clock is switched off: a frame begins
when the one before is done, so the time between two frames is the cost of a frame: the page's JavaScript plus the
browser's painting and compositing. ``script`` is the time of the page's JavaScript.

``processor_ms`` is the processor time of a frame (Linux only), which other programs hardly change: on the page's own
thread, which runs script and painting, and in the rest of the browser, which composites.

A drag moves the pointer in a circle, one move per frame; zooming turns the wheel in and out again; recentring is
everything from choosing an entity until the page is at rest, including the request to the server. ``first_view_s`` is
the time from the address to the first view at rest, the server warm. A trained run is needed, since the cost of edges
depends on their length. With --entities, random weights on a tree with so many entities are used, to see whether a
graph of that size can be used at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from exploring import exploring
from measure import parser, result, store, toy_graph
from murp import models
from murp.config import Config
from murp.graph import KnowledgeGraph, Vocabulary
from murp.runs import folder

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-frame-rate-limit", "--disable-gpu-vsync",
]  # fmt: skip
WIDTH, HEIGHT = 1360, 860
FRAMES = 120
CENTRES = 6
LIMIT_MS = 16.0

# Counts what the page does in its frames and in answer to a pointer.
CLOCK = """
window.spent = 0;
window.ownFrame = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (work) => ownFrame((now) => {
  const began = performance.now();
  work(now);
  spent += performance.now() - began;
});
window.record = (step) => new Promise((done) => {
  const frames = [];
  let last = null;
  const frame = () => {
    const now = performance.now();
    if (last !== null) frames.push([now - last, spent]);
    last = now;
    spent = 0;
    if (!step(frames.length)) return done(frames);
    spent += performance.now() - now;
    return ownFrame(frame);
  };
  ownFrame(frame);
});
"""
DRAG = """(frames) => {
  const canvas = document.querySelector("canvas.overlay");
  const box = canvas.getBoundingClientRect();
  return record((n) => {
    if (n >= frames) return false;
    const [turn, reach] = [(2 * Math.PI * n) / 60, 0.3 * box.width];
    canvas.dispatchEvent(new PointerEvent("pointermove", {
      clientX: box.left + box.width / 2 + reach * Math.sin(turn),
      clientY: box.top + box.height / 2 + reach * (Math.cos(turn) - 1),
    }));
    return true;
  });
}"""
ZOOM = """(frames) => {
  const canvas = document.querySelector("canvas.overlay");
  const box = canvas.getBoundingClientRect();
  return record((n) => {
    if (n >= frames) return false;
    canvas.dispatchEvent(new WheelEvent("wheel", {
      clientX: box.left + 0.6 * box.width, clientY: box.top + 0.4 * box.height, deltaY: n % 60 < 30 ? -60 : 60,
    }));
    return true;
  });
}"""
# To the last of the entities near the middle, as a click on its name does.
RECENTRE = """() => record((n) => {
  if (n === 0) [...document.querySelectorAll("#near .name")].at(-1).click();
  return n === 0 || !("ready" in document.body.dataset);
})"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--run", help="a trained run; of none, random weights on a toy graph (--quick)")
    options.add_argument("--entities", type=int, help="instead of a run, random weights on a tree of so many entities")
    chosen = options.parse_args(arguments)
    if chosen.run is None and chosen.entities is None and not chosen.quick:
        options.error("name a trained run: --run RUN, or a number of --entities, or --quick for a toy.")
    frames, centres = (5, 1) if chosen.quick else (FRAMES, CENTRES)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as engine:
        run = chosen.run or random_run(Path(scratch), tree(chosen.entities) if chosen.entities else toy_graph())
        browser = engine.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        with exploring(str(run)) as address:
            about = json.load(urlopen(f"{address}api/run"))
            most = max(about["relations"], key=lambda relation: relation["facts"])
            figures = {
                f"{sharpness}×, {'edges' if edges else 'no edges'}": moving(
                    browser, f"{address}#relation={most['id']}&edges={edges}", sharpness, frames, centres
                )
                for sharpness, edges in (((1, 1),) if chosen.quick else product((1, 2), (0, 1)))
            }
        version = browser.version
        browser.close()
    settings = {
        "data": about["graph"]["name"],
        "points": about["drawn"],
        "relation": most["id"],
        "edges": most["facts"],
        "model": about["runs"][0]["model"],
        "dim": about["runs"][0]["dim"],
        "viewport": [WIDTH, HEIGHT],
        "browser": f"Chromium {version}, headless, --disable-gpu",
    }
    what = "milliseconds a frame of the explorer's disk in motion"
    first_view = {case: first for case, (first, _) in figures.items()}
    frame = {case: found for case, (_, found) in figures.items()}
    store(result(what, settings, {"limit_ms": LIMIT_MS, "first_view_s": first_view, "frame_ms": frame}), chosen.out)


def moving(browser: Browser, address: str, sharpness: int, frames: int, centres: int) -> tuple[float, dict[str, Any]]:
    """A page's drag and its recentring, each done once before it is measured: the page learns what it can move."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=sharpness)
    page.add_init_script(CLOCK)
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    first = time.perf_counter() - began
    page.wait_for_selector("#metrics table")  # until these are computed the machine is not at rest
    page.wait_for_selector("body[data-ready]")
    found = {
        "drag": measured(lambda: drag(page, frames)),
        "zoom": measured(lambda: page.evaluate(ZOOM, frames)),
        "recentre": measured(lambda: page.evaluate(RECENTRE), centres),
    }
    page.close()
    return first, found


def measured(move: Callable[[], list[list[float]]], times: int = 1) -> dict[str, Any]:
    """The frames of a movement that is done ``times`` times, after it was done once."""
    move()
    before = processor_ms()
    frames = list(chain(*[move() for _ in range(times)]))
    after = processor_ms()
    return {**spread(frames), "processor_ms": {part: (after[part] - before[part]) / len(frames) for part in after}}


def processor_ms() -> dict[str, float]:
    """What the browser has used so far: the page's own thread, and all others; nothing if no system tells."""
    used = {"page": 0.0, "rest": 0.0}
    for process in descendants(os.getpid()):
        with contextlib.suppress(OSError, IndexError):  # it may end meanwhile
            command = Path(f"/proc/{process}/cmdline").read_text()
            if "chrom" not in command:
                continue
            for thread in Path(f"/proc/{process}/task").iterdir():
                is_page = "--type=renderer" in command and thread.name == str(process)
                nanoseconds = int((thread / "schedstat").read_text().split()[0])
                used["page" if is_page else "rest"] += nanoseconds / 1e6
    return used if used["page"] else {}


def descendants(process: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *descendants(child)]
    return found


def drag(page: Page, frames: int) -> list[list[float]]:
    box = page.locator("canvas.overlay").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    found: list[list[float]] = page.evaluate(DRAG, frames)
    page.mouse.up()
    return found


def spread(frames: list[list[float]]) -> dict[str, Any]:
    """Of [milliseconds, of these the script's] a frame."""
    whole, script = (sorted(column) for column in zip(*frames, strict=True))
    return {
        "median": statistics.median(whole),
        "p95": whole[int(0.95 * len(whole))],
        "most": whole[-1],
        "script_median": statistics.median(script),
        "script_p95": script[int(0.95 * len(script))],
        "frames": len(whole),
    }


def chromium() -> str | None:
    return os.environ.get("MURP_CHROMIUM") or shutil.which("chromium")


def random_run(scratch: Path, graph: KnowledgeGraph) -> Path:
    """Random weights on a graph."""
    config = Config(dim=5)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(0)
    model.parameters["entity"].mul_(50)
    folder.create(scratch / "run", config, graph, model, {"epoch": 0, "best_mrr": None, "best_epoch": None}, "torch")
    return scratch / "run"


def tree(entities: int) -> KnowledgeGraph:
    """A tree in which each node but the root has a parent drawn from those before it, the first ones more often."""
    random = np.random.default_rng(0)
    child = np.arange(1, entities)
    parent = (child * random.random(entities - 1) ** 2).astype(np.int64)
    facts = np.stack([child, np.zeros_like(child), parent], axis=1).astype(np.int32)
    random.shuffle(facts)
    names = Vocabulary("entity", [f"e{i}" for i in range(entities)])
    few = min(50, entities // 10)
    return KnowledgeGraph(
        f"tree of {entities}", names, Vocabulary("relation", ["parent"]), facts[2 * few :], facts[:few],
        facts[few : 2 * few],
    )  # fmt: skip


if __name__ == "__main__":
    main()
