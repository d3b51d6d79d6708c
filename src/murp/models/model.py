"""The interface of a model: tables of parameters, a query, and an ending that turns inner products into scores.

A score φ(s, r, o) is made in three steps, which training, ranking, prediction and the explorer share:

    query      subject s and relation r  →  one vector or several, and numbers
    products   of the query's vectors with the candidate's: one matrix product for all candidates
    ending     products, the query's numbers and the candidate's numbers  →  φ, element by element

A candidate is the row of an entity: its point v, |v|² and its numbers (biases). Relations are numbered 0 … 2R-1,
reciprocals included, so that heads are scored as objects of the reciprocal relation.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import dropout

from murp import registry, threads
from murp.errors import ConfigError
from murp.geometry import Euclidean, Geometry
from murp.kernels.formulas import Formula, traced
from murp.kernels.products import inner_products, squared_norms
from murp.models.blocks import QUERIES, block_length, filled
from murp.models.host_memory import pinned, room
from murp.models.rounding import rounded
from murp.settings import Part, setting

Role = Literal["subject", "relation", "object", "shared"]
Rows = dict[str, Tensor]
Numbers = dict[str, Tensor]

CELLS_A_THREAD = 2**18  # scores that are worth another thread
LOOKED_AT = 2**22  # numbers that are looked through at a time
# Numbers of a tile of a model without inner products, on a CPU and on a GPU, and candidates that a tile should have.
TILE, GPU_TILE, TOGETHER = 2**22, 2**25, 256
FORMULAS = 8  # of one model, at most: see Model.formula
# Rows that are drawn at a time. PyTorch draws normal numbers sixteen at a time, so that blocks of whole sixteens give
# what one draw of all rows would.
BLOCK = 2**16
SIXTEEN = 16


@dataclass(frozen=True)
class Table:
    """One parameter table: a row of ``shape`` for every entity, every relation, or one row shared by all.

    ``geometry`` is the space of each row; the optimizer follows it. ``roles``: the positions of a triple in which the
    row is used: an entity's point is used as subject and as object, its subject bias only as subject. ``trained`` is
    False for tables that the model updates itself (running means).
    """

    name: str
    of: Literal["entity", "relation", "shared"]
    shape: tuple[int, ...]
    geometry: Geometry = field(default_factory=Euclidean)
    initial: Literal["zero", "one", "identity", "normal", "uniform", "xavier"] = "normal"
    roles: tuple[Role, ...] = ()
    trained: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.shape, int):
            raise ConfigError(f"table {self.name}: its shape must be a tuple as (self.dim,) or (), not {self.shape!r}.")
        if not self.roles:
            usual: dict[str, tuple[Role, ...]] = {
                "entity": ("subject", "object"), "relation": ("relation",), "shared": ("shared",),
            }  # fmt: skip
            object.__setattr__(self, "roles", usual[self.of])

    def draw(
        self,
        rows: int,
        dtype: torch.dtype,
        generator: torch.Generator,
        scale: float,
        into: Tensor | None = None,
        of: int | None = None,
    ) -> Tensor:
        """Initial values (rows, *shape); written into the zeros ``into``, if given.

        0, 1, identity matrices, normal with standard deviation ``scale``, uniform in (-1, 1), or normal with standard
        deviation √(2 / (a + b)), where a and b are the last two sizes (Glorot and Bengio's). In a space whose rows are
        not free (hyperboloid, sphere, products) normal are points so far from its origin. If these are some of a
        table's rows, ``of`` is how many it has.
        """
        values = torch.zeros(rows, *self.shape, dtype=dtype) if into is None else into
        if self.initial == "one":
            values.fill_(1.0)
        elif self.initial == "identity":
            values.diagonal(dim1=-2, dim2=-1).fill_(1.0)
        elif self.initial == "normal" and not self.geometry.has_free_coordinates:
            values = self.geometry.random(generator, (rows, *self.shape), scale, dtype)
        elif self.initial == "normal":
            values.normal_(0.0, scale, generator=generator)
        elif self.initial == "uniform":
            values.uniform_(-1.0, 1.0, generator=generator)
        elif self.initial == "xavier":
            a, b = (rows if of is None else of, *self.shape)[-2:]
            values.normal_(0.0, (2 / (a + b)) ** 0.5, generator=generator)
        return values

    def draw_in_blocks(
        self, rows: int, dtype: torch.dtype, generator: torch.Generator, scale: float
    ) -> Iterator[tuple[int, Tensor]]:
        """The values of :meth:`draw`, some rows at a time with the number of the first; products all at once, since
        they are drawn part by part."""
        free = self.initial != "normal" or self.geometry.has_free_coordinates
        start = 0
        while start < rows:
            stop = min(rows, start + BLOCK) if free else rows
            if (rows - stop) * math.prod(self.shape) < SIXTEEN:  # fewer would be drawn in another way
                stop = rows
            yield start, self.draw(stop - start, dtype, generator, scale, of=rows)
            start = stop


@dataclass
class Query:
    """The query of a subject and a relation: vectors (B, d), and named numbers (B)."""

    vectors: tuple[Tensor, ...]
    numbers: Numbers = field(default_factory=dict)


@dataclass
class Candidate:
    """The candidates' part of a score: for each of the query's vectors a vector (…, d), and named numbers (…).

    Usually the vector is the entity's point v, and the numbers are "square", |v|², and the biases.
    """

    vectors: tuple[Tensor, ...]
    numbers: Numbers = field(default_factory=dict)


Sided = TypeVar("Sided", Query, Candidate)


class Model(Part):
    """A score φ(s, r, o) over parameter tables.

    A model defines :meth:`declare`, :meth:`query` and :meth:`ending`; everything else follows from these. ``products``
    is False for a model whose score is not a function of inner products, and which defines :meth:`tile` instead of
    :meth:`ending`. ``usual`` has default settings of a run that suit the model: see :func:`murp.recipes.completed`.
    """

    dim: int = setting(40, "dimension d of the embedding", least=1)
    initial_scale: float = setting(
        1e-3, "standard deviation of the initial entities and translations", above=0, most=1e3
    )
    query_dropout: float = setting(0.0, "dropout rate of a query's coordinates", least=0, below=1)
    entity_dropout: float = setting(0.0, "dropout rate of an entity's coordinates", least=0, below=1)
    products: bool = True
    drops_queries: ClassVar[bool] = False  # whether query calls dropped on the vector that meets candidates
    keeps_statistics: ClassVar[bool] = False  # whether training keeps statistics of queries (batch normalisation)
    reciprocals: ClassVar[bool] = True  # whether training asks each fact from its object's side too
    usual: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: int = 40,
        *,
        dtype: torch.dtype = torch.float32,
        **settings: Any,
    ) -> None:
        super().__init__(dim=dim, **settings)
        self.num_entities = num_entities
        self.num_relations = num_relations
        self.dtype = dtype
        self.point_dtype = dtype  # in which training stores the entities' points; it computes in ``dtype``
        self.first_row = 0  # of the entities it holds, where other processes hold others
        self.training = False  # in a training step: dropout and batch normalisation ask
        self.parameters: dict[str, Tensor] = {}
        self._formulas: dict[Any, Formula | None] = {}
        self.tables: tuple[Table, ...] = self._declared()
        if not any((table.name, table.of) == ("entity", "entity") for table in self.tables):
            declared = ", ".join(table.name for table in self.tables) or "none"
            raise ConfigError(
                f"model {type(self).__name__} declares no table of entities with the name entity, which has their "
                f"points. Its tables: {declared}."
            )

    def _declared(self) -> tuple[Table, ...]:
        """What :meth:`declare` returns, if it is a tuple of tables."""
        found: Any = self.declare()
        tables = tuple(found) if isinstance(found, Iterable) else (found,)
        if isinstance(found, Iterable) and all(isinstance(one, Table) for one in tables):
            return tables
        kinds = ", ".join(type(one).__name__ for one in tables)
        raise ConfigError(
            f"declare of model {type(self).__name__} must return a tuple of Table, not "
            f"{f'a {type(found).__name__} of {kinds}' if isinstance(found, Iterable) else kinds}. Of one table it is "
            "(Table(…),), with a comma.",
            "model",
        )

    @classmethod
    def refuse(cls, config: Any) -> None:
        if cls.products and cls.ending is Model.ending:
            raise ConfigError(f"model {config.model} has no ending: write one, or products = False and tile.")
        if not cls.products and cls.tile is Model.tile:
            raise ConfigError(f"model {config.model} has products = False and no tile: write one.")
        if config.query_dropout and not cls.drops_queries:
            able = registry.models_that(lambda model: model.drops_queries)
            raise ConfigError(
                f"model {config.model} has no dropout on its query: leave query_dropout at 0. Models that have: {able}."
            )

    @property
    def uses_chance(self) -> bool:
        """Whether training itself draws random numbers (dropout)."""
        return self.query_dropout > 0 or self.entity_dropout > 0

    def __repr__(self) -> str:
        sizes = f"{self.num_entities:,} entities, {self.num_relations:,} relations with reciprocals"
        tables = ", ".join(table.name for table in self.tables)
        return f"{type(self).__name__}({self.geometry.name} d={self.dim}, {sizes}; {self.dtype}: {tables})"

    @abstractmethod
    def declare(self) -> tuple[Table, ...]:
        """The tables, in the order in which their initial values are drawn."""

    @abstractmethod
    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        """The query, from rows (B, …) of subjects and relations and the shared tables."""

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        """The candidates' part of a score, from rows (…, d): by default their point, |v|² and their numbers."""
        point = entity["entity"]
        numbers = {name: values for name, values in entity.items() if values.dim() == point.dim() - 1}
        return Candidate((point,), {"square": squared_norm(point), **numbers})

    @property
    def plain_candidates(self) -> bool:
        """Whether a candidate is only its point, |v|² and its numbers: then rows need not be copied for scoring."""
        return type(self).candidate is Model.candidate

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        """φ (B, n) from products (B, n), the query's numbers (B, 1) and the candidates' (B, n) or (n)."""
        raise NotImplementedError(f"{type(self).__name__} defines neither ending nor tile")

    def tile(self, query: Query, candidate: Candidate) -> Tensor:
        """φ (B, n) of a model without inner products.

        Vectors of the query are (B, 1, d), of the candidates (B, n, d) or (n, d); numbers as in :meth:`ending`. A tile
        is small enough for a tensor (B, n, d).
        """
        raise NotImplementedError(f"{type(self).__name__} has no product form and defines no tile")

    def linear(self, query: Query, candidate: Candidate) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None] | None:
        """q (B, d), v (N, d), a (B) and c (N) with φ[b,n] = ⟨q_b,v_n⟩ + a_b + c_n; None for a score of another form.

        ``candidate`` is shared by the queries. Objectives over all entities are quickest with this form.
        """
        return None

    def converse(self, objects: Rows, relation: Rows) -> Tensor:
        """What objects (B, …) become under the transposed relation: w (B, d) with φ(s, r, o) = ⟨s,w⟩ + ….

        Only for models that have such a w; used by the regularizer DURA.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no converse")

    def factors(self, subject: Rows, relation: Rows, objects: Rows) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """The moduli (B, …) of a fact's factors, of subject, relation and object: what the regularizer N3 measures.

        By default the absolute values of the entities' vectors and of the relation's vectors and matrices. A model with
        complex numbers gives their moduli.
        """
        moduli = tuple(values.abs() for values in relation.values() if values.dim() > 1)
        return self.vector(subject).abs(), moduli, self.vector(objects).abs()

    def vector(self, entity: Rows) -> Tensor:
        """Entities' points (…, d) as vectors: in a curved space as log₀(v), in the tangent space at the origin."""
        if "entity" not in entity:
            raise ConfigError(
                f"this regularizer measures the table entity of subjects and objects, but {type(self).__name__} reads "
                "it as one of them only. Use regularizer none, or let the model say what is measured, by a method "
                "vector or factors.",
                "regularizer",
            )
        return self.geometry.log0(entity["entity"])

    def dropped(self, x: Tensor) -> Tensor:
        """A query's vector x (B, d) in a training step: with dropout ``query_dropout`` (:meth:`thinned`).

        A model calls this in :meth:`query`, before it computes numbers such as |x|², and sets ``drops_queries``.
        """
        return self.thinned(x, self.query_dropout)

    def read(self, entity: Rows) -> Rows:
        """Rows of entities in a training step: points with dropout ``entity_dropout`` (:meth:`thinned`)."""
        if not (self.training and self.entity_dropout):
            return entity
        return {**entity, "entity": self.thinned(entity["entity"], self.entity_dropout)}

    def thinned(self, x: Tensor, share: float) -> Tensor:
        """exp₀(D log₀(x)): D sets a ``share`` p of coordinates to 0 and divides the others by 1 - p.

        Outside training, and if p = 0, it is x itself. In Euclidean space this is the usual dropout (Srivastava et al.
        2014); in a curved space the result is a point of that space.
        """
        if not (self.training and share):
            return x
        return self.geometry.exp0(dropout(self.vector({"entity": x}), share))

    @property
    def geometry(self) -> Geometry:
        """The space of the entities' points."""
        return next(table.geometry for table in self.tables if table.name == "entity")

    def move_subject(self, points: Tensor, relation: Rows) -> Tensor:
        """Subjects (B, d) transformed by relations, rows (B, …), for pictures; by default the query's first vector.

        If that is not in the space of the points, it cannot be drawn: then the points stay where they are.
        """
        own = points.to(self.dtype)
        subject = {t.name: own.new_zeros(len(own), *t.shape) for t in self.tables if "subject" in t.roles}
        subject["entity"] = own
        moved = self.query(subject, relation, self.rows("shared")).vectors[0].to(points.dtype)
        return moved if moved.shape == points.shape else points

    def move_object(self, points: Tensor, relation: Rows) -> Tensor:
        """Objects (N, d) transformed by a relation, rows (1, …), for pictures; by default unchanged."""
        return points

    def score_rows(self, subject: Rows, relation: Rows, objects: Rows, shared: Rows | None = None) -> Tensor:
        """Scores of B queries against their candidates.

        ``subject`` and ``relation`` hold rows of shape (B, …). ``objects`` holds either K candidates
        for each query, rows (B, K, …), giving scores (B, K); or N candidates that all queries share,
        rows (N, …), giving (B, N) through matrix products, never through a B × N × d tensor.
        """
        shared = self.rows("shared") if shared is None else shared
        return self.meet(self.query(subject, relation, shared), self.candidate(objects, shared))

    def meet(self, query: Query, candidate: Candidate) -> Tensor:
        """φ (B, n) of queries and their candidates, (B, n, …) or shared (n, …)."""
        numbers = {name: values.unsqueeze(-1) for name, values in query.numbers.items()}
        if not self.products:
            return self._tiles(Query(tuple(v.unsqueeze(1) for v in query.vectors), numbers), candidate)
        theirs = candidate.vectors * (len(query.vectors) if len(candidate.vectors) == 1 else 1)
        products = tuple(inner(x, v) for x, v in zip(query.vectors, theirs, strict=True))
        return self.ending(products, numbers, candidate.numbers)

    def formula(self, products: int, query: Iterable[str], candidate: Iterable[str]) -> Formula | None:
        """:meth:`ending` as a formula of so many products and of numbers with these names; None if it is none.

        Objectives over all entities use it (:mod:`murp.kernels.formulas`). It is recorded once, and again if a plain
        number of the model changes. If that happens often, there is none, since each formula is compiled anew.
        """
        ours, theirs = tuple(query), tuple(candidate)
        numbers = repr(
            [(name, value) for name, value in vars(self).items() if isinstance(value, bool | int | float | str)]
        )
        key = (products, ours, theirs, self.dtype, numbers)
        if key not in self._formulas and len(self._formulas) < FORMULAS:
            first = products + len(ours)

            def ending(*given: Tensor) -> Tensor:
                mine, others = dict(zip(ours, given[products:first], strict=True)), given[first:]
                return self.ending(given[:products], mine, dict(zip(theirs, others, strict=True)))

            counts = len(ours), len(theirs)
            self._formulas[key] = traced(ending, first + len(theirs), self.dtype, counts)
        return self._formulas.get(key)

    def _tiles(self, query: Query, candidate: Candidate) -> Tensor:
        """:meth:`tile`, over so few queries and shared candidates at a time that B × n × d numbers stay few.

        All tiles of a query have one shape, so that equal candidates get equal scores: the last one begins earlier, and
        what it repeats is left out.
        """
        points, asked = candidate.vectors[0], len(query.vectors[0])
        if points.dim() == 3:
            return self.tile(query, candidate)
        most = (TILE if points.device.type == "cpu" else GPU_TILE) // points.shape[-1]
        some = max(1, min(asked, most // TOGETHER))
        few = max(1, most // some)
        starts = [(n, max(0, min(n, len(points) - few))) for n in range(0, len(points), few)]
        tiles = [
            [self.tile(_some(query, b, some), _some(candidate, at, few))[:, n - at :] for n, at in starts]
            for b in range(0, max(1, asked), some)
        ]
        return torch.cat([torch.cat(of_queries, 1) for of_queries in tiles])

    def initialise(self, seed: int, scale: float | None = None, *, host: bool = False) -> Model:
        """Draw every table's initial values; the same seed gives the same values on every device.

        ``scale``: the standard deviation of entities and translations in each coordinate, by default the setting.
        ``host``: keep the entities' points in host memory that a GPU can access (see :meth:`to`). Points are rounded
        to ``point_dtype``.
        """
        generator = torch.Generator().manual_seed(seed)
        scale = self.initial_scale if scale is None else scale
        self.parameters = {}
        for t in self.tables:
            rows, kind = self.rows_of(t), self.dtype_of(t)
            into = room((rows, *t.shape), kind) if host and t.name == "entity" else None
            if kind == self.dtype:
                self.parameters[t.name] = t.draw(rows, kind, generator, scale, into)
                continue
            # Block by block: drawn at once, they would need three times their memory.
            values = self.parameters[t.name] = torch.empty(rows, *t.shape, dtype=kind) if into is None else into
            for start, drawn in t.draw_in_blocks(rows, self.dtype, generator, scale):
                values[start : start + len(drawn)] = rounded(drawn, kind, t.geometry)
        return self

    def dtype_of(self, table: Table) -> torch.dtype:
        """The precision in which training stores a table."""
        return self.point_dtype if table.name == "entity" else self.dtype

    def in_full(self) -> Model:
        """The model with all tables in ``dtype``: itself, if it stores them so; other tables are shared, not copied."""
        if self.point_dtype == self.dtype:
            return self
        model = copy.copy(self)
        model.parameters = {name: values.to(self.dtype) for name, values in self.parameters.items()}
        model.point_dtype = self.dtype
        return model

    def rows_of(self, table: Table) -> int:
        """How many rows a table has."""
        return {"entity": self.num_entities, "relation": self.num_relations, "shared": 1}[table.of]

    def broken(self) -> list[str]:
        """Which tables have a row that is not a point of its space (NaN, infinite or outside the ball), with the
        row."""
        found = []
        for table in self.tables:
            values = self.parameters[table.name]
            rows = values.flatten(1) if table.shape else values[:, None]
            some = max(1, LOOKED_AT // max(1, rows.shape[1]))
            for start in range(0, len(rows), some):  # a table may fill the memory: no copy of all of it
                good = table.geometry.contains(rows[start : start + some].to(self.dtype))
                if not bool(good.all()):
                    first = start + (self.first_row if table.of == "entity" else 0)
                    found.append(f"{table.name} (row {first + int((~good).nonzero()[0])})")
                    break
        return found

    def to(self, device: torch.device | str, *, host: bool = False) -> Model:
        """Move every table to ``device``; with ``host``, the entities' points to host memory that a GPU can access."""
        self.parameters = {
            name: pinned(values) if host and name == "entity" else values.to(device)
            for name, values in self.parameters.items()
        }
        return self

    def on_cpu(self) -> Model:
        """The model with its tables on the CPU; tables that are already there are shared, not copied."""
        return copy.copy(self).to("cpu")

    @property
    def device(self) -> torch.device:
        """The device that computes: where the tables are, except points in host memory."""
        others = (values for name, values in self.parameters.items() if name != "entity")
        return next(others, next(iter(self.parameters.values()))).device

    @property
    def on_host(self) -> bool:
        """Whether the entities' points are in host memory while it computes on a GPU."""
        return self.parameters["entity"].device != self.device

    def rows(self, role: Role, indices: Tensor | None = None) -> Rows:
        """The rows read in ``role``, at ``indices`` of any shape; the whole tables if that is None.

        Shared tables have one row, and are given without that axis. Points are given in ``dtype``, whatever they are
        stored in.
        """
        tables = {t.name: self.parameters[t.name] for t in self.tables if role in t.roles}
        if role == "shared":
            return {name: values[0] for name, values in tables.items()}
        if indices is None:
            return {name: values.to(self.dtype) for name, values in tables.items()}
        # index_select copies rows about three times as fast as values[indices] on the CPU.
        flat = indices.flatten()
        return {
            name: values.index_select(0, flat).view(*indices.shape, *values.shape[1:]).to(self.dtype)
            for name, values in tables.items()
        }

    @torch.no_grad()
    def score(self, subjects: Tensor, relations: Tensor, objects: Tensor) -> Tensor:
        """φ(s, r, o) for each triple; three index tensors of shape (B,) → (B,)."""
        candidates = self.rows("object", objects[:, None])
        return self.score_rows(self.rows("subject", subjects), self.rows("relation", relations), candidates)[:, 0]

    @torch.no_grad()
    def score_objects(self, subjects: Tensor, relations: Tensor) -> Tensor:
        """φ(s, r, ·) against every entity; two index tensors of shape (B,) → (B, N).

        A score depends only on its query and its object, so equal entities tie: see :mod:`murp.models.blocks`.
        """
        return self.score_queries(self.rows("subject", subjects), self.rows("relation", relations))

    @torch.no_grad()
    def score_queries(self, subject: Rows, relation: Rows) -> Tensor:
        """The same for queries given by their rows (B, …): (B, N)."""
        if self.device.type != "cpu":
            return self.score_rows(subject, relation, self.rows("object"))
        questions = len(next(iter((subject or relation).values())))  # a score may not depend on its subject
        scores = torch.empty(questions, self.num_entities, dtype=self.dtype)
        length = block_length(self.num_entities)
        blocks = iter([(b, n) for b in range(0, questions, QUERIES) for n in range(0, self.num_entities, length)])

        @torch.no_grad()
        def score_blocks() -> None:
            for b, n in blocks:
                asked = scores[b : b + QUERIES]
                which = filled(torch.arange(b, b + len(asked)), QUERIES)
                s, r = ({name: rows.index_select(0, which) for name, rows in of.items()} for of in (subject, relation))
                found = self.score_rows(s, r, self._objects(n, length))
                asked[:, n : n + length] = found[: len(asked), : self.num_entities - n]

        threads.share_torch(score_blocks, min(threads.count(), 1 + scores.numel() // CELLS_A_THREAD))
        return scores

    def query_rows(self, subjects: Tensor, relations: Tensor) -> tuple[Rows, Rows]:
        """The rows of subjects and relations of at most ``QUERIES`` queries, padded with the last one."""
        return self.rows("subject", filled(subjects, QUERIES)), self.rows("relation", filled(relations, QUERIES))

    def _objects(self, start: int, length: int) -> Rows:
        """The rows of ``length`` objects from ``start`` on, padded with the last one."""
        if start + length <= self.num_entities:
            return {name: values[start : start + length] for name, values in self.rows("object").items()}
        return self.rows("object", filled(torch.arange(start, self.num_entities), length))


def _some(given: Sided, start: int, count: int) -> Sided:
    """``count`` of the queries or candidates, from ``start`` on."""
    rows = slice(start, start + count)
    return type(given)(
        tuple(vectors[rows] for vectors in given.vectors),
        {name: values[rows] for name, values in given.numbers.items()},
    )


def inner(x: Tensor, candidates: Tensor) -> Tensor:
    """⟨x_b, v⟩ for the candidates of each query: (B, d) with (B, K, d) → (B, K), with (N, d) → (B, N)."""
    if candidates.dim() == 2:
        differentiated = torch.is_grad_enabled() and (x.requires_grad or candidates.requires_grad)
        return x @ candidates.T if differentiated else inner_products(x, candidates)
    if x.is_cuda:  # a compiler joins this to what comes before and after, and it needs no workspace
        return (candidates * x.unsqueeze(1)).sum(-1)
    return torch.bmm(candidates, x.unsqueeze(-1)).squeeze(-1)


def squared_norm(x: Tensor) -> Tensor:
    """|x|² along the last axis."""
    if x.dim() == 2 and not (torch.is_grad_enabled() and x.requires_grad):
        return squared_norms(x)
    return (x * x).sum(-1)
