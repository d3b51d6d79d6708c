"""Runs whose optimizer has a state: they go on bit for bit, and say so where they cannot.

Bits are compared between runs of the same code on one machine; see test_training.py.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from test_training import DieAt, StopAt, assert_same_bits, weights

import murp
from murp import engines, registry
from murp.cli.main import main
from murp.config import known_settings
from murp.errors import NotFiniteError, RunError
from murp.exchange import export
from murp.exchange.importing import import_run
from murp.graph import KnowledgeGraph
from murp.models import MuRP
from murp.optimizers.optimizer import TABLES
from murp.optimizers.row_adagrad import RowAdagrad
from murp.runs import checkpoint, folder
from murp.training import Interrupted
from murp.training.sampler import STEPS_A_CHUNK
from trees import tree

WITH_STATE = [name for name in registry.OPTIMIZERS if name != "sgd"]
LR = {"sgd": 1.0, "adagrad": 0.1, "row-adagrad": 0.1, "adam": 0.01}
QUICK: dict[str, Any] = {
    "dim": 4, "epochs": 3, "batch_size": 8, "negatives": 3, "device": "cpu", "engine": "torch", "validate_every": 1,
}  # fmt: skip


def settings(optimizer: str, **others: Any) -> dict[str, Any]:
    """Quick ones; without those that the chosen parts do not know."""
    wanted = {**QUICK, "optimizer": optimizer, "lr": LR.get(optimizer, 0.1), **others}
    return {name: value for name, value in wanted.items() if name in known_settings(wanted)}


def tables(path: Path, name: str = "last") -> set[str]:
    """The optimizer's tables in a checkpoint."""
    return {table for table in weights(path, name) if table.startswith(TABLES)}


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file() and file.name != folder.LOCK}


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with Adam that was stopped in its second epoch; tests work on copies."""
    path = tmp_path_factory.mktemp("runs") / "run"
    with pytest.raises(Interrupted):
        murp.train(tree(), out=path, progress=StopAt(2), **settings("adam"))
    return path


@pytest.fixture
def run(interrupted: Path, tmp_path: Path) -> Path:
    return shutil.copytree(interrupted, tmp_path / "run")


# Every objective and every optimizer: what one keeps, the other does not look at.
TURNS = itertools.cycle(registry.OPTIMIZERS)
EVERY = [
    *((optimizer, objective, "murp") for optimizer, objective in zip(TURNS, registry.OBJECTIVES, strict=False)),
    *((optimizer, "bernoulli", "mure") for optimizer in WITH_STATE),
]


@pytest.mark.parametrize(("optimizer", "objective", "model"), EVERY)
def test_resuming_gives_the_bits_of_a_run_that_never_stopped(
    optimizer: str, objective: str, model: str, small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: Any
) -> None:
    """Stopped before its first checkpoint, within an epoch, and again; the optimizer's tables are compared too."""
    monkeypatch.setitem(STEPS_A_CHUNK, "cpu", 5)  # several chunks an epoch
    chosen = settings(optimizer, objective=objective, model=model)
    murp.train(small_tree, out=tmp_path / "whole", **chosen)
    with pytest.raises(MemoryError):
        murp.train(small_tree, out=tmp_path / "parts", progress=DieAt(1), **chosen)
    for chunks in (2, 3):
        with pytest.raises(Interrupted):
            murp.resume(tmp_path / "parts", progress=StopAt(chunks))
    murp.resume(tmp_path / "parts")
    assert bool(tables(tmp_path / "whole")) == (optimizer != "sgd")
    for name in ("last", "best"):
        assert_same_bits(weights(tmp_path / "whole", name), weights(tmp_path / "parts", name))
    losses = [[m["loss"] for m in murp.load(tmp_path / part).metrics()] for part in ("whole", "parts")]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("optimizer", WITH_STATE)
