"""Runs whose points are stored in float16 or bfloat16 (``table_dtype``): they are trained, saved, opened, continued."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_training import StopAt, assert_same_bits, weights

import murp
from murp.cli.main import main
from murp.config import Config
from murp.engines import refuse_table_dtype
from murp.errors import ConfigError, NotFiniteError, RunError
from murp.exchange import export
from murp.exchange.importing import import_run
from murp.explorer.snapshots import Recorder
from murp.graph import KnowledgeGraph
from murp.models.rounding import rounded
from murp.runs import checkpoint, folder
from murp.training import Interrupted
from murp.training.progress import Silent
from murp.training.start import configure
from trees import tree

FORMATS = {"float16": torch.float16, "bfloat16": torch.bfloat16}
QUICK: dict[str, Any] = {
    "dim": 6, "epochs": 4, "lr": 5.0, "batch_size": 16, "negatives": 5, "validate_every": 2, "device": "cpu",
    "progress": Silent(),
}  # fmt: skip


@pytest.fixture(scope="module")
def float16(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests that change it work on copies."""
    return murp.train(tree(), out=tmp_path_factory.mktemp("half") / "run", table_dtype="float16", **QUICK).path


@pytest.mark.parametrize("table_dtype", FORMATS)
@pytest.mark.parametrize("settings", [{}, {"model": "mure", "optimizer": "adam", "lr": 0.05}])
def test_checkpoints_hold_what_is_stored_and_runs_open_in_full(
    table_dtype: str, settings: dict[str, Any], small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", table_dtype=table_dtype, **{**QUICK, **settings})
    stored = weights(run.path, "best")
    assert stored["entity"].dtype == FORMATS[table_dtype]
    assert {values.dtype for name, values in weights(run.path).items() if name != "entity"} == {torch.float32}
    assert torch.equal(run.model.parameters["entity"], stored["entity"].float())
    assert {values.dtype for values in run.model.parameters.values()} == {torch.float32}
    assert run.state["best_mrr"] == pytest.approx(run.evaluate("valid").mrr, abs=1e-9), "validation reads the same rows"
    # As the safetensors library reads it.
    assert torch.equal(load_file(run.path / folder.BEST)["entity"], stored["entity"])


def test_a_file_is_smaller_by_half_of_the_points(float16: Path, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    full = murp.train(small_tree, out=tmp_path / "run", **QUICK).path
    a, b = ((path / folder.LAST).stat().st_size for path in (full, float16))
    assert a - b == pytest.approx(2 * small_tree.num_entities * QUICK["dim"], abs=64)  # the header says other words


@pytest.mark.parametrize("settings", [{}, {"optimizer": "adam", "lr": 0.05}, {"objective": "one-vs-all"}])
def test_resuming_gives_the_bits_of_a_run_that_never_stopped(
    settings: dict[str, Any], small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    common = {**QUICK, **settings, "table_dtype": "bfloat16"}
    common = {name: value for name, value in common.items() if name != "negatives" or "objective" not in settings}
    whole = murp.train(small_tree, out=tmp_path / "whole", **common).path
    with pytest.raises(Interrupted):
        murp.train(small_tree, out=tmp_path / "cut", **{**common, "progress": StopAt(2)})
    assert weights(tmp_path / "cut")["entity"].dtype == torch.bfloat16
    resumed = murp.resume(tmp_path / "cut", progress=Silent()).path
    assert_same_bits(weights(resumed), weights(whole))
    assert_same_bits(weights(resumed, "best"), weights(whole, "best"))


@pytest.mark.parametrize("table_dtype", FORMATS)
def test_a_large_checkpoint_is_mapped(
    table_dtype: str, small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", table_dtype=table_dtype, **{**QUICK, "dim": 3}).path
    read = murp.load(run).model.parameters
    monkeypatch.setattr(checkpoint, "LARGE", 1)
    mapped, _ = checkpoint.load(run / folder.LAST, map_large=True)
    assert all(values.data_ptr() % values.itemsize == 0 for values in mapped.values())
    assert_same_bits(mapped, weights(run))
    assert_same_bits(murp.load(run).model.parameters, read)


def test_broken_rows_are_found(float16: Path, tmp_path: Path) -> None:
    run = shutil.copytree(float16, tmp_path / "run")
    for row, value in ((3, torch.nan), (2, 1.0)):
        tables, state = checkpoint.read(run / folder.LAST)
        tables["entity"][row, 0] = value
        checkpoint.write(run / folder.LAST, tables, state)
        for attempt in (lambda: murp.load(run, checkpoint="last"), lambda: murp.resume(run, epochs=9)):
            with pytest.raises(NotFiniteError, match=rf"entity \(row {row}\)"):
                attempt()


class TestAfterTraining:
    """What is done with a run."""

    def test_it_is_evaluated_asked_exported_and_imported_as_typed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data = tmp_path / "facts.tsv"
        data.write_text("".join(f"e{i}\tunder\te{(i - 1) // 2}\n" for i in range(1, 60)))
        run, out = tmp_path / "run", tmp_path / "run.safetensors"

        def typed(*words: object) -> str:
            assert main([str(word) for word in words]) == 0, capsys.readouterr().err
            return capsys.readouterr().out

        few = ("--dim", 4, "--epochs", 2, "--device", "cpu", "--quiet")
        typed("train", "--data", data, "--table-dtype", "float16", "--out", run, *few, "--validate-every", 0)
        assert "murp d=4, float32, points stored in float16" in typed("info", run)
        assert "MRR" in typed("evaluate", run, "--split", "train")
        asked = ("--head", "e7", "--relation", "under", "-k", 3)
        answers = typed("predict", run, *asked)
        typed("export", run, "--to", "safetensors", "--out", out)
        assert load_file(out)["entity"].dtype == torch.float32, "other programs need not know of the rounding"
        typed("import", out, "--data", data, "--out", tmp_path / "again")
        assert typed("predict", tmp_path / "again", *asked) == answers
        assert_same_bits(weights(tmp_path / "again"), weights(run))

    def test_an_export_in_other_coordinates_is_imported_rounded(self, float16: Path, tmp_path: Path) -> None:
        run = murp.load(float16)
        export(run, "hub-folder", tmp_path / "there", coordinates="lorentz")
        again = import_run(tmp_path / "there", tmp_path / "again")
        assert weights(again.path)["entity"].dtype == torch.float16
        torch.testing.assert_close(
            again.model.parameters["entity"], run.model.parameters["entity"], rtol=1e-3, atol=1e-6
        )

    def test_it_gives_its_weights_to_another_run_in_any_format(self, float16: Path, tmp_path: Path) -> None:
        graph, source = tree(), murp.load(float16, checkpoint="best").model
        for table_dtype in ("auto", "float16", "bfloat16"):
            path = tmp_path / table_dtype
            # So small a rate that no number changes in float16.
            settings = {**QUICK, "lr": 1e-12, "epochs": 1, "table_dtype": table_dtype}
            murp.train(graph, out=path, init_from=str(float16), **settings)
            found = weights(path)["entity"]
            assert found.dtype == FORMATS.get(table_dtype, torch.float32)
            expected = rounded(source.parameters["entity"], found.dtype, source.geometry)
            torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)

    def test_it_is_extended(self, float16: Path, tmp_path: Path) -> None:
        run = murp.load(float16)
        entities, relation = run.graph.entities.ids.to_pylist(), run.graph.relations.id(0)
        facts = [("new", relation, entities[3]), (entities[5], relation, "new")]
        larger = run.extend(facts, tmp_path / "larger")
        found = weights(larger.path)["entity"]
        assert found.dtype == torch.float16
        assert torch.equal(found[:-1].float(), run.model.parameters["entity"]), "old rows keep their values"
        murp.resume(larger.path, epochs=5, progress=Silent())
        assert weights(larger.path)["entity"].dtype == torch.float16

    def test_it_is_watched_while_it_trains(self, tmp_path: Path) -> None:
        settings = {**QUICK, "progress": Recorder(Silent()), "table_dtype": "bfloat16"}
        run = murp.train(tree(), out=tmp_path / "run", **settings)
        frames = sorted((run.path / "snapshots").glob("0*.npy"))
        assert len(frames) >= 2
        assert all(np.isfinite(np.load(frame)).all() for frame in frames)


class TestRefusals:
    def test_points_of_other_spaces(self) -> None:
        with pytest.raises(ConfigError, match=r"or of the ball\. .* model lorentz .* leave table_dtype at auto"):
            refuse_table_dtype(Config(model="lorentz", table_dtype="float16"))
        refuse_table_dtype(Config(model="lorentz"))

    def test_before_anything_is_written(self, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="numba stores the entities' points as it computes"):
            murp.train(small_tree, out=tmp_path / "run", engine="numba", table_dtype="float16", **QUICK)
        with pytest.raises(ConfigError, match="Euclidean space or of the ball"):
            configure(small_tree, {"model": "lorentz", "table_dtype": "bfloat16"})
        assert list(tmp_path.iterdir()) == []

    def test_another_format_than_the_checkpoints(self, float16: Path, tmp_path: Path) -> None:
        """Edited settings; also of a run of before, whose checkpoint does not say its settings."""
        run = shutil.copytree(float16, tmp_path / "run")
        config = run / folder.CONFIG
        config.write_text(config.read_text().replace('table_dtype = "float16"', 'table_dtype = "auto"'))
        with pytest.raises(RunError, match=r'config\.toml says table_dtype = "auto", .* with table_dtype = "float16"'):
            murp.resume(run, epochs=9)
        for name in (folder.LAST, folder.BEST):
            tables, state = checkpoint.read(run / name)
            del state["settings"]
            checkpoint.write(run / name, tables, state)
        with pytest.raises(RunError, match=r"table entity is torch\.float16, the run's settings say torch\.float32"):
            murp.load(run)


def test_a_run_of_before_has_the_default(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **{**QUICK, "epochs": 2}).path
    twin = shutil.copytree(run, tmp_path / "twin")
    config = twin / folder.CONFIG
    config.write_text("".join(line for line in config.read_text().splitlines(True) if "table_dtype" not in line))
    for name in (folder.LAST, folder.BEST):
        tables, state = checkpoint.read(twin / name)
        del state["settings"]["table_dtype"]
        checkpoint.write(twin / name, tables, state)
    for path in (run, twin):
        murp.resume(path, epochs=4, progress=Silent())
    assert_same_bits(weights(twin), weights(run))
    assert murp.load(twin).config.table_dtype == "auto"
