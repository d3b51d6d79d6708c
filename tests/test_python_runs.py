"""``murp.Run`` and its fellows: what the command line can do, as objects."""

from __future__ import annotations

import inspect
import pickle
import pydoc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import murp
from api_runs import QUICK, trained
from murp.errors import ConfigError, DataError, MurpError, RunError, UnknownNameError
from murp.graph import KnowledgeGraph
from murp.training.progress import Silent
from trees import tree

ASKED = [("n1", "parent", "n0"), ("n0", "parent", "n1"), ("n5", "next", "n6")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> murp.Run:
    return trained(tmp_path_factory.mktemp("api"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_scores_are_the_models(run: murp.Run) -> None:
    numbers = torch.tensor([[run.graph.entities.find(h), run.graph.relations.find(r), run.graph.entities.find(t)]
                            for h, r, t in ASKED])  # fmt: skip
    expected = run.model.score(*numbers.T).double().numpy()
    np.testing.assert_array_equal(run.score(ASKED), expected)
    np.testing.assert_array_equal(run.score(np.array(ASKED)), expected)
    assert run.score([]).shape == (0,)


def test_triples_may_come_from_a_frame_or_a_file(run: murp.Run, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'murp[pandas]'")
    frame = pandas.DataFrame(ASKED, columns=["head", "relation", "tail"])
    frame.to_csv(tmp_path / "asked.csv", index=False)
    np.testing.assert_array_equal(run.score(frame[["tail", "relation", "head"]]), run.score(ASKED))  # columns by name
    np.testing.assert_array_equal(run.score(frame.set_axis(["x", "y", "z"], axis=1)), run.score(ASKED))
    np.testing.assert_array_equal(run.score(tmp_path / "asked.csv"), run.score(ASKED))
    with pytest.raises(DataError, match=r"columns head, relation: name three of them head, relation and tail"):
        run.score(frame[["head", "relation"]])


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([*ASKED, ("n1", "parent")], r"triple 4 is \('n1', 'parent'\): a triple is head, relation and tail"),
        (["n1 parent n0"], "triple 1 is 'n1 parent n0'"),
        ([("n1", None, "n0")], "triple 1: the relation is None; ids are texts or whole numbers"),
        ([ASKED[0], ("n1", "parnet", "n0")], r"triple 2: unknown relation 'parnet'\. Closest: parent"),
        ([("n1", "parent", "n99")], "triple 1: unknown entity 'n99'"),
    ],
)
def test_a_triple_that_is_none_is_named(run: murp.Run, triples: Any, message: str) -> None:
    with pytest.raises((DataError, UnknownNameError), match=message):
        run.score(triples)


def test_embeddings_as_arrays_and_tensors(run: murp.Run) -> None:
    found = run.embeddings()
    assert np.asarray(found).shape == (63, 3)
    np.testing.assert_array_equal(found.vectors, run.model.parameters["entity"].numpy())
    np.testing.assert_array_equal(run.embedding("n7"), found.vectors[run.graph.entities.find("n7")])
    np.testing.assert_array_equal(found.to_tensor().numpy(), found.vectors)
    module = found.to_module()
    assert not module.weight.requires_grad
    assert torch.equal(module(torch.tensor([5])), found.to_tensor()[[5]])
    assert found.to_module(freeze=False).weight.requires_grad
    found.to_tensor().zero_()  # a copy
    assert float(found.tensor.abs().sum()) > 0
    assert repr(found) == "Embeddings(63 × 3, poincare, torch.float32)"


def test_embeddings_in_other_coordinates_and_of_relations(run: murp.Run) -> None:
    point = run.embedding("n7", coordinates="lorentz")
    assert point[0] ** 2 - (point[1:] ** 2).sum() == pytest.approx(1, rel=1e-6)
    moved = run.embeddings("translation")
    assert moved.ids == ["parent", "next", "parent_reciprocal", "next_reciprocal"]
    assert moved.vectors.shape == (4, 3)
    with pytest.raises(ConfigError, match="this model has no table 'entities': choose one of entity, "):
        run.embeddings("entities")
    with pytest.raises(ConfigError, match="coordinates must be one of poincare, lorentz, tangent, not 'x'"):
        run.embeddings(coordinates="x")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="unknown entity 'nowhere'"):
        run.embedding("nowhere")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda run: run.calibrate(method="plat"), "method must be one of platt, isotonic, not 'plat'"),
        (lambda run: run.calibrate(seed=-1), "seed must be at least 0, not -1"),
        (lambda run: run.classify(seed=-1), "seed must be at least 0, not -1"),
        (lambda run: run.compare(run, "valid", seed=-1), "seed must be at least 0, not -1"),
        (lambda run: run.index(seed=1.5), "seed must be a whole number, not 1.5"),
        (lambda run: run.extend([("x", "parent", "n1")], seed=-1), "seed must be at least 0, not -1"),
        (lambda run: run.extend([("x", "parent", "n1")], epochs="2"), "epochs must be a whole number, not '2'"),
        (lambda run: run.predict_file([("n1", "parent", None)], "answers.csv", k=0), "k must be at least 1, not 0"),
        (lambda run: run.predict_file([("n1", "parent", None)], "answers.csv", k="3"), "k must be a whole number"),
    ],
)
def test_an_argument_that_cannot_be_is_named_and_nothing_is_written(
    run: murp.Run, ask: Any, message: str, here: Path
) -> None:
    before = sorted(run.path.parent.rglob("*"))
    with pytest.raises(ConfigError, match=message):
        ask(run)
    assert [*here.iterdir(), *sorted(run.path.parent.rglob("*"))] == before


