"""The paper's items end to end on the bundled graph, and the report that is made of what they store."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from made_once import once
from murp.cli.main import main
from murp.errors import ConfigError, RunError
from murp.paper import ITEMS, Experiments, pictures
from murp.paper.document import Picture
from murp.paper.evidence import METRICS, decimals
from murp.paper.experiments import published, read_settings
from murp.paper.planned_run import PlannedRun
from murp.paper.report import write


def test_every_item_is_stored_with_its_version(toys: Path) -> None:
    for name in ITEMS:
        content = json.loads((toys / f"{name}.json").read_text())
        assert content["item"] == name
        assert content["quick"] is True
        assert re.fullmatch("[0-9a-f]{12}", content["source"])


def test_a_run_says_all_that_is_needed_to_judge_it(toys: Path) -> None:
    files = list((toys / "runs").glob("*.json"))
    assert files
    for file in files:
        run = json.loads(file.read_text())
        assert run["settings"]["data"] in file.name
        assert "seed" in run["settings"]
        if "failed" in run:
            assert "became NaN or infinite" in run["failed"]
            continue
        assert run["environment"]["device"]
        for split in ("valid", "test"):
            by = {protocol: run["metrics"][split][protocol] for protocol in ("standard", "paper")}
            # Taking a candidate out can only help the others.
            assert by["paper"]["mrr"] >= by["standard"]["mrr"]
            assert all(0 <= by["paper"][metric] <= 1 for metric in METRICS)
        assert "/" not in run["settings"]["data"] + run["settings"]["data_dir"]


def test_a_run_that_diverged_is_shown_and_never_chosen(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "draw", undrawn)
    out = tmp_path / "paper"
    shutil.copytree(toys, out, ignore=shutil.ignore_patterns("work"))
    item = json.loads((out / "table1.json").read_text())
    rows = [row for row in item["grid"] if row["model"] == "murp"]
    diverge(out, rows[0]["runs"][1])
    assert "diverged" in text_of(write(out, tmp_path / "docs"))
    chosen: list[str] = []

    class Stored(Experiments):
        def results(self, planned: Iterable[PlannedRun]) -> list[dict[str, Any]]:
            names = [run.name for run in planned]
            chosen.extend(names)
            return [json.loads((out / "runs" / f"{name}.json").read_text()) for name in names if "d8" not in name]

    ITEMS["table1"](Stored(out, device="cpu", quick=True))
    rate = rows[0]["runs"][0].split("-lr")[1]
    assert [name.split("-lr")[1] for name in chosen if "murp-d8" in name] == [rate]


def diverge(out: Path, name: str) -> None:
    """As if the run had stopped at a NaN."""
    file = out / "runs" / f"{name}.json"
    run = json.loads(file.read_text())
    del run["metrics"]
    file.write_text(json.dumps({**run, "failed": "the loss became NaN"}))


def text_of(paths: list[Path]) -> str:
    return paths[0].read_text(encoding="utf-8")


def undrawn(figure: object, folder: Path, name: str, caption: str) -> Picture:
    """A picture's place in a text, and a file to put there; the test of the report draws them."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.png").write_bytes(b"")
    return Picture(folder / f"{name}.png", caption)


