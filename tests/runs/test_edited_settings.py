"""The settings that a checkpoint was trained with are in it: an edited config.toml is not taken for them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import murp
from murp.cli.main import main
from murp.config import Config
from murp.errors import RunError
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, folder
from murp.runs.run import load_model
from murp.runs.settings import SETTINGS, bind

QUICK: dict[str, Any] = {
    "dim": 3, "epochs": 2, "lr": 1.0, "batch_size": 16, "negatives": 2, "device": "cpu", "engine": "torch",
    "validate_every": 1, "save_every": 0,
}  # fmt: skip
BOUND = {
    "model": "mure", "objective": "softmax", "corruption": "shared", "optimizer": "adam", "regularizer": "l2",
    "clip": 1.0, "warmup": 1, "query_dropout": 0.1, "entity_dropout": 0.1, "dim": 4,
    "dtype": "float64", "table_dtype": "float16", "curvature": 2.0, "transformation": "swapped", "bias": "tail",
    "lr": 2.0, "lr_schedule": "linear", "batch_size": 17, "negatives": 3, "seed": 1, "initial_scale": 0.01,
    "init_from": "elsewhere", "slices": 2, "validate_candidates": 5,
}  # fmt: skip
FREE = {
    "data": "elsewhere", "data_dir": "/data", "split_seed": 1, "device": "auto", "engine": "auto", "epochs": 3,
    "validate_every": 2, "patience": 5, "save_every": 30.0, "tensorboard": True, "compile_after": 1.0,
    "columns": "head=1,relation=3,tail=2", "no_header": True, "tables": "host",
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(make_tree: Callable[..., KnowledgeGraph], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return murp.train(make_tree(), out=tmp_path_factory.mktemp("edited") / "run", **QUICK).path


@pytest.fixture
def edit(trained: Path) -> Any:
    """Changes settings in the run's file, which is put right afterwards."""
    file = trained / folder.CONFIG
    before = file.read_text()

    def change(name: str, value: Any) -> None:
        line = Config(**{name: value}).to_toml()
        (new,) = re.findall(rf"^{name} = .*$", line, re.M)
        file.write_text(re.sub(rf"^{name} = .*$", new, file.read_text(), flags=re.M))

    yield change
    file.write_text(before)


def test_every_setting_is_either_bound_or_free() -> None:
    assert set(Config().to_dict()) == {*BOUND, *FREE}


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("file", ["last", "best"])
def test_a_setting_that_decided_the_weights_cannot_be_edited(name: str, file: Any, trained: Path, edit: Any) -> None:
    edit(name, BOUND[name])
    with pytest.raises(RunError, match=rf"config\.toml says {name} = .*{file}\.safetensors .* with {name} = .*Put"):
        murp.load(trained, checkpoint=file)


def test_training_does_not_go_on_with_an_edited_setting(trained: Path, edit: Any) -> None:
    edit("seed", 1)
    before = {path: path.read_bytes() for path in trained.iterdir() if path.is_file() and path.name != folder.LOCK}
    with pytest.raises(RunError, match=r"config\.toml says seed = 1, .* with seed = 0"):
        murp.resume(trained, epochs=3)
    assert all(path.read_bytes() == content for path, content in before.items())


def test_the_command_line_says_so_too(trained: Path, edit: Any, capsys: pytest.CaptureFixture[str]) -> None:
    edit("model", "mure")
    for command in ("info", "evaluate"):
        assert main([command, str(trained)]) == 1
        assert 'config.toml says model = "mure"' in capsys.readouterr().err


@pytest.mark.parametrize("name", FREE)
def test_other_settings_may_be_edited(name: str, trained: Path, edit: Any) -> None:
    edit(name, FREE[name])
    assert getattr(murp.load(trained).config, name) == FREE[name]
    text = (trained / folder.CONFIG).read_text()
    assert name in text.partition("\n\n")[0]  # and the file itself says which


def test_the_number_of_epochs_is_bound_where_the_learning_rate_depends_on_it(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **{**QUICK, "lr_schedule": "cosine"}).path
    config = run / folder.CONFIG
    config.write_text(config.read_text().replace("\nepochs = 2\n", "\nepochs = 4\n"))
    with pytest.raises(RunError, match=r"says epochs = 4, .* with epochs = 2"):
        murp.resume(run)


def test_all_that_differs_is_named(trained: Path, edit: Any) -> None:
    edit("seed", 1)
    edit("bias", "norm")
    with pytest.raises(RunError, match=r'says seed = 1, bias = "norm", but .* with seed = 0, bias = "both"\.'):
        murp.load(trained)


def test_a_checkpoint_without_settings_opens_and_the_next_one_has_them(trained: Path, tmp_path: Path) -> None:
    """As the first runs of format 1 have it."""
    run = shutil.copytree(trained, tmp_path / "run")
    for name in (folder.LAST, folder.BEST):
        tables, state = checkpoint.read(run / name)
        assert set(state.pop(SETTINGS)) == set(BOUND)
        checkpoint.write(run / name, tables, state)
    assert SETTINGS not in murp.load(run).state
    murp.resume(run, epochs=3)
    assert set(checkpoint.read(run / folder.LAST)[1][SETTINGS]) == set(BOUND)
    assert SETTINGS not in murp.load(run, checkpoint="last").state


@pytest.mark.parametrize("settings", [None, [], "murp", {"model": ["murp"]}, {"model": None}])
def test_settings_in_a_checkpoint_that_never_were_are_refused(settings: Any, trained: Path, tmp_path: Path) -> None:
    config = murp.load(trained).config
    tables, state = checkpoint.read(trained / folder.LAST)
    assert bind(state, config) == state
    checkpoint.write(tmp_path / folder.LAST, tables, {**state, SETTINGS: settings})
    with pytest.raises(RunError, match=r"last\.safetensors"):
        load_model(tmp_path / folder.LAST, config, murp.load(trained).graph)
