"""Checks that every model must pass, ours and yours.

    from murp.testing import check_model

    def test_my_model() -> None:
        check_model("my_package.my_module:MyModel", dim=8)

It takes a few seconds. All checks run; if some fail, :class:`ChecksFailed` says which, what happened and what was
expected.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import registry
from murp.config import Config, known_settings
from murp.errors import ConfigError, NotFiniteError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import Model
from murp.models.model import Query, Rows
from murp.recipes import completed
from murp.runs import Run, load
from murp.training import resume, train
from murp.training.progress import Silent

ENTITIES, RELATIONS, QUERIES, CANDIDATES = 70, 6, 5, 4
# A run of seconds, in which a bug shows as well as in one of hours.
RUN: dict[str, Any] = {
    "objective": "bernoulli",
    "corruption": "uniform",
    "optimizer": "sgd",
    "regularizer": "none",
    "negatives": 5,
    "batch_size": 16,
    "lr": 1.0,
    "lr_schedule": "constant",
    "validate_every": 0,
    "device": "cpu",
    "engine": "torch",
}
RATES = (1.0, 10.0, 0.1)  # of SGD: one of them suits most models
# What stays of it where a model's own settings are tried.
QUICK = {name: RUN[name] for name in ("batch_size", "validate_every", "device", "engine")}
LEAST_FALL = 0.02  # the share of a loss by which training must lower it


class ChecksFailed(AssertionError):
    """The checks that a model fails."""


def check_model(model: str | type[Model], **settings: Any) -> list[str]:
    """Run every check on a model, given by its name, as ``package.module:Class``, or as a class.

    ``settings`` are settings of the model (``dim=8`` by default, ``norm=2``, …) or of the runs that the checks train
    (``objective="k-vs-all"``, ``lr=0.1``, …). If SGD trains a model too slowly, its ``usual`` settings are tried too.
    Returns the names of the checks; raises :class:`ChecksFailed`.
    """
    checks = {check.__name__.removeprefix("check_").replace("_", " "): check for check in CHECKS}
    failed = []
    with tempfile.TemporaryDirectory(prefix="murp-check-") as folder:
        subject = Subject(model, settings, Path(folder))
        for name, check in checks.items():
            try:
                check(subject)
            except Exception as error:  # whatever a model raises is a finding
                what = str(error) if isinstance(error, ChecksFailed) else f"{type(error).__name__}: {error}"
                failed.append(f"- {name}: {what}")
    if failed:
        raise ChecksFailed("\n".join([f"{subject.name} fails {len(failed)} of {len(checks)} checks:", *failed]))
    return list(checks)


class Subject:
    """A model to be checked, with values and runs that several checks share."""

    def __init__(self, model: str | type[Model], settings: dict[str, Any], folder: Path) -> None:
        self.folder = folder
        self.name = model if isinstance(model, str) else f"{model.__module__}:{model.__qualname__}"
        if "<locals>" in self.name:
            raise ConfigError(f"{self.name} stands in a function: define the class in a module, so that runs find it.")
        self.build: type[Model] = registry.find("model", self.name)
        self.settings = {"dim": 8, **settings}
        Config(**completed(self.run_settings()))  # wrong settings are no fault of the model
        self.own = {name: value for name, value in self.settings.items() if name in self.build.settings}
        draw = torch.Generator().manual_seed(2)
        self.subjects = torch.randint(ENTITIES, (QUERIES,), generator=draw)
        self.relations = torch.randint(RELATIONS, (QUERIES,), generator=draw)
        self.objects = torch.randint(ENTITIES, (QUERIES, CANDIDATES), generator=draw)
        self.objects[0] = self.subjects[0]  # a subject may be its own object

    def new(self, dtype: torch.dtype = torch.float64, seed: int = 0) -> Model:
        """With initial values."""
        return self.build(ENTITIES, RELATIONS, dtype=dtype, **self.own).initialise(seed)

    def scattered(self, dtype: torch.dtype = torch.float64) -> Model:
        """Far from its initial values: points all over their spaces. Tables that are not trained stay as they are."""
        model = self.new(dtype)
        draw = torch.Generator().manual_seed(1)
        for table in model.tables:
            if table.trained:
                size = (model.rows_of(table), *table.shape)
                values = table.geometry.random(draw, size, 0.5 / (table.shape or (1,))[-1] ** 0.5, torch.float64)
                model.parameters[table.name] = values.to(dtype)
        return model

    def rows(self, model: Model) -> tuple[Rows, Rows, Rows]:
        """Of the queries' subjects and relations, and of K candidates each."""
        asked = model.rows("subject", self.subjects), model.rows("relation", self.relations)
        return *asked, model.rows("object", self.objects)

    def run_settings(self, base: Mapping[str, Any] = RUN, **changes: Any) -> dict[str, Any]:
        """What is given for a run, and of ``base`` what goes with it: settings of the parts that are chosen."""
        given = {**self.settings, **changes, "model": self.name}
        known = set(known_settings(completed({**base, **given})))
        if "optimizer" in given and given["optimizer"] != base.get("optimizer"):
            known -= {"lr"}  # that of base is for another one
        return {**{name: value for name, value in base.items() if name in known}, **given}

    def train(self, name: str, base: Mapping[str, Any] = RUN, **changes: Any) -> Run:
        """A short run on a small tree, in a folder of that name."""
        settings = self.run_settings(base, **changes)
        return train(tree(3), out=self.folder / name, progress=Silent(), **settings)

    @cached_property
    def run(self) -> Run:
        """Four epochs."""
        return self.train("run", epochs=4)


