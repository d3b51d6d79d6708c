"""Predictions at scale, calibration, classification, discoveries, exports: as a user types them."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from typed import TRAIN, each_first, murp, ok, refused

from examples import PATIENCE
from forked import Forked
from murp.prediction.calibration import CONDITION
from murp.runs import checkpoint


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family tree with names, one of them shared."""
    folder = tmp_path_factory.mktemp("data") / "family"
    folder.mkdir()
    facts = [(f"p{i}", "child_of", f"p{(i - 1) // 2}") for i in range(1, 63)]
    facts += [(f"p{i}", "sibling_of", f"p{i + 1}") for i in range(1, 62, 2)]
    held = [facts[i] for i in (10, 20, 30, 70, 75)], [facts[i] for i in (12, 22, 32, 72, 77)]
    train = [fact for fact in facts if fact not in held[0] + held[1]]
    for name, rows in zip(("train", "valid", "test"), (train, *held), strict=True):
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    names = [(f"p{i}", "John Smith" if i in (3, 4) else f"Person {i}") for i in range(63)]
    (folder / "entity_names.tsv").write_text("".join("\t".join(row) + "\n" for row in names))
    return folder


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "first"
    ok(*TRAIN, "--data", data, "--out", path)
    return path


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.tsv"
    path.write_text("p9\tchild_of\t?\n?\tchild_of\tPerson 0\n")
    return path


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_file_of_questions_is_answered_as_one_is(run: Path, queries: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    said = ok("predict", run, "--queries", queries, "--out", out, "-k", "3")
    assert f"wrote 6 answers to 2 questions into {out}" in said
    rows = lines(out.read_text())
    for number, side, question in ((1, "tail", ("--head", "p9")), (2, "head", ("--tail", "p0"))):
        single = json.loads(ok("predict", run, *question, "--relation", "child_of", "-k", "3", "--json"))
        assert [r[side] for r in rows if r["query"] == number] == [p["id"] for p in single["predictions"]]
    assert "exists already" in refused("predict", run, "--queries", queries, "--out", out)
    ok("predict", run, "--queries", queries, "--out", out, "-k", "63", "--new-only", "--force", "--memory", "1")
    rows = lines(out.read_text())
    assert len(rows) == 61 + 60
    assert not any(r["known"] for r in rows)


def test_each_command_imports_what_it_needs(run: Path, data: Path, tmp_path: Path) -> None:
    """Nothing that another command, or a test, imported before it."""
    own = tmp_path / "run"
    shutil.copytree(run, own)
    commands: list[list[str | Path]] = [
        ["evaluate", own, "--by-relation"],
        ["predict", own, "--tail", "p0", "--relation", "child_of"],
        ["nearest", own, "p9"],
        ["plot", own, "disk", "--head", "p0", "--relation", "child_of", "--out", tmp_path / "disk.png"],
        ["analyze", data],
        ["calibrate", own],
        ["classify", own],
        ["discover", own, "-k", "2"],
        ["export", own, "--to", "npz", "--out", tmp_path / "vectors.npz"],
        ["import", tmp_path / "vectors.npz", "--data", data, "--out", tmp_path / "back"],
        ["info", tmp_path / "back"],
        ["paper", "list", "--out", tmp_path / "nothing"],
    ]
    printed = each_first(*commands)
    assert len(printed) == len(commands)
    assert all(printed)


def test_progress_is_shown_on_a_terminal(run: Path, queries: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = ["predict", run, "--queries", queries, "--out", tmp_path / "out.csv"]
    process = Forked(*words, err=theirs, before=lambda: os.environ.update(TERM="xterm", COLUMNS="120"))
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # how a terminal ends
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0
    assert "questions" in seen.decode()
    assert "2/2" in seen.decode()
    result = murp("predict", run, "--queries", queries, "--out", tmp_path / "quiet.csv")
    assert (result.returncode, result.stderr) == (0, "")


def test_one_question_is_answered_into_a_file_with_the_columns_of_many(run: Path, tmp_path: Path) -> None:
    queries, many, one = tmp_path / "q.tsv", tmp_path / "many.csv", tmp_path / "one.csv"
    queries.write_text("head\trelation\ttail\n?\tchild_of\tp1\n")
    ok("predict", run, "--queries", queries, "-k", "3", "--out", many)
    question = ("predict", run, "--tail", "p1", "--relation", "child_of", "-k", "3", "--out", one)
    assert ok(*question) == f"wrote 3 answers to 1 question into {one}\n"
    assert one.read_text() == many.read_text()
    assert "exists already" in refused(*question)
    told = json.loads(ok(*question, "--force", "--json"))
    assert (told["out"], told["queries"], told["rows"]) == (str(one), 1, 3)


def test_bad_questions_are_named_with_their_line_and_nothing_is_written(run: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "q.tsv", tmp_path / "out.parquet"
    for text, expected in (
        ("p1\tchild_of\np2\n", "q.tsv, line 2: 1 field instead of 2"),
        ("p1\tchild_of\nnobody\tchild_of\n", "q.tsv, line 2: unknown entity 'nobody'"),
        ("p1\tchild_of\np1\tpart_of\n", "q.tsv, line 2: unknown relation 'part_of'"),
        ("John Smith\tchild_of\n", "q.tsv, line 1: entity name 'John Smith' is ambiguous"),
    ):
        path.write_text(text)
        assert expected in refused("predict", run, "--queries", path, "--out", out)
    assert "no such file" in refused("predict", run, "--queries", tmp_path / "none.tsv", "--out", out)
    assert "must end in .parquet, .csv or .jsonl" in refused("predict", run, "--queries", path, "--out", tmp_path / "x")
    assert "--queries needs --out" in refused("predict", run, "--queries", path)
    assert "--head needs --relation" in refused("predict", run, "--head", "p1")
    question = ("predict", run, "--tail", "p1", "--relation", "child_of")
    assert "--memory does not go with --tail" in refused(*question, "--memory", "5")
    assert "give --out FILE" in refused(*question, "--force")
    assert "--format does not go with --out" in refused(*question, "--out", out, "--format", "csv")
    assert "unknown entity 'nobody'" in refused(
        "predict", run, "--head", "nobody", "--relation", "child_of", "--out", out
    )
    assert [p.name for p in tmp_path.iterdir()] == ["q.tsv"]


def test_calibrated_probabilities_are_shown_with_their_origin(run: Path, queries: Path, tmp_path: Path) -> None:
    question = ("predict", run, "--head", "p9", "--relation", "child_of", "-k", "4")
    assert "calibrated" not in ok(*question)
    said = ok("calibrate", run, "--method", "isotonic", "--seed", "2")
    assert all(word in said for word in ("uncalibrated", "platt", "isotonic", "Brier", "log loss", "10 answers"))
    assert all(word in said for word in ("the 10 best new answers", "true (isotonic)", "all candidates", CONDITION))
    assert not any(line.endswith(" ") for line in said.splitlines())
    stored = json.loads((run / "calibration.json").read_text())
    assert stored["format"] == 2
    assert set(stored["test"]) == {"split", "shown", "all"}
    try:
        shown = ok(*question)
        assert "calibrated: isotonic, fitted on 10 answers to 10 questions of valid" in shown
        assert CONDITION in shown
        assert str(run / "calibration.json") in shown
        values = [p["calibrated"] for p in json.loads(ok(*question, "--json"))["predictions"]]
        assert all(0 < value < 1 for value in values)
        assert "isotonic" in ok("predict", run, "--queries", queries, "--out", tmp_path / "out.jsonl", "-k", "4")
        assert [r["calibrated"] for r in lines((tmp_path / "out.jsonl").read_text())][:4] == pytest.approx(values)
        stored["epoch"] += 1
        (run / "calibration.json").write_text(json.dumps(stored))
        other = murp(*question)
        assert "calibrated" not in other.stdout
        assert "of other weights and not used" in other.stderr
        (run / "calibration.json").write_text(json.dumps({**stored, "format": 1}))
        said = refused(*question)
        assert "its format is 1, and this version of murp reads 2" in said
        assert f"Run `murp calibrate {run}` again" in said
        again = murp("calibrate", run, "--json")
        assert json.loads(again.stdout)["method"] == "platt"
        assert "fitted on 10 answers only" in again.stderr
    finally:
        (run / "calibration.json").unlink()


def test_classify_says_its_protocol_and_judges_triples(run: Path, tmp_path: Path) -> None:
    said = ok("classify", run)
    assert "split test, one corruption a fact" in said
    assert "thresholds chosen on valid" in said
    report = json.loads(ok("classify", run, "--json"))
    assert report["triples"] == 10
    assert set(report["by_relation"]) == {"child_of", "sibling_of"}
    (tmp_path / "t.csv").write_text("head,relation,tail\np1,child_of,p0\np1,sibling_of,Person 2\n")
    judged = lines(ok("classify", run, "--triples", tmp_path / "t.csv", "--json"))
    assert [(j["head"], j["tail"]) for j in judged] == [("p1", "p0"), ("p1", "p2")]
    for verdict in judged:
        assert verdict["threshold"] == report["by_relation"][verdict["relation"]]["threshold"]
        assert verdict["true"] == (verdict["score"] >= verdict["threshold"])
    assert ok("classify", run, "--triples", tmp_path / "t.csv").split()[:4] == ["head", "relation", "tail", "verdict"]
    (tmp_path / "t.csv").write_text("p1,child_of,p0\np1,child_of,px\n")
    assert "t.csv, line 2: unknown entity 'px'" in refused("classify", run, "--triples", tmp_path / "t.csv")


def test_discover_by_relation(run: Path, tmp_path: Path) -> None:
    result = murp("discover", run, "-k", "3", "--json")
    assert result.returncode == 0
    assert "× 63 entities: " in result.stderr
    found = lines(result.stdout)
    assert [(r["relation"], r["rank"]) for r in found] == [
        (r, i) for r in ("child_of", "sibling_of") for i in (1, 2, 3)
    ]
    out = tmp_path / "new.csv"
    assert "wrote 4 new facts" in ok(
        "discover", run, "--relation", "child_of", "--heads", "all", "-k", "4", "--out", out
    )
    assert len(out.read_text().splitlines()) == 5
    told = json.loads(ok("discover", run, "-k", "2", "--out", tmp_path / "facts.csv", "--json"))
    assert told == {"out": str(tmp_path / "facts.csv"), "rows": 4}
    message = murp("discover", run, "--out", out)
    assert (message.returncode, message.stdout) == (1, "")
    assert "exists already" in message.stderr
    shown = ok("discover", run, "--subjects", "all", "-k", "4000")
    assert {"John Smith [p3]", "John Smith [p4]"} == set(re.findall(r"John Smith(?: \[\w+\])?", shown))
    assert "Person 7 " in shown
    assert "Person 7 [" not in shown
    assert "unknown relation" in refused("discover", run, "--relation", "friend_of")


def test_where_nothing_is_new_discover_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    for name, rows in (("train", "a\tr\tb\nb\tr\ta\na\ts\tb\n"), ("valid", "b\tr\ta\n"), ("test", "a\tr\tb\n")):
        (folder / f"{name}.tsv").write_text(rows)
    ok(*TRAIN, "--data", folder, "--out", tmp_path / "run")
    assert ok("discover", tmp_path / "run") == "no new facts of r, s\n"
    assert murp("discover", tmp_path / "run", "--relation", "s").stderr == "1 question × 2 entities: 2 scores\n"
    assert "earlier splits state every fact of valid" in refused("calibrate", tmp_path / "run")
    (tmp_path / "q.tsv").write_text("a\ts\n")
    said = ok("predict", tmp_path / "run", "--queries", tmp_path / "q.tsv", "--out", tmp_path / "out.csv")
    assert said == f"wrote 1 answer to 1 question into {tmp_path / 'out.csv'}\n"


@pytest.mark.parametrize("to", ["npz", "parquet", "safetensors", "hub-folder"])
def test_export_and_import(run: Path, data: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / {"npz": "v.npz", "safetensors": "v.safetensors"}.get(to, "v")
    assert f"back: murp import {out}" in ok("export", run, "--to", to, "--out", out)
    assert "exists already" in refused("export", run, "--to", to, "--out", out)
    given = [] if to == "hub-folder" else ["--data", data]
    assert f"next: murp evaluate {tmp_path / 'back'}" in ok("import", out, "--out", tmp_path / "back", *given)
    ours, theirs = (
        checkpoint.load(path)[0] for path in (run / "best.safetensors", tmp_path / "back" / "last.safetensors")
    )
    assert all(values.equal(theirs[name]) for name, values in ours.items())
    assert ok("evaluate", tmp_path / "back", "--json") == ok("evaluate", run, "--json")
    assert "exists already" in refused("import", out, "--out", tmp_path / "back", *given)
    if given:
        assert "--data" in refused("import", out, "--out", tmp_path / "other")
        assert "another graph" in refused("import", out, "--out", tmp_path / "other", "--data", "wordnet-mini")


def test_exports_of_vectors_alone(run: Path, tmp_path: Path) -> None:
    for to in ("word2vec", "tensorboard"):
        assert "entities" in ok("export", run, "--to", to, "--out", tmp_path / to, "--coordinates", "tangent")
        about = json.loads((tmp_path / to / "about.json").read_text())
        assert (about["coordinates"], about["curvature"]) == ("tangent", -1.0)
        assert "only the entities' vectors" in refused("import", tmp_path / to, "--out", tmp_path / "back")


def test_a_run_of_another_version(run: Path, tmp_path: Path) -> None:
    """A setting this version does not know, from a version that says which one it is."""
    other = tmp_path / "other"
    other.mkdir()
    for path in run.iterdir():
        if path.is_file():
            (other / path.name).write_bytes(path.read_bytes())
    shutil.copytree(run / "graph", other / "graph")
    with (other / "config.toml").open("a") as file:
        file.write("attention = 3\n")
    assert "unknown setting 'attention'" in refused("predict", other, "--head", "p1", "--relation", "child_of")
    environment = json.loads((other / "environment.json").read_text())
    (other / "environment.json").write_text(json.dumps({**environment, "murp": "9.9.9"}))
    message = refused("export", other, "--to", "npz", "--out", tmp_path / "v.npz")
    assert "is a run of murp 9.9.9, which this version" in message
    assert not (tmp_path / "v.npz").exists()
