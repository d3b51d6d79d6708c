"""The explorer's pictures in docs/, taken of a MuRP and a MuRE run on wordnet-mini.

murp train --data wordnet-mini --model murp --dim 40 --epochs 60 --out runs/murp
murp train --data wordnet-mini --model mure --dim 40 --epochs 60 --out runs/mure
murp demo tree                                                          # its page shows curvature and dimension
python tools/explorer_screenshots.py runs/murp runs/mure docs          # all of them, or those that are named after it
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import small_png

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from exploring import exploring

ASIA = "entity=asia.n.01&relation=has_part"
DOG = "entity=dog.n.01&relation=hypernym"
# name: (what of the page, width, height, dark, whose: of the first run, of both, or of the demo's tree beside them)
PICTURES = {
    "first": ("", 1360, 860, False, "one"),
    "branches": ("colour=branch&size=degree", 1360, 860, True, "one"),
    "zoom": ("zoom1=3&drag1=1.35148,0,0.60817,0.67574,0&colour=depth", 1360, 860, False, "one"),
    "tree": (f"{DOG}&tree=1", 1560, 900, False, "one"),
    "map": (f"{ASIA}&view=map", 1360, 860, True, "one"),
    "question": (f"{ASIA}&view=question", 1360, 860, False, "one"),
    "before": (f"{ASIA}&view=question&moment=0", 1360, 860, False, "one"),
    "compare": (f"{ASIA}&view=question", 1480, 860, False, "two"),
    "flat": ("curvature", 1360, 900, False, "grown"),
    "dimension": ("dimension", 1360, 900, True, "grown"),
    "phone": (f"{ASIA}&view=question", 390, 844, False, "one"),
}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def take(browser: Browser, address: str, name: str, folder: Path) -> None:
    """One picture, once the page is at rest and the metrics are there."""
    view, width, height, dark, whose = PICTURES[name]
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    if whose == "grown":
        page.goto(f"{address}training")
        page.wait_for_selector("body[data-ready]")
        page.locator(f"#{view}").fill("0" if view == "curvature" else "1")
    else:
        page.goto(f"{address}#{view}")
        page.wait_for_selector("body[data-ready]")
        page.wait_for_selector("#metrics table")
    page.wait_for_timeout(500)
    small_png.write(page.screenshot(), folder / f"explorer-{name}.png")
    page.close()


def main() -> None:
    murp_run, mure_run, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    wanted = set(sys.argv[4:]) or set(PICTURES)
    executable = os.environ.get("MURP_CHROMIUM") or shutil.which("chromium")
    shown = {"one": [murp_run], "two": [murp_run, mure_run], "grown": [str(Path(murp_run).with_name("demo-tree"))]}
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=executable, args=ARGUMENTS)
        for whose, runs in shown.items():
            names = [name for name, picture in PICTURES.items() if picture[-1] == whose and name in wanted]
            if names:
                with exploring(*runs) as address:
                    for name in names:
                        take(browser, address, name, folder)
        browser.close()


if __name__ == "__main__":
    main()
