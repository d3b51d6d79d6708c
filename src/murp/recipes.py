"""Recipes: named sets of settings.

``paper`` has the paper's settings, the default for its models. Other models have default settings of their own
(:attr:`murp.models.model.Model.usual`). Every other recipe has stored results. ``auto`` is not a recipe itself: it
chooses one for the graph (:func:`decide`).
"""

from __future__ import annotations

import difflib
import importlib.resources
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from murp import registry
from murp.config import Config, known_settings, parts_of
from murp.errors import ConfigError
from murp.settings import Part

if TYPE_CHECKING:
    from murp.graph.shape import Shape


RESULTS = "recipe_results.json"  # beside this module; tools/recipe_results.py makes it of what is stored
AUTO = "auto"


@dataclass(frozen=True)
class Result:
    """The result of a recipe on a test set: the mean over ``seeds`` runs and its deviation (None for one run).

    ``files``: the stored results, which a test compares. ``with_settings``: settings beyond the recipe and the
    dimension.
    """

    data: str
    dim: int
    with_settings: Mapping[str, Any]
    protocol: str
    mrr: float
    deviation: float | None
    seeds: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """A named set of settings; ``about``: what they are good for.

    ``stored``: the results made with them, as patterns of files under results/, each of one dataset and dimension with
    one file per seed.
    """

    about: str
    settings: Mapping[str, Any]
    stored: tuple[str, ...] = ()


RECIPES: dict[str, Recipe] = {
    "paper": Recipe(
        "MuRP as published: Bernoulli loss, 50 uniform negatives, Riemannian SGD",
        {"model": "murp", "objective": "bernoulli", "optimizer": "sgd", "negatives": 50, "batch_size": 128, "lr": 50.0},
        ("gpu_wn18rr-murp-d40.json", "gpu_fb15k-237-murp-d40.json"),
    ),
    "wn18rr": Recipe(
        "sparse hierarchies: rotation and stretch on a ball of learned curvature, hard negatives, Adam",
        {
            "model": "roth-stretch",
            "objective": "self-adversarial",
            "temperature": 1.0,
            "negatives": 250,
            "optimizer": "adam",
            "lr": 0.002,
            "lr_schedule": "linear",
            "epochs": 100,
            "batch_size": 250,
            "regularizer": "l2",
            "regularizer_weight": 0.002,
        },
        ("field/wn18rr-best-d40-seed*.json",),
    ),
    "fb15k-237": Recipe(
        "dense graphs, and those without hierarchies: a matrix a relation, every entity as a candidate, DURA, Adagrad",
        {
            "model": "rescal",
            "objective": "one-vs-all",
            "optimizer": "adagrad",
            "lr": 0.1,
            "epochs": 80,
            "batch_size": 1024,
            "regularizer": "dura",
            "regularizer_weight": 0.03,
            "query_dropout": 0.1,
        },
        (
            "field/fb15k-237-best-d40-seed*.json",
            "field/fb15k-237-best-d200-seed*.json",
            "field/wn18rr-weighted-d200-seed*.json",
        ),
    ),
    "fb15k-237-hyperbolic": Recipe(
        "dense graphs on the hyperboloid: a Lorentz map a relation, every entity as a candidate, dropout, Adam",
        {
            "model": "hybonet",
            "objective": "one-vs-all",
            "label_smoothing": 0.1,
            "optimizer": "adam",
            "lr": 0.002,
            "lr_schedule": "linear",
            "epochs": 120,
            "batch_size": 1024,
            "regularizer": "l2",
            "regularizer_weight": 0.01,
            "input_dropout": 0.5,
        },
        ("field/fb15k-237-hybonet-d40-seed*.json",),
    ),
}
DECIDED = ("wn18rr", "fb15k-237")  # those that auto takes
# A graph of fewer facts an entity is sparse: WN18RR and NELL-995-h100 have 2, FB15k-237 has 19 and UMLS 39.
SPARSE = 5.0
# And hierarchical from this share of facts in chains on: WN18RR .42, UMLS .35, NELL-995-h100 .23, FB15k-237 .04. In a
# trial of 25 epochs on NELL-995-h100, which is sparse alone, matrices reached an MRR of .352 on valid, distances .306.
HIERARCHICAL = 0.3
STEPS = 80  # that an epoch has at least, where a graph is small: batches shrink with it
LEAST_BATCH = 64


@dataclass(frozen=True)
class Choice:
    """A recipe for a graph, other settings for it, and the reason (``why``) in a sentence or two."""

    recipe: str
    settings: Mapping[str, Any]
    why: str


RULE = (
    f"takes {DECIDED[0]} for a graph that is sparse (fewer than {SPARSE:g} facts an entity) and hierarchical (at least "
    f"{HIERARCHICAL:.0%} of the facts are in chains of one relation), and {DECIDED[1]} for any other. Batches are "
    f"smaller where an epoch would have fewer than {STEPS} steps."
)


