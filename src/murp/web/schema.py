"""The shape of a refusal, and what the shapes of all answers share; for OpenAPI documents and for the tests."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def example(**values: Any) -> ConfigDict:
    """A shape without other fields, and an example of it."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [values]})


class Strict(BaseModel):
    """No field that is not named here."""

    model_config = ConfigDict(extra="forbid")


class Refusal(Strict):
    """Why there is no answer, and what to do."""

    model_config = example(
        error="unknown entity 'asai'.", advice="Look it up with /api/search?q=asai.", closest=["asia [asia.n.01]"]
    )
    error: str
    advice: str
    closest: list[str] = Field(default=[], description="what may have been meant")
