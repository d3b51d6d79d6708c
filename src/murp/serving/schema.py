"""The shapes of requests and answers, for the OpenAPI document and for the tests; the routes send plain JSON."""

from __future__ import annotations

from pydantic import Field

from murp.serving.limits import LONGEST_NAME, MOST_ANSWERS
from murp.shapes import Answer, Reference, Scored
from murp.web.schema import Strict, example

ASIA, INDIA, HAS_PART = "asia.n.01", "india.n.01", "has_part"


class Question(Strict):
    """(head, relation, ?) or (?, relation, tail)."""

    model_config = example(head=ASIA, relation=HAS_PART)
    relation: str = Field(max_length=LONGEST_NAME, description="id or name")
    head: str | None = Field(None, max_length=LONGEST_NAME, description="id or name; asks for tails")
    tail: str | None = Field(None, max_length=LONGEST_NAME, description="id or name; asks for heads")
    k: int = Field(10, ge=1, le=MOST_ANSWERS, description="how many answers")
    new_only: bool = Field(False, description="leave out facts that are in the graph")
    types: bool = Field(
        False,
        description="leave out answers that type constraints refuse: entities of the wrong type, and a second answer "
        "if the relation allows one; default: as the server was started (--types)",
    )
    candidates: list[str] | None = Field(None, min_length=1, description="rank only these entities")


class Questions(Strict):
    """A list of questions, or an object with questions and default values for their fields."""

    model_config = example(
        questions=[
            {"head": ASIA, "relation": HAS_PART},
            {"relation": HAS_PART, "tail": INDIA, "k": 2, "candidates": [ASIA, "europe.n.01"]},
        ],
        k=3,
        new_only=True,
    )
    questions: list[Question]
    k: int = Field(10, ge=1, le=MOST_ANSWERS)
    new_only: bool = False
    types: bool = False
    candidates: list[str] | None = None


class Answers(Strict):
    """An answer for each question, in their order."""

    model_config = example(
        answers=[
            {
                "relation": {"id": HAS_PART, "name": HAS_PART},
                "head": {"id": ASIA, "name": "asia"},
                "tail": None,
                "predictions": [
                    {"rank": 1, "id": INDIA, "name": "India", "score": 1.5, "probability": 0.82, "known": None}
                ],
            }
        ]
    )
    answers: list[Answer]


class Triples(Strict):
    """A list of triples [head, relation, tail], given by id or name, or an object with this list."""

    model_config = example(triples=[[ASIA, HAS_PART, INDIA]])
    triples: list[tuple[str, str, str]]


class Scores(Strict):
    """A score for each triple, in their order."""

    model_config = example(scores=[{"score": 1.5, "probability": 0.82, "known": "train"}])
    scores: list[Scored]


class Relations(Strict):
    """Every relation."""

    relations: list[Reference]