def decide(graph: Shape) -> Choice:
    """The recipe for a graph (see ``RULE``): density and hierarchy decide the recipe, size decides the batches.

    A sparse hierarchy needs distances with curvature, rotations and hard negatives. Other graphs need a matrix for each
    relation and every entity as a candidate.
    """
    sparse, hierarchical = graph.density < SPARSE, graph.chained >= HIERARCHICAL
    recipe = DECIDED[0] if sparse and hierarchical else DECIDED[1]
    counts = f"{graph.density:.1f} facts an entity, {graph.chained:.0%} of them in chains of one relation"
    kind = f"{'sparse' if sparse else 'dense'} and {'hierarchical' if hierarchical else 'not hierarchical'}"
    why = f"recipe {recipe}, since the graph is {kind} ({counts})."
    usual = RECIPES[recipe].settings["batch_size"]
    size = max(LEAST_BATCH, min(usual, 2 * graph.facts // STEPS))
    if size == usual:
        return Choice(recipe, {}, why)
    few = f" Batches of {size} instead of {usual}, since it has only {graph.facts:,} facts."
    return Choice(recipe, {"batch_size": size}, why + few)


def results(name: str) -> tuple[Result, ...]:
    """The stored results of a recipe."""
    text = (importlib.resources.files("murp") / RESULTS).read_text(encoding="utf-8")
    return tuple(Result(**{**found, "files": tuple(found["files"])}) for found in json.loads(text).get(name, []))


def checked_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as :func:`completed` makes them, checked before a graph is read.

    With the recipe auto they stay as they are; at least one of the recipes that it may choose must take them.
    """
    if given.get("recipe") != AUTO:
        return Config(**completed(given)).to_dict()
    refused = []
    for recipe in DECIDED:
        try:
            Config(**completed({**given, "recipe": recipe}))
        except ConfigError as error:
            refused.append(error)
    if len(refused) == len(DECIDED):
        raise refused[0]
    return dict(given)


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings completed with those of their recipe, and with the usual ones of their model and their objective.

    Of several values of a setting the first counts: what is given, then the recipe's, the model's, the objective's.
    A setting that none of them names has the default of its part. A learning rate does not count beside another
    optimizer than the one it was chosen for, nor, if that is SGD, beside another objective.

    ``recipe`` itself is not a setting of a run; the settings that it stands for are.
    """
    return {name: value for name, (value, _) in with_origins(values).items()}


def with_origins(values: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """What :func:`completed` makes, each value with where it comes from: the objective, the model, the recipe, or
    nothing if it was given."""
    given = dict(values)
    recipe = given.pop("recipe", None)
    named: Mapping[str, Any] = {}
    if recipe is not None:
        if recipe == AUTO:
            raise ConfigError(f"recipe {AUTO} decides by a graph: it is for `murp train` and murp.train.")
        if recipe not in RECIPES:
            close = difflib.get_close_matches(str(recipe), [*RECIPES, AUTO], n=1)
            hint = f"Did you mean {close[0]}?" if close else f"Choose one of {', '.join([*RECIPES, AUTO])}."
            raise ConfigError(f"recipe {recipe!r} is not known. {hint}", "recipe")
        named = RECIPES[recipe].settings
        if given.get("model", named["model"]) != named["model"]:
            named = {name: value for name, value in named.items() if name in _of_no_model(named, given)}
    model = given.get("model", named.get("model", Config.model))
    of_model = _usual("model", model)
    objective = {**of_model, **named, **given}.get("objective", Config.objective)
    of_objective = _usual("objective", objective)
    layers = [(objective, of_objective), (model, of_model), (f"recipe {recipe}", named), ("", given)]
    found = {name: (value, origin) for origin, layer in layers for name, value in layer.items()}
    whole = {name: value for name, (value, _) in found.items()}
    if "lr" in whole and "lr" not in given:
        del found["lr"], whole["lr"]
        for origin, layer in [(objective, {**of_objective, "objective": objective}), *layers[1:]]:
            if "lr" in layer and _rate_suits(layer, whole):
                found["lr"] = layer["lr"], origin
    taken = {*given, *(_fitting(whole) if len(found) > len(given) else ())}
    _refuse_unknown_in("model", model, of_model.keys() - taken)
    _refuse_unknown_in("objective", objective, of_objective.keys() - taken)
    return {name: one for name, one in found.items() if name in taken}


def _usual(kind: str, name: Any) -> Mapping[str, Any]:
    """The usual settings of a run with a model or an objective."""
    return registry.find(kind, name).usual if isinstance(name, str) else {}


def _rate_suits(layer: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Whether the learning rate of a recipe, a model or an objective suits the parts of the run."""
    optimizer = layer.get("optimizer", Config.optimizer)
    if whole.get("optimizer", Config.optimizer) != optimizer:
        return False
    same = layer.get("objective", Config.objective) == whole.get("objective", Config.objective)
    return same or not registry.find("optimizer", optimizer).rate_by_loss


def _refuse_unknown_in(kind: str, name: str, settings: Iterable[str]) -> None:
    """Raise if ``usual`` of a model or an objective has ``settings`` that no part has."""
    if not settings:
        return
    known = {*known_settings({**_usual(kind, name), kind: name}), *registry.all_settings()}
    for one in sorted(set(settings) - known):
        close = difflib.get_close_matches(one, known, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "Name settings of a run, or of its parts, there."
        raise ConfigError(f"{kind} {name} has {one!r} in usual, which is not a setting. {hint}", kind)


def _of_no_model(named: Mapping[str, Any], given: Mapping[str, Any]) -> set[str]:
    """The settings of a recipe for another model, without those that only that model has."""
    model = registry.find("model", named["model"])
    of_all = next(base for base in reversed(model.__mro__) if issubclass(base, Part) and base is not Part)
    own = set(model.settings) - set(of_all.settings)
    return set(named) - own - {"model"}


def _fitting(whole: Mapping[str, Any]) -> set[str]:
    """The settings that the chosen parts have: a recipe or a model may have others, where the user has chosen another
    optimizer."""
    left_out = set(registry.KINDS) - set(parts_of(whole))  # negatives, if the objective draws none
    return set(known_settings(whole)) - left_out