@pytest.fixture(scope="module")
def report(toys: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    docs = once(tmp_path_factory, "reproduction", lambda folder: write(toys, folder))
    return [docs / "reproduction.md", docs / "reproduction.html"]


def test_the_report_has_every_item_and_its_pictures(report: list[Path]) -> None:
    text = text_of(report)
    for heading in ("Table 1", "Figure 3a", "Figure 3b", "Table 2", "Table 3", "Figure 4", "Figure 5", "Figure 6"):
        assert f"## {heading}" in text
    for heading in ("Wrong predictions", "The paper's claims", "The effect of removing the subject"):
        assert heading in text
    for name in re.findall(r"\]\((\S+?\.(?:png|svg|pdf))\)", text):
        assert (report[0].parent / name).stat().st_size > 1000
    assert len(re.findall(r"\.png\)", text)) == 6


def test_the_report_prints_what_is_stored(toys: Path, report: list[Path]) -> None:
    item = json.loads((toys / "table1.json").read_text())
    for cell in item["cells"]:
        run = json.loads((toys / "runs" / f"{cell['runs'][0]}.json").read_text())
        figures = [decimals(run["metrics"]["test"]["paper"][metric]) for metric in METRICS]
        row = next(
            line
            for line in text_of(report).splitlines()
            if line.startswith(f"| {NAMES[cell['model']]} d={cell['dim']} |")
        )
        assert [row.split("|")[i].strip() for i in (2, 5, 7, 9)] == figures


NAMES = {"mure": "MuRE", "murp": "MuRP"}


class Outside(HTMLParser):
    """Everything a page would ask another host for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag] if tag in ("script", "link", "iframe") else []
        self.found += [
            v for k, v in attrs if k in ("src", "href") and v is not None and not v.startswith(("data:", "#"))
        ]


def test_the_page_is_self_contained(report: list[Path]) -> None:
    parser = Outside()
    text = report[1].read_text(encoding="utf-8")
    parser.feed(text)
    assert parser.found == []
    inside = re.findall(r'href="#([^"]+)"', text)
    assert "the-papers-claims" in inside
    assert set(inside) <= set(re.findall(r' id="([^"]+)"', text))


def test_the_papers_figures_agree_with_each_other() -> None:
    """The published row of table 2 is d=40 of table 1; every row has its four metrics, in falling order of k."""
    paper = published()
    wn18rr = paper["table1"]["WN18RR"]
    top = [wn18rr["mure"]["40"][0], wn18rr["mure"]["40"][3], wn18rr["murp"]["40"][0], wn18rr["murp"]["40"][3]]
    assert paper["table2"]["transformations"]["published"] == top
    assert paper["table2"]["biases"]["both"] == top
    for table in (paper["table1"], paper["nell"]):
        for models in table.values():
            for dims in models.values():
                for mrr, hits10, hits3, hits1 in dims.values():
                    assert hits1 < mrr < hits10
                    assert hits1 < hits3 < hits10
    settings = read_settings()
    assert set(settings["nell"]["data"]) == set(paper["nell"])
    assert set(settings["table2"]["transformations"]) == set(paper["table2"]["transformations"])


class TestBadInput:
    def test_an_unknown_item(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["paper", "run", "table9", "--out", str(tmp_path)]) == 1
        assert "unknown item 'table9'" in capsys.readouterr().err

    def test_toys_and_results_are_kept_apart(self, toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["paper", "run", "hierarchy", "--out", str(toys)]) == 1
        assert "choose another --out" in capsys.readouterr().err

    def test_nothing_to_report(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["paper", "report", "--out", str(tmp_path), "--to", str(tmp_path)]) == 1
        assert "murp paper run all" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_a_damaged_result(self, toys: Path, tmp_path: Path) -> None:
        shutil.copytree(toys, tmp_path / "paper", ignore=shutil.ignore_patterns("work"))
        (tmp_path / "paper" / "table1.json").write_text("{")
        with pytest.raises(RunError, match=r"table1\.json cannot be read.*run its item again"):
            write(tmp_path / "paper", tmp_path)

    def test_no_seeds(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="at least 1"):
            Experiments(tmp_path, seeds=0)


def test_the_list_says_what_is_stored(toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "list", "--out", str(toys)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(ITEMS)
    assert all("(quick)" in line for line in lines[1:])


@pytest.mark.usefixtures("on_small")
def test_as_a_user_types_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside a repository: git would look at every commit of ours, as it does of a small one in ``test_history``."""
    monkeypatch.setattr("murp.paper.report.ROOT", tmp_path)
    assert main(["paper", "run", "hierarchy", "--quick", "--out", str(tmp_path)]) == 0
    assert "hierarchy: stored" in capsys.readouterr().out
    assert main(["paper", "report", "--out", str(tmp_path), "--to", str(tmp_path / "docs")]) == 0
    assert (tmp_path / "docs" / "reproduction.html").exists()


def test_the_page_in_the_docs_is_made_from_the_stored_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "draw", undrawn)
    root = Path(__file__).parents[2]
    assert text_of(write(root / "results" / "paper", tmp_path)) == (root / "docs" / "reproduction.md").read_text(
        encoding="utf-8"
    ), "run `make figures`"
