"""A cheap client that sends a server many questions over a few open connections.

Client and server share the machine's cores, so the client must use little time: requests are encoded before the
measurement, an answer is complete when its length is reached, and only a sample of answers is parsed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CONNECTIONS = 16
SAMPLED = 100  # of so many answers one is kept, to be read once the clock has stopped


@dataclass
class Asked:
    """What came: seconds from when each request was due to its whole answer, and every hundredth answer's body."""

    waits: list[float] = field(default_factory=list)
    errors: int = 0
    sample: dict[int, bytes] = field(default_factory=dict)
    elapsed: float = 0.0
    cpu: float = 0.0

    def figures(self) -> dict[str, Any]:
        waits = sorted(self.waits)
        quantiles = (("median", 0.5), ("p99", 0.99), ("most", 1.0))
        return {
            "requests": len(waits),
            "errors": self.errors,
            "per_second": len(waits) / self.elapsed,
            "wait_ms": {name: 1e3 * waits[min(int(share * len(waits)), len(waits) - 1)] for name, share in quantiles},
            "asker_cpu_ms_a_request": 1e3 * self.cpu / len(waits),
        }


async def ask_all(port: int, requests: Sequence[bytes], length: float, rate: int | None) -> Asked:
    """Send requests for ``length`` seconds, ``rate`` a second or each as soon as a connection is free.

    Request i is due i/rate seconds after the start whether the server keeps up or not, and its wait counts from
    there. Connection c has requests c, c + 16, …
    """
    loop = asyncio.get_running_loop()
    asked = Asked()
    lines = [
        (await loop.create_connection(lambda number=number: _Connection(number, requests, asked), "127.0.0.1", port))[1]
        for number in range(CONNECTIONS)
    ]
    began, cpu = loop.time(), time.process_time()
    for line in lines:
        line.start(began, length, rate)
    try:
        await asyncio.gather(*(line.done for line in lines))
    finally:
        for line in lines:
            line.transport.close()
    asked.elapsed, asked.cpu = loop.time() - began, time.process_time() - cpu
    return asked


class _Connection(asyncio.Protocol):
    """One open connection with its share of the requests."""

    transport: asyncio.Transport

    def __init__(self, number: int, requests: Sequence[bytes], asked: Asked) -> None:
        self.turn, self.requests, self.asked = number, requests, asked
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.answer = bytearray()
        self.missing = 0  # bytes of the answer, once its head is there

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def start(self, began: float, length: float, rate: int | None) -> None:
        self.began, self.end, self.rate = began, began + length, rate
        self._next()

    def _next(self) -> None:
        now = self.loop.time()
        self.due = self.began + self.turn / self.rate if self.rate else now
        if self.due >= self.end:
            self.done.set_result(None)
        elif self.due > now:
            self.loop.call_at(self.due, self._send)
        else:
            self._send()

    def _send(self) -> None:
        self.transport.write(self.requests[self.turn % len(self.requests)])

    def data_received(self, data: bytes) -> None:
        self.answer += data
        if not self.missing:
            end = self.answer.find(b"\r\n\r\n")
            if end < 0:
                return
            size = self.answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self.missing = end + 4 + int(size)
        if len(self.answer) < self.missing:
            return
        asked = self.asked
        asked.waits.append(self.loop.time() - self.due)
        asked.errors += not self.answer.startswith(b"HTTP/1.1 200 ")
        if self.turn % SAMPLED == 0:
            asked.sample[self.turn % len(self.requests)] = bytes(self.answer.partition(b"\r\n\r\n")[2])
        self.answer, self.missing = bytearray(), 0
        self.turn += CONNECTIONS
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed the connection"))
