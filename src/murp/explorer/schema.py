"""The shapes of the answers, for the OpenAPI document and for the tests; the routes themselves send plain JSON."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Split = Literal["train", "valid", "test"]
ASIA = {"id": "asia.n.01", "name": "asia"}
INDIA = {"id": "india.n.01", "name": "India"}
HAS_PART = {"id": "has_part", "name": "has_part"}


def _example(**example: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


class Strict(BaseModel):
    """No field that is not named here."""

    model_config = ConfigDict(extra="forbid")


class Refusal(Strict):
    """Why there is no answer, and what to do."""

    model_config = _example(
        error="unknown entity 'asai'.", advice="Look it up with /api/search?q=asai.", closest=["asia [asia.n.01]"]
    )
    error: str
    advice: str
    closest: list[str] = Field(default=[], description="what may have been meant")


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
    best_mrr: float | None = Field(description="on valid, protocol standard")


class About(Strict):
    murp: str
    graph: Graph
    drawn: int = Field(description="how many entities are drawn")
    relations: list[Relation]
    runs: list[RunAbout]


class Drawn(Strict):
    """Ids and names in the order of the points of /api/project."""

    ids: list[str]
    names: list[str]


class Found(Reference):
    gloss: str | None
    facts: int = Field(description="in how many facts it occurs")


class Search(Strict):
    model_config = _example(query="asi", results=[{**ASIA, "gloss": "the largest continent …", "facts": 52}])
    query: str
    results: list[Found]


class Neighbour(Reference):
    rank: int
    distance: float


class Neighbours(Strict):
    model_config = _example(run=1, entity=ASIA, neighbours=[{"rank": 1, **INDIA, "distance": 0.71}])
    run: int
    entity: Reference
    neighbours: list[Neighbour]


class Entity(Reference):
    run: int
    gloss: str | None
    facts: int
    norm: float
    biases: dict[Literal["subject", "object"], float]
    neighbours: list[Neighbour]


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
    model_config = _example(
        run=1,
        query={"relation": HAS_PART, "head": ASIA},
        predictions=[{"rank": 1, **INDIA, "score": 1.59, "probability": 0.83, "known": "train"}],
    )
    run: int
    query: Query
    predictions: list[Prediction]


class Near(Reference):
    distance: float = Field(description="from the centre, in the model's geometry")
    x: float
    y: float


class Projected(Strict):
    model_config = _example(
        run=1,
        centre=ASIA,
        projection="40 dimensions shown in two: …",
        nearest=[{**ASIA, "distance": 0.0, "x": 0.0, "y": 0.0}, {**INDIA, "distance": 0.71, "x": 0.21, "y": 0.27}],
    )
    run: int
    centre: Reference | None = Field(description="null: the origin")
    projection: str = Field(description="what the picture shows, in words")
    nearest: list[Near]
    points: Packed | None = Field(default=None, description="(P, 2) float32: every drawn entity")
    levels: Packed | None = Field(default=None, description="(P) uint8: eighth of the norms, 0 the smallest")


class Places(Strict):
    before: list[float]
    after: list[float]


class Asked(Strict):
    """The given entity and its answers before and after the relation moves them; kinds: 2 · known + (p ≥ ½)."""

    run: int
    given: Places
    before: Packed
    after: Packed
    kinds: Packed
    counts: dict[Literal["true negative", "false positive", "false negative", "true positive"], int]


class Edges(Strict):
    relation: Reference
    facts: int
    edges: Packed = Field(description="(E, 2) uint32: places of head and tail among the points")


class Figures(Strict):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    mrr: float | None
    mr: float | None
    hits_1: float | None = Field(alias="hits@1")
    hits_3: float | None = Field(alias="hits@3")
    hits_10: float | None = Field(alias="hits@10")
    queries: int


class RelationFigures(Figures):
    id: str
    name: str


class MetricsTable(Strict):
    """Filtered ranking of both directions under the named protocol."""

    run: int
    split: Split
    protocol: Literal["standard", "paper"]
    overall: Figures
    relations: list[RelationFigures]
