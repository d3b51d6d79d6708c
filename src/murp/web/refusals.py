"""Requests that get no answer: what was wrong and what to do, as JSON in one shape whoever refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from murp.errors import MurpError
from murp.web.encoding import to_json
from murp.web.schema import Refusal


def documented(refusals: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """What a route documents of the refusals by their status, each with its reason."""
    return {status: {"model": Refusal, "description": why} for status, why in refusals.items()}


class Refused(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, error: str, advice: str, closest: list[str] | None = None) -> None:
        self.response = refusal(status, error, advice, closest)


def refusal(status: int, error: str, advice: str, closest: list[str] | None = None) -> Response:
    """The answer that there is none; ``closest`` is what may have been meant."""
    body = {"error": error, "advice": advice, **({"closest": closest} if closest else {})}
    return Response(to_json(body), status, media_type="application/json")


def add_refusals(app: FastAPI, start: str) -> None:
    """Errors as refusals; ``start`` is the path of the page that a lost reader is sent to."""

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        return error.response

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        wrong = "; ".join(f"{e['loc'][-1]}: {e['msg']}" for e in error.errors())
        return refusal(422, f"{wrong}.", "/openapi.json says what each parameter may be.")

    @app.exception_handler(MurpError)
    async def failed(_: Request, error: MurpError) -> Response:
        return refusal(500, str(error), "The run cannot answer this; what to do is said in the error.")

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return refusal(
            500, f"a mistake of murp's own: {type(error).__name__}.", "The terminal shows where; please tell us."
        )

    @app.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> Response:
        what = f"{request.method} {request.scope['path']}: {error.detail}."
        response = refusal(error.status_code, what, f"The page is at {start}, the interface at /openapi.json.")
        response.headers.update(error.headers or {})
        if response.headers.get("allow") == "GET":
            response.headers["allow"] = "GET, HEAD"  # the routes do not know that HEAD is answered for them
        return response