def test_discoveries_are_new_and_the_best(run: murp.Run) -> None:
    found = run.discover(k=3)
    assert len(found) == 6
    known = {tuple(row) for row in run.graph.facts().tolist()}
    for fact in found:
        e, r = run.graph.entities, run.graph.relations
        assert (e.find(fact.head), r.find(fact.relation), e.find(fact.tail)) not in known
        assert run.score([(fact.head, fact.relation, fact.tail)])[0] == pytest.approx(fact.score, rel=1e-5, abs=1e-5)
    assert found[-1] == list(found)[-1]
    assert [fact.relation for fact in run.discover("next", k=2)] == ["next", "next"]
    with pytest.raises(ConfigError, match="k must be at least 1"):
        run.discover(k=0)
    with pytest.raises(ConfigError, match="heads must be one of seen, all"):
        run.discover(heads="some")  # type: ignore[arg-type]


def test_classify_counts_on_test_and_judges_triples(run: murp.Run) -> None:
    found = run.classify(seed=1)
    assert found.to_dict()["accuracy"] == found.test.share
    verdicts = run.classify(ASKED, seed=1)
    assert [v.true for v in verdicts] == [v.score >= v.threshold for v in verdicts]
    assert [v.score for v in verdicts] == run.score(ASKED).tolist()


def test_a_run_is_compared_with_a_folder_too(run: murp.Run) -> None:
    found = run.compare(run, samples=100).to_dict()
    assert run.compare(str(run.path), samples=100).to_dict() == run.compare(run.path, samples=100).to_dict() == found
    with pytest.raises(murp.errors.RunError, match="there is no run folder at"):
        run.compare("nowhere", samples=100)


