"""Means over the scores of all entities, for every model: by the way it takes, and by the definition."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from murp import registry
from murp.kernels import all_entities, formula_means
from murp.models import Model, MuRE
from murp.models.model import FORMULAS, Candidate, Numbers, Query, Rows
from murp.objectives.every_score import EveryScore
from murp.testing import Subject
from recorded import remembering

MODELS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in registry.MODELS),
    ("transe", {"norm": 2}),
    ("roth", {"learn_curvature": "all"}),
    ("mixed-curvature", {"learn_curvature": "all"}),
    ("murp", {"transformation": "stretch-both", "bias": "transformed-norm"}),
    ("mure", {"transformation": "stretch-both", "bias": "norm"}),
]
KINDS = ("log_sum_exp", "softplus", "mean")


def tables_and_sides(model: Model) -> tuple[list[Tensor], Query, Candidate]:
    """Leaves, and what six queries and all entities make of them."""
    trained = [table.name for table in model.tables if table.trained]
    model.parameters |= {name: model.parameters[name].clone().requires_grad_() for name in trained}
    asked = torch.arange(6)
    query = model.query(model.rows("subject", asked), model.rows("relation", asked % 4), model.rows("shared"))
    return (
        [model.parameters[name] for name in trained],
        query,
        model.candidate(model.rows("object"), model.rows("shared")),
    )


def defined(model: Model, query: Query, everything: Candidate, kind: str) -> Tensor:
    scores = model.meet(query, everything)
    if kind == "log_sum_exp":
        return scores.logsumexp(1).mean()
    return scores.mean() if kind == "mean" else torch.logaddexp(scores, torch.zeros_like(scores)).mean()


def assert_same(value: Tensor, expected: Tensor, tables: list[Tensor]) -> None:
    """Two means, and their gradients, which may have small numbers beside large ones."""
    single = value.dtype == torch.float32
    torch.testing.assert_close(value, expected, rtol=1e-4 if single else 1e-9, atol=1e-5 if single else 1e-11)
    ours, theirs = (torch.autograd.grad(of, tables, retain_graph=True, allow_unused=True) for of in (value, expected))
    for found, wanted in zip(ours, theirs, strict=True):
        found, wanted = (value.new_zeros(()) if by is None else by for by in (found, wanted))
        least = (2e-4 if single else 1e-9) * float(wanted.abs().max())
        torch.testing.assert_close(found, wanted.expand(found.shape), rtol=1e-3 if single else 1e-7, atol=least)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "settings"), MODELS)
def test_a_mean_and_its_gradients_are_those_of_the_definition(
    name: str, settings: dict[str, Any], dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of few entities, of which the last is not whole."""
    monkeypatch.setattr(formula_means, "_CELLS", 1)
    monkeypatch.setitem(all_entities._CELLS, "cpu", 6 * 7)
    model = remembering(Subject(name, settings, tmp_path).scattered(dtype))
    tables, query, everything = tables_and_sides(model)
    every = EveryScore(model, query, everything)
    assert (every.formula is None) == (every.form is not None or not model.products), "an ending that is no formula"
    for kind in KINDS:
        value, expected = getattr(every, kind)(), defined(model, query, everything, kind)
        assert_same(value, expected, tables)


@pytest.mark.triton
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the padding of a block, which is not stored
@pytest.mark.parametrize(("name", "settings"), MODELS)
def test_the_kernels_for_gpus_have_the_formulas_of_all_models(
    name: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton_formulas = pytest.importorskip("murp.kernels.triton_formulas")
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def by_triton(formula: Any, kind: str, groups: Any, shares: None, wanted: bool) -> Any:
        assert triton_formulas.fits(formula, groups[0])
        there = [[part.to(device) for part in group] for group in groups]
        value, found = triton_formulas.reduced(formula, kind, there, shares, wanted)
        return value.cpu(), [None if one is None else one.cpu() for one in found]

    model = remembering(Subject(name, settings, tmp_path).scattered())
    tables, query, everything = tables_and_sides(model)
    every = EveryScore(model, query, everything)
    if every.formula is None:
        return
    monkeypatch.setattr(formula_means, "_found", by_triton)
    for kind in KINDS:
        value, expected = getattr(every, kind)(), defined(model, query, everything, kind)
        assert_same(value, expected, tables)


def test_an_ending_that_looks_at_numbers_is_scored_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Subject("murp", {}, tmp_path).scattered()
    usual = type(model).ending

    def looks(*given: Any) -> Tensor:
        assert bool(given[1][0].isfinite().all())
        return usual(*given)

    monkeypatch.setattr(type(model), "ending", looks)
    _, query, everything = tables_and_sides(model)
    every = EveryScore(model, query, everything)
    assert every.formula is None
    torch.testing.assert_close(every.softplus(), defined(model, query, everything, "softplus"))


class Heated(MuRE):
    """A score of a number of the model, which is no setting, and of one that a user gives, maybe as a tensor: the only
    number of queries and of candidates, since others would make it one of their type."""

    heat = 1.0
    number: Any = 0.5

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query(super().query(subject, relation, shared).vectors, {"given": torch.as_tensor(self.number)})

    def candidate(self, objects: Rows, shared: Rows) -> Candidate:
        return Candidate(super().candidate(objects, shared).vectors, {"given": torch.as_tensor(self.number)})

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        return self.heat * products[0].exp() + query["given"] * candidate["given"]

    def linear(self, query: Query, everything: Candidate) -> None:
        return None


def heated() -> Heated:
    return Heated(30, 4, 4, dtype=torch.float64).initialise(0, 0.3)


def test_numbers_of_a_model_that_change_are_those_of_the_step() -> None:
    """An ending is recorded with them: again after a change, and left to PyTorch if they change in every step."""
    model = heated()
    for heat in range(1, 2 + FORMULAS):
        model.heat = float(heat)
        own = copy.copy(model)
        own.heat = heat + 0.5
        for one in (model, own):
            tables, query, everything = tables_and_sides(one)
            every = EveryScore(one, query, everything)
            assert_same(every.softplus(), defined(one, query, everything, "softplus"), tables)
            assert (every.formula is None) == (2 * heat > FORMULAS)


@pytest.mark.parametrize("number", [2, True, 0.5, torch.tensor(2.0), torch.tensor(0.25, dtype=torch.float64)], ids=str)
def test_numbers_of_another_type_become_those_of_the_model(number: Any) -> None:
    model = heated()
    model.number = number
    tables, query, everything = tables_and_sides(model)
    every = EveryScore(model, query, everything)
    assert every.formula is not None
    for kind in KINDS:
        assert_same(getattr(every, kind)(), defined(model, query, everything, kind), tables)


def test_a_formula_is_had_in_inference_mode_too() -> None:
    model = heated()
    with torch.inference_mode():
        query = model.query(model.rows("subject", torch.arange(3)), model.rows("relation", torch.zeros(3).long()), {})
        assert EveryScore(model, query, model.candidate(model.rows("object"), {})).formula is not None