def check_shapes(subject: Subject) -> None:
    """Tables have the rows they are declared with, queries a vector and candidates a point for each product."""
    model = subject.new()
    names = [table.name for table in model.tables]
    expect(len(set(names)) == len(names), f"two tables have one name: {names}")
    expect("entity" in names, "no table is called 'entity', whose rows are the candidates' points")
    for table in model.tables:
        found, expected = tuple(model.parameters[table.name].shape), (model.rows_of(table), *table.shape)
        expect(found == expected, f"table {table.name} has the shape {found}, not {expected}")
    expect(not model.broken(), f"initial values are no points of their space: {model.broken()}")
    s, r, o = subject.rows(model)
    query = model.query(s, r, model.rows("shared"))
    expect(isinstance(query, Query), f"query returns a {type(query).__name__}, not a Query")
    expect(isinstance(query.vectors, tuple), "query: its vectors are no tuple; one is (x,), with a comma")
    for vector in query.vectors:
        expect(vector.dim() == 2 and len(vector) == QUERIES, f"query: a vector has the shape {tuple(vector.shape)}")
    for name, number in query.numbers.items():
        expect(tuple(number.shape) == (QUERIES,), f"query: number {name} has the shape {tuple(number.shape)}")
    for rows, where in ((o, (QUERIES, CANDIDATES)), (model.rows("object"), (ENTITIES,))):
        candidate = model.candidate(rows, model.rows("shared"))
        for tensor in (*(v[..., 0] for v in candidate.vectors), *candidate.numbers.values()):
            expect(tuple(tensor.shape) == where, f"candidate: {tuple(tensor.shape)} for candidates {where}")
        expected = (QUERIES, where[-1])
        found = tuple(model.meet(query, candidate).shape)
        expect(found == expected, f"scores of candidates {where} have the shape {found}, not {expected}")


