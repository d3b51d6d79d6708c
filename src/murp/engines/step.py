"""One training step in PyTorch: gather rows, score, differentiate, update the touched rows.

The definition of a step, for any model, objective and optimizer. Gradients are taken with respect to the gathered rows
and summed for rows that occur more than once, and only those rows move: the cost depends on the batch, never on the
number of entities, unless the objective has all of them as candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from murp.engines.task import Task
from murp.kernels import gathered
from murp.models.model import Model, Query, Role, Rows
from murp.negatives import Drawn
from murp.objectives import AllEntities, Labels, Sampled
from murp.objectives.objective import one_label
from murp.regularizers import Batch

# A batch reads most rows if it reads MANY and a table has no more than FEW_ROWS times as many.
MANY, FEW_ROWS = 2**14, 4


@dataclass
class Read:
    """Rows that a step reads, leaves of its gradient, and the indices (n) they came from; None: the whole tables."""

    rows: Rows
    where: Tensor | None


@dataclass
class Gathered:
    """All that a step reads, by what it reads it as."""

    subject: Read
    relation: Read
    objects: Read  # (B, 1 + k), (B, 1) where the false ones are shared or have subjects of their own, or all
    shared: Read
    false_objects: Read | None = None  # (k) shared by the batch, or (B, k)
    false_subjects: Read | None = None  # (B, k)
    relations: Read | None = None  # all of them, where the regularizer asks for that

    def reads(self) -> Iterator[Read]:
        """Each of them."""
        common = (self.subject, self.relation, self.objects, self.shared)
        further = (self.false_objects, self.false_subjects, self.relations)
        return (read for read in (*common, *further) if read is not None)


def gather(task: Task, positives: Tensor, drawn: Drawn | None) -> Gathered:
    """What a step on positives (B, 3) with their negatives reads; without any, all entities are candidates."""
    model = task.model
    subject, relation, objects = positives.unbind(1)

    def read(role: Role, where: Tensor) -> Read:
        return Read(model.rows(role, where), where.flatten())

    common = {"subject": read("subject", subject), "relation": read("relation", relation)}
    common["shared"] = Read({name: values.clone() for name, values in model.rows("shared").items()}, None)
    if task.regularizer.reads_relations:
        common["relations"] = Read(dict(model.rows("relation")), None)
    if drawn is None:
        return Gathered(objects=Read(dict(model.rows("object")), None), **common)
    if drawn.subjects is None and drawn.objects.dim() == 2:
        return Gathered(objects=read("object", torch.cat([objects[:, None], drawn.objects], 1)), **common)
    further = {"false_objects": read("object", drawn.objects)}
    if drawn.subjects is not None:
        further["false_subjects"] = read("subject", drawn.subjects)
    return Gathered(objects=read("object", objects[:, None]), **common, **further)


def loss_of(task: Task, read: Gathered, labels: Labels | None) -> Tensor:
    """The loss of a batch as a function of the rows it reads, which is what the gradient is taken of."""
    model, objective, shared = task.model, task.objective, read.shared.rows
    query = model.query(model.read(read.subject.rows), read.relation.rows, shared)
    candidates = model.candidate(model.read(read.objects.rows), shared)
    if isinstance(objective, AllEntities):
        assert labels is not None
        loss = objective.loss(model, query, candidates, labels)
        true = {name: values.index_select(0, labels.objects) for name, values in read.objects.rows.items()}
    else:
        assert isinstance(objective, Sampled)
        scores = model.meet(query, candidates)
        if read.false_objects is not None:
            scores = torch.cat([scores, _apart(model, read, query)], 1)
        loss = objective.loss(scores)
        true = {name: values[:, 0] for name, values in read.objects.rows.items()}
    term = task.regularizer.term(model, _batch(read, true, query, labels if objective.grouped else None))
    return loss if term is None else loss + term


def _batch(read: Gathered, true: Rows, query: Query, labels: Labels | None) -> Batch:
    """What a regularizer sees."""
    assert read.relation.where is not None
    relations = None if read.relations is None else read.relations.rows
    return Batch(
        read.subject.rows, read.relation.rows, true, read.shared.rows, query, labels, relations, read.relation.where
    )


def _apart(model: Model, read: Gathered, query: Query) -> Tensor:
    """Scores (B, k) of false triples that do not stand beside the true ones."""
    assert read.false_objects is not None
    shared, objects = read.shared.rows, model.read(read.false_objects.rows)
    if read.false_subjects is None:
        return model.meet(query, model.candidate(objects, shared))
    rows = model.read(read.false_subjects.rows)
    b, k = next(iter(rows.values())).shape[:2]
    subjects = {name: values.flatten(0, 1) for name, values in rows.items()}
    relations = {name: values.repeat_interleave(k, 0) for name, values in read.relation.rows.items()}
    asked = model.query(subjects, relations, shared)
    answers = {name: values.flatten(0, 1).unsqueeze(1) for name, values in objects.items()}
    return model.meet(asked, model.candidate(answers, shared)).view(b, k)


def loss_of_tables(task: Task, tables: Rows, positives: Tensor, drawn: Drawn | None, labels: Labels | None) -> Tensor:
    """The same loss as a function of whole tables: for batches that read so many rows that nearly all occur.

    Gradients are then as large as the tables, and rows need not be copied to be scored.
    """
    model, objective = task.model, task.objective
    subject, relation, objects = positives.unbind(1)

    def rows(role: Role, where: Tensor) -> Rows:
        return {
            t.name: tables[t.name].index_select(0, where.flatten()).view(*where.shape, *tables[t.name].shape[1:])
            for t in model.tables
            if role in t.roles
        }

    shared = {t.name: tables[t.name][0] for t in model.tables if t.of == "shared"}
    whole = {t.name: tables[t.name] for t in model.tables if "object" in t.roles}
    read = Gathered(
        Read(rows("subject", subject), subject),
        Read(rows("relation", relation), relation),
        Read(whole, None),
        Read(shared, None),
    )
    if task.regularizer.reads_relations:
        read.relations = Read({t.name: tables[t.name] for t in model.tables if "relation" in t.roles}, None)
    if drawn is None:
        return loss_of(task, read, labels)
    assert isinstance(objective, Sampled)
    assert drawn.subjects is None
    asked = torch.cat([objects[:, None], drawn.objects], 1)
    query = model.query(read.subject.rows, read.relation.rows, shared)
    products, square = gathered.products(whole[model.point], asked, query.vectors)
    numbers = {
        name: values.index_select(0, asked.flatten()).view(asked.shape)
        for name, values in whole.items()
        if name != model.point
    }
    scores = model.ending(
        products, {name: values.unsqueeze(-1) for name, values in query.numbers.items()}, {"square": square, **numbers}
    )
    loss = objective.loss(scores)
    term = task.regularizer.term(model, _batch(read, rows("object", objects), query, None))
    return loss if term is None else loss + term


def reads_most(task: Task, positives: Tensor, drawn: Drawn | None) -> bool:
    """Whether a batch reads so many rows that gradients as large as the tables cost less than those of its rows."""
    model = task.model
    if drawn is None:
        return model.num_relations <= FEW_ROWS * len(positives)
    plain = drawn.subjects is None and drawn.objects.dim() == 2
    usual = model.products and model.plain_candidates and not model.entity_dropout
    occurrences = len(positives) * (1 + drawn.objects.shape[-1])
    many = occurrences >= MANY and model.num_entities <= FEW_ROWS * occurrences
    return plain and usual and many and model.num_relations <= FEW_ROWS * len(positives)


def table_gradients(
    task: Task,
    positives: Tensor,
    drawn: Drawn | None,
    labels: Labels | None = None,
    loss: Callable[..., Tensor] = loss_of_tables,
) -> tuple[Tensor, Rows]:
    """The loss of one batch and the gradient of each table, as large as the table."""
    if drawn is None and labels is None:
        labels = one_label(positives[:, 2])
    model = task.model
    leaves = {t.name: model.parameters[t.name].detach().requires_grad_() for t in model.tables if t.trained}
    with torch.enable_grad():
        value = loss(task, {**model.parameters, **leaves}, positives, drawn, labels)
        gradients = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    found = {name: gradient for name, gradient in zip(leaves, gradients, strict=True) if gradient is not None}
    return value.detach(), found


Touched = dict[str, list[tuple[Tensor | None, Tensor]]]


def row_gradients(
    task: Task,
    positives: Tensor,
    drawn: Drawn | None,
    labels: Labels | None = None,
    loss: Callable[..., Tensor] = loss_of,
) -> tuple[Tensor, Touched]:
    """The loss of one batch and, for each table, the (indices, gradients) of the rows it read.

    An index may occur several times; its row's gradient is the sum over the occurrences. No indices: the whole table.
    ``loss`` may be a compiled :func:`loss_of`.
    """
    read = gather(task, positives, drawn)
    if drawn is None and labels is None:
        labels = one_label(positives[:, 2])
    trained = {table.name for table in task.model.tables if table.trained}
    leaves = [
        (name, one, values.detach().requires_grad_())
        for one in read.reads()
        for name, values in one.rows.items()
        if name in trained
    ]
    for name, one, leaf in leaves:
        one.rows[name] = leaf
    with torch.enable_grad():
        value = loss(task, read, labels)
        gradients = torch.autograd.grad(value, [leaf for _, _, leaf in leaves], allow_unused=True)
    touched: Touched = {table.name: [] for table in task.model.tables}
    for (name, one, leaf), gradient in zip(leaves, gradients, strict=True):
        if gradient is None:  # the model reads the table in this role, but not in this step
            continue
        if one.where is not None:
            gradient = gradient.reshape(len(one.where), -1)
        elif one is read.shared:
            gradient = gradient.reshape(1, -1)
        else:
            gradient = gradient.reshape(len(leaf), -1)
        touched[name].append((one.where, gradient))
    return value.detach(), touched
