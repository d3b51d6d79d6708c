"""The explorer's interface under requests that no browser would send, spoken to as a server would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from damage import TOKENS, mutated
from fuzz_oracle import Attempt, WrongRefusal, made_run

from murp.explorer.app import create_app
from murp.explorer.collection import Collection
from murp.runs import load
from murp.web.security import HEADERS

REQUESTS = [
    b"/api/predict?relation=r1&head=e1&k=3", b"/api/predict?relation=r0&tail=name+3", b"/api/search?q=na&k=5",
    b"/api/entity?entity=e2&k=2", b"/api/neighbours?entity=e3&k=1000", b"/api/project?centre=e1&points=true&k=4",
    b"/api/question?relation=r2&head=e4&projection=paper", b"/api/edges?relation=r1", b"/api/run", b"/api/entities",
    b"/api/metrics?run=1", b"/openapi.json", b"/", b"/page/app.js", b"/page/../app.py", b"/page/%2e%2e/%2e%2e/passwd",
]  # fmt: skip
METHODS = ["GET"] * 12 + ["POST", "PUT", "HEAD", "OPTIONS", "DELETE", "TRACE", ""]
HOSTS = [b"127.0.0.1:8000"] * 12 + [b"localhost", b"[::1]:80", b"evil.example", b"127.0.0.1.evil.example", b"", b"\xff"]
Headers = Sequence[tuple[bytes, bytes]]
REFUSALS = {400, 404, 405, 421, 422}


def make_explorer(scratch: Path) -> Attempt:
    """The application of a small run; it must answer or refuse, always in its own words and with its headers."""
    app = create_app(Collection([load(made_run(scratch / "run"), device="cpu")]))
    loop = asyncio.new_event_loop()

    def attempt(random: Random) -> bool:
        target = random.choice(REQUESTS)
        if random.random() < 0.9:
            target = mutated(target, random, REQUESTS)[:4000]
        path, _, query = target.partition(b"?")
        host = random.choice(HOSTS) if random.random() < 0.95 else random.choice(TOKENS)[:100]
        method = random.choice(METHODS)
        status, headers, body = loop.run_until_complete(ask(app, method, path, query, host))
        for name, value in HEADERS.items():
            if headers.get(name) != value:
                raise WrongRefusal(f"{method} {target[:200]!r}: {status} without the header {name}")
        if status in REFUSALS:
            refusal = json.loads(body) if body or method != "HEAD" else {"error": "", "advice": ""}
            if not isinstance(refusal.get("error"), str) or not isinstance(refusal.get("advice"), str):
                raise WrongRefusal(f"{method} {target[:200]!r}: {status} says {body[:200]!r}")
            return False
        if status != 200:
            raise WrongRefusal(f"{method} {target[:200]!r}: answered {status} {body[:200]!r}")
        return True

    return attempt


async def ask(
    app: Any, method: str, path: bytes, query: bytes, host: bytes, body: bytes = b"", headers: Headers = ()
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request, whose body comes in two pieces."""
    answer: dict[str, Any] = {"status": 0, "headers": {}, "body": b""}
    pieces = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0) if pieces else b"", "more_body": bool(pieces)}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer["status"] = message["status"]
            answer["headers"] = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            answer["body"] += message.get("body", b"")

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path.decode("latin-1"), "raw_path": path, "query_string": query, "root_path": "",
        "headers": [(b"host", host), *headers], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    await app(scope, receive, send)
    return answer["status"], answer["headers"], answer["body"]