def test_a_state_that_is_lost_would_be_noticed(optimizer: str, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """The test above can fail: a run that goes on with empty tables has other weights."""
    chosen = settings(optimizer)
    murp.train(small_tree, out=tmp_path / "whole", **chosen)
    murp.train(small_tree, out=tmp_path / "parts", **{**chosen, "epochs": 2})
    last = tmp_path / "parts" / folder.LAST
    stored, state = checkpoint.read(last)
    empty = {name: torch.zeros_like(values) if name.startswith(TABLES) else values for name, values in stored.items()}
    checkpoint.write(last, empty, state)
    murp.resume(tmp_path / "parts", epochs=3)
    assert not torch.equal(weights(tmp_path / "whole")["entity"], weights(tmp_path / "parts")["entity"])


@pytest.mark.parametrize("model", ["murp", "mure"])
@pytest.mark.parametrize("optimizer", registry.OPTIMIZERS)
def test_every_optimizer_learns_a_tree(optimizer: str, model: str, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    lr = {"sgd": 5.0, "adam": 0.03}.get(optimizer, 0.2)
    chosen = settings(optimizer, model=model, epochs=12, lr=lr, dim=6, batch_size=16, validate_every=0)
    losses = [m["loss"] for m in murp.train(small_tree, out=tmp_path / "run", **chosen).metrics()]
    assert losses[-1] < 0.8 * losses[0]


def test_last_keeps_the_optimizers_tables_and_best_does_not(run: Path) -> None:
    parts = ("entity", "subject_bias", "object_bias", "subject_stretch", "translation")
    kept = {f"{TABLES}{table}.{name}" for table in parts for name in ("mean", "square", "steps")}
    assert tables(run) == kept
    assert tables(run, "best") == set()
    murp.load(run, checkpoint="last").evaluate("valid")
    murp.load(run, checkpoint="best").evaluate("valid")


def test_a_run_with_best_alone_is_not_continued(run: Path) -> None:
    for name in ("last.safetensors", "last.previous.safetensors"):
        (run / name).unlink()
    with pytest.raises(RunError, match=r"last\.safetensors.*best\.safetensors is another: evaluate and predict"):
        murp.resume(run)
    whole = (run / folder.BEST).read_bytes()
    (run / folder.BEST).write_bytes(whole[:100])
    with pytest.raises(
        RunError, match=r"no checkpoint at .*backup, or train again: `murp train --config .*toml`"
    ) as told:
        murp.resume(run)
    assert "is another" not in str(told.value), "it cannot be read either"
    (run / folder.BEST).write_bytes(whole)
    shutil.copyfile(run / folder.BEST, run / folder.LAST)
    before = files(run)
    with pytest.raises(RunError, match=r"no tables of the optimizer.*best\.safetensors.*cannot go on.*--config"):
        murp.resume(run)
    assert files(run) == before
    murp.load(run).evaluate("valid")


@pytest.mark.parametrize("what", ["missing", "shape", "dtype", "nan", "unknown"])
def test_tables_that_do_not_fit_are_named_with_what_to_do(what: str, run: Path) -> None:
    name = f"{TABLES}entity.mean"
    stored, state = checkpoint.read(run / folder.LAST)
    if what == "missing":
        del stored[name]
    elif what == "unknown":
        name = f"{TABLES}entity.momentum"
        stored[name] = torch.zeros(3)
    else:
        right = stored[name]
        wrong = {"shape": right[:, 1:], "dtype": right.double(), "nan": right / 0}
        stored[name] = wrong[what].contiguous()
    checkpoint.write(run / folder.LAST, stored, state)
    before = files(run)
    with pytest.raises(RunError, match=rf"last\.safetensors.*{name}.*last\.previous\.safetensors may be one.*--config"):
        murp.resume(run)
    assert files(run) == before


def test_a_damaged_table_gives_way_to_the_checkpoint_before(
    small_tree: KnowledgeGraph, run: Path, tmp_path: Path
) -> None:
    murp.train(small_tree, out=tmp_path / "whole", **settings("adam"))
    assert tables(run)
    stored = checkpoint.read(run / folder.LAST)[0][f"{TABLES}entity.mean"]
    content = (run / folder.LAST).read_bytes()
    place = content.index(stored.numpy().tobytes())
    (run / folder.LAST).write_bytes(content[:place] + b"\x01" + content[place + 1 :])
    with pytest.warns(UserWarning, match="Using the checkpoint before it"):
        murp.resume(run)
    assert_same_bits(weights(tmp_path / "whole"), weights(run))


def test_info_tells_the_state_from_the_parameters(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not any(name.startswith(TABLES) for name in found["parameters"])
    assert found["optimizer"]["entity.mean"] == [63, 4]
    assert main(["info", str(run)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    numbers = 63 * 6 + 4 * 8  # points and two biases of 63 entities; stretch and translation of 4 relations
    assert f"{numbers}: entity 63 × 4" in lines["parameters"]
    # Means; squares, of points and translations by row; clocks, of five tables.
    assert f"adam, lr 0.01, which keeps {numbers + (63 * 3 + 4 * 5) + (63 * 3 + 4 * 2)} numbers" in lines["optimizer"]


@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_an_export_has_no_state_and_its_import_is_not_continued(form: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / f"exported.{form}"
    export(murp.load(run, checkpoint="last"), form, out)
    assert TABLES.encode() not in out.read_bytes()
    back = import_run(out, tmp_path / "back", str(run / folder.GRAPH))
    assert back.evaluate("valid").mrr == murp.load(run, checkpoint="last").evaluate("valid").mrr
    assert main(["info", str(back.path)]) == 0
    with pytest.raises(RunError, match=r"no tables of the optimizer.*imported runs do not"):
        murp.resume(back.path)


def test_a_finished_import_has_nothing_to_go_on_with(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **settings("adam", epochs=1))
    export(murp.load(run.path, checkpoint="last"), "npz", tmp_path / "it.npz")
    back = import_run(tmp_path / "it.npz", tmp_path / "back", str(run.path / folder.GRAPH))
    assert murp.resume(back.path).state["epoch"] == 1


def test_fused_engines_keep_no_state() -> None:
    assert engines.build("numba", [MuRP(5, 2, 3).initialise(0)]).states == [{}]


def test_a_state_that_is_no_longer_finite_ends_the_run_and_is_not_saved(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows whose squares overflow would never move again, with parameters that look well."""
    monkeypatch.setattr(RowAdagrad, "squares", lambda self, geometry, x, gradient: x[:, :1] * 0 + torch.inf)
    with pytest.raises(
        NotFiniteError, match=r"the optimizer's table .*optimizer\.entity\.sum.* epoch 3 .*learning rate"
    ):
        murp.train(small_tree, out=tmp_path / "run", **settings("row-adagrad", validate_every=0))
    assert checkpoint.read(tmp_path / "run" / folder.LAST)[1]["epoch"] == 0
