"""Every benchmark runs, in toy sizes, and what murp is compared with computes the same step. No time is asserted."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import measure
import murp
from murp import models
from murp.engines import TorchEngine
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import MultiRelational
from murp.provenance import identity
from textbook import TextbookMuRP

ROOT = Path(__file__).resolve().parents[2]
IN_PROCESS = {
    "adaptive_ablation", "any_model", "cpu_step", "cpu_evaluation", "explorer_watched", "extending", "half_tables",
    "hierarchy", "local_negatives", "protocols", "suite", "time_to_quality", "tuning", "type_constraints",
}  # fmt: skip
BY_PROCESS = {
    "cpu_many_entities", "cpu_neighbours", "cpu_reading", "explorer_load", "newcomer", "plots", "scale_finding",
    "scale_reading", "serve_load", "start_up", "tune_workers",
}  # fmt: skip
IN_A_BROWSER = {"explorer_frames"}
RANKS = {"distributed", "distributed_fused"}  # tried in tests/distributed


def test_every_benchmark_is_tried_here() -> None:
    programs = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "def main(" in path.read_text()}
    apart = {"gpu", "gpu_scale", "reference_run", "cpu_earlier", "field"}
    assert programs == IN_PROCESS | BY_PROCESS | IN_A_BROWSER | apart | RANKS


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout")
def test_this_code_is_measured_against_a_commit(tmp_path: Path) -> None:
    out = tmp_path / "it.json"
    importlib.import_module("cpu_earlier").main(["--quick", "--out", str(out)])
    stored = json.loads(out.read_text())
    check(stored)
    assert stored["figures"]["murp"]["processor_seconds"]["now_over_earlier"] > 0


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("name", sorted(IN_PROCESS | BY_PROCESS))
def test_a_benchmark_runs_and_stores_what_it_found(name: str, tmp_path: Path) -> None:
    out = tmp_path / "results" / "it.json"
    importlib.import_module(name).main(["--quick", "--out", str(out)])
    check(json.loads(out.read_text()))


@pytest.mark.parametrize(("target", "epochs"), [(0.0, 1), (1.1, 2), (None, 2)])
def test_a_training_ends_at_the_target_if_it_reaches_it(target: float | None, epochs: int) -> None:
    timed = importlib.import_module("time_to_quality").timed
    settings = {"model": "mure", "dim": 4, "epochs": 2, "validate_every": 1, "batch_size": 32}
    found = timed(measure.toy_graph(), settings, target, end=True)
    assert len(found["valid_mrr_standard"]) == epochs
    assert found["epoch_of_target"] == (1 if target == 0 else None)
    assert (found["seconds"] is None) == (found["test_mrr_standard"] is None) == (target == 0)


@pytest.mark.browser
@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("name", sorted(IN_A_BROWSER))
def test_a_benchmark_runs_in_a_browser(name: str, tmp_path: Path) -> None:
    if not (os.environ.get("MURP_CHROMIUM") or shutil.which("chromium")):
        pytest.skip("needs a browser: apt-get install chromium, or name one in MURP_CHROMIUM")
    test_a_benchmark_runs_and_stores_what_it_found(name, tmp_path)


def test_the_gpu_benchmarks_run_as_toys_on_the_cpu(tmp_path: Path) -> None:
    gpu = importlib.import_module("gpu")
    assert gpu.main(["--quick", "--out", str(tmp_path)]) == 0
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == sorted(f"gpu_{name}.json" for name in gpu.BENCHMARKS)
    for file in files:
        check(json.loads(file.read_text()))


def test_tables_of_a_gpu_and_a_whole_run_are_tried_as_toys(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs triton: pip install triton")
    gpu_scale = importlib.import_module("gpu_scale")
    (tmp_path / "graph" / "facts.part").mkdir(parents=True)  # of a process that was stopped
    found = {}
    for name, words in (("steps", []), ("rows", ["--rows"]), ("whole", ["--whole", str(tmp_path / "graph")])):
        out = tmp_path / f"{name}.json"
        assert gpu_scale.main(["--quick", *words, "--out", str(out)]) == 0
        check(json.loads(out.read_text()))
        found[name] = json.loads(out.read_text())["figures"]
    for place, most in zip(found["rows"]["by_place"].values(), (60, 60, 40), strict=True):
        assert [int(rows) for rows in place["seconds_by_rows"]] == [rows for rows in (20, 40, 60) if rows <= most]
    whole = found["whole"]
    assert whole["finished"]
    assert set(whole["seconds"]) == {"opening", "training", "looking for the hierarchy", "evaluating"}
    assert whole["reading"]["starts_of_reading"] == 1
    assert whole["test"]["intervals"]["mrr"]
    assert not whole["hierarchy"]["learned"]


def test_a_whole_run_that_is_cut_off_has_told_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scale_whole = importlib.import_module("scale_whole")
    told: list[dict[str, object]] = []

    def stopped(*of: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scale_whole.known_hierarchy, "relatives", stopped)
    with pytest.raises(KeyboardInterrupt):
        scale_whole.whole(tmp_path, 2000, 300, 5, torch.device("cpu"), told.append, toy=True)
    assert len(told) == 2
    figures = told[-1]["figures"]
    assert isinstance(figures, dict)
    assert not figures["finished"]
    assert {"epoch_seconds", "loss", "reading"} <= set(figures)
    assert "test" not in figures
    assert not (tmp_path / "run").exists()


def test_a_known_tree_is_found_again_where_it_is() -> None:
    """Points that lie as the tree does: an entity at its parent's, and a little further in its own direction."""
    known_hierarchy = importlib.import_module("known_hierarchy")
    entities, branches = 600, known_hierarchy.BRANCHES
    draw = np.random.default_rng(0)
    order = draw.permutation(entities)
    points = np.zeros((entities, 40))
    for number in range(1, entities):
        parent = points[order[(number - 1) // branches]]
        points[order[number]] = parent + 0.1 * draw.normal(size=40) / (2 + np.linalg.norm(parent))
    names = np.empty(entities, object)
    names[order] = [f"Q{number}" for number in range(entities)]
    facts = np.zeros((1, 3), np.int32)
    names_of = (Vocabulary("entity", names.tolist()), Vocabulary("relation", ["r00"]))
    graph = KnowledgeGraph("tree", *names_of, facts, facts, facts)
    model = models.murp(entities, 2, 40)
    model.initialise(0)
    by_chance = known_hierarchy.relatives(model, graph, 400)
    model.parameters["entity"] = torch.from_numpy(points).float() * 0.3
    found = known_hierarchy.relatives(model, graph, 400)
    nearer = "share_with_a_sibling_nearer_than_the_farthest_kin"
    assert found[nearer] > 0.9 > 0.7 > by_chance[nearer] > 0.3
    assert found["share_of_parents_nearer_to_the_origin"] > 0.9
    assert list(found["distance_by_levels_to_the_common_ancestor"]) == ["1", "2"]
    assert known_hierarchy.verdict(found, {"hits@10": 0.6})
    assert not known_hierarchy.verdict(found, {"hits@10": 0.4})
    assert not known_hierarchy.verdict(by_chance, {"hits@10": 0.6})
    some = np.arange(1, entities)
    for level in (1, 2):
        kin = known_hierarchy.relative(some, level, draw)
        ups = [(known_hierarchy._up(some, up), known_hierarchy._up(kin, up)) for up in (level - 1, level)]
        there = ups[1][0] >= 0
        assert (ups[1][0] == ups[1][1])[there].all()
        assert (ups[0][0] != ups[0][1])[there].all()


def test_a_reference_run_stores_its_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference_run = importlib.import_module("reference_run")
    out = tmp_path / "it.json"
    settings = {"--data": "wordnet-mini", "--dim": "2", "--epochs": "1", "--engine": "torch", "--device": "cpu"}
    words = [word for pair in settings.items() for word in pair]
    monkeypatch.setattr(sys, "argv", ["reference_run.py", *words, "--out", str(out)])
    reference_run.main()
    stored = json.loads(out.read_text())
    assert {"config", "environment", "selected_epoch", "metrics", "curve"} <= set(stored)
    assert {name: stored[name] for name in identity()} == identity()
    assert stored["environment"]["source"] == stored["source"], "trained and stored by the same code"


def test_outcomes_of_tests_are_counted() -> None:
    """Of every run of pytest, and of each choice of instructions."""
    from suite import outcomes

    printed = "6 passed, 2 skipped, 1 warning in 3.00s\nthe lowest of all: 4 passed, 1 failed (threads 1)\n"
    assert outcomes(printed) == {"passed": 10, "skipped": 2, "failed": 1}


def check(stored: dict[str, object]) -> None:
    code = {"murp", "commit", "clean", "source", "date", "command", "machine"}
    assert set(stored) - {"item"} == {"what", "settings", "figures"} | code  # those of the paper name its item
    assert {name: stored[name] for name in identity()} == identity()
    assert isinstance(stored["machine"], dict)
    assert stored["machine"]["murp"] == murp.__version__


def test_a_result_of_parts_names_the_code_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"commit": "c" * 40, "clean": True, "source": "3" * 12, "date": "today"}
    monkeypatch.setattr(measure, "code", lambda: {**now, "murp": "0", "command": "it"})
    old = {"commit": "a" * 40, "clean": False, "source": "1" * 12, "date": "once"}
    assert measure.parts({}, ["one"], ["one"]) == {"one": now}
    first = {**old, "figures": {}, "machine": {}}
    assert measure.parts(first, ["one", "two"], ["two"]) == {"one": old, "two": now}
    second = {**now, "parts": {"one": old, "two": now}}
    assert measure.parts(second, ["one", "two", "three"], ["three"]) == {"one": old, "two": now, "three": now}
    assert measure.parts({"figures": {}}, ["one"], []) == {"one": {}}, "a file that names no code"


def test_spread_and_turns() -> None:
    assert measure.spread([3.0, 1.0, 2.0]) == {"median": 2.0, "least": 1.0, "most": 3.0, "repeats": 3}
    calls: list[str] = []
    works: measure.Works = {name: ((lambda n=name: calls.append(n)), 1) for name in "ab"}
    measured = measure.in_turns(works, repeats=2)
    assert calls == ["a", "b"] * 3  # once to warm up
    assert {name: values["repeats"] for name, values in measured.items()} == {"a": 2, "b": 2}


def batch() -> tuple[MultiRelational, torch.Tensor, torch.Tensor]:
    """A MuRP model in float64 away from 0, and a batch with repeated entities."""
    model = models.murp(12, 4, 5, dtype=torch.float64)
    model.initialise(0)
    model.parameters["entity"].mul_(100)
    model.parameters["translation"].mul_(100)
    draw = torch.Generator().manual_seed(1)
    positives = torch.stack([torch.randint(n, (8,), generator=draw) for n in (12, 4, 12)], dim=-1)
    return model, positives, torch.randint(12, (8, 6), generator=draw)


def test_the_textbook_step_is_the_step() -> None:
    model, positives, negatives = batch()
    textbook = TextbookMuRP(12, 4, 5)
    tables = {
        "entity": textbook.entity,
        "translation": textbook.translation,
        "subject_stretch": textbook.stretch,
        "subject_bias": textbook.subject_bias,
        "object_bias": textbook.object_bias,
    }
    with torch.no_grad():
        for name, table in tables.items():
            table.copy_(model.parameters[name])
    losses = [textbook.step(positives, negatives, 3.0) for _ in range(3)]
    engine = TorchEngine(model)
    assert losses == pytest.approx([float(engine.step(positives, negatives, 3.0)) for _ in range(3)], rel=1e-9)
    for name, table in tables.items():
        torch.testing.assert_close(table.detach(), model.parameters[name], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_step_with_geoopt_is_the_step(sparse: bool) -> None:
    model, positives, negatives = batch()
    theirs = importlib.import_module("geoopt_murp").GeooptMuRP(model, 3.0, sparse=sparse)
    losses = [theirs.step(positives, negatives) for _ in range(3)]
    engine = TorchEngine(model)
    assert losses == pytest.approx([float(engine.step(positives, negatives, 3.0)) for _ in range(3)], rel=1e-9)
    for name, values in model.parameters.items():
        torch.testing.assert_close(theirs.tables[name].detach().view_as(values), values, rtol=1e-7, atol=1e-9)


def test_pykeens_mure_trains() -> None:
    pytest.importorskip("pykeen", reason="needs PyKEEN: pip install murp[judges]")
    triples = torch.tensor([[0, 0, 1], [1, 1, 2], [2, 0, 0]])
    mure = importlib.import_module("pykeen_mure").PykeenMuRE(3, 2, 4, triples, negatives=2)
    before = [values.detach().clone() for values in mure.model.parameters()]
    mure.epoch(2)
    assert any(not torch.equal(a, b) for a, b in zip(before, mure.model.parameters(), strict=True))