@torch.no_grad()
def check_one_score_by_every_path(subject: Subject) -> None:
    """A triple has the same score alone, among candidates of its query, and among all entities."""
    model = subject.scattered()
    s, r, o = subject.rows(model)
    every = model.score_objects(subject.subjects, subject.relations)
    expected = every.gather(1, subject.objects)
    near("score_rows with (B, K) candidates and score_objects", model.score_rows(s, r, o), expected)
    near("score_rows with (N) candidates and score_objects", model.score_rows(s, r, model.rows("object")), every)
    alone = model.score(subject.subjects, subject.relations, subject.objects[:, 1])
    near("score and score_objects", alone, expected[:, 1])
    shared = model.rows("shared")
    query, everything = model.query(s, r, shared), model.candidate(model.rows("object"), shared)
    form = model.linear(query, everything)
    if form is not None:
        q, v, a, c = form
        found = q @ v.T
        found = found if a is None else found + a[:, None]
        near("linear and score_objects", found if c is None else found + c, every)
    if type(model).converse is not Model.converse:
        true = {name: values[:, 1] for name, values in o.items()}
        one = (s["entity"] * model.converse(true, r)).sum(-1)
        near("⟨s, converse⟩ and ⟨query, object⟩", one, (query.vectors[0] * true["entity"]).sum(-1))


