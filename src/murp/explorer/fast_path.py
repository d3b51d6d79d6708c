"""A fast path for the most frequent request, before the web framework.

Routing and validation of `/api/predict` cost as much as its answer. A simple valid request is answered here, with the
same function. All other requests, wrong or only unusual, go to the route, which reports errors.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from murp.errors import MurpError
from murp.explorer import answers
from murp.explorer.collection import Collection
from murp.web.encoding import to_json

FIELDS = {"head", "tail", "relation", "k", "run"}


class PredictFastPath:
    """`GET /api/predict` for good questions; names have at most ``longest`` characters, answers ``most`` entities."""

    def __init__(self, app: ASGIApp, collection: Collection, *, longest: int, most: int) -> None:
        self.app = app
        self.collection = collection
        self.longest = longest
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/api/predict" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        body = self.answer(scope["query_string"])
        if body is None:
            await self.app(scope, receive, send)
            return
        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def answer(self, query: bytes) -> bytes | None:
        """What the route would answer; None if that is not plain."""
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        fields = dict(pairs)
        heads = "tail" in fields
        if len(fields) < len(pairs) or not fields.keys() <= FIELDS or heads == ("head" in fields):
            return None
        collection = self.collection
        k, run = _count(fields.get("k", "10"), self.most), _count(fields.get("run", "1"), len(collection.prepared))
        entity, relation = fields["tail" if heads else "head"], fields.get("relation", "")
        if k is None or run is None or max(len(entity), len(relation)) > self.longest:
            return None
        given, r = collection.entities.known(entity), collection.relations.known(relation)
        if given is None or r is None:
            return None
        try:
            return to_json(answers.predict(collection, run, given, r, k, heads=heads))
        except MurpError:
            return None  # the route runs into it too, and says so


def _count(text: str, most: int) -> int | None:
    """A number from 1 to ``most`` in plain digits."""
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        return None
    return number if 1 <= (number := int(text)) <= most else None