def test_everything_tabular_is_a_frame_and_a_page(run: murp.Run) -> None:
    pytest.importorskip("pandas", reason="needs pandas: pip install 'murp[pandas]'")
    report = run.evaluate("test")
    tables: dict[str, Any] = {
        "report": report,
        "predictions": run.predict(head="n1", relation="parent", k=4),
        "neighbours": run.nearest("n1", k=4),
        "discoveries": run.discover(k=2),
        "verdicts": run.classify(ASKED),
        "classification": run.classify(),
        "calibration": run.calibrate(),
        "embeddings": run.embeddings(),
        "analysis": run.analyze(),
        "graph": murp.analyze(run.graph),
        "audit": murp.audit(run.graph),
        "datasets": murp.datasets(),
        "metrics": run.metrics(),
        "comparison": run.compare(run, samples=100),
    }
    for name, one in tables.items():
        frame = one.to_dataframe()
        assert len(frame), name
        assert list(frame.columns) == list(one.columns()), name
        assert one._repr_html_().startswith("<table>"), name
    assert tables["metrics"].to_dataframe()["valid.mrr"].isna().tolist() == [True, False, True, False]
    frame = report.to_dataframe()
    assert frame.mrr[0] == report.mrr
    assert set(frame.protocol) == {"standard"}
    assert set(frame.group) == {"all", "direction", "seen in train", "relation"}
    assert tables["predictions"].to_dataframe().name.tolist() == [p.name for p in tables["predictions"]]
    assert tables["embeddings"].to_dataframe().columns.tolist() == ["id", "x0", "x1", "x2"]
    assert run.predict(head="n1", relation="parent", k=1)[:0] == []


def test_without_pandas_the_error_names_the_extra(run: murp.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MurpError, match=r"a data frame needs pandas.*pip install 'murp\[pandas\]'"):
        run.nearest("n1").to_dataframe()


def test_names_in_a_notebook_are_text(tmp_path: Path) -> None:
    import pyarrow as pa

    columns = {"head": ["<b>a</b>"] * 30, "relation": ["r&d"] * 30, "tail": [f"t{i}" for i in range(30)]}
    rows = pa.table({name: pa.array(values, pa.large_string()) for name, values in columns.items()})
    graph = KnowledgeGraph.from_tables("odd", rows, rows.slice(0, 0), rows.slice(0, 0))
    page = graph._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in page
    assert "r&amp;d" in page
    assert "<b>" not in page


def test_a_run_in_a_notebook_says_what_it_is(run: murp.Run) -> None:
    page = run._repr_html_()
    assert "murp d=3" in page
    assert "63 entities" in page
    assert "epoch 4 of 4" in repr(run.info())
    assert run.info().to_dict()["config"]["dim"] == 3
    assert "divided" not in run.info().lines()


def test_what_a_run_says_of_itself_names_how_it_was_trained(tmp_path: Path) -> None:
    """Every part with its own settings, so that two runs that differ in one of them do not look the same."""
    chosen: dict[str, Any] = {
        "objective": "self-adversarial", "temperature": 0.5, "corruption": "local", "entity_parts": 2, "negatives": 3,
        "optimizer": "adam", "lr": 0.01, "regularizer": "n3", "regularizer_weight": 0.1,
    }  # fmt: skip
    options: dict[str, Any] = {"model": "distmult", "dim": 2, "epochs": 1, "engine": "torch", "progress": Silent()}
    lines = murp.train(tree(), out=tmp_path / "drawn", **options, **chosen).info().lines()
    assert lines["objective"] == "self-adversarial, temperature 0.5"
    assert lines["corruption"] == "local, negatives 3, entity_parts 2"
    assert lines["regularizer"] == "n3, regularizer_weight 0.1, regularize_relations True"
    assert lines["optimizer"].startswith("adam, lr 0.01")
    lines = (
        murp.train(tree(), out=tmp_path / "all", **options, objective="one-vs-all", regularizer="none").info().lines()
    )
    assert lines["objective"].startswith("one-vs-all, label_loss ")
    assert lines["corruption"] == "none: one-vs-all compares with all entities, and draws no negatives"
    assert lines["regularizer"] == "none"


