"""The routes of ``murp serve``."""

from __future__ import annotations

import asyncio
import dataclasses
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import ASGIApp

from murp.serving import parsing, schema
from murp.serving.access import Rates
from murp.serving.answering import Answerer
from murp.serving.current import Current
from murp.serving.documentation import page
from murp.serving.limits import Limits
from murp.serving.metrics import CONTENT_TYPE, Metrics
from murp.serving.middleware import RequestMiddleware
from murp.shapes import Health
from murp.web.application import application, as_json, gives
from murp.web.refusals import Refused, documented
from murp.web.security import Guard, with_head

REFUSALS = documented(
    {
        400: "the request is not HTTP, or its body is not JSON",
        401: "the API key is missing or wrong",
        404: "unknown entity or relation",
        408: "the body did not arrive in time",
        413: "the request has too many bytes or questions",
        421: "the host name is not one of this machine",
        422: "a question or triple is malformed",
        429: "this client asked too many questions; Retry-After says when it may ask again",
        500: "the run cannot answer this, or murp has a bug",
        503: "the answer would take too long",
    }
)
SENDING = 10.0  # seconds for the body of a request to arrive


def create_app(current: Current, limits: Limits, keys: frozenset[bytes], bound: str) -> ASGIApp:
    """The application that answers from ``current``, to be served at the address ``bound``.

    Where there are keys every host name is answered: a page of another site, which a foreign name made to point here
    would let in, has none.
    """
    app = application(
        "murp serve",
        "/docs",
        "Ask a trained run questions, many in one request. Entities and relations are given by id or by name. All "
        "answers are JSON, except /metrics. HEAD works like GET.",
    )
    metrics = Metrics()
    _add_questions(app, current, limits, metrics)
    _add_state(app, current, metrics)
    _add_documentation(app, limits)
    documented = {route.path for route in app.routes if isinstance(route, APIRoute) and route.include_in_schema}
    metrics.paths = frozenset({*documented, "/docs", "/openapi.json"})
    return Guard(RequestMiddleware(with_head(app), metrics, keys), bound, any_host=bool(keys))


def _add_questions(app: FastAPI, current: Current, limits: Limits, metrics: Metrics) -> None:
    answerer, rates = Answerer(), Rates(limits.rate)

    @app.post("/predict", summary="answers to questions", **_takes(schema.Questions, schema.Answers))
    async def predict(request: Request) -> Response:
        body = parsing.parsed(await _body(request, limits))
        loaded = current.loaded  # this one to the end, whatever takes its place meanwhile
        async with limits.in_time() as late:
            questions = await parsing.questions(body, loaded, limits)
            _spend(rates, request, len(questions))
            answers = await answerer.predict(loaded, questions, late)
        metrics.questions += len(questions)
        return Response(answers, media_type="application/json")

    @app.post("/score", summary="scores of triples", **_takes(schema.Triples, schema.Scores))
    async def score(request: Request) -> Response:
        body = parsing.parsed(await _body(request, limits))
        loaded = current.loaded
        async with limits.in_time():
            triples = await parsing.triples(body, loaded, limits)
            _spend(rates, request, len(triples))
            scores = await answerer.score(loaded, triples)
        metrics.triples += len(triples)
        return Response(scores, media_type="application/json")


def _add_state(app: FastAPI, current: Current, metrics: Metrics) -> None:
    @app.get("/relations", summary="the relations of the run's graph", **_gives(schema.Relations))
    async def relations() -> Response:
        return Response(current.loaded.relations_json(), media_type="application/json")

    @app.get("/health", summary="what is served; needs no key", **_gives(Health))
    async def health() -> Response:
        return as_json(dataclasses.asdict(current.loaded.health(current.reloads, current.error)))

    @app.get(
        "/metrics",
        summary="counters for Prometheus",
        response_class=Response,
        responses={200: {"description": "the counters", "content": {"text/plain": {}}}, **REFUSALS},
    )
    async def counters() -> Response:
        return Response(metrics.text(current), headers={"content-type": CONTENT_TYPE})


def _add_documentation(app: FastAPI, limits: Limits) -> None:
    style = files("murp.serving").joinpath("style.css").read_bytes()

    async def documentation() -> Response:
        return Response(page(app.openapi(), limits), media_type="text/html")

    async def stylesheet() -> Response:
        return Response(style, media_type="text/css")

    for path, answer in (("/docs", documentation), ("/", documentation), ("/docs/style.css", stylesheet)):
        app.get(path, include_in_schema=False)(answer)


async def _body(request: Request, limits: Limits) -> bytes:
    """The body of a request, which must be short enough and must not drip."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(422, "the body is compressed.", "Send it as it is.")
    pieces, size = [], 0
    try:
        async with asyncio.timeout(SENDING):
            async for piece in request.stream():
                size += len(piece)
                if size > limits.bytes:
                    raise Refused(413, f"the body has more than {limits.bytes:,} bytes.", "Ask less at a time.")
                pieces.append(piece)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {SENDING:g} s.", "Send it at once.") from None
    return b"".join(pieces)


def _spend(rates: Rates, request: Request, questions: int) -> None:
    """Count questions against what the client may ask."""
    seconds = rates.wait(request.scope["murp.client"], questions)
    if seconds:
        refused = Refused(429, f"more than {rates.rate:g} questions a second.", f"Ask again in {seconds} s.")
        refused.response.headers["retry-after"] = str(seconds)
        raise refused


def _gives(answer: type) -> dict[str, Any]:
    return gives(answer, REFUSALS)


def _takes(request: type[BaseModel], answer: type) -> dict[str, Any]:
    """What a route documents that takes a body: its shape too."""
    body = {"required": True, "content": {"application/json": {"schema": _whole(request)}}}
    return {**_gives(answer), "openapi_extra": {"requestBody": body}}


def _whole(shape: type[BaseModel]) -> dict[str, Any]:
    """The schema of a shape with those it refers to in their places."""
    schema = shape.model_json_schema()
    parts = schema.pop("$defs", {})

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return filled(parts[value["$ref"].rpartition("/")[2]])
            return {name: filled(inner) for name, inner in value.items()}
        return [filled(inner) for inner in value] if isinstance(value, list) else value

    whole: dict[str, Any] = filled(schema)
    return whole
