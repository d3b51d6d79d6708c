"""One training step in PyTorch: gather rows, score, differentiate.

The definition of a step, for any model, objective and optimizer; :mod:`murp.engines.updates` moves the rows. Gradients
are taken with respect to the gathered rows and summed for rows that occur more than once, and only those rows move: the
cost depends on the batch, never on the number of entities, unless the objective has all of them as candidates. Where a
batch reads most entities anyway their rows are not copied, and their gradient is as large as the table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from murp import threads
from murp.engines.task import Task
from murp.kernels import gathered
from murp.kernels.matrices import RowsAt
from murp.models.model import Model, Query, Role, Rows
from murp.negatives import Drawn
from murp.objectives import AllEntities, Labels, Sampled
from murp.objectives.objective import one_label
from murp.regularizers import Batch

# A batch reads most rows if it reads MANY and a table has no more than FEW_ROWS times as many.
MANY, FEW_ROWS = 2**14, 4
# Numbers of a tensor from which on PyTorch cuts it among its threads. At the end of a part it computes some functions
# (sigmoid, softplus, sinh and others) in another way, and a sum over all of them is one of parts.
CUT = 2**15


@dataclass
class Read:
    """Rows that a step reads, leaves of its gradient, and the indices they came from; None: all.

    ``whole`` are tables that are read where they lie, at these indices.
    """

    rows: Rows
    where: Tensor | None
    whole: bool = False


@dataclass
class Gathered:
    """All that a step reads, by what it reads it as."""

    subject: Read
    relation: Read
    objects: Read  # (B, 1 + k); (B, 1) where the false ones are shared or have subjects of their own; or tables
    shared: Read
    true: Read | None = None  # the true objects (B) or answers (L), where ``objects`` are tables
    false_objects: Read | None = None  # (k) shared by the batch, or (B, k)
    false_subjects: Read | None = None  # (B, k)
    relations: Read | None = None  # all of them, where the regularizer asks for that

    def reads(self) -> Iterator[Read]:
        """Each of them."""
        common = (self.subject, self.relation, self.objects, self.shared)
        further = (self.true, self.false_objects, self.false_subjects, self.relations)
        return (read for read in (*common, *further) if read is not None)


def gather(task: Task, positives: Tensor, drawn: Drawn | None, labels: Labels | None) -> Gathered:
    """What a step on positives (B, 3) with their negatives reads; without any, all entities are candidates."""
    model, regularizer = task.model, task.regularizer
    subject, relation, objects = positives.unbind(1)

    def read(role: Role, where: Tensor) -> Read:
        return Read(model.rows(role, where), where)

    common = {"subject": read("subject", subject)}
    if reads_matrices(task, relation):
        common["relation"] = Read(dict(model.rows("relation")), relation, whole=True)
    else:
        common["relation"] = read("relation", relation)
    common["shared"] = Read({name: values.clone() for name, values in model.rows("shared").items()}, None, whole=True)
    if regularizer.reads_relations:
        common["relations"] = Read(dict(model.rows("relation")), None, whole=True)
    if drawn is None or reads_most(task, positives, drawn):
        if regularizer.reads_rows or (labels is not None and not model.entity_dropout):
            common["true"] = read("object", objects if labels is None else labels.objects)
        asked = None if drawn is None else torch.cat([objects[:, None], drawn.objects], 1)
        return Gathered(objects=Read(dict(model.rows("object")), asked, whole=True), **common)
    if drawn.subjects is None and drawn.objects.dim() == 2:
        return Gathered(objects=read("object", torch.cat([objects[:, None], drawn.objects], 1)), **common)
    further = {"false_objects": read("object", drawn.objects)}
    if drawn.subjects is not None:
        further["false_subjects"] = read("subject", drawn.subjects)
    return Gathered(objects=read("object", objects[:, None]), **common, **further)


def reads_most(task: Task, positives: Tensor, drawn: Drawn) -> bool:
    """Whether a batch reads so many rows of candidates that a gradient as large as the table costs less than theirs."""
    model = task.model
    usual = model.products and model.plain_candidates and not model.entity_dropout
    occurrences = len(positives) * (1 + drawn.objects.shape[-1])
    many = occurrences >= MANY and model.num_entities <= FEW_ROWS * occurrences
    return many and usual and drawn.subjects is None and drawn.objects.dim() == 2


def reads_matrices(task: Task, relation: Tensor) -> bool:
    """Whether relations have matrices, and a gradient as large as their table costs less than one for each triple."""
    model = task.model
    have = any(table.of == "relation" and len(table.shape) == 2 for table in model.tables)
    return have and model.device.type == "cpu" and model.num_relations <= FEW_ROWS * len(relation)


def loss_of(task: Task, read: Gathered, labels: Labels | None) -> Tensor:
    """The loss of a batch as a function of the rows it reads, which is what the gradient is taken of."""
    model, objective, shared = task.model, task.objective, read.shared.rows
    relation = _relation(read.relation)
    query = model.query(model.read(read.subject.rows), relation, shared)
    if isinstance(objective, AllEntities):
        assert labels is not None
        if read.true is not None and not model.entity_dropout:  # dropout would be another than that of all candidates
            labels = dataclasses.replace(labels, answers=(labels.objects, model.candidate(read.true.rows, shared)))
        loss = objective.loss(model, query, model.candidate(model.read(read.objects.rows), shared), labels)
    else:
        assert isinstance(objective, Sampled)
        loss = _loss_of_scores(objective, _scores(model, read, relation, query))
    if not task.regularizer.reads_rows:
        return loss
    true = read.true.rows if read.true else {name: values[:, 0] for name, values in read.objects.rows.items()}
    term = task.regularizer.term(model, _batch(read, relation, true, query, labels if objective.grouped else None))
    return loss if term is None else loss + term


def _loss_of_scores(objective: Sampled, scores: Tensor) -> Tensor:
    """The loss of scores (B, 1 + k), which does not depend on the number of threads."""
    if scores.device.type != "cpu" or scores.numel() < CUT or torch.compiler.is_compiling():
        return objective.loss(scores)
    value: Tensor = _Uncut.apply(objective.loss, scores)  # type: ignore[no-untyped-call]
    return value


class _Uncut(torch.autograd.Function):
    """A loss and its gradient, both computed by PyTorch on this thread alone."""

    @staticmethod
    def forward(ctx: Any, loss: Callable[[Tensor], Tensor], scores: Tensor) -> Tensor:
        with threads.torch_alone(), torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            value = loss(leaf)
            (gradient,) = torch.autograd.grad(value, leaf)
        ctx.save_for_backward(gradient)
        return value.detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of: Tensor) -> tuple[None, Tensor]:
        (gradient,) = ctx.saved_tensors
        return None, of * gradient


def _relation(read: Read) -> Rows:
    """The rows of the relations; of tables, they are copied when they are asked for."""
    if not read.whole:
        return read.rows
    assert read.where is not None
    return cast(Rows, RowsAt(read.rows, read.where))


def _scores(model: Model, read: Gathered, relation: Rows, query: Query) -> Tensor:
    """Scores (B, 1 + k) of the true triples and the false ones."""
    if read.objects.whole:
        return _scores_in_place(model, read.objects, query)
    scores = model.meet(query, model.candidate(model.read(read.objects.rows), read.shared.rows))
    return scores if read.false_objects is None else torch.cat([scores, _apart(model, read, relation, query)], 1)


def _scores_in_place(model: Model, objects: Read, query: Query) -> Tensor:
    """Scores (B, 1 + k) with rows that are read where they lie: the points, and the entities' numbers."""
    assert objects.where is not None
    products, square = gathered.products(objects.rows["entity"], objects.where, query.vectors)
    theirs = {
        name: values.index_select(0, objects.where.flatten()).view(objects.where.shape)
        for name, values in objects.rows.items()
        if values.dim() == 1
    }
    ours = {name: values.unsqueeze(-1) for name, values in query.numbers.items()}
    return model.ending(products, ours, {"square": square, **theirs})


