"""What is searched comes from the settings' declarations; a space that contradicts itself is refused with the names."""

from __future__ import annotations

from typing import Any

import pytest

from murp import registry
from murp.config import Config, known_settings
from murp.errors import ConfigError
from murp.recipes import completed
from murp.settings import Span
from murp.tuning.space import Space, given, read


def test_a_space_is_written_as_one_would_guess() -> None:
    words = ["lr=1..50", "negatives=10,50", "model=murp, mure", "query-dropout=0..0.5"]
    assert read(words) == {
        "lr": Span(1, 50),
        "negatives": ("10", "50"),
        "model": ("murp", "mure"),
        "query_dropout": Span(0, 0.5),
    }
    assert given({"lr": "1..50", "model": ["murp", "mure"], "dim": Span(2, 8)}) == {
        "lr": Span(1, 50),
        "model": ("murp", "mure"),
        "dim": Span(2, 8),
    }


def test_settings_declare_what_is_searched() -> None:
    spans = Space.of({}, {}).spans({})
    assert set(spans) == {"lr", "negatives", "batch_size"}
    assert {name: called for name, (called, _, _) in spans.items()} == {name: name for name in spans}
    assert set(Space.of({"lr": 10.0}, {}).spans({})) == {"negatives", "batch_size"}, "what has a value is not searched"
    adam = Space.of({"optimizer": "adam", "regularizer": "l2"}, {}).spans({})
    assert adam["lr"][2] == registry.find("optimizer", "adam").settings["lr"].search
    assert "regularizer_weight" in adam


@pytest.mark.parametrize("kind", [kind for kind in registry.KINDS if kind != "model"])
def test_the_default_of_every_part_is_within_what_is_searched(kind: str) -> None:
    for part in (registry.find(kind, name) for name in registry.KINDS[kind]):
        for name, one in part.settings.items():
            if isinstance(one.search, Span):
                assert one.search.low <= one.default <= one.search.high, (part, name)
                assert one.checked(one.kind(one.search.low)) < one.checked(one.kind(one.search.high)), (part, name)


@pytest.mark.parametrize("model", registry.MODELS)
def test_the_defaults_of_every_model_are_within_and_its_ends_are_legal(model: str) -> None:
    if model in ("poincare", "lorentz"):
        pytest.skip("models of one hierarchy are trained by murp embed")
    space = Space.of({"model": model}, {})
    usual = Config(**completed({"model": model})).to_dict()
    first = space.first()
    assert first == {name: usual[name] for name in space.spans({})}
    for name, (_, one, search) in space.spans({}).items():
        assert isinstance(search, Span)
        assert search.low <= usual[name] <= search.high
        assert one.checked(one.kind(search.low)) < one.checked(one.kind(search.high))


def test_a_part_that_is_searched_brings_its_settings() -> None:
    space = Space.of({"negatives": 5}, read(["optimizer=sgd,adam", "dim=2,4"]))

    def suggest(called: str, one: Any, search: Any) -> Any:
        asked.append(called)
        return chosen.get(called, search.low if isinstance(search, Span) else search[0])

    for optimizer, lr in (("sgd", 1.0), ("adam", 1e-4)):
        asked: list[str] = []
        chosen = {"optimizer": optimizer}
        found = space.settings(suggest)
        assert asked == ["optimizer", "batch_size", "dim", f"lr ({optimizer})"]
        assert found == {"negatives": 5, "optimizer": optimizer, "batch_size": 64, "dim": 2, "lr": lr}
        assert set(found) <= set(known_settings(found))
    assert space.first() == {"optimizer": "sgd", "batch_size": 128, "dim": 2, "lr (sgd)": 50.0}


def test_what_a_part_does_not_know_it_is_not_given() -> None:
    space = Space.of({"negatives": 5}, read(["objective=bernoulli,k-vs-all", "model=distmult"]))
    for objective, negatives in (("bernoulli", 5), ("k-vs-all", None)):
        chosen: dict[str, Any] = {"objective": objective}
        found = space.settings(lambda called, one, search: chosen.get(called, getattr(search, "low", "distmult")))  # noqa: B023
        assert found.get("negatives") == negatives
        Config(**completed(found))


def test_the_first_trial_is_as_near_to_the_defaults_as_can_be() -> None:
    assert Space.of({}, read(["lr=1..20", "negatives=10,20", "model=mure,murp"])).first() == {
        "model": "murp",
        "batch_size": 128,
        "lr": 20.0,
        "negatives": 10,
    }


CONTRADICTIONS: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "searched and given": ({"lr": 5.0}, ["lr=1..50"], r"lr: both searched and given a value \(lr=5.0\)"),
    "of no part": ({}, ["temperature=0.1..1"], "unknown setting 'temperature'"),
    "misspelt": ({}, ["negativs=1..5"], "unknown setting 'negativs'. Did you mean 'negatives'"),
    "backwards": ({}, ["lr=50..1"], "lr goes from 50 to 1: the smaller number must be first"),
    "out of bounds": ({}, ["lr=-1..5"], "lr must be above 0"),
    "without an end": ({}, ["negatives=1..inf"], "negatives is a whole number, not inf"),
    "half a number": ({}, ["negatives=1.5..5"], "negatives is a whole number, not 1.5"),
    "half a span": ({}, ["lr=1..b"], r"--space 'lr=1..b': write two numbers with \.\. between them, as in lr=1\.\.50"),
    "no number": ({}, ["lr=a,b"], "lr must be a number, not 'a'"),
    "no choice": ({}, ["bias=all,none"], "bias must be one of both, head"),
    "a range of texts": ({}, ["bias=1..2"], "bias is no number"),
    "a range of models": ({}, ["model=1..2"], "model is chosen by name"),
    "an unknown model": ({}, ["model=murp,murk"], "model 'murk' is not known"),
    "twice": ({}, ["negatives=5,5"], "negatives names a value twice"),
    "luck": ({}, ["seed=0,1,2"], "seed is not searched: a seed that does better does so by luck"),
    "another graph": ({}, ["data=a,b"], "data is not searched"),
    "where it trains": ({}, ["device=cpu,cuda"], "device is not searched: it does not change what is learned"),
    "validations among candidates": ({"validate_candidates": 9}, [], "trials are judged by protocol standard"),
    "an easier protocol": ({}, ["validate_candidates=9,99"], "validate_candidates is not searched"),
    "no validations": ({"validate_every": 0}, [], "validate_every is 0"),
    "parts that do not go together": (
        {},
        ["model=rescal,murp", "regularizer=none,dura"],
        r"contradicts itself: these settings cannot be combined: model=murp, regularizer=dura.*: regularizer dura",
    ),
    "an engine that does not know a model": (
        {"engine": "numba"},
        ["model=rescal,murp"],
        r"these settings cannot be combined: model=rescal.*: engine numba knows MuRP and MuRE, no other model",
    ),
    "nothing to search": ({"lr": 1.0, "negatives": 5, "batch_size": 64}, [], "nothing is left to search"),
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_a_contradiction_is_named(kind: str) -> None:
    fixed, words, told = CONTRADICTIONS[kind]
    with pytest.raises(ConfigError, match=told):
        Space.of(fixed, read(words))


@pytest.mark.parametrize("word", ["lr", "lr=", "=1..5", "lr=1..x"])
def test_what_is_no_space_is_told_how_to_write_one(word: str) -> None:
    with pytest.raises(ConfigError, match="--space"):
        read([word])
    with pytest.raises(ConfigError, match="--space names lr twice"):
        read(["lr=1..2", "lr=3,4"])
    with pytest.raises(ConfigError, match="give a list of values"):
        given({"lr": 5.0})
