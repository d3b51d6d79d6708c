"""Runs side by side, ``murp compare``, tables in other formats, and mean and deviation over seeds."""

from __future__ import annotations

import csv
import io
import json
import statistics
from pathlib import Path

import pytest
from typed import TRAIN, murp, ok, refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Facts of two relations, the same with one test fact less, and runs ``a``, ``b`` and ``other`` on them."""
    folder = tmp_path_factory.mktemp("comparing")
    facts = [(f"a{i}", f"r{j % 2}", f"a{(3 * i + j) % 20}") for i in range(20) for j in range(4)]
    for name, test in (("data", facts[:20]), ("less", facts[:19])):
        (folder / name).mkdir()
        for split, rows in (("train", facts[30:]), ("valid", facts[20:30]), ("test", test)):
            (folder / name / f"{split}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    for run, data, model in (("a", "data", "murp"), ("b", "data", "mure"), ("other", "less", "mure")):
        ok(*TRAIN, "--data", folder / data, "--model", model, "--out", folder / run, "--quiet")
    return folder


def test_compare_as_json_is_one_object_that_agrees_with_evaluate(folder: Path) -> None:
    runs = folder / "a", folder / "b"
    found = json.loads(ok("compare", *runs, "--json", "--samples", "500"))
    a, b = (json.loads(ok("evaluate", run, "--json", "--by-relation")) for run in runs)
    assert (found["mrr_a"], found["mrr_b"]) == pytest.approx((a["mrr"], b["mrr"]))
    assert found["difference"] == pytest.approx(a["mrr"] - b["mrr"])
    assert found["low"] < found["difference"] < found["high"]
    assert 0 < found["p"] <= 1
    told = {name: found[name] for name in ("queries", "protocol", "split", "seed", "samples")}
    assert told == {"queries": 40, "protocol": "standard", "split": "test", "seed": 0, "samples": 500}
    assert {name: part["mrr_b"] for name, part in found["by_relation"].items()} == pytest.approx(
        {name: part["mrr"] for name, part in b["by_relation"].items()}
    )


def test_compare_says_what_came(folder: Path) -> None:
    text = ok("compare", folder / "a", folder / "b", "--by-relation", "--protocol", "paper", "--split", "valid")
    assert text.startswith("A: murp d=5 on data, epoch 3")
    assert "split valid, protocol paper, filtered" in text
    assert "of the 10 facts with both their queries" in text
    assert [line.split()[0] for line in text.splitlines()[5:8]] == ["all", "r0", "r1"]
    same = ok("compare", folder / "a", folder / "a")
    assert "No difference is shown: p = 1.000, and 0 lies within the interval." in same


def test_what_cannot_be_compared_is_refused_with_the_reason(folder: Path) -> None:
    assert "do not have the same test facts (20 and 19)" in refused("compare", folder / "a", folder / "other")
    assert "compare takes two runs, not 1" in refused("compare", folder / "a")
    assert "not allowed with" in refused("compare", folder / "a", folder / "b", "--json", "--format", "csv", status=2)


def test_evaluate_prints_several_runs_side_by_side(folder: Path) -> None:
    runs = folder / "a", folder / "b"
    a, b = (json.loads(ok("evaluate", run, "--json")) for run in runs)
    both = json.loads(ok("evaluate", *runs, "--json"))
    assert both == {"runs": [{"run": str(run), **found} for run, found in zip(runs, (a, b), strict=True)]}
    rows = list(csv.DictReader(io.StringIO(ok("evaluate", *runs, "--format", "csv"))))
    assert [(row["run"], row["model"], row["protocol"]) for row in rows] == [
        (str(run), model, "standard") for run, model in zip(runs, ("murp", "mure"), strict=True)
    ]
    assert [float(row["MRR"]) for row in rows] == [a["mrr"], b["mrr"]]
    by_relation = ok("evaluate", *runs, "--by-relation").splitlines()
    assert [line.split()[0] for line in by_relation[3:]] == ["all", "r0", "r1"]
    assert [f"{report['mrr']:.3f}" for report in (a, b)] == by_relation[3].split()[1:3]


def test_evaluate_warns_where_runs_were_asked_other_facts(folder: Path) -> None:
    result = murp("evaluate", folder / "a", folder / "other")
    assert result.returncode == 0
    assert "do not have the same test facts" in result.stderr
    assert murp("evaluate", folder / "a", folder / "b").stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "a"],
        ["compare", "a", "b"],
        ["classify", "a"],
        ["nearest", "a", "a1"],
        ["analyze", "data"],
        ["analyze", "--run", "a"],
        ["predict", "a", "--head", "a1", "--relation", "r0"],
        ["recipes"],
        ["data", "list"],
    ],
    ids=" ".join,
)
def test_a_table_is_offered_in_every_format(folder: Path, words: list[str]) -> None:
    text = ok(*words, cwd=folder)
    rows = list(csv.reader(io.StringIO(ok(*words, "--format", "csv", cwd=folder))))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert "" not in rows[0]
    assert all(row[-1] in text or row[-2] in text or f"{float(row[-1]):.3f}" in text for row in rows[1:])
    assert r"\begin{tabular}" in ok(*words, "--format", "latex", cwd=folder)
    assert "| --- |" in ok(*words, "--format", "markdown", cwd=folder)


def test_a_sweep_says_mean_and_deviation_over_seeds(folder: Path, tmp_path: Path) -> None:
    words = ["sweep", "--data", folder / "data", "--model", "mure", "--dim", "3", "--epochs", "2", "--device", "cpu",
             "--validate-every", "1", "--lr", "1", "5", "--seed", "0", "1", "2", "--out", tmp_path]  # fmt: skip
    found = json.loads(ok(*words, "--json").splitlines()[-1])
    for group, lr in zip(found["over_seeds"], ("1.0", "5.0"), strict=True):
        values = [found["best_mrr"][f"lr{lr}-seed{seed}"] for seed in range(3)]
        assert (group["run"], group["seeds"], group["mrr"]) == (f"lr{lr}", [0, 1, 2], values)
        assert (group["mean"], group["deviation"]) == pytest.approx(
            (statistics.fmean(values), statistics.stdev(values))
        )
    text = ok(*words)
    assert "over seeds (deviation of a sample, n - 1)" in text
    rows = list(csv.DictReader(io.StringIO(ok(*words, "--format", "csv"))))
    assert {row["run"]: float(row["mean MRR"]) for row in rows} == pytest.approx(
        {group["run"]: group["mean"] for group in found["over_seeds"]}
    )
    one_seed = ok(*words[:-6], "--out", tmp_path / "one", "--format", "markdown")
    assert "| run | MRR | epoch |" in one_seed