def _batch(read: Gathered, relation: Rows, true: Rows, query: Query, labels: Labels | None) -> Batch:
    """What a regularizer sees."""
    assert read.relation.where is not None
    relations = None if read.relations is None else read.relations.rows
    return Batch(read.subject.rows, relation, true, read.shared.rows, query, labels, relations, read.relation.where)


def _apart(model: Model, read: Gathered, relation: Rows, query: Query) -> Tensor:
    """Scores (B, k) of false triples that do not stand beside the true ones."""
    assert read.false_objects is not None
    shared, objects = read.shared.rows, model.read(read.false_objects.rows)
    if read.false_subjects is None:
        return model.meet(query, model.candidate(objects, shared))
    rows = model.read(read.false_subjects.rows)
    assert read.false_subjects.where is not None
    b, k = read.false_subjects.where.shape
    subjects = {name: values.flatten(0, 1) for name, values in rows.items()}
    relations = {name: values.repeat_interleave(k, 0) for name, values in relation.items()}
    asked = model.query(subjects, relations, shared)
    answers = {name: values.flatten(0, 1).unsqueeze(1) for name, values in objects.items()}
    return model.meet(asked, model.candidate(answers, shared)).view(b, k)


@dataclass
class Part:
    """The gradient of some rows (n, m), each of an index that may occur several times; None: of all rows, in order.

    Or of the whole table, in which only the rows of these indices count.
    """

    where: Tensor | None
    gradient: Tensor
    whole: bool


Touched = dict[str, list[Part]]


def row_gradients(
    task: Task,
    positives: Tensor,
    drawn: Drawn | None,
    labels: Labels | None = None,
    loss: Callable[..., Tensor] = loss_of,
    gathering: Callable[..., Gathered] = gather,
) -> tuple[Tensor, Touched]:
    """The loss of one batch and, for each table, the gradients of what it read of it: their sum is the table's.

    ``loss`` may be a compiled :func:`loss_of`, ``gathering`` a compiled :func:`gather`.
    """
    if drawn is None and labels is None:
        labels = one_label(positives[:, 2])
    read = gathering(task, positives, drawn, labels)
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
    places = {id(one): None if one.where is None else one.where.flatten() for one in read.reads()}
    for (name, one, leaf), gradient in zip(leaves, gradients, strict=True):
        if gradient is None:  # the model reads the table in this role, but not in this step
            continue
        where = places[id(one)]
        rows = 1 if one is read.shared else len(leaf) if one.whole or where is None else len(where)
        touched[name].append(Part(where, gradient.reshape(rows, -1), one.whole))
    return value.detach(), touched
