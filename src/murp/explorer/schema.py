"""The shapes of the answers, for the OpenAPI document and for the tests; the routes themselves send plain JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from murp.web.schema import Refusal as Refusal
from murp.web.schema import Strict as Strict
from murp.web.schema import example

Split = Literal["train", "valid", "test"]
Side = Literal["tail", "head"]
ASIA = {"id": "asia.n.01", "name": "asia"}
INDIA = {"id": "india.n.01", "name": "India"}
HAS_PART = {"id": "has_part", "name": "has_part"}


class Reference(Strict):
    id: str
    name: str


class Packed(Strict):
    """An array in base64: little-endian, row by row."""

    type: Literal["float32", "uint32", "uint8"]
    shape: list[int]
    base64: str


class Graph(Strict):
    name: str
    entities: int
    train: int
    valid: int
    test: int


class Relation(Reference):
    facts: int


class RunAbout(Strict):
    name: str
    model: str
    dim: int
    geometry: Literal["poincare", "euclidean"]
    curvature: float | None
    epoch: int | None
    best_mrr: float | None = Field(description="on valid, by the protocol of the run's validations")


class ColumnName(Strict):
    name: str


class Column(Strict):
    """A class of every point, and what the classes mean."""

    run: int
    name: str
    classes: Packed = Field(description="(P) uint8: 0 … 7")
    labels: list[str]
    is_category: bool


class Suggestion(Strict):
    """A question worth a click."""

    entity: Reference
    relation: Reference
    direction: Side = Field(description="what is asked for")


class About(Strict):
    murp: str
    graph: Graph
    drawn: int = Field(description="how many entities are drawn")
    relations: list[Relation]
    relation: str = Field(description="the id of the one shown first")
    hierarchy: str | None = Field(description="the id of the relation of the tree")
    suggestions: list[Suggestion]
    training: bool = Field(description="whether its training was watched: /training shows it")
    columns: list[ColumnName] = Field(description="what points can be coloured and sized by")
    runs: list[RunAbout]


class Drawn(Strict):
    """Ids and names in the order of the points of /api/project, the most important first; at most 100,000."""

    ids: list[str]
    names: list[str]


class Found(Reference):
    gloss: str | None
    facts: int = Field(description="in how many facts it occurs")


class Search(Strict):
    model_config = example(query="asi", results=[{**ASIA, "gloss": "the largest continent …", "facts": 52}])
    query: str
    results: list[Found]


class Neighbour(Reference):
    rank: int
    distance: float


class Neighbours(Strict):
    model_config = example(run=1, entity=ASIA, neighbours=[{"rank": 1, **INDIA, "distance": 0.71}])
    run: int
    entity: Reference
    neighbours: list[Neighbour]


class KnownFact(Reference):
    known: Split


class KnownFactsOfRelation(Strict):
    """The facts of one relation; ``side`` is the place that the others take."""

    relation: Reference
    side: Side
    total: int
    facts: list[KnownFact]


class LikelyFact(Reference):
    relation: Reference
    side: Side
    probability: float = Field(description="σ(φ)")
    calibrated: float | None = Field(description="by the run's calibration; null: it has none")


class Entity(Reference):
    run: int
    gloss: str | None
    facts: int
    norm: float
    biases: dict[Literal["head", "tail"], float]
    neighbours: list[Neighbour]
    path: list[Reference] = Field(description="to the top of the hierarchy, itself first")
    known_facts: list[KnownFactsOfRelation]
    likely: list[LikelyFact]


class Prediction(Reference):
    rank: int
    score: float = Field(description="φ(s, r, o)")
    probability: float = Field(description="σ(φ)")
    calibrated: float | None = Field(
        default=None, description="the probability by the run's calibration, if it has one, for an answer that is new"
    )
    known: Split | None = Field(description="the split that states the fact; null: it is new")


class Query(Strict):
    relation: Reference
    head: Reference | None = None
    tail: Reference | None = None


class Predictions(Strict):
    model_config = example(
        run=1,
        query={"relation": HAS_PART, "head": ASIA},
        predictions=[{"rank": 1, **INDIA, "score": 1.59, "probability": 0.83, "known": "train"}],
    )
    run: int
    query: Query
    predictions: list[Prediction]


class Support(Strict):
    head: Reference
    tail: Reference
    distance: float = Field(description="of its two ends from those of the answer, together")


class Why(Strict):
    """Training facts of the same relation that lie nearest to an answer."""

    run: int
    relation: Reference
    facts: list[Support]


class Grown(Strict):
    """The tree that the embedding implies: the radius goes by the norm, the angle by the tree."""

    run: int
    relation: Reference | None
    points: Packed = Field(description="(P, 2) float32")
    parents: Packed = Field(description="(P) uint32: the place of the parent among the points; its own at the top")
    inside: Packed = Field(description="(P) uint8: whether it is part of the hierarchy")
    depth: Packed = Field(description="(P) uint8: levels below the top")
    below: Packed = Field(description="(P) uint32: how many it stands above, itself included")


class Near(Reference):
    distance: float = Field(description="from the centre, in the model's geometry")
    x: float
    y: float


class Projected(Strict):
    model_config = example(
        run=1,
        centre=ASIA,
        projection="40 dimensions shown in two: …",
        nearest=[{**ASIA, "distance": 0.0, "x": 0.0, "y": 0.0}, {**INDIA, "distance": 0.71, "x": 0.21, "y": 0.27}],
    )
    run: int
    centre: Reference | None = Field(description="null: the origin")
    projection: str = Field(description="what the picture shows, in words")
    scale: float = Field(description="a distance d is drawn as if it were scale · (d - cut)")
    cut: float
    nearest: list[Near]
    points: Packed | None = Field(default=None, description="(P, 2) float32: every drawn entity")
    levels: Packed | None = Field(default=None, description="(P) uint8: eighth of the norms, 0 the smallest")


class Places(Strict):
    before: list[float]
    after: list[float]


class Asked(Strict):
    """The given entity and its answers before and after the relation moves them; kinds: 2 · known + (p ≥ ½).

    ``known`` is in the graph and likely, ``new`` likely and not in the graph, ``missed`` in the graph and not likely.
    """

    run: int
    given: Places
    before: Packed
    after: Packed
    kinds: Packed
    counts: dict[Literal["other", "new", "missed", "known"], int]


class Edges(Strict):
    relation: Reference
    facts: int
    edges: Packed = Field(description="(E, 2) uint32: places of head and tail among the points")
    splits: Packed = Field(description="(E) uint8: which states it, 0 train, 1 valid, 2 test")


class TrainingRecord(Strict):
    epoch: int
    loss: float
    mrr: float | None = Field(description="on valid, by the protocol of the run's validations, where it was computed")


class AtCurvature(Strict):
    curvature: float = Field(description="c, of a space of curvature -c")
    map: float = Field(description="mean average precision of a reconstruction")
    mean_rank: float


class InDimensions(Strict):
    dim: int
    map: float
    mean_rank: float
    drawn: float = Field(description="how long a distance from the middle is drawn, in its own lengths")


class Sliders(Strict):
    """How well a tree can be read from its layout by curvature, and from Poincaré embeddings by dimension."""

    curvatures: list[AtCurvature]
    dimensions: list[InDimensions]


class Training(Strict):
    """A training, going on or done."""

    name: str
    graph: str
    model: str
    dim: int
    geometry: str
    epochs: int = Field(description="how many there will be")
    done: bool
    protocol: str = Field(description="of the validations")
    records: list[TrainingRecord]
    snapshots: list[int] = Field(description="the epochs that /api/training/picture has")
    sliders: Sliders | None = Field(description="of a layout: what it is compared with")


class TrainedPoints(Strict):
    """The entities of the pictures, in the order of their points."""

    ids: list[str]
    names: list[str]
    depth: Packed
    relation: str | None
    edges: Packed = Field(description="(E, 2) uint32: places of parent and child among the points")


class TrainedPicture(Strict):
    epoch: int
    points: Packed
    scale: float


class TrainedEmbedding(Strict):
    dim: int
    points: Packed


class Difference(Suggestion):
    answer: Reference
    ranks: list[float] = Field(description="filtered, protocol standard; of each run")


class Differences(Strict):
    """Held-out facts that the runs rank most differently."""

    split: Split
    asked: int = Field(description="questions that were compared")
    questions: list[Difference]


class Metrics(Strict):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    mrr: float | None
    mr: float | None
    hits_1: float | None = Field(alias="hits@1")
    hits_3: float | None = Field(alias="hits@3")
    hits_10: float | None = Field(alias="hits@10")
    queries: int


class RelationMetrics(Metrics):
    id: str
    name: str


class MetricsTable(Strict):
    """Filtered ranking of both directions under the named protocol."""

    run: int
    split: Split
    protocol: Literal["standard", "paper"]
    overall: Metrics
    relations: list[RelationMetrics]
