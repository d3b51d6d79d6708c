"""What is exported comes back: bit for bit in the model's own coordinates, up to rounding in others."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from drawn_runs import MakeRun, maker
from hypothesis import given
from hypothesis import strategies as st

import murp
from murp.cli.main import main
from murp.errors import ConfigError, DataError, RunError
from murp.exchange import export, import_run
from murp.exchange.contents import score_formula
from murp.exchange.importing import read
from murp.exchange.text import unique_words
from murp.export_formats import FORMATS, Format
from murp.geometry import hyperboloid, poincare
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import BIASES, MODELS, TRANSFORMATIONS
from murp.runs import Run, folder, load

WHOLE = {to: f"out{form.ending}" for to, form in FORMATS.items() if form.read is not None}
PARTIAL = {to: f"out{form.ending}" for to, form in FORMATS.items() if form.read is None}
whole = pytest.mark.parametrize("to", WHOLE)


def test_formats_have_the_names_that_editors_offer() -> None:
    assert sorted(get_args(Format)) == sorted(FORMATS)


def test_a_refusal_of_the_system_names_no_file_but_the_one_asked_for(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / ".a.npz.1234.part"))

    monkeypatch.setattr("murp.exchange.npz.write", refuse)
    with pytest.raises(DataError, match=r"a\.npz cannot be written: Permission denied\. Nothing was kept\.$"):
        export(run, "npz", tmp_path / "a.npz")


@pytest.fixture
def make_run(small_tree: KnowledgeGraph, tmp_path: Path) -> MakeRun:
    return maker(small_tree, tmp_path)


def saved_graph(run: Run, tmp_path: Path) -> str:
    run.graph.save(tmp_path / "data")
    return str(tmp_path / "data")


@whole
@pytest.mark.parametrize("settings", [{}, {"model": "mure"}, {"dtype": "float64", "curvature": 0.3}], ids=str)
def test_own_coordinates_come_back_bit_for_bit(
    make_run: MakeRun, tmp_path: Path, to: str, settings: dict[str, object]
) -> None:
    run = make_run(**settings)
    export(run, to, tmp_path / WHOLE[to])
    data = None if to == "hub-folder" else saved_graph(run, tmp_path)
    back = import_run(tmp_path / WHOLE[to], tmp_path / "back", data)
    assert back.model.parameters.keys() == run.model.parameters.keys()
    for name, values in run.model.parameters.items():
        assert torch.equal(back.model.parameters[name], values)
        assert back.model.parameters[name].dtype == values.dtype
    assert back.state == run.state
    assert back.config.settings_of("model") == run.config.settings_of("model")
    assert back.evaluate("test").mrr == run.evaluate("test").mrr
    assert back.predict(head="n3", relation="parent") == run.predict(head="n3", relation="parent")


@whole
@pytest.mark.parametrize("coordinates", ["lorentz", "tangent"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_coordinates_come_back_up_to_rounding(
    make_run: MakeRun, tmp_path: Path, to: str, coordinates: str, dtype: str
) -> None:
    run = make_run(dtype=dtype, curvature=2.0)
    export(run, to, tmp_path / WHOLE[to], coordinates)
    data = None if to == "hub-folder" else saved_graph(run, tmp_path)
    back = import_run(tmp_path / WHOLE[to], tmp_path / "back", data)
    for name, values in run.model.parameters.items():
        bar = 0 if name not in ("entity", "translation") else 16 * torch.finfo(values.dtype).eps
        torch.testing.assert_close(back.model.parameters[name], values, rtol=bar, atol=bar)


def test_the_exported_points_are_what_the_description_says(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(curvature=2.0)
    points = run.model.parameters["entity"].double()
    for coordinates in ("poincare", "lorentz", "tangent"):
        export(run, "npz", tmp_path / f"{coordinates}.npz", coordinates)
        found = read(tmp_path / f"{coordinates}.npz")
        assert found.about["coordinates"] == found.about["tables"]["entity"]["space"] == coordinates
        assert (found.about["c"], found.about["curvature"]) == (2.0, -2.0)
        x = found.tables["entity"].double()
        if coordinates == "lorentz":
            assert x.shape == (63, 4)
            inner = found.about["c"] * hyperboloid.inner(x, x)
            torch.testing.assert_close(inner[1:], torch.full((62,), -1.0, dtype=torch.float64))
        pairs = x[1:32], x[32:]
        measured = {
            "poincare": lambda a, b: poincare.distance(a, b, c=2.0),
            "lorentz": lambda a, b: hyperboloid.distance(a, b, c=2.0),
            "tangent": lambda a, b: poincare.distance(poincare.exp0(a, c=2.0), poincare.exp0(b, c=2.0), c=2.0),
        }[coordinates](*(p[:31] for p in pairs))
        torch.testing.assert_close(measured, poincare.distance(points[1:32], points[32:], c=2.0)[:31])


def test_a_graph_in_another_order_gets_the_right_rows(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    export(run, "npz", tmp_path / "out.npz")
    order = np.random.default_rng(0).permutation(run.graph.num_entities)
    place = np.argsort(order)

    def renumbered(triples: np.ndarray) -> np.ndarray:
        return np.column_stack([place[triples[:, 0]], 1 - triples[:, 1], place[triples[:, 2]]]).astype(np.int32)

    other = KnowledgeGraph(
        "tree",
        Vocabulary("entity", [run.graph.entities.id(i) for i in order]),
        Vocabulary("relation", [run.graph.relations.id(1), run.graph.relations.id(0)]),
        *(renumbered(run.graph.split(split)) for split in ("train", "valid", "test")),
    )
    other.save(tmp_path / "other")
    back = import_run(tmp_path / "out.npz", tmp_path / "back", str(tmp_path / "other"))
    assert not torch.equal(back.model.parameters["entity"], run.model.parameters["entity"])
    for side in ("head", "tail"):
        mine, theirs = (r.predict(relation="parent", k=5, **{side: "n9"}) for r in (run, back))
        assert [p.id for p in mine] == [p.id for p in theirs]
        assert [p.score for p in mine] == pytest.approx([p.score for p in theirs])


def test_hub_folder_has_a_card_with_the_stored_figures(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    export(run, "hub-folder", tmp_path / "hub")
    card = (tmp_path / "hub" / "README.md").read_text()
    assert "| valid | standard, filtered | 0.250 | 0.125 | 0.375 | 0.500 | 18 |" in card
    assert "63 entities" in card
    assert card.startswith("---\nlibrary_name: murp\n")
    assert str(tmp_path) not in "".join(
        p.read_text(errors="replace") for p in (tmp_path / "hub").rglob("*") if p.is_file()
    )
    (run.path / "metrics.jsonl").write_text("")
    export(run, "hub-folder", tmp_path / "hub2")
    assert "stored no validation for epoch 7" in (tmp_path / "hub2" / "README.md").read_text()


@whole
def test_an_imported_run_says_where_it_was_trained(
    make_run: MakeRun, tmp_path: Path, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run()
    environment = json.loads((run.path / folder.ENVIRONMENT).read_text())
    environment |= {"device": "an Abacus", "started": "1999-12-31T23:59:59Z", "murp": "0.0.9"}
    (run.path / folder.ENVIRONMENT).write_text(json.dumps(environment))
    data = saved_graph(run, tmp_path)
    for n in range(2):  # an import can be exported in turn
        export(run, to, tmp_path / str(n) / WHOLE[to])
        run = import_run(tmp_path / str(n) / WHOLE[to], tmp_path / f"back{n}", data)
        assert folder.imported(run.path)
        assert folder.training_environment(run.path) == environment
        assert folder.read_environment(run.path)["murp"] == murp.__version__
    assert main(["info", str(run.path)]) == 0
    printed = capsys.readouterr().out
    assert "trained on   an Abacus" in printed
    assert "murp 0.0.9, begun 1999-12-31T23:59:59Z" in printed
    assert f"by murp {murp.__version__}" in printed.splitlines()[-1]
    assert printed.splitlines()[-1].startswith("imported ")
    export(run, "hub-folder", tmp_path / "card")
    assert "Trained by murp 0.0.9 for\n7 epochs" in (tmp_path / "card" / "README.md").read_text()


def test_an_export_that_does_not_say_where_it_was_trained(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run()
    monkeypatch.setattr(folder, "training_environment", lambda path: None)
    export(run, "npz", tmp_path / "old.npz")
    monkeypatch.undo()
    back = import_run(tmp_path / "old.npz", tmp_path / "back", saved_graph(run, tmp_path))
    assert folder.training_environment(back.path) is None
    assert main(["info", str(back.path)]) == 0
    assert "trained on   not known: the export does not say" in capsys.readouterr().out
    assert main(["plot", str(back.path), "convergence"]) == 1
    assert "has no metrics: it was imported without them" in capsys.readouterr().err
    export(back, "hub-folder", tmp_path / "hub")
    assert "Trained for\n7 epochs" in (tmp_path / "hub" / "README.md").read_text()


def test_a_hub_folder_carries_the_calibration_of_its_weights(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    found = run.calibrate()
    export(run, "hub-folder", tmp_path / "hub")
    back = import_run(tmp_path / "hub", tmp_path / "back")
    assert back.calibration == found
    run.state["epoch"] = 8  # other weights, which nobody calibrated
    export(load(run.path), "hub-folder", tmp_path / "same")
    assert (tmp_path / "same" / folder.CALIBRATION).exists()
    del run.calibration
    export(run, "hub-folder", tmp_path / "other")
    assert not (tmp_path / "other" / folder.CALIBRATION).exists()


def test_word2vec_can_be_read_by_its_rules(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    export(run, "word2vec", tmp_path / "out")
    lines = (tmp_path / "out" / "vectors.txt").read_text().splitlines()
    n, d = map(int, lines[0].split())
    words = [line.split(" ")[0] for line in lines[1:]]
    vectors = np.array([line.split(" ")[1:] for line in lines[1:]], dtype=np.float32)
    assert vectors.shape == (n, d) == (63, 3)
    assert np.array_equal(vectors, run.model.parameters["entity"].numpy())
    assert len(set(words)) == n
    assert words[1] == "John_Smith[n1]#2"  # entity n5 is called so
    assert words[5] == "John_Smith[n1]"
    assert words[4] == "n4"
    ids = [line.split("\t")[1] for line in (tmp_path / "out" / "words.tsv").read_text().splitlines()]
    assert ids == run.graph.entities.ids.to_pylist()


@given(names=st.lists(st.sampled_from(["a", "a b", "a_b", "a[1]", "", "\t", "a[1]#2", "1"]), min_size=1, max_size=12))
def test_words_are_unique_and_hold_no_blanks(names: list[str]) -> None:
    words = unique_words(Vocabulary("entity", [str(i) for i in range(len(names))], names))
    assert len(set(words)) == len(names)
    assert all(word and not any(c.isspace() for c in word) for word in words)


def test_projector_files(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    export(run, "tensorboard", tmp_path / "out", "tangent")
    tensors = np.loadtxt(tmp_path / "out" / "tensors.tsv")
    expected = poincare.log0(run.model.parameters["entity"].double(), c=1.0).numpy()
    assert np.array_equal(tensors, expected)
    rows = [line.split("\t") for line in (tmp_path / "out" / "metadata.tsv").read_text().split("\n")[:-1]]
    assert rows[0] == ["name", "id", "gloss"]
    assert rows[1] == ["node 0", "n0", "the root: has no parent"]
    assert rows[4] == ['a "b" c', "n3", ""]
    assert len(rows) == 64
    assert 'tensor_path: "tensors.tsv"' in (tmp_path / "out" / "projector_config.pbtxt").read_text()


@pytest.mark.parametrize("to", [*WHOLE, *PARTIAL])
def test_nothing_that_exists_is_overwritten(make_run: MakeRun, tmp_path: Path, to: str) -> None:
    run, out = make_run(), tmp_path / {**WHOLE, **PARTIAL}[to]
    out.write_text("mine")
    with pytest.raises(DataError, match="exists already"):
        export(run, to, out)
    assert out.read_text() == "mine"


class TestRefused:
    @pytest.mark.parametrize("to", PARTIAL)
    def test_formats_that_cannot_hold_the_model(self, make_run: MakeRun, tmp_path: Path, to: str) -> None:
        export(make_run(), to, tmp_path / PARTIAL[to])
        with pytest.raises(DataError, match=f"{to}, which has only the entities' vectors"):
            import_run(tmp_path / PARTIAL[to], tmp_path / "back", "wordnet-mini")

    def test_another_graph(self, make_run: MakeRun, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
        export(make_run(), "npz", tmp_path / "out.npz")
        with pytest.raises(DataError, match="another graph: it has no entity"):
            import_run(tmp_path / "out.npz", tmp_path / "back", "wordnet-mini")
        fewer = KnowledgeGraph(
            "tree",
            Vocabulary("entity", small_tree.entities.ids[:62]),
            small_tree.relations,
            *(t[(t[:, [0, 2]] < 62).all(1)] for t in (small_tree.train, small_tree.valid, small_tree.test)),
        )
        fewer.save(tmp_path / "fewer")
        with pytest.raises(DataError, match="another graph: 63 entity ids against 62"):
            import_run(tmp_path / "out.npz", tmp_path / "back", str(tmp_path / "fewer"))
        assert not (tmp_path / "back").exists()

    @pytest.mark.parametrize("to", ["npz", "parquet", "safetensors"])
    def test_no_graph(self, make_run: MakeRun, tmp_path: Path, to: str) -> None:
        export(make_run(), to, tmp_path / WHOLE[to])
        with pytest.raises(DataError, match="--data; it was trained on 'tree'"):
            import_run(tmp_path / WHOLE[to], tmp_path / "back")

    def test_another_version_and_foreign_files(
        self, make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = make_run()
        monkeypatch.setattr("murp.exchange.contents.VERSION", 9)
        for to, name in WHOLE.items():
            export(run, to, tmp_path / to / name)
        monkeypatch.undo()
        for to, name in WHOLE.items():
            with pytest.raises(DataError, match=r"version 9 of the export; murp .* reads version 1"):
                import_run(tmp_path / to / name, tmp_path / "back")
        np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
        (tmp_path / "text.npz").write_text("no archive")
        for name in ("foreign.npz", "text.npz", "missing", "run"):
            with pytest.raises(DataError, match=name):
                import_run(tmp_path / name, tmp_path / "back", "wordnet-mini")

    def test_a_damaged_file(self, make_run: MakeRun, tmp_path: Path) -> None:
        run = make_run()
        export(run, "safetensors", tmp_path / "odd.safetensors")
        content = (tmp_path / "odd.safetensors").read_bytes()
        (tmp_path / "odd.safetensors").write_bytes(content.replace(b'nates\\": \\"poincare', b'nates\\": \\"elliptic'))
        with pytest.raises(DataError, match="unknown coordinates 'elliptic'"):
            import_run(tmp_path / "odd.safetensors", tmp_path / "back", "wordnet-mini")
        for to in ("npz", "safetensors"):
            out = tmp_path / WHOLE[to]
            export(run, to, out)
            out.write_bytes(out.read_bytes()[:-100])
            with pytest.raises(DataError, match="cannot be read"):
                import_run(out, tmp_path / "back", "wordnet-mini")

    def test_names_and_coordinates_that_do_not_fit(self, make_run: MakeRun, tmp_path: Path) -> None:
        run = make_run(model="mure")
        with pytest.raises(ConfigError, match=r"must end in \.npz"):
            export(run, "npz", tmp_path / "out.txt")
        with pytest.raises(ConfigError, match="euclidean space: it has no lorentz"):
            export(run, "npz", tmp_path / "out.npz", "lorentz")
        export(run, "hub-folder", tmp_path / "hub")
        with pytest.raises(RunError, match="exists already"):
            import_run(tmp_path / "hub", run.path)


def test_every_model_has_its_formula() -> None:
    formulas = {
        score_formula(make(3, 2, 2, transformation=transformation, bias=bias))
        for make in MODELS.values()
        for transformation in TRANSFORMATIONS
        for bias in BIASES
    }
    assert len(formulas) == 50
    assert any(f.startswith("φ(s, r, o) = -d(R ⊗ e_s, e_o ⊕ r)² + b_s + b_o;") for f in formulas)
    assert any(f.startswith("φ(s, r, o) = -d(e_s + r, R e_o)² + |e_s|² + |e_o|²;") for f in formulas)