def test_a_picture_is_shown_as_it_is_saved(run: murp.Run, tmp_path: Path) -> None:
    figure = run.plot("disk", out=tmp_path / "disk.png")
    shown, size = figure._repr_png_()  # type: ignore[attr-defined]
    assert shown == (tmp_path / "disk.png").read_bytes()
    assert size["width"] > 100
    with pytest.raises(MurpError, match="exists already"):
        run.plot("disk", out=tmp_path / "disk.png")
    run.plot("disk", out=tmp_path / "disk.png", force=True)
    with pytest.raises(ConfigError, match="unknown picture 'map': choose one of disk"):
        run.plot("map")  # type: ignore[arg-type]
    assert run.plot("convergence", others=[run]).axes


def test_exports_by_their_ending_and_back(run: murp.Run, tmp_path: Path) -> None:
    assert run.export(tmp_path / "vectors.npz") == tmp_path / "vectors.npz"
    run.graph.save(tmp_path / "graph")
    back = murp.import_run(tmp_path / "vectors.npz", tmp_path / "back", data=str(tmp_path / "graph"))
    assert isinstance(back, murp.Run)
    np.testing.assert_array_equal(back.score(ASKED), run.score(ASKED))
    with pytest.raises(ConfigError, match=r"vectors: its ending says no format\. End the name in \.npz"):
        run.export(tmp_path / "vectors")
    run.export(tmp_path / "hub", "hub-folder")
    assert (tmp_path / "hub" / "README.md").exists()


def test_higher_and_evaluate_of_a_folder(run: murp.Run) -> None:
    assert run.higher("n1", "n0", "parent").first.id == "n1"
    assert murp.evaluate(run.path, "valid").mrr == run.evaluate("valid").mrr == murp.evaluate(run, "valid").mrr


def test_rows_survive_a_pickle(run: murp.Run) -> None:
    rows = run.nearest("n1", k=3)
    again = pickle.loads(pickle.dumps(rows))
    assert again == rows
    assert again.columns() == rows.columns()


# ------------------------------------------------------------------ training from a notebook


def test_a_cell_can_be_run_again(here: Path) -> None:
    first = murp.train(tree(), **QUICK)
    assert first.path == Path("runs/tree-murp-d3-seed0")
    before = (first.path / "last.safetensors").stat().st_mtime_ns
    assert murp.train(tree(), **QUICK).path == first.path  # opened, not trained again
    assert (first.path / "last.safetensors").stat().st_mtime_ns == before
    assert murp.train(tree(), **{**QUICK, "lr": 1.0}).path == Path("runs/tree-murp-d3-seed0-2")
    assert murp.train(tree(), **QUICK).path == first.path
    with pytest.raises(
        RunError, match=r"exists already: it holds a run with other settings \(lr: 2\.0 there, 1\.0 wanted"
    ):
        murp.train(tree(), out=first.path, **{**QUICK, "lr": 1.0})
    with pytest.raises(RunError, match="other data"):
        murp.train(tree(seed=1), out=first.path, **QUICK)
    assert murp.train(tree(), reuse=False, **QUICK).path == Path("runs/tree-murp-d3-seed0-3")


def test_an_interrupted_cell_goes_on(here: Path) -> None:
    from murp.training.progress import Silent

    class Stop(Silent):
        def epoch(self, record: dict[str, Any]) -> None:
            if record["epoch"] == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        murp.train(tree(), out="mine", **{**QUICK, "progress": Stop(), "save_every": 0.0})
    assert murp.load("mine", checkpoint="last").state["epoch"] < 4
    assert murp.train(tree(), out="mine", **{**QUICK, "save_every": 0.0}).metrics()[-1]["epoch"] == 4


def test_settings_may_come_from_a_file(run: murp.Run, here: Path) -> None:
    again = murp.train(tree(), config=run.path / "config.toml", seed=1, progress=QUICK["progress"])
    assert again.config.to_dict() == {**run.config.to_dict(), "seed": 1}


