"""Recipes: what they complete, what they reached, and how they are listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from murp import registry
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError
from murp.recipes import RECIPES, completed

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_run(name: str) -> None:
    config = Config(**completed({"recipe": name}))
    assert {key: getattr(config, key) for key in RECIPES[name].settings} == dict(RECIPES[name].settings)


def test_the_defaults_are_the_papers() -> None:
    assert Config(**completed({})) == Config(**completed({"recipe": "paper"})) == Config()


@pytest.mark.parametrize("name", registry.MODELS)
def test_what_suits_a_model_are_settings_that_it_has(name: str) -> None:
    usual = registry.find("model", name).usual
    config = Config(**completed({"model": name}))
    assert {key: getattr(config, key) for key in usual} == dict(usual)


def test_what_the_user_says_comes_first() -> None:
    chosen = completed({"model": "complex", "optimizer": "sgd", "objective": "bernoulli", "negatives": 7, "lr": 3.0})
    config = Config(**chosen)
    assert (config.optimizer, config.objective, config.negatives, config.lr) == ("sgd", "bernoulli", 7, 3.0)


def test_an_unknown_recipe_is_refused_with_what_is_close() -> None:
    with pytest.raises(ConfigError, match=r"recipe 'papr' is not known\. Did you mean paper\?"):
        completed({"recipe": "papr"})


@pytest.mark.parametrize("found", [found for recipe in RECIPES.values() for found in recipe.results], ids=str)
def test_what_a_recipe_reached_is_what_the_stored_result_says(found: object) -> None:
    stored = json.loads((ROOT / found.file).read_text())  # type: ignore[attr-defined]
    test = stored["figures"]["test"][found.protocol]  # type: ignore[attr-defined]
    assert round(test["mrr"], 3) == found.mrr  # type: ignore[attr-defined]
    assert stored["settings"]["data"].endswith(found.data)  # type: ignore[attr-defined]


def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    assert "paper: MuRP as published" in capsys.readouterr().out
    assert main(["recipes", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == list(RECIPES)
    assert listed["paper"]["settings"]["lr"] == 50.0


def test_help_shows_the_settings_of_what_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown, hidden in (
        (["--model", "rotate"], "settings of model rotate", "--curvature"),
        (["--model", "murp"], "--curvature", "settings of model rotate"),
        (["--objective=self-adversarial"], "--temperature", "--label-smoothing"),
        (["--objective", "k-vs-all"], "--label-smoothing", "--negatives"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["train", *words, "--help"])
        text = capsys.readouterr().out
        assert stop.value.code == 0
        assert shown in text
        assert hidden not in text
