"""A step with gradients as large as the tables is the step with those of its rows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp.config import Config
from murp.engines import Task, TorchEngine, updates
from murp.engines import step as steps
from murp.models import from_config
from murp.negatives import Drawn
from murp.objectives import Labels
from murp.recipes import completed

ENTITIES, RELATIONS, BATCH = 30, 2, 12


def batch(seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    columns = [torch.randint(high, (BATCH,), generator=draw) for high in (ENTITIES, 2 * RELATIONS, ENTITIES)]
    return torch.stack(columns, 1), torch.randint(ENTITIES, (BATCH, 7), generator=draw)


def engine(**settings: Any) -> TorchEngine:
    config = Config(**completed({"dim": 6, "dtype": "float64", "initial_scale": 0.3, **settings}))
    made = TorchEngine(Task.of(config, from_config(config, ENTITIES, RELATIONS).initialise(0)))
    made.model.training = True
    return made


SETTINGS: list[dict[str, Any]] = [
    {"model": "murp", "initial_scale": 0.1},
    {"model": "mure", "optimizer": "adam", "lr": 0.01, "objective": "self-adversarial"},
    {"model": "mure", "optimizer": "row-adagrad", "regularizer": "l2", "regularizer_weight": 0.1},
    {"model": "murp", "optimizer": "adam", "lr": 0.01, "initial_scale": 0.1, "objective": "self-adversarial"},
    {"model": "roth-stretch", "lr": 0.01},
    {"model": "rote", "objective": "margin", "optimizer": "adagrad"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_steps_by_tables_are_steps_by_rows(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows, by_tables, at_once = (engine(**settings) for _ in range(3))
    at_once.updater.blocked = False  # as on a GPU, where a table is moved in one go
    for seed in range(3):
        positives, negatives = batch(seed)
        monkeypatch.setattr(steps, "MANY", 2**62)
        monkeypatch.setattr(updates, "FEW_ROWS", 0)
        assert not steps.reads_most(by_rows.task, positives, Drawn(negatives))
        expected = by_rows.step(positives, negatives, 0.05)
        monkeypatch.setattr(steps, "MANY", 1)
        monkeypatch.setattr(updates, "FEW_ROWS", 4)
        assert steps.reads_most(by_tables.task, positives, Drawn(negatives))
        for made in (by_tables, at_once):
            torch.testing.assert_close(made.step(positives, negatives, 0.05), expected, rtol=1e-10, atol=1e-12)
    for made in (by_tables, at_once):
        for name, values in (by_rows.model.parameters | by_rows.updater.state).items():
            found = (made.model.parameters | made.updater.state)[name]
            torch.testing.assert_close(found, values, rtol=1e-8, atol=1e-10, msg=name)


def test_rows_that_no_triple_names_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam would move them by what it remembers; here their clocks stand still."""
    monkeypatch.setattr(steps, "MANY", 1)
    made = engine(model="mure", optimizer="adam", lr=0.1)
    positives, negatives = batch(0)
    made.step(positives, negatives, 0.1)
    before = {name: values.clone() for name, values in (made.model.parameters | made.updater.state).items()}
    positives, negatives = positives.clone(), negatives.clone()
    positives[:, [0, 2]] %= 5
    negatives %= 5
    made.step(positives, negatives, 0.1)
    for name in ("entity", "optimizer.entity.mean", "optimizer.entity.steps"):
        now = (made.model.parameters | made.updater.state)[name]
        assert torch.equal(now[5:], before[name][5:])
        assert not torch.equal(now[:5], before[name][:5])


WITH_MATRICES: list[dict[str, Any]] = [
    {"model": "rescal"},  # with DURA
    {"model": "rescal", "objective": "k-vs-all"},
    {"model": "rescal", "regularizer": "n3"},
    {"model": "rescal", "regularizer": "relation-prediction"},
    {"model": "mure-matrix", "regularizer": "l2"},
    {"model": "murp-matrix", "initial_scale": 0.1},
    {"model": "stranse", "objective": "self-adversarial", "corruption": "both-sides"},
    {"model": "hybonet"},
]


