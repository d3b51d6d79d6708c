"""``murp serve`` under requests that no client would send: to the application, and as bytes on a connection.

It must answer or refuse, always in its own words and with its headers: no 500, no traceback, nothing that hangs.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from damage import TOKENS, mutated, mutated_value
from fuzz_explorer import HOSTS, METHODS, ask
from fuzz_oracle import Attempt, WrongRefusal, made_run

from murp.client import Client
from murp.serving.app import create_app
from murp.serving.current import Current
from murp.serving.limits import Limits
from murp.serving.server import Service
from murp.web.security import HEADERS

LIMITS = Limits(questions=50, bytes=20_000)
BODIES: list[tuple[bytes, Any]] = [
    (b"/predict", [{"head": "e1", "relation": "r0", "k": 3, "new_only": True, "types": False, "candidates": ["e4"]}]),
    (b"/predict", {"questions": [{"relation": "r1", "tail": "e3"}] * 20, "k": 3, "new_only": True, "types": True}),
    (b"/predict", {"questions": [{"head": "e2", "relation": "r2"}], "types": False, "candidates": ["e1", "e3"]}),
    (b"/score", [["e1", "r0", "e2"], ["e3", "r1", "e4"]]),
    (b"/score", {"triples": [{"head": "e1", "relation": "r0", "tail": "e2"}] * 20}),
]
PATHS = [b"/predict", b"/score", b"/health", b"/metrics", b"/relations", b"/docs", b"/openapi.json", b"/"]
MOST_HEADERS: list[tuple[bytes, bytes]] = [
    (b"content-type", b"text/plain"), (b"content-encoding", b"gzip"), (b"content-encoding", b"\xff"),
    (b"x-api-key", b"\xff" * 50), (b"authorization", b"Bearer"), (b"content-length", b"-1"), (b"expect", b"100"),
]  # fmt: skip
REFUSALS = {400, 401, 404, 405, 413, 421, 422}
WAIT = 0.05  # seconds for an answer: one that is later is not looked at
OFF = [0, 0, 0, 0, -3, -1, 1, 100]  # bytes that the length is wrong by
LENGTHS = [b"0", b"1", b"-1", b"3, 4", b"99999999999999999999", b"0x10", b"1e3", b"", b"\xff", b" 7", b"+7"]


def make_service(scratch: Path) -> Attempt:
    """The application of a small run."""
    app = create_app(Current(made_run(scratch / "run"), None, "cpu"), LIMITS, frozenset(), "127.0.0.1")
    loop = asyncio.new_event_loop()

    def attempt(random: Random) -> bool:
        path, body = damaged(random)
        method = random.choice(METHODS) if random.random() < 0.1 else "POST"
        if random.random() < 0.1:
            path = mutated(random.choice(PATHS), random, PATHS)[:4000]
        host = random.choice(HOSTS) if random.random() < 0.1 else HOSTS[0]
        headers = random.sample(MOST_HEADERS, random.choice((0, 0, 1, 2)))
        asked = ask(app, method, path, b"", host, body, headers)
        status, given, answer = loop.run_until_complete(asked)
        what = f"{method} {path[:100]!r} {body[:200]!r}"
        for name, value in HEADERS.items():
            if given.get(name) != value:
                raise WrongRefusal(f"{what}: {status} without the header {name}")
        return judged(what, method, status, answer)

    return attempt


def make_wire(scratch: Path) -> Attempt:
    """A server of it, which is sent bytes that may be no HTTP, or whose length is not what they say."""
    service = Service(made_run(scratch / "run"), limits=LIMITS)
    client, parts = Client(service.address), urlsplit(service.address)
    where = (parts.hostname or "", parts.port or 0)

    def attempt(random: Random) -> bool:
        path, body = damaged(random)
        length = random.choice(LENGTHS) if random.random() < 0.3 else str(len(body) + random.choice(OFF)).encode()
        framing = b"Transfer-Encoding: chunked" if random.random() < 0.2 else b"Content-Length: " + length
        head = b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        sent = head + framing + b"\r\n\r\n" + body
        if random.random() < 0.3:
            sent = mutated(sent, random, TOKENS)
        answer = exchanged(where, sent)
        if client.health().status != "ok":
            raise WrongRefusal(f"{sent[:300]!r}: it is well no more")
        first, _, rest = answer.partition(b"\r\n")
        if not first:
            return False
        return judged(repr(sent[:300]), "", int(first.split()[1]), rest.partition(b"\r\n\r\n")[2])

    return attempt


def exchanged(where: tuple[str, int], sent: bytes) -> bytes:
    """What comes back; nothing where the server waits for more, and where it hung up on what is no request."""
    answer = b""
    with socket.create_connection(where, timeout=WAIT) as line:
        try:
            line.sendall(sent)
            while piece := line.recv(65536):
                answer += piece
        except OSError:
            pass
    return answer


def damaged(random: Random) -> tuple[bytes, bytes]:
    """A path and the body of a request to it: its values damaged, or its bytes, or both, or neither."""
    path, value = random.choice(BODIES)
    for _ in range(random.choice((0, 1, 1, 2))):
        value = mutated_value(value, random)
    body = json.dumps(value, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    if random.random() < 0.25:
        body = mutated(body, random, [json.dumps(other).encode() for _, other in BODIES])
    return path, body[: 3 * LIMITS.bytes]


def judged(what: str, method: str, status: int, body: bytes) -> bool:
    """Whether it was answered; a refusal is one of ours."""
    if status == 200:
        return True
    if status not in REFUSALS:
        raise WrongRefusal(f"{what}: answered {status} {body[:200]!r}")
    if method != "HEAD" and b'"error"' not in body:
        raise WrongRefusal(f"{what}: {status} says {body[:200]!r}")
    return False
