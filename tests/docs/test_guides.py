"""Every guide runs as it stands, but for one epoch where it says more; what it shows is what the commands print.

What depends on training is compared in shape: as many lines, the same words in lines without figures, up to a colon.
What does not (a named dataset described, audited, analysed; the explorer's address) is compared word for word.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import guides

DOCS = guides.PAGES.parent
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("name", [name for name in guides.GUIDES if name != "wn18rr"])
def test_a_guide_runs_and_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.data
def test_the_guide_to_wn18rr_runs_and_prints_what_it_shows(benchmark_data: Path, tmp_path: Path) -> None:
    if not (benchmark_data / "WN18RR" / "entity_names.tsv").exists():
        pytest.skip(f"needs WN18RR with its names: no WN18RR/entity_names.tsv in {benchmark_data}")
    check("wn18rr", tmp_path)


def check(name: str, folder: Path) -> None:
    printed = guides.run(name, folder, epochs=1)
    for block, output in zip(guides.blocks(guides.page(name)), printed, strict=True):
        if block.output is None:
            continue
        if re.match(r"murp (explore |(data|analyze) \S*(wordnet-mini|list))", block.code):
            assert block.output == output
        else:
            assert shape(block.output) == shape(output), block.code
    for picture in re.findall(r"!\[[^]]*\]\(([^/)]+)\)", guides.page(name)):
        assert (folder / picture).exists()


def shape(text: str) -> list[list[str]]:
    """Of every line its words up to a colon where it holds no figures, nothing where it does."""
    lines = text.strip("\n").splitlines()
    return [[] if re.search(r"\d", line) else line.partition(":")[0].split() for line in lines]


def test_the_shape_is_the_words_without_the_figures() -> None:
    assert shape("name  MRR\nall   0.1\n") == shape("name MRR\nall     0.25")
    assert shape("name  MRR\nall   0.1\n") != shape("name MR\nall     0.25")
    assert shape("a\n1\n") != shape("a\n1\n2\n")


@pytest.mark.parametrize("name", guides.GUIDES)
def test_the_outputs_are_the_stored_ones(name: str) -> None:
    assert guides.filled(name) == guides.page(name), f"run `python tools/guides.py --run {name}`"


def test_a_changed_command_must_be_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = guides.page("first-graph").replace("murp evaluate runs/first\n", "murp evaluate runs/first --split valid\n")
    monkeypatch.setattr(guides, "page", lambda name: text)
    with pytest.raises(guides.GuideError, match="--run first-graph"):
        guides.filled("first-graph")


def test_a_failing_command_stops_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for code, message in (("murp info nowhere", "nowhere"), ("murp nearest", "required")):
        monkeypatch.setattr(guides, "page", lambda name, code=code: f"```sh\n{code}\n```\n")
        with pytest.raises(guides.GuideError, match=message):
            guides.run("any", tmp_path)


def test_every_page_of_the_documentation_is_in_its_index_and_no_link_is_dead() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    for page in [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page}: {link}"
        if DOCS in page.parents and page.name != "README.md":
            assert f"({page.relative_to(DOCS)})" in index, f"docs/README.md does not name {page}"