def test_a_sweep_takes_one_value_or_several(here: Path) -> None:
    settings = {**QUICK, "model": "mure", "epochs": 6, "lr": [0.5, 1e25]}
    found = murp.sweep(tree(), **settings)
    assert found.out == Path("runs/tree-sweep-lr")
    assert [trial.name for trial in found] == ["lr0.5", "lr1e+25"]
    assert isinstance(found.best, murp.Run)
    assert found[1].run is None
    assert "epoch" in str(found[1].error)
    assert found.columns()["lr"] == [0.5, 1e25]
    assert found.columns()["failed"][0] is None
    assert murp.sweep(tree(), **{**settings, "lr": [0.5]}).out == Path("runs/tree-sweep")
    other = murp.sweep(tree(), **{**settings, "lr": [0.5, 0.7], "dim": 2})
    assert other.out == Path("runs/tree-sweep-lr-2")  # where runs of the same names have another dimension
    with pytest.raises(RunError, match=r"every run of runs/tree-sweep-2 failed"):
        _ = murp.sweep(tree(), **{**settings, "lr": [1e25]}).best


def test_a_sweep_has_mean_and_deviation_over_seeds(here: Path) -> None:
    found = murp.sweep(tree(), **{**QUICK, "model": "mure", "lr": [5.0, 0.5], "seed": [1, 0]})
    groups = found.over_seeds()
    by_name = {trial.name: trial.mrr for trial in found}
    assert [(one.run, one.seeds) for one in groups] == [("lr5.0", (1, 0)), ("lr0.5", (1, 0))]
    assert groups[0].mrr == (by_name["lr5.0-seed1"], by_name["lr5.0-seed0"])
    assert groups[0].mean == pytest.approx(sum(groups[0].mrr) / 2)
    assert pickle.loads(pickle.dumps(found.over_seeds())) == groups


def test_a_graph_for_recipe_auto_is_read_by_its_columns(here: Path) -> None:
    rows = "".join(f"r,a{i},a{j}\n" for i in range(14) for j in range(14))
    Path("facts.csv").write_text(rows)
    run = murp.train(
        "facts.csv",
        recipe="auto",
        columns="head=2,relation=1,tail=3",
        no_header=True,
        dim=3,
        epochs=1,
        validate_every=0,
        device="cpu",
        progress=QUICK["progress"],
    )
    assert (run.graph.num_entities, run.graph.num_relations) == (14, 1)
    assert run.config.model == "rescal"


def test_one_hierarchy_is_embedded_and_reconstructed(here: Path) -> None:
    Path("tree.tsv").write_text("".join(f"n{i}\tparent\tn{(i - 1) // 3}\n" for i in range(1, 40)))
    run = murp.embed("tree.tsv", relation="parent", model="layout", out="layout")
    assert isinstance(run, murp.Run)
    assert run.reconstruct().nodes == 39
    with pytest.raises(ConfigError, match="a layout is not trained, and has two dimensions: leave out --dim"):
        murp.embed("tree.tsv", model="layout", dim=3, out="other")
    with pytest.raises(ConfigError, match="leave it out, or choose that model"):
        murp.embed("tree.tsv", scale=2.0, out="other")
    assert not Path("other").exists()


# ------------------------------------------------------------------ signatures


def test_signatures_name_every_setting() -> None:
    for function in (murp.train, murp.sweep):
        parameters = inspect.signature(function).parameters
        assert set(murp.Config().to_dict()) - set(parameters) == {"data"}
        assert parameters["dim"].default == 40
        assert parameters["margin"].default is ...  # only of an objective that is not the usual one
        said = pydoc.plain(pydoc.render_doc(function))
        assert "dim: dimension d of the embedding" in said
        assert "margin: γ: how far" in said
    assert inspect.signature(murp.train).parameters["out"].default is None


def test_a_setting_that_is_none_is_refused_with_the_one_it_was_meant_for(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'dimm'\. Did you mean 'dim'"):
        murp.train(tree(), **{**QUICK, "dimm": 3})
