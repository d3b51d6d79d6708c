"""``murp analyze`` and ``murp data hierarchy-split`` as a user types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typed import TRAIN, ok

from murp.cli.main import main
from murp.graph import KnowledgeGraph


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A binary family tree, and siblings both ways."""
    folder = tmp_path_factory.mktemp("data") / "family"
    folder.mkdir()
    facts = [(f"p{i}", "child_of", f"p{(i - 1) // 2}") for i in range(1, 63)]
    for i in range(1, 62, 2):
        facts += [(f"p{i}", "sibling_of", f"p{i + 1}"), (f"p{i + 1}", "sibling_of", f"p{i}")]
    held = facts[10:120:12], facts[11:120:12]
    train = [fact for fact in facts if fact not in held[0] + held[1]]
    for name, rows in zip(("train", "valid", "test"), (train, *held), strict=True):
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def run(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "first"
    ok(*TRAIN, "--data", dataset, "--out", path)
    return path


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints; in this process, which is quicker."""

    def say(*arguments: str | Path) -> str:
        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    return say


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The message of a command that must fail, with nothing on standard output."""

    def refuse(*arguments: str | Path) -> str:
        assert main([str(argument) for argument in arguments]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err

    return refuse


def test_data_as_json_and_as_text(dataset: Path, said: Callable[..., str]) -> None:
    found = json.loads(ok("analyze", dataset, "--dim", "10", "--json"))
    child, sibling = (next(r for r in found["relations"] if r["relation"] == n) for n in ("child_of", "sibling_of"))
    assert (child["edges"], child["entities"], child["krackhardt"], child["longest_path"]) == (62, 63, 1.0, 5)
    assert (child["direction"], child["roots"], child["leaves"], child["cardinality"]) == ("up", 1, 32, "n-1")
    assert child["hierarchical"]
    assert (sibling["krackhardt"], sibling["symmetry"], sibling["cardinality"]) == (0.0, 1.0, "1-1")
    assert not sibling["hierarchical"]
    assert found["hyperbolicity"]["quadruples"] == 100_000
    assert found["advice"]["dim"] == 10
    assert found["advice"]["share"] == 0.5
    text = said("analyze", dataset, "--dim", "10")
    assert all(sentence in text for sentence in found["advice"]["sentences"])
    assert "100,000 drawn quadruples" in text
    assert "sibling_of" in text


def test_one_relation(dataset: Path, said: Callable[..., str]) -> None:
    found = json.loads(said("analyze", dataset, "--relation", "child_of", "--json"))
    assert [r["relation"] for r in found["relations"]] == ["child_of"]
    assert found["hyperbolicity"]["largest"] == 0  # a tree
    assert found["advice"]["dim"] == 40
    text = said("analyze", dataset, "--relation", "child_of", "--dim", "7")
    assert "sibling_of" not in text
    assert "The relation is hierarchical: a Krackhardt score of 1.000 and paths of up to 5 edges" in text
    assert "At dimension 7 hyperbolic space (MuRP) should pay" in text
    assert "roots, leaves: a cycle counts as one" in text


def test_a_run(run: Path, said: Callable[..., str]) -> None:
    found = json.loads(ok("analyze", "--run", run, "--json"))
    report = json.loads(said("evaluate", run, "--by-relation", "--json"))
    assert (found["split"], found["protocol"]) == ("test", "standard")
    for fit in found["relations"]:
        assert fit["hits"] == report["by_relation"][fit["profile"]["relation"]]["hits@10"]
    assert {"subject_bias", "object_bias"} == set(found["norm_and_bias"])
    text = said("analyze", "--run", run)
    assert "protocol standard" in text
    assert "norm with bias" in text


def test_which_one_is_higher(run: Path, said: Callable[..., str]) -> None:
    question = ["analyze", "--run", run, "--higher", "p62", "p2", "--relation", "child_of"]
    found = json.loads(said(*question, "--json"))
    assert found["by_graph"] == "p2"
    assert found["path"] == ["p62", "p30", "p14", "p6", "p2"]
    text = said(*question)
    assert "p2 is higher: child_of leads up (p62 –child_of→ p30" in text
    chances = [found[side]["probability"] for side in ("first", "second")]
    assert max(chances) < 0.5  # a child of a child of a child is no child
    better = found["by_score"]
    p = " and ".join(f"{chance:.3f}" for chance in chances)
    assert f"by the scores: neither fact is likely (p {p}); by the better one {better} is higher" in text
    assert "by the norms:" in text


def test_where_the_graph_decides_nothing(run: Path, said: Callable[..., str]) -> None:
    for relation, words in (("sibling_of", "leads both ways"), ("child_of", "no path of child_of")):
        assert words in said("analyze", "--run", run, "--higher", "p1", "p2", "--relation", relation)


def test_questions_that_make_no_sense(dataset: Path, run: Path, refused: Callable[..., str]) -> None:
    assert "either DATA or --run" in refused("analyze")
    assert f"is a run folder, not a dataset: `murp analyze --run {run}`" in refused("analyze", run)
    assert "either DATA or --run" in refused("analyze", dataset, "--run", run)
    assert "needs --run" in refused("analyze", dataset, "--higher", "p1", "p2")
    assert "go together" in refused("analyze", "--run", run, "--higher", "p1", "p2")
    assert "go together" in refused("analyze", "--run", run, "--relation", "child_of")
    assert "child_of" in refused("analyze", dataset, "--relation", "childof")
    assert "is not a run folder" in refused("analyze", "--run", dataset)
    assert "p62" in refused("analyze", "--run", run, "--higher", "p622", "p2", "--relation", "child_of")


def test_hierarchy_split_writes_datasets_that_load(dataset: Path, tmp_path: Path, said: Callable[..., str]) -> None:
    split = ["data", "hierarchy-split", dataset, "--valid", "20", "--test", "20"]
    text = ok(*split, "--shares", "100", "50", "100", "--out", tmp_path / "out")
    assert "Krackhardt score at least" in text
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["family-h100", "family-h50"]
    loaded = [KnowledgeGraph.load(tmp_path / "out" / f"family-h{n}") for n in (100, 50)]
    assert [one.num_relations for one in loaded] == [1, 2]
    assert [len(one.facts()) for one in loaded] == [62, 124]
    named = tmp_path / "named"
    said(*split, "--shares", "100", "--hierarchical", "sibling_of", "--out", named)
    assert json.loads((named / "family-h100" / "split.json").read_text())["hierarchical"] == ["sibling_of"]


def test_hierarchy_split_refuses_and_leaves_nothing(
    dataset: Path, tmp_path: Path, refused: Callable[..., str], said: Callable[..., str]
) -> None:
    out = tmp_path / "out"
    split = ["data", "hierarchy-split", dataset, "--out", out]
    assert "leave none for train" in refused(*split)
    small = [*split, "--valid", "20", "--test", "20"]
    assert "--shares of 50 or more" in refused(*small)
    assert "Closest: sibling_of" in refused(*small, "--hierarchical", "sibling")
    assert list(tmp_path.iterdir()) == []
    said(*small, "--shares", "100")
    assert "exists already" in refused(*small, "--shares", "100")
