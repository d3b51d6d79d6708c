"""The battery finds what is wrong with a model, names the check, and says what happened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from murp import registry
from murp.errors import ConfigError
from murp.models.distmult import DistMult
from murp.models.model import Candidate, Model, Numbers, Query, Rows, Table
from murp.testing import ChecksFailed, check_model
from small_models import TwoVectors


class TwoOfOneName(DistMult):
    def declare(self) -> tuple[Table, ...]:
        return (*super().declare(), Table("entity", "entity", (self.dim,)))


class WideQuery(DistMult):
    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((super().query(subject, relation, shared).vectors[0][:, None],))


class OtherLinear(DistMult):
    def linear(self, query: Query, candidate: Candidate) -> Any:
        q, v, a, c = super().linear(query, candidate)
        return 2 * q, v, a, c


class OtherConverse(DistMult):
    def converse(self, objects: Rows, relation: Rows) -> Tensor:
        return objects["entity"] + relation["relation"]


class SumsOverTheQueries(DistMult):
    """A score that depends on the other queries of its batch."""

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        (q,) = super().query(subject, relation, shared).vectors
        return Query((q + 0.001 * q.mean(0),))


class LooksAtPlaces(DistMult):
    """A score that depends on where an entity stands."""

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        scores = super().ending(products, query, candidate)
        return scores + 0.001 * torch.arange(scores.shape[1], dtype=scores.dtype)


class Rounds(DistMult):
    """In float32 another score than in float64."""

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        (q,) = super().query(subject, relation, shared).vectors
        return Query((q if q.dtype == torch.float64 else q.bfloat16().to(q.dtype),))


class CutGradient(DistMult):
    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        s, r = subject["entity"], relation["relation"]
        return Query((s * r + s.detach() * r,))


class CutAmongShared(DistMult):
    """A gradient that is wrong only where all queries have the same candidates."""

    def meet(self, query: Query, candidate: Candidate) -> Tensor:
        scores = super().meet(query, candidate)
        return scores if candidate.vectors[0].dim() == 3 else (scores + scores.detach()) / 2


class InfiniteSlope(DistMult):
    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["entity"].square().sum(-1, keepdim=True).sqrt() * relation["relation"],))


class UnreadTable(DistMult):
    def declare(self) -> tuple[Table, ...]:
        return (*super().declare(), Table("unread", "relation", (3,)))


class BranchesOnValues(DistMult):
    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        if subject["entity"].sum() > math.inf:
            raise AssertionError
        return super().query(subject, relation, shared)


class GlobalSeed(DistMult):
    def initialise(self, seed: int, scale: float | None = None) -> Any:
        model = super().initialise(seed, scale)
        self.parameters["relation"] = torch.rand_like(self.parameters["relation"])
        return model


class Deaf(DistMult):
    """No gradient worth the name reaches it."""

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((1e-9 * super().query(subject, relation, shared).vectors[0],))


class TwoVectorsByAdagrad(TwoVectors):
    """At its small initial values all gradients are nearly 0, so SGD takes long."""

    usual: ClassVar[Mapping[str, Any]] = {"optimizer": "adagrad", "lr": 0.1}


class TwoVectorsByAdam(TwoVectors):
    usual: ClassVar[Mapping[str, Any]] = {"optimizer": "adam"}


class MisspeltUsual(DistMult):
    usual: ClassVar[Mapping[str, Any]] = {"objektive": "bernoulli"}


class NoQuery(DistMult):
    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Any:
        return super().query(subject, relation, shared).vectors[0]


class BareVector(DistMult):
    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query(super().query(subject, relation, shared).vectors[0])  # type: ignore[arg-type]


class Remembers(DistMult):
    """State that no table holds, and no checkpoint."""

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        self.asked = getattr(self, "asked", 0) + int(self.training)
        (q,) = super().query(subject, relation, shared).vectors
        return Query((q * (1 + 0.01 * self.asked if self.training else 1),))


@pytest.mark.parametrize(
    ("broken", "check", "words"),
    [
        (TwoOfOneName, "shapes", "two tables have one name"),
        (WideQuery, "shapes", r"query: a vector has the shape \(5, 1, 8\)"),
        (NoQuery, "shapes", "query returns a Tensor, not a Query"),
        (BareVector, "shapes", r"query: its vectors are no tuple; one is \(x,\), with a comma"),
        (OtherLinear, "one score by every path", "linear and score_objects differ"),
        (OtherConverse, "one score by every path", "converse"),
        (SumsOverTheQueries, "equal entities tie", "a query has other scores alone than among others"),
        (LooksAtPlaces, "equal entities tie", "equal entities have other scores at other places"),
        (LooksAtPlaces, "entities have no order", "scores of renumbered entities differ"),
        (Rounds, "precisions agree", "float32 and float64 scores differ"),
        (CutGradient, "gradients", "the gradient of entity says a slope of"),
        (CutAmongShared, "gradients", "the gradient of entity with candidates that all queries share says a slope of"),
        (InfiniteSlope, "gradients", "the gradient of entity is not finite at entities at 0"),
        (UnreadTable, "gradients", "no score depends on unread"),
        (BranchesOnValues, "no look at values", "meta"),
        (GlobalSeed, "seeds", "the same seed gives other values of relation"),
        (
            Deaf,
            "training lowers the loss",
            "the loss fell by less than 2%, or not at all. Name an lr or an optimizer in usual .*"
            r"Tried: bernoulli, sgd, lr 1, 15 epochs: .*; one-vs-all, adagrad, lr 0\.1, 100 epochs: ",
        ),
        (
            TwoVectors,
            "training lowers the loss",
            r"less than 2%.* Tried: bernoulli, sgd, lr 1, 15 epochs: 0\.6931 to 0\.6931; .*; bernoulli, sgd, lr 50",
        ),
        (Remembers, "resuming and repeating", r"2 \+ 2 epochs and 4 epochs differ in"),
    ],
)
def test_a_fault_is_found_and_named(
    broken: type[DistMult], check: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"check_{check.replace(' ', '_')}"
    monkeypatch.setattr("murp.testing.CHECKS", (getattr(__import__("murp.testing").testing, name),))
    with pytest.raises(ChecksFailed, match=rf"{broken.__name__} fails 1 of 1 checks:\n- {check}: .*{words}"):
        check_model(broken)


def test_all_faults_are_told_together() -> None:
    with pytest.raises(ChecksFailed) as told:
        check_model(LooksAtPlaces)
    head, *found = str(told.value).splitlines()
    assert head.endswith(f"LooksAtPlaces fails {len(found)} of 11 checks:")
    names = [line.partition(":")[0] for line in found]
    assert names[:3] == ["- one score by every path", "- equal entities tie", "- entities have no order"]


def test_settings_reach_the_model_and_its_runs() -> None:
    assert "resuming and repeating" in check_model("transe", norm=2, dim=5, negatives=3)
    with pytest.raises(ConfigError, match="norm must be at most 2"):
        check_model("transe", norm=3)


@pytest.mark.parametrize("model", [TwoVectorsByAdagrad, TwoVectorsByAdam])
def test_a_model_that_sgd_hardly_moves_is_trained_with_its_usual_settings(model: type[Model]) -> None:
    assert "training lowers the loss" in check_model(model)


@pytest.mark.parametrize("objective", registry.OBJECTIVES)
@pytest.mark.parametrize("model", ["complex", "mure"])
def test_a_model_passes_with_every_objective(model: str, objective: str) -> None:
    assert "resuming and repeating" in check_model(model, objective=objective)


@pytest.mark.parametrize("optimizer", registry.OPTIMIZERS)
def test_a_model_passes_with_every_optimizer(optimizer: str) -> None:
    assert "resuming and repeating" in check_model("mure", optimizer=optimizer)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="negatives is a setting of objectives that draw false triples"):
        check_model("complex", objective="k-vs-all", negatives=5)


def test_a_misspelt_name_in_usual_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"MisspeltUsual has 'objektive' in usual.* Did you mean 'objective'\?"):
        check_model(MisspeltUsual)


def test_a_class_that_no_run_could_find_is_refused() -> None:
    class Hidden(DistMult):
        pass

    with pytest.raises(ConfigError, match="stands in a function: define the class in a module"):
        check_model(Hidden)
