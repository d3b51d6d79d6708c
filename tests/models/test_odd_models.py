"""Models of shapes that none of ours has: they train in every kind of step, and are ranked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from murp.engines import Task, TorchEngine
from murp.engines import step as steps
from murp.kernels.matrices import RowsAt
from murp.models import Candidate, Model, Query, Rows, Table
from murp.negatives import Drawn
from murp.objectives.one_vs_all import OneVsAll
from murp.optimizers.adam import Adam

ENTITIES, RELATIONS, BATCH = 30, 4, 12


class Gated(Model):
    """⟨s g_s + r, o⟩ with a second vector g of each entity, which only the query reads."""

    def declare(self) -> tuple[Table, ...]:
        tables = (Table("entity", "entity", (self.dim,)), Table("gate", "entity", (self.dim,), initial="one"))
        return (*tables, Table("relation", "relation", (self.dim,)))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["entity"] * subject["gate"] + relation["relation"],))

    def ending(self, products: tuple[Tensor, ...], query: Rows, candidate: Rows) -> Tensor:
        return products[0] - candidate["square"]


class SumOfAVector(Model):
    """⟨s + r, o⟩ + |t_s|² + Σ t_o: the gradient of the sum is one number for all coordinates of t_o."""

    def declare(self) -> tuple[Table, ...]:
        tables = (Table("entity", "entity", (self.dim,)), Table("kind", "entity", (3,)))
        return (*tables, Table("relation", "relation", (self.dim,)))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["entity"] + relation["relation"],), {"own": subject["kind"].square().sum(-1)})

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        return Candidate((entity["entity"],), {"kind": entity["kind"].sum(-1)})

    def ending(self, products: tuple[Tensor, ...], query: Rows, candidate: Rows) -> Tensor:
        return products[0] + query["own"] + candidate["kind"]


class WithoutSubject(Model):
    """⟨r, o⟩: a score that does not depend on its subject."""

    def declare(self) -> tuple[Table, ...]:
        return (
            Table("entity", "entity", (self.dim,), roles=("object",)),
            Table("relation", "relation", (self.dim,)),
        )

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((relation["relation"],))

    def ending(self, products: tuple[Tensor, ...], query: Rows, candidate: Rows) -> Tensor:
        return products[0]


class JoinsRows(Model):
    """⟨M_r s, o⟩ by a query that joins the rows of subject and relation, as dictionaries can be."""

    def declare(self) -> tuple[Table, ...]:
        square = (self.dim, self.dim)
        return (Table("entity", "entity", (self.dim,)), Table("matrix", "relation", square, initial="xavier"))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        rows, turned = relation | subject, subject | relation
        assert list(rows) == ["matrix", "entity"]
        assert list(turned) == ["entity", "matrix"]
        return Query(((rows["matrix"] @ rows["entity"].unsqueeze(-1)).squeeze(-1),))

    def ending(self, products: tuple[Tensor, ...], query: Rows, candidate: Rows) -> Tensor:
        return products[0]


ODD = [Gated, SumOfAVector, WithoutSubject, JoinsRows]


def batch() -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    columns = [torch.randint(high, (BATCH,), generator=draw) for high in (ENTITIES, RELATIONS, ENTITIES)]
    subjects, objects = torch.randint(ENTITIES, (2, BATCH, 7), generator=draw)
    return torch.stack(columns, 1), subjects, objects


def gradients(kind: type[Model], drawn: Drawn | None, **task: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a batch, and the gradient of every table."""
    model = kind(ENTITIES, RELATIONS, 5, dtype=torch.float64).initialise(0, 0.3)
    engine = TorchEngine(Task(model, **task))
    loss, touched = steps.row_gradients(engine.task, batch()[0], drawn)
    engine.updater.prepare(touched)
    tables = engine.updater.tables()
    found = {name: _whole(tables[name], parts) for name, parts in touched.items()}
    engine.updater.update(tables, touched, 0.01)
    assert not model.broken()
    return loss, found


def _whole(values: Tensor, parts: list[steps.Part]) -> Tensor:
    found = torch.zeros_like(values)
    for part in parts:
        if part.whole:
            found += part.gradient
        elif part.where is not None:
            found.index_add_(0, part.where, part.gradient)
    return found


@pytest.mark.parametrize("kind", ODD)
def test_a_step_by_tables_is_a_step_by_rows(kind: type[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(batch()[2])
    by_rows = gradients(kind, drawn)
    monkeypatch.setattr(steps, "MANY", 1)
    torch.testing.assert_close(gradients(kind, drawn), by_rows, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("objective", ["all", "both sides", "shared"])
def test_the_gradient_is_that_of_the_loss(kind: type[Model], objective: str) -> None:
    positives, subjects, objects = batch()
    drawn, task = {
        "all": (None, {"objective": OneVsAll(), "optimizer": Adam()}),
        "both sides": (Drawn(objects, subjects), {}),
        "shared": (Drawn(objects[0]), {}),
    }[objective]
    loss, found = gradients(kind, drawn, **task)
    model = kind(ENTITIES, RELATIONS, 5, dtype=torch.float64).initialise(0, 0.3)
    model.parameters = {name: values.requires_grad_() for name, values in model.parameters.items()}
    s, r, o = positives.unbind(1)

    def scores(s: Tensor, r: Tensor, o: Tensor) -> Tensor:
        rows = model.rows("subject", s), model.rows("relation", r), model.rows("object", o[:, None])
        return model.score_rows(*rows).squeeze(1)

    if objective == "all":
        pairs = [scores(s, r, torch.full_like(s, n)) for n in range(ENTITIES)]
        wanted = (torch.stack(pairs, 1).logsumexp(1) - scores(s, r, o)).mean()
    else:
        heads = subjects if objective == "both sides" else s[:, None].expand(-1, 7)
        tails = objects if objective == "both sides" else objects[:1].expand(BATCH, -1)
        false = [scores(heads[:, k], r, tails[:, k]) for k in range(7)]
        every = torch.stack([scores(s, r, o), *false], 1)
        wanted = (torch.nn.functional.softplus(every).sum() - every[:, 0].sum()) / every.numel()
    torch.testing.assert_close(loss, wanted.detach(), rtol=1e-12, atol=1e-12)
    for name, gradient in zip(model.parameters, torch.autograd.grad(wanted, [*model.parameters.values()]), strict=True):
        torch.testing.assert_close(found[name], gradient.flatten(1), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ODD)
def test_it_is_ranked(kind: type[Model]) -> None:
    model = kind(ENTITIES, RELATIONS, 5, dtype=torch.float64).initialise(0, 0.3)
    s, r, o = batch()[0].unbind(1)
    every = model.score_objects(s, r)
    torch.testing.assert_close(every.gather(1, o[:, None])[:, 0], model.score(s, r, o), rtol=1e-12, atol=1e-12)


def test_rows_of_tables_join_as_dictionaries_do() -> None:
    rows = RowsAt({"a": torch.arange(3.0), "b": torch.arange(3.0)}, torch.tensor([2, 0]))
    joined, turned = rows | {"b": torch.ones(2)}, {"b": torch.ones(2)} | rows
    assert joined["b"].tolist() == [1, 1]
    assert turned["b"].tolist() == [2, 0]
    assert joined["a"].tolist() == turned["a"].tolist() == [2, 0]
