"""An application with routes, and what its routes give and document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

import murp
from murp.web.encoding import to_json
from murp.web.refusals import add_refusals

Refusals = Mapping[int | str, dict[str, Any]]


def application(title: str, start: str, description: str = "") -> FastAPI:
    """One without routes yet; ``start`` is the path of the page that a lost reader is sent to."""
    app = FastAPI(
        title=title,
        version=murp.__version__,
        description=description,
        docs_url=None,  # their scripts would come from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    add_refusals(app, start)
    return app


def as_json(answer: Any) -> Response:
    """An answer as a response."""
    return Response(to_json(answer), media_type="application/json")


def gives(answer: type, refusals: Refusals) -> dict[str, Any]:
    """What a route documents: the shape of its answer and of its refusals."""
    return {"response_model": None, "responses": {200: {"model": answer, "description": "the answer"}, **refusals}}