@torch.no_grad()
def check_equal_entities_tie(subject: Subject) -> None:
    """Equal rows have equal scores, bit for bit, at every place and in every batch."""
    model = subject.scattered(torch.float32)
    places = [0, 1, ENTITIES // 2, ENTITIES - 2, ENTITIES - 1]
    for values in model.rows("object").values():
        values[places] = values[places[0]].clone()
    scores = model.score_objects(subject.subjects, subject.relations)
    expect(bool((scores[:, places] == scores[:, :1]).all()), "equal entities have other scores at other places")
    alone = torch.cat(
        [model.score_objects(subject.subjects[i : i + 1], subject.relations[i : i + 1]) for i in range(QUERIES)]
    )
    expect(torch.equal(alone, scores), "a query has other scores alone than among others")


@torch.no_grad()
def check_entities_have_no_order(subject: Subject) -> None:
    """The numbering of the entities does not change their scores."""
    model = subject.scattered()
    before = model.score_objects(subject.subjects, subject.relations)
    order = torch.randperm(ENTITIES, generator=torch.Generator().manual_seed(3))
    for table in model.tables:
        if table.of == "entity":
            model.parameters[table.name] = model.parameters[table.name][order]
    place = torch.empty_like(order)
    place[order] = torch.arange(ENTITIES)
    near(
        "scores of renumbered entities",
        model.score_objects(place[subject.subjects], subject.relations),
        before[:, order],
    )


@torch.no_grad()
def check_precisions_agree(subject: Subject) -> None:
    """float32 and float64 give the same scores up to rounding."""
    exact, model = subject.scattered(), subject.scattered(torch.float32)
    asked = subject.subjects, subject.relations
    found = model.score_objects(*asked)
    expect(found.dtype == torch.float32, f"scores of a float32 model are {found.dtype}")
    near("float32 and float64 scores", found.double(), exact.score_objects(*asked), 1e-4)


def check_gradients(subject: Subject) -> None:
    """Gradients are finite, also at the initial values and if points coincide, and match finite differences of the
    score, with candidates of each query and with those that all share."""
    for what, model in (("initial values", subject.new()), ("entities at 0", _at_zero(subject.new()))):
        for name, gradient in _gradients(subject, model)[1].items():
            expect(bool(gradient.isfinite().all()), f"the gradient of {name} is not finite at {what}")
    model = subject.scattered()
    _check_differences(subject, model)
    _check_differences(subject, model, together=True)


def _check_differences(subject: Subject, model: Model, together: bool = False) -> None:
    """Compare gradients with finite differences; ``together``: all queries have the same candidates."""
    draw = torch.Generator().manual_seed(4)
    where = " with candidates that all queries share" if together else ""
    for name, gradient in _gradients(subject, model, together)[1].items():
        start = model.parameters[name].clone()
        way = torch.randn(start.shape, dtype=start.dtype, generator=draw)
        step = 1e-6
        values = []
        for sign in (1, -1):
            model.parameters[name] = start + sign * step * way
            values.append(float(_gradients(subject, model, together)[0]))
        model.parameters[name] = start
        slope, told = (values[0] - values[1]) / (2 * step), float((gradient * way).sum())
        expect(
            abs(slope - told) <= 1e-5 * (abs(slope) + abs(told) + 1),
            f"the gradient of {name}{where} says a slope of {told:.8g}, differences say {slope:.8g}",
        )


def _at_zero(model: Model) -> Model:
    values = model.parameters["entity"]
    geometry = model.geometry
    model.parameters["entity"] = geometry.origin(values.shape[-1], values.dtype).expand_as(values).clone()
    return model


def _gradients(subject: Subject, model: Model, together: bool = False) -> tuple[Tensor, dict[str, Tensor]]:
    """A weighted sum of the scores and its gradient by every table that is trained.

    ``together``: of all queries with the candidates of the first one.
    """
    before = model.parameters
    leaves = {t.name: before[t.name].detach().requires_grad_() for t in model.tables if t.trained}
    model.parameters = {**before, **leaves}
    s, r, o = subject.rows(model)
    scores = model.score_rows(s, r, {name: rows[0] for name, rows in o.items()} if together else o)
    weights = torch.linspace(-1, 1.5, scores.numel(), dtype=scores.dtype).view_as(scores)
    total = (weights * scores).sum()
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    model.parameters = before
    unread = [name for name, gradient in zip(leaves, found, strict=True) if gradient is None]
    expect(not unread, f"no score depends on {', '.join(unread)}")
    return total.detach(), dict(zip(leaves, (g for g in found if g is not None), strict=True))


def check_no_look_at_values(subject: Subject) -> None:
    """No branch, shape or Python number depends on a tensor's value: otherwise steps cannot be compiled or captured.

    Tested with tensors without values.
    """
    model = subject.new().to("meta")
    places = subject.subjects.to("meta"), subject.relations.to("meta"), subject.objects.to("meta")
    for training in (False, True):
        model.training = training
        s, r, o = (
            {name: values.requires_grad_() for name, values in rows.items()}
            for rows in (
                model.rows("subject", places[0]),
                model.rows("relation", places[1]),
                model.rows("object", places[2]),
            )
        )
        scores = model.score_rows(s, r, o)
        expect(tuple(scores.shape) == (QUERIES, CANDIDATES), f"scores have the shape {tuple(scores.shape)}")


def check_seeds(subject: Subject) -> None:
    """The same seed gives the same model, another seed another one, for any state of PyTorch's own generator."""
    first = subject.new(seed=0).parameters
    torch.rand(1)
    again, other = subject.new(seed=0).parameters, subject.new(seed=1).parameters
    changed = [name for name in first if not torch.equal(first[name], again[name])]
    expect(not changed, f"the same seed gives other values of {', '.join(changed)}")
    expect(any(not torch.equal(first[name], other[name]) for name in first), "another seed gives the same values")


def check_training_lowers_the_loss(subject: Subject) -> None:
    """Training lowers the loss on a small tree: with one of several learning rates of SGD, or with the model's usual
    settings; with the learning rate or the optimizer that is given, if one is."""
    given = "lr" in subject.settings or subject.settings.get("optimizer", RUN["optimizer"]) != RUN["optimizer"]
    attempts: list[dict[str, Any]] = [] if given else [{"base": RUN, "epochs": 15, "lr": rate} for rate in RATES]
    seen = []
    for number, attempt in enumerate([*attempts, {"base": RUN if given else QUICK, "epochs": 100}]):
        config = Config(**completed(subject.run_settings(**attempt)))
        what = f"{config.objective}, {config.optimizer}, lr {config.lr:g}, {config.epochs} epochs"
        try:
            first, *_, last = _losses(subject.train(f"attempt-{number}", **attempt))
        except NotFiniteError as error:  # too high a rate may diverge
            seen.append(f"{what}: {str(error).removesuffix('.')}")
            continue
        if last < (1 - LEAST_FALL) * first:
            return
        seen.append(f"{what}: {first:.4f} to {last:.4f}")
    what_to_do = "Give others" if given else "Name an lr or an optimizer in usual of the model"
    raise ChecksFailed(
        f"the loss fell by less than {LEAST_FALL:.0%}, or not at all. {what_to_do} with which it falls by more. "
        f"Tried: {'; '.join(seen)}."
    )


def _losses(run: Run) -> list[float]:
    return [record["loss"] for record in run.metrics()]


def check_saving_and_loading(subject: Subject) -> None:
    """A run that is opened again gives the same ranks."""
    again = load(subject.run.path, device="cpu")
    _same("a run opened again", again, subject.run)
    found, expected = again.evaluate("test").to_dict(), subject.run.evaluate("test").to_dict()
    expect(found == expected, f"a run opened again is evaluated as {found}, not {expected}")


def check_resuming_and_repeating(subject: Subject) -> None:
    """Two epochs, resumed for two more, equal four epochs, bit for bit; another seed gives another run."""
    begun, other = subject.train("begun", epochs=2), subject.train("other", epochs=2, seed=1)
    expect(bool(_changed(begun, other)), "another seed gave the same tables")
    found, expected = _losses(begun), _losses(subject.run)[:2]
    expect(found == expected, f"the same settings gave other losses: {found} and {expected}")
    _same("2 + 2 epochs and 4 epochs", resume(begun.path, epochs=4, progress=Silent()), subject.run)


def _same(what: str, run: Run, expected: Run) -> None:
    """Raise if the tables of two runs differ in any bit."""
    found, wanted = run.model.parameters, expected.model.parameters
    expect(found.keys() == wanted.keys(), f"{what}: tables {', '.join(found)} and {', '.join(wanted)}")
    changed = _changed(run, expected)
    expect(not changed, f"{what} differ in {', '.join(changed)}")


def _changed(run: Run, other: Run) -> list[str]:
    """The tables in which two runs of a model differ."""
    found, wanted = run.model.parameters, other.model.parameters
    return [name for name in found if not torch.equal(found[name], wanted[name])]


CHECKS: tuple[Callable[[Subject], None], ...] = (
    check_shapes,
    check_one_score_by_every_path,
    check_equal_entities_tie,
    check_entities_have_no_order,
    check_precisions_agree,
    check_gradients,
    check_no_look_at_values,
    check_seeds,
    check_training_lowers_the_loss,
    check_saving_and_loading,
    check_resuming_and_repeating,
)


def expect(holds: bool, otherwise: str) -> None:
    """Raise with a text if a condition does not hold."""
    if not holds:
        raise ChecksFailed(otherwise)


def near(what: str, found: Tensor, expected: Tensor, tolerance: float = 1e-9) -> None:
    """Raise if two tensors differ by more than a share of the largest number."""
    expect(found.shape == expected.shape, f"{what}: shapes {tuple(found.shape)} and {tuple(expected.shape)}")
    apart = (found - expected).abs()
    most = tolerance * (1 + float(expected.abs().max()))
    if not bool((apart <= most).all()):  # NaN is no less
        place = int(apart.nan_to_num(torch.inf).argmax())
        one, other = float(found.flatten()[place]), float(expected.flatten()[place])
        raise ChecksFailed(f"{what} differ: {one:.10g} and {other:.10g}, at place {place} of {tuple(found.shape)}")


def tree(levels: int = 5, seed: int = 0) -> KnowledgeGraph:
    """A binary tree with its edges as one relation and a ring of its leaves as another."""
    parents = np.arange(2**levels - 1)
    edges = [(child, 0, parent) for parent in parents for child in (2 * parent + 1, 2 * parent + 2)]
    leaves = np.arange(2**levels - 1, 2 ** (levels + 1) - 1)
    ring = [(int(a), 1, int(b)) for a, b in zip(leaves, np.roll(leaves, -1), strict=True)]
    facts = np.array(edges + ring, dtype=np.int32)
    order = np.random.default_rng(seed).permutation(len(facts))
    facts = facts[order]
    held = len(facts) // 10
    return KnowledgeGraph(
        name="tree",
        entities=Vocabulary("entity", [f"n{i}" for i in range(2 ** (levels + 1) - 1)]),
        relations=Vocabulary("relation", ["parent", "next"]),
        train=facts[2 * held :],
        valid=facts[:held],
        test=facts[held : 2 * held],
    )
