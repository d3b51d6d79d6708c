"""Limits for one connection: bytes, time and a place."""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from murp.web.refusals import refusal
from murp.web.security import HEADERS

LONGEST_HEAD = 64 * 2**10  # bytes of a request's line and headers
MOST_ASKED = 64  # requests of one connection without their answers
PATIENCE = 10  # seconds; who asks nothing for so long is hung up on
ALLOWANCE = 1.0  # seconds that an answer may take before it counts against its client that it waits


class Protocol(HttpToolsProtocol):
    """HTTP with httptools, a compiled parser, plus limits that uvicorn's own class does not have.

    That class accepts a head of any length; this one closes the connection after ``LONGEST_HEAD`` bytes. That class
    keeps all requests of one packet, possibly thousands; this one keeps ``MOST_ASKED``. That class waits forever for a
    request, for the rest of one, and for its answer to be read; this one checks every connection each ``PATIENCE``
    seconds. That class continues with an answer after the client has left, and logs an error if it cannot be sent; this
    one stops. Its own error responses are the same as the application's: JSON, with the security headers.
    """

    _unfinished = 0  # bytes since the last whole head or piece of a body
    _asked = False  # whether a whole head has come since the last look
    _unread = 0  # bytes of answers that the client had not taken at the last look
    _task: asyncio.Task[None] | None = None  # that makes the answer of the first of the cycles
    _since: float  # the client last asked, or was last seen to have read
    _look: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app = self._answer
        self._cycles: deque[RequestResponseCycle] = deque()  # requests without a whole answer, the oldest first
        self._since = self.loop.time()
        self._look = self.loop.call_later(PATIENCE, self._look_after)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)
        self._give_up()

    @property
    def idle(self) -> float:
        """Seconds for which the client has neither asked nor read; ``ALLOWANCE`` less while it waits for an answer."""
        return self.loop.time() - self._since - ALLOWANCE * self.answering

    @property
    def answering(self) -> bool:
        """Whether the client is waiting for us."""
        return self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused

    def hang_up(self) -> None:
        """Close the connection at once: a normal close would wait for unread data."""
        self.transport.abort()

    def _look_after(self) -> None:
        """Close the connection unless the client has sent a request or read since the last check, or is waiting for us.

        So a client that has sent no request is closed after ``PATIENCE``, all others after at most twice that. Bytes of
        a head or body do not count: otherwise a byte now and then would keep the place forever.
        """
        unread = self.transport.get_write_buffer_size()
        if unread < self._unread:
            self._since = self.loop.time()
        elif not self._asked and not self.answering:
            self.hang_up()
            return
        self._asked, self._unread = False, unread
        self._look = self.loop.call_later(PATIENCE, self._look_after)

    def data_received(self, data: bytes) -> None:
        self._unfinished += len(data)
        super().data_received(data)
        if self._unfinished > LONGEST_HEAD:
            self.send_400_response(f"the head of the request is longer than {LONGEST_HEAD} bytes.")

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return  # what comes after a refusal in the same packet
        if len(self._cycles) >= MOST_ASKED:
            self.send_400_response(f"more than {MOST_ASKED} requests at a time.")
            return
        self._unfinished = 0
        self._asked = True
        self._since = self.loop.time()
        super().on_headers_complete()
        self._cycles.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        super().on_body(body)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application's answer, as long as the client is connected."""
        self._task = asyncio.current_task()
        try:
            await self.config.loaded_app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._cycles[0].disconnected:
                raise
        finally:
            self._task = None
            self._cycles.popleft()

    def _give_up(self) -> None:
        """Answer nothing more; the server itself would mark only the last of several requests."""
        for cycle in self._cycles:
            cycle.disconnected = True
        if self._task is not None:
            self._task.cancel()

    def send_400_response(self, msg: str) -> None:
        if self.transport.is_closing():
            return
        self._give_up()
        answer = refusal(400, msg, "Ask in HTTP/1.1; the interface is at /openapi.json.")
        answer.headers.update({**HEADERS, "connection": "close"})
        fields = [*self.server_state.default_headers, *answer.raw_headers]
        head = [b"HTTP/1.1 400 Bad Request", *(name + b": " + value for name, value in fields)]
        self.transport.write(b"\r\n".join([*head, b"", bytes(answer.body)]))
        self.transport.close()
