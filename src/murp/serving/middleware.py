"""Every request passes through this before it is answered: it is counted, and needs a key if there are keys."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from murp.serving.access import digest, key_of
from murp.serving.metrics import Metrics
from murp.web.refusals import refusal

OPEN = frozenset(
    {"/health", "/docs", "/docs/style.css", "/openapi.json", "/"}
)  # to everyone: they tell nothing of a run


class RequestMiddleware:
    """Refuses requests without a key, if there are ``keys``, and measures all of them."""

    def __init__(self, app: ASGIApp, metrics: Metrics, keys: frozenset[bytes]) -> None:
        self.app, self.metrics, self.keys = app, metrics, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        metrics = self.metrics
        metrics.open += 1
        try:
            app = self.app if self._allowed(scope) else _without_key
            await app(scope, receive, counted)
        finally:
            metrics.open -= 1
            metrics.done(scope["path"], status, time.perf_counter() - began)

    def _allowed(self, scope: Scope) -> bool:
        """Whether a request may be answered; the client is known from here on by its key, or by its address."""
        client = scope.get("client")
        scope["murp.client"] = client[0].encode() if client else b""
        if not self.keys:
            return True
        key = key_of(scope["headers"])
        known = None if key is None else digest(key)
        if known in self.keys:
            scope["murp.client"] = known
            return True
        return scope["path"] in OPEN


async def _without_key(scope: Scope, receive: Receive, send: Send) -> None:
    answer = refusal(
        401, "this server answers who has an API key.", "Send one: `X-API-Key: KEY`, or `Authorization: Bearer KEY`."
    )
    answer.headers["www-authenticate"] = "Bearer"
    await answer(scope, receive, send)