@pytest.mark.parametrize("settings", WITH_MATRICES, ids=lambda settings: "-".join(map(str, settings.values())))
def test_matrices_read_where_they_lie(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same step as with a copy of each triple's matrix, and as with its relations' rows alone."""
    engines = [engine(optimizer="adam", lr=0.01, **settings) for _ in range(3)]
    reads = steps.reads_matrices
    for seed in range(2):
        positives, negatives = batch(seed)
        drawn, labels = None, None
        if engines[0].task.objective.sampled:
            drawn = Drawn(negatives, negatives.flip(0) if "corruption" in settings else None)
        elif settings.get("objective") == "k-vs-all":
            objects = torch.cat([positives[:, 2], negatives[:, 0]])
            labels = Labels(torch.arange(BATCH).repeat(2), objects, torch.ones(2 * BATCH, dtype=torch.float64))
        losses = []
        for made, copies, few in zip(engines, (False, True, True), (4, 4, 0), strict=True):
            assert reads(made.task, positives[:, 1])
            monkeypatch.setattr(steps, "reads_matrices", reads if not copies else lambda task, relation: False)
            monkeypatch.setattr(updates, "FEW_ROWS", few)
            losses.append(made.step(positives, drawn, 0.01, labels))
        for loss in losses[1:]:
            torch.testing.assert_close(loss, losses[0])
    for made in engines[1:]:
        for name, values in (engines[0].model.parameters | engines[0].updater.state).items():
            found = (made.model.parameters | made.updater.state)[name]
            torch.testing.assert_close(found, values, rtol=1e-8, atol=1e-10, msg=name)


def test_copies_of_matrices_where_relations_are_many_or_have_none() -> None:
    assert not steps.reads_matrices(engine(model="mure").task, batch(0)[0][:, 1])
    assert not steps.reads_matrices(engine(model="rescal").task, torch.zeros(0, dtype=torch.int64))


def test_what_needs_the_rows_themselves_is_done_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MANY", 1)
    positives, negatives = batch(0)
    for chosen in ({"model": "mure", "transformation": "swapped"}, {"model": "mure", "entity_dropout": 0.2}):
        assert not steps.reads_most(engine(**chosen).task, positives, Drawn(negatives))
    task = engine(model="mure").task
    assert not steps.reads_most(task, positives, Drawn(negatives, subjects=negatives))
    assert not steps.reads_most(task, positives, Drawn(negatives[0]))


def test_gradients_that_lie_in_one_place_are_not_added_to_twice() -> None:
    """Autograd hands out one tensor for both tables of a sum."""
    made = engine(model="mure")
    shape = made.model.parameters["entity"].shape
    gradient = torch.ones(shape, dtype=torch.float64)
    touched: steps.Touched = {table.name: [] for table in made.model.tables}
    touched["entity"] = [steps.Part(None, gradient, whole=True)]
    touched["object_bias"] = [steps.Part(None, gradient, whole=True)]
    made.updater.prepare(touched)
    assert touched["entity"][0].gradient.data_ptr() != touched["object_bias"][0].gradient.data_ptr()


def test_claims_are_as_wide_as_the_positions_in_a_batch() -> None:
    made = engine(model="mure")
    touched: steps.Touched = {table.name: [] for table in made.model.tables}
    rows = torch.iinfo(updates.NARROW).max + 1
    touched["entity"] = [steps.Part(torch.zeros(rows, dtype=torch.int64), torch.zeros(rows, 6), whole=False)]
    assert made.updater.claim["entity"].dtype == updates.NARROW
    made.updater.prepare(touched)
    assert made.updater.claim["entity"].dtype == torch.int32
    assert made.updater.claim["relation"].dtype == updates.NARROW


@settings(max_examples=at_most(20), deadline=None)
@given(kinds=st.lists(st.booleans(), min_size=1, max_size=4), seed=st.integers(0, 2**31))
def test_the_gradient_of_a_table_is_the_sum_of_all_its_parts(kinds: list[bool], seed: int) -> None:
    """Parts of the whole table, and parts of rows that may occur several times, in any order."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.zeros(5, 3, dtype=torch.float64)
    parts, expected = [], torch.zeros_like(values)
    for whole in kinds:
        where = torch.randint(5, (4,), generator=draw)
        gradient = torch.randn(5 if whole else 4, 3, generator=draw, dtype=torch.float64)
        parts.append(steps.Part(where, gradient.clone(), whole))
        for row, of_row in enumerate(gradient) if whole else zip(where.tolist(), gradient, strict=True):
            expected[row] += of_row
    torch.testing.assert_close(updates.whole_gradient(values, parts), expected)
