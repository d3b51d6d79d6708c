"""Finding among many: parts of the objects give what all give, an index finds what it says, large runs are mapped."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import murp
from murp import models
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError, MurpError, RunError
from murp.graph import KnowledgeGraph, KnownFacts
from murp.prediction import answers, approximate, search
from murp.prediction.nearest import nearest_to
from murp.runs import checkpoint, folder, tensor_file
from murp.runs.run import Run

pytest.importorskip("faiss")
ENTITIES, RELATIONS = 700, 4


@pytest.fixture(autouse=True)
def _few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate, "QUESTIONS", 60)


def clustered(name: str, entities: int = ENTITIES, dim: int = 8, **settings: object) -> models.Model:
    """A model whose entities lie about 25 centres, with biases."""
    model = models.from_config(Config(model=name, dim=dim, **settings), entities, RELATIONS)
    model.initialise(0, 0.15)
    draw = torch.Generator().manual_seed(1)
    for table in model.tables:
        if table.of == "entity":
            values = model.parameters[table.name]
            centre = values[torch.randint(25, (entities,), generator=draw)]
            if table.shape == ():
                values[:] = centre + 0.02 * torch.randn(entities, generator=draw)
            else:
                flat = model.vector({table.name: centre}) if table.name == "entity" else centre
                flat = flat + 0.015 * torch.randn(flat.shape, generator=draw)
                values[:] = model.geometry.exp0(flat) if table.name == "entity" else flat
    return model


def some_graph(entities: int = ENTITIES) -> KnowledgeGraph:
    draw = np.random.default_rng(2)
    rows = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in draw.integers(entities, size=(900, 3)) % (entities, 4, entities)]
    rows += [(f"e{i}", "r0", f"e{(i + 1) % entities}") for i in range(entities)]
    return KnowledgeGraph.from_triples(rows, valid=0, test=0)


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return some_graph()


@pytest.mark.parametrize("name", ["murp", "mure"])
def test_objects_in_parts_give_the_best_of_all(
    name: str, graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, known = clustered(name), KnownFacts.of(graph)
    model.parameters["entity"][5::9] = model.parameters["entity"][5]  # which tie
    model.parameters["object_bias"][5::9] = model.parameters["object_bias"][5]
    subjects, relations = np.arange(60) * 11 % ENTITIES, np.arange(60) % (2 * RELATIONS)
    options = {"without": known, "without_subject": True}
    whole = search.top_objects(model, subjects, relations, 12, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(search, "OBJECTS", 96)
    monkeypatch.setattr(search, "MOST_QUERIES", 7)
    parts = search.top_objects(model, subjects, relations, 12, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(parts.entities, whole.entities)
    np.testing.assert_array_equal(parts.scores, whole.scores)
    model.parameters["entity"][ENTITIES - 1] = torch.nan  # in the last part
    with pytest.raises(MurpError, match="NaN"):
        search.top_objects(model, subjects, relations, 12)


def test_one_question_among_many_is_that_of_many(graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers.Answers(clustered("murp"), graph)
    few = asked.to_one(3, 1, 10, new_only=True)
    monkeypatch.setattr(answers, "MANY", 10)
    many = asked.to_one(3, 1, 10, new_only=True)
    np.testing.assert_array_equal(few.entities, many.entities)
    np.testing.assert_allclose(few.scores, many.scores, rtol=1e-5)
    np.testing.assert_array_equal(few.splits, many.splits)


@pytest.mark.parametrize("name", ["murp", "mure", "rotate", "hybonet"])
def test_an_index_finds_what_it_says_and_with_all_cells_everything(name: str, graph: KnowledgeGraph) -> None:
    model = clustered(name)
    index = approximate.build(model, graph, cells=40, recall=0.9)
    assert index.recall > 0.75
    assert 1 <= index.looks <= index.cells / 4
    np.testing.assert_array_equal(np.sort(index.order), np.arange(ENTITIES))
    assert (index.packed is None) == (name not in ("murp", "mure"))
    everything = replace(index, looks=index.cells, looks_near=index.cells)
    hits = []
    for subject, relation in ((0, 0), (17, 3), (200, 5), (699, 7)):
        left_out = np.array([subject])
        exact = search.top_objects(model, left_out, np.array([relation]), 10, without_subject=True)
        found, scores = everything.best(model, subject, relation, 10, left_out)
        np.testing.assert_allclose(scores, exact.scores[0], rtol=1e-4, atol=1e-4)
        some, of_some = index.best(model, subject, relation, 10, left_out)
        hits.append(len(set(some) & set(exact.entities[0])) / 10)
        assert (np.diff(of_some) <= 0).all()
        assert subject not in some
        # Scores of what is found are exact, whatever is missed; a tensor of another length is rounded otherwise.
        at = dict(zip(found.tolist(), scores.tolist(), strict=True))
        assert all(at[e] == pytest.approx(s, rel=1e-5) for e, s in zip(some, of_some, strict=True) if e in at)
        near, distances = everything.nearest(model, subject, 5)
        expected = nearest_to(model, subject, 5)
        np.testing.assert_allclose(distances, [d for _, d in expected], rtol=1e-4, atol=1e-5)
        assert len(set(near.tolist()) & {e for e, _ in expected}) >= 4  # ties may come in another order
    assert np.mean(hits) > 0.6


def test_where_few_are_left_more_cells_are_looked_into(graph: KnowledgeGraph) -> None:
    model = clustered("murp")
    index = approximate.build(model, graph, cells=40, recall=0.5)
    found, _ = index.best(model, 0, 0, ENTITIES, np.zeros(0, np.int64))
    assert len(set(found.tolist())) == ENTITIES
    left_out = np.arange(ENTITIES - 3)
    assert set(index.best(model, 0, 0, 10, left_out)[0].tolist()) == {ENTITIES - 3, ENTITIES - 2, ENTITIES - 1}


def test_an_index_that_would_not_help_is_refused(graph: KnowledgeGraph) -> None:
    model = models.from_config(Config(model="distmult", dim=16), ENTITIES, RELATIONS)
    model.initialise(0, 1.0)  # random directions: no cells
    with pytest.raises(ConfigError, match="an index does not help here"):
        approximate.build(model, graph, cells=100)
    for wrong in (0.0, 1.5, float("nan")):
        with pytest.raises(ConfigError, match="recall must be above 0"):
            approximate.build(model, graph, recall=wrong)
    with pytest.raises(ConfigError, match="cells must be from 1 to 700"):
        approximate.build(model, graph, cells=701)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = some_graph(120)
    path = tmp_path_factory.mktemp("runs") / "run"
    murp.train(graph, out=path, epochs=1, dim=4, validate_every=0, device="cpu")
    return path


@pytest.fixture
def run_folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_the_command_makes_an_index_that_is_used(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["predict", str(run_folder), "--head", "e3", "--relation", "r0", "--json"]
    for further in ([], ["--out", str(tmp_path / "answers.csv")]):
        assert main([*question, "--approximate", *further]) == 1
        assert f"has no index for approximate answers. Run `murp index {run_folder}`" in capsys.readouterr().err
    # With one cell everything is looked into.
    assert main(["index", str(run_folder), "--cells", "1", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["cells"], made["recall"], made["recall_near"]) == (1, 1.0, 1.0)
    assert main(["index", str(run_folder), "--cells", "1"]) == 0
    told = capsys.readouterr()
    assert "saved in" in told.out
    assert "answers (predict)" in told.out
    found = []
    for words in ([], ["--approximate"]):
        assert main([*question, *words]) == 0
        predictions = json.loads(capsys.readouterr().out)["predictions"]
        found.append([(p["id"], round(p["score"], 4), p["known"]) for p in predictions])
    assert found[0] == found[1]
    (tmp_path / "q.tsv").write_text("e3\tr0\ne7\tr1\n")
    for words in ([], ["--approximate"]):
        out = tmp_path / f"answers{len(words)}.jsonl"
        assert main(["predict", str(run_folder), "--queries", str(tmp_path / "q.tsv"), "--out", str(out), *words]) == 0
        found.append([(row["query"], row["tail"]) for row in map(json.loads, out.read_text().splitlines())])
    assert found[2] == found[3]
    capsys.readouterr()
    assert main(["nearest", str(run_folder), "e3", "--approximate"]) == 0
    near = capsys.readouterr().out
    assert main(["nearest", str(run_folder), "e3"]) == 0
    assert capsys.readouterr().out.split()[:6] == near.split()[:6]


def test_an_index_of_other_weights_is_refused(run_folder: Path) -> None:
    run = murp.load(run_folder, device="cpu")
    made = run.index(cells=1)
    assert [p.id for p in run.predict(head="e3", relation="r0", approximate=True)]
    murp.resume(run_folder, epochs=2)
    again = murp.load(run_folder, device="cpu")
    with pytest.raises(RunError, match=r"was made from other weights \(epoch 1\).*Run `murp index"):
        again.predict(head="e3", relation="r0", approximate=True)
    with pytest.raises(RunError, match="has other weights now"):
        run.index(cells=1)
    assert again.index(cells=2).cells <= 2 != made.cells
    assert len(again.nearest("e3", 4, approximate=True)) == 4


def test_weights_that_were_saved_later_in_the_same_epoch_are_other_weights(run_folder: Path) -> None:
    run = murp.load(run_folder, device="cpu")
    tables, state = checkpoint.read(run_folder / folder.LAST)
    checkpoint.write(run_folder / folder.LAST, tables, {**state, "chunk": 1})
    with pytest.raises(RunError, match=r"other weights now \(epoch 1 and 1 chunk\) than .* opened \(epoch 1\)"):
        run.index(cells=1)


def test_a_damaged_index_is_refused(run_folder: Path) -> None:
    murp.load(run_folder, device="cpu").index(cells=3)
    home = run_folder / "index"
    for name, damage in {
        "index.json": lambda text: text.replace(b'"weights"', b'"wights"'),
        "order.npy": lambda data: data[:-4] + (10**6).to_bytes(4, "little"),
        "starts.npy": lambda data: data[:-8] + bytes(8),
        "panels.npy": lambda data: data[:-1],
        "first.npy": lambda data: data[:-8] + (1 << 40).to_bytes(8, "little"),
    }.items():
        whole = (home / name).read_bytes()
        (home / name).write_bytes(damage(whole))
        with pytest.raises(RunError, match=r"index cannot be read: .* Run `murp index"):
            murp.load(run_folder, device="cpu").nearest("e3", approximate=True)
        (home / name).write_bytes(whole)
    (home / "order.npy").unlink()
    with pytest.raises(RunError, match="index cannot be read"):
        murp.load(run_folder, device="cpu").nearest("e3", approximate=True)


def test_a_large_checkpoint_is_mapped_and_answers_the_same(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = murp.load(run_folder, device="cpu")
    monkeypatch.setattr(checkpoint, "LARGE", 1)
    mapped = murp.load(run_folder, device="cpu")
    assert read.model.parameters.keys() == mapped.model.parameters.keys()
    for name, values in read.model.parameters.items():
        torch.testing.assert_close(mapped.model.parameters[name], values, rtol=0, atol=0)
    assert mapped.predict(head="e3", relation="r0") == read.predict(head="e3", relation="r0")
    assert mapped.evaluate("train").mrr == read.evaluate("train").mrr
    # What is written to is the process's own.
    file = run_folder / f"{mapped.checkpoint}.safetensors"
    before = file.read_bytes()
    mapped.model.parameters["entity"][0] = 0.0
    assert file.read_bytes() == before
    # It is mapped while others are put in its place.
    shutil.copy(file, run_folder / "other")
    (run_folder / "other").replace(file)
    assert mapped.nearest("e5", 3) == read.nearest("e5", 3)
    file.write_bytes(before[:-8])
    with pytest.raises(RunError, match="damaged"):
        tensor_file.File(file)


def test_nothing_is_read_of_a_large_checkpoint_but_its_header(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*of: object, **options: object) -> object:
        raise AssertionError("all tables were read")

    monkeypatch.setattr(checkpoint, "LARGE", 1)
    for module, name in ((tensor_file, "checksum"), (tensor_file, "read"), (models.Model, "broken")):
        monkeypatch.setattr(module, name, refused)
    assert isinstance(tensor_file, ModuleType)
    run = murp.load(run_folder, device="cpu")
    assert isinstance(run, Run)
    assert len(run.nearest("e3", 2)) == 2
