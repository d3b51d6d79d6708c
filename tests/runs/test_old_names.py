"""Values that were renamed: their old names are read wherever settings are read, and written nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import murp
from field_rows import same
from murp import registry
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError
from murp.graph import KnowledgeGraph
from murp.paper.planned_run import differences
from murp.runs.settings import bind
from murp.settings import FORMER, current

OLD = [(name, old, new) for name, names in FORMER.items() for old, new in names.items()]
QUICK: dict[str, Any] = {"dim": 2, "epochs": 1, "validate_every": 0, "engine": "torch", "device": "cpu"}


@pytest.mark.parametrize(("name", "old", "new"), OLD)
def test_settings_have_the_new_name(name: str, old: str, new: str) -> None:
    config = Config(**{name: old})
    assert config == Config(**{name: new})
    assert f'"{old}"' not in config.to_toml()
    assert old not in config.known[name].choices
    assert old not in registry.KINDS.get(name, ())
    assert same({name: old}, config)
    assert not differences({name: old}, config)
    assert not same({name: old}, Config())
    assert differences({name: old}, Config())


def test_only_the_names_of_that_setting_are_changed() -> None:
    assert current("model", "subject") == "subject"
    assert current("bias", ["subject"]) == ["subject"]
    with pytest.raises(ConfigError, match="dtype must be one of"):
        Config(dtype="subject")


@pytest.mark.parametrize(("name", "old", "new"), OLD)
def test_a_run_of_before_is_opened_and_continued(
    name: str, old: str, new: str, small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"

    def bind_as_before(state: dict[str, Any], config: Config) -> dict[str, Any]:
        bound = bind(state, config)
        bound["settings"][name] = old
        return bound

    with monkeypatch.context() as before:
        for module in ("murp.runs.folder", "murp.training.loop"):
            before.setattr(f"{module}.bind", bind_as_before)
        murp.train(small_tree, out=run, **QUICK, **{name: new})
    file = run / "config.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(f'{name} = "{new}"', f'{name} = "{old}"'), encoding="utf-8")
    assert f'{name} = "{old}"' in file.read_text(encoding="utf-8")
    assert getattr(murp.load(run).config, name) == new
    option = f"--{name.replace('_', '-')}"
    small_tree.save(tmp_path / "graph")
    words = ["train", "--data", str(tmp_path / "graph"), "--out", str(tmp_path / "typed"), option, old]
    words += [word for key, value in QUICK.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    assert main(words) == 0
    assert getattr(murp.load(tmp_path / "typed").config, name) == new
    assert main(["train", "--config", str(file), "--out", str(tmp_path / "again"), "--data", words[2]]) == 0
    assert murp.resume(run, epochs=2).state["epoch"] == 2
