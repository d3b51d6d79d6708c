"""What one connection may take of the server: bytes, time and a place."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from murp.explorer.refusals import refusal
from murp.explorer.security import HEADERS

CONNECTIONS = 128  # at a time; more are told to come back
LONGEST_HEAD = 64 * 2**10  # bytes of a request's line and headers
PATIENCE = 10  # seconds; who asks nothing for so long is hung up on


class Protocol(HttpToolsProtocol):
    """HTTP by httptools, a compiled parser, with bounds it does not know.

    It would keep a head of any length until its end comes; this one hangs up once ``LONGEST_HEAD`` is exceeded.
    It would wait for ever for a request, for the rest of one, and for its answer to be read; this one looks at every
    connection each ``PATIENCE`` seconds. Its own refusals are as the application's: JSON, with the security headers.
    """

    _unfinished = 0  # bytes since the last whole head or piece of a body
    _asked = False  # whether a whole head has come since the last look
    _unread = 0  # bytes of answers that the client had not taken at the last look
    _look: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(PATIENCE, self._look_after)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def _look_after(self) -> None:
        """Hang up unless since the last look the client has asked or read, or it is we who are slow.

        So whoever has never asked goes after ``PATIENCE``, all others after at most twice that. Bytes of a head or body
        do not count: one now and then would hold the place for ever.
        """
        unread = self.transport.get_write_buffer_size()
        answering = self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused
        if self._asked or answering or unread < self._unread:
            self._asked, self._unread = False, unread
            self._look = self.loop.call_later(PATIENCE, self._look_after)
        else:
            self.transport.abort()  # closing would wait for what is unread

    def data_received(self, data: bytes) -> None:
        self._unfinished += len(data)
        super().data_received(data)
        if self._unfinished > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"the head of the request is longer than {LONGEST_HEAD} bytes.")

    def on_headers_complete(self) -> None:
        self._unfinished = 0
        self._asked = True
        if len(self.connections) > CONNECTIONS or len(self.tasks) > CONNECTIONS:
            self.app = _crowded()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        answer = _last(refusal(400, msg, "Ask by GET or HEAD in HTTP/1.1; the interface is at /openapi.json."))
        fields = [*self.server_state.default_headers, *answer.raw_headers]
        head = [b"HTTP/1.1 400 Bad Request", *(name + b": " + value for name, value in fields)]
        self.transport.write(b"\r\n".join([*head, b"", bytes(answer.body)]))
        self.transport.close()


def _crowded() -> Response:
    """Sends a client away; an application of its own in the place of the one that has no time."""
    answer = refusal(503, f"more than {CONNECTIONS} connections at a time.", f"Ask again in {PATIENCE} seconds.")
    answer.headers["retry-after"] = str(PATIENCE)
    return _last(answer)


def _last(answer: Response) -> Response:
    """The answer with the security headers, after which the connection ends."""
    answer.headers.update({**HEADERS, "connection": "close"})
    return answer
