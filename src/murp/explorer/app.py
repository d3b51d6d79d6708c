"""The routes. They look names up and limit requests; :mod:`murp.explorer.answers` computes the answers.

A handler is a coroutine that does its millisecond of work directly: a thread pool would cost more than the work. Slower
work, the metrics of a run and suggestions for misspelt names, runs in a thread.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from murp.explorer import answers, columns, markup, schema
from murp.explorer.collection import MOST_RUNS, Collection
from murp.explorer.differences import differences
from murp.explorer.fast_path import PredictFastPath
from murp.explorer.live import Live
from murp.web.application import application, as_json, gives
from murp.web.encoding import to_json
from murp.web.names import Index
from murp.web.names import find as find_name
from murp.web.refusals import Refused, documented
from murp.web.security import Guard, with_head

MOST = 1000  # answers to one question
LONGEST = 500  # characters of a name
LOOK_UP = {"entity": "Look it up with /api/search?q=…", "relation": "/api/run lists the relations."}
REFUSALS = documented(
    {
        400: "not HTTP, or a head without end",
        404: "unknown entity, relation or run",
        405: "a method other than GET and HEAD",
        421: "a foreign host name",
        422: "a parameter is missing, malformed or out of bounds",
        500: "the run cannot answer this, or a mistake of murp's own",
    }
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

Name = Annotated[str, Query(max_length=LONGEST, description="id or name", examples=["asia.n.01"])]
Relation = Annotated[str, Query(max_length=LONGEST, description="id or name", examples=["has_part"])]
Count = Annotated[int, Query(ge=1, le=MOST, description="how many")]
Which = Annotated[int, Query(ge=1, le=MOST_RUNS, description="which of the runs, from 1 on")]
Head = Annotated[str | None, Query(max_length=LONGEST, description="asks for tails", examples=["asia.n.01"])]
Tail = Annotated[str | None, Query(max_length=LONGEST, description="asks for heads")]


def create_app(collection: Collection, bound: str = "127.0.0.1", *, framed: bool = False) -> ASGIApp:
    """The application for a collection, to be served at the address ``bound``; ``framed``: see :class:`Guard`."""
    app = application(
        "murp explorer",
        "/",
        "A trained run: search, predictions, neighbours, projections and metrics. Every answer is JSON; "
        "HEAD is answered wherever GET is.",
    )
    _add_questions(app, collection)  # first, since routes are tried in order and these are asked most
    _add_lookups(app, collection)
    _add_pictures(app, collection)
    if (trained := collection.prepared[0].run.path).joinpath("config.toml").is_file():
        _add_live(app, Live(trained))
    _add_page(app)
    with_fast_path = PredictFastPath(with_head(app), collection, longest=LONGEST, most=MOST)
    return Guard(
        with_fast_path, bound, framed=framed
    )  # outermost, so that nothing said in here goes without its headers


def _add_lookups(app: FastAPI, collection: Collection) -> None:
    everything = to_json(answers.drawn(collection))
    one_at_a_time = asyncio.Lock()
    kept: list[bytes] = []  # found once, for they take a while

    @app.get("/api/run", **_answers(schema.About), summary="what is shown: runs, graph, relations")
    async def about() -> Response:
        return as_json(answers.about(collection))

    @app.get("/api/entities", **_answers(schema.Drawn), summary="the drawn entities, in the order of their points")
    async def entities() -> Response:
        return Response(everything, media_type="application/json")

    @app.get("/api/search", **_answers(schema.Search), summary="entities whose name or id contains a text")
    async def search(
        q: Annotated[str, Query(max_length=LONGEST, description="what has been typed", examples=["asi"])] = "",
        k: Count = 10,
    ) -> Response:
        return as_json(answers.search(collection, q, k))

    @app.get("/api/entity", **_answers(schema.Entity), summary="one entity: gloss, norm, biases, neighbours")
    async def entity(entity: Name, k: Count = 5, run: Which = 1) -> Response:
        _check_run(collection, run)
        return as_json(answers.entity(collection, run, await find(collection.entities, entity), k))

    @app.get("/api/differences", **_answers(schema.Differences), summary="questions that the runs answer differently")
    async def differing() -> Response:
        _check_run(collection, 2)
        async with one_at_a_time:
            if not kept:
                kept.append(to_json(await asyncio.to_thread(differences, collection)))
        return Response(kept[0], media_type="application/json")

    @app.get("/api/metrics", **_answers(schema.MetricsTable), summary="MRR and Hits@k, by relation too")
    async def metrics(run: Which = 1) -> Response:
        _check_run(collection, run)
        report = await asyncio.wrap_future(collection.report(run))
        return as_json(answers.metrics(collection, run, report))


def _add_questions(app: FastAPI, collection: Collection) -> None:
    @app.get("/api/predict", **_answers(schema.Predictions), summary="the most probable tails of a head, or heads")
    async def predict(
        relation: Relation, head: Head = None, tail: Tail = None, k: Count = 10, run: Which = 1
    ) -> Response:
        _check_run(collection, run)
        given, r = await _query(collection, head, relation, tail)
        return as_json(answers.predict(collection, run, given, r, k, heads=tail is not None))

    @app.get("/api/why", **_answers(schema.Why), summary="the known facts nearest to an answer")
    async def why(
        relation: Relation, answer: Name, head: Head = None, tail: Tail = None, k: Count = 5, run: Which = 1
    ) -> Response:
        _check_run(collection, run)
        given, r = await _query(collection, head, relation, tail)
        found = await find(collection.entities, answer)
        return as_json(answers.why(collection, run, given, r, found, k, heads=tail is not None))

    @app.get("/api/neighbours", **_answers(schema.Neighbours), summary="the entities nearest to one")
    async def neighbours(entity: Name, k: Count = 10, run: Which = 1) -> Response:
        _check_run(collection, run)
        return as_json(answers.neighbours(collection, run, await find(collection.entities, entity), k))


def _add_pictures(app: FastAPI, collection: Collection) -> None:
    @app.get("/api/project", **_answers(schema.Projected), summary="where entities lie in the disk around a centre")
    async def project(
        centre: Annotated[
            str | None, Query(max_length=LONGEST, description="id or name; none: the origin", examples=["asia.n.01"])
        ] = None,
        k: Count = 20,
        points: Annotated[bool, Query(description="also the points of all drawn entities, in base64")] = False,
        run: Which = 1,
    ) -> Response:
        _check_run(collection, run)
        middle = None if centre is None else await find(collection.entities, centre)
        return as_json(answers.project(collection, run, middle, k, points=points))

    @app.get("/api/question", **_answers(schema.Asked), summary="a question's answers before and after the relation")
    async def question(
        relation: Relation,
        head: Head = None,
        tail: Tail = None,
        projection: Annotated[
            Literal["distances", "paper"],
            Query(description="distances: true from the given entity; paper: along its vector, and the rest"),
        ] = "paper",
        run: Which = 1,
    ) -> Response:
        _check_run(collection, run)
        given, r = await _query(collection, head, relation, tail)
        return as_json(answers.asked(collection, run, given, r, projection, heads=tail is not None))

    @app.get("/api/column", **_answers(schema.Column), summary="what points are coloured or sized by")
    async def column(name: Name, run: Which = 1) -> Response:
        _check_run(collection, run)
        if name not in (known := columns.names(collection)):
            raise Refused(404, f"there is no column {name!r}.", f"There are {', '.join(known)}.")
        return as_json(await asyncio.to_thread(columns.column, collection, run, name))

    @app.get("/api/tree", **_answers(schema.Grown), summary="the hierarchy that the embedding implies")
    async def tree(run: Which = 1) -> Response:
        _check_run(collection, run)
        return as_json(answers.grown(collection, run))

    @app.get("/api/edges", **_answers(schema.Edges), summary="the facts of a relation as pairs of points")
    async def edges(relation: Relation) -> Response:
        return as_json(answers.edges(collection, await find(collection.relations, relation)))


async def _query(collection: Collection, head: str | None, relation: str, tail: str | None) -> tuple[int, int]:
    """Indices of the given entity and the relation."""
    given = head if head is not None else tail
    if given is None or (head is not None and tail is not None):
        raise Refused(422, "a question has either a head or a tail.", "Give one; the other is predicted.")
    return await find(collection.entities, given), await find(collection.relations, relation)


async def find(names: Index, text: str) -> int:
    """The index of a name or id; an unknown one is refused with what may have been meant."""
    return await find_name(names, text, LOOK_UP)


def _check_run(collection: Collection, run: int) -> None:
    if run > len(collection.prepared):
        raise Refused(404, f"there is no run {run}.", "Start the explorer with more: murp explore RUN RUN2 …")


def _answers(model: type[schema.Strict]) -> dict[str, Any]:
    return gives(model, REFUSALS)


def create_live_app(live: Live, bound: str = "127.0.0.1") -> ASGIApp:
    """The application that shows a training while it goes on: nothing in it needs the model."""
    app = application("murp training", "/")
    _add_live(app, live)
    _add_page(app, first="live.html")
    return Guard(with_head(app), bound)


def _add_live(app: FastAPI, live: Live) -> None:
    @app.get("/api/training", **_answers(schema.Training), summary="how a training goes: curves, and epochs to look at")
    async def training() -> Response:
        return as_json(live.about())

    @app.get("/api/training/points", **_answers(schema.TrainedPoints), summary="which entities its pictures show")
    async def still() -> Response:
        _check_snapshots(live)
        return as_json(live.still())

    @app.get("/api/training/picture", **_answers(schema.TrainedPicture), summary="where they were after an epoch")
    async def picture(epoch: Annotated[int, Query(ge=0, le=10**9, description="one of those listed")]) -> Response:
        _check_snapshots(live)
        if epoch not in live.snapshots.epochs():
            raise Refused(404, f"there is no picture of epoch {epoch}.", "/api/training lists those there are.")
        return as_json(live.frame(epoch))

    @app.get("/api/training/embedding", **_answers(schema.TrainedEmbedding), summary="a layout's tree, embedded")
    async def embedding(dim: Annotated[int, Query(ge=1, le=10**6, description="one of those listed")]) -> Response:
        sliders = live.snapshots.sliders() or {"dimensions": []}
        if dim not in [one["dim"] for one in sliders["dimensions"]]:
            raise Refused(404, f"there is no embedding in {dim} dimensions.", "/api/training lists those there are.")
        return as_json(live.embedding(dim))


def _check_snapshots(live: Live) -> None:
    if not live.snapshots.epochs():
        raise Refused(404, "nobody recorded this training.", "Train with --explore to have pictures of it.")


def _add_page(app: FastAPI, first: str = "index.html") -> None:
    """The page's few files, read once; nothing else on the disk is ever served."""
    pages = {name: markup.read(name).encode() for name in markup.names()}

    @app.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in pages:
            raise HTTPException(404)
        return Response(pages[name], media_type=TYPES[name[name.rindex(".") :]])

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return await part(first)

    @app.get("/training", include_in_schema=False)
    async def training_page() -> Response:
        return await part("live.html")
