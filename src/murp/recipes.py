"""Recipes: settings that go together, by name.

``paper`` is the paper's, and the default for its models. A model of another paper has settings that suit it
(:attr:`murp.models.model.Model.usual`); a recipe that earned a name has stored results.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from murp import registry
from murp.config import Config
from murp.errors import ConfigError
from murp.settings import Part


@dataclass(frozen=True)
class Result:
    """What a recipe reached on the test set, and the stored result that says so; a test compares the two."""

    data: str
    with_settings: str  # beside the recipe's
    mrr: float
    protocol: str
    file: str


@dataclass(frozen=True)
class Recipe:
    """Settings by name; ``about``: what they are good for; ``results``: stored results made with them."""

    about: str
    settings: Mapping[str, Any]
    results: tuple[Result, ...] = ()


RECIPES: dict[str, Recipe] = {
    "paper": Recipe(
        "MuRP as published: Bernoulli loss, 50 uniform negatives, Riemannian SGD",
        {"model": "murp", "objective": "bernoulli", "optimizer": "sgd", "negatives": 50, "batch_size": 128, "lr": 50.0},
        (
            Result("WN18RR", "d=40, 500 epochs", 0.465, "standard", "results/gpu_wn18rr-murp-d40.json"),
            Result("FB15k-237", "d=40, lr 10, 500 epochs", 0.319, "standard", "results/gpu_fb15k-237-murp-d40.json"),
        ),
    ),
}


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of the recipe they name, and those that suit their model, where they say nothing.

    ``recipe`` is no setting of a run: what it stands for is.
    """
    given = dict(values)
    recipe = given.pop("recipe", None)
    named: Mapping[str, Any] = {}
    if recipe is not None:
        if recipe not in RECIPES:
            close = difflib.get_close_matches(str(recipe), RECIPES, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"Choose one of {', '.join(RECIPES)}."
            raise ConfigError(f"recipe {recipe!r} is not known. {hint}")
        named = RECIPES[recipe].settings
        if given.get("model", named["model"]) != named["model"]:
            named = {name: value for name, value in named.items() if name in _of_no_model(named, given)}
    model = given.get("model", named.get("model", Config.model))
    usual = registry.find("model", model).usual if isinstance(model, str) else {}
    whole = {**usual, **named, **given}
    return {name: value for name, value in whole.items() if name in given or name in named or _fits(name, whole)}


def _of_no_model(named: Mapping[str, Any], given: Mapping[str, Any]) -> set[str]:
    """Of a recipe for another model, what is no setting of that model alone."""
    model = registry.find("model", named["model"])
    of_all = next(base for base in reversed(model.__mro__) if issubclass(base, Part) and base is not Part)
    own = set(model.settings) - set(of_all.settings)
    return set(named) - own - {"model"}


def _fits(name: str, whole: Mapping[str, Any]) -> bool:
    """Whether a usual setting belongs to the parts that are chosen: the user may have chosen another optimizer."""
    from murp.config import known_settings, parts_of

    if name in registry.KINDS and name not in parts_of(whole):  # negatives of an objective that draws none
        return False
    return name in known_settings(whole)
