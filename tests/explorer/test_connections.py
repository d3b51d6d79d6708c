"""The server as a socket meets it: clients that say nothing, too much, too slowly or what is no HTTP; and HEAD."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from explorer_runs import TestClient, client_of, made_run, nasty_graph, serving, wait_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from murp.explorer import schema
from murp.graph import KnowledgeGraph
from murp.web import connections, protocol
from murp.web.security import HEADERS

LIMIT = 30  # seconds until a test gives up
HOST = b"Host: 127.0.0.1\r\n"
ASK = b"GET /api/run HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.fixture(scope="module")
def client(make_tree: Callable[..., KnowledgeGraph], tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return client_of(made_run(tmp_path_factory.mktemp("run"), nasty_graph(make_tree())))


@pytest.fixture
def address(client: TestClient) -> Iterator[tuple[str, int]]:
    with serving(client.app) as address:
        yield address


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three places, and half a second for whoever asks nothing."""
    monkeypatch.setattr(connections, "CONNECTIONS", 3)
    monkeypatch.setattr(protocol, "PATIENCE", 0.5)


def exchange(address: tuple[str, int], request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what a connection hears until its end."""
    with socket.create_connection(address, timeout=LIMIT) as line:
        with contextlib.suppress(OSError):
            line.sendall(request)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while more := line.recv(1 << 16):
                heard += more
    head, _, body = heard.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    assert len(headers) == len(fields), fields  # none of them twice
    return int(status.split()[1]), headers, body


def get(address: tuple[str, int], target: bytes, method: bytes = b"GET", host: bytes = HOST) -> Any:
    return exchange(address, method + b" " + target + b" HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n")


def check_refusal(answer: tuple[int, dict[str, str], bytes], status: int) -> None:
    found, headers, body = answer
    assert found == status
    schema.Refusal.model_validate_json(body)
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(body))
    assert headers.items() >= HEADERS.items()


HOLDING = {
    "nothing": (b"", b""),
    "a head that drips": (b"GET /api/run HTTP/1.1\r\nX: ", b"y"),
    "another head that drips": (ASK + b"GET / HTTP/1.1\r\nX: ", b"y"),
    "a body that drips": (b"POST /api/run HTTP/1.1\r\n" + HOST + b"Content-Length: 100000\r\n\r\n", b"z"),
    "pieces of a body": (b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nz\r\n"),
    "empty lines": (b"\r\n", b"\r\n"),
}


@pytest.mark.parametrize("kind", HOLDING)
def test_no_place_is_held_for_ever(address: tuple[str, int], hurry: None, kind: str) -> None:
    first, drip = HOLDING[kind]
    with contextlib.ExitStack() as held:
        lines = [held.enter_context(socket.create_connection(address, timeout=LIMIT)) for _ in range(3)]
        with dripping(lines, first, drip):
            for line in lines:
                until_hung_up(line)
            status, _, _ = get(address, b"/api/run")
    assert status == 200


@contextlib.contextmanager
def dripping(lines: list[socket.socket], first: bytes, drip: bytes) -> Iterator[None]:
    """Say something on every line, and then something more ten times in the server's patience."""
    done = threading.Event()

    def say() -> None:
        words = first
        while not done.wait(0.05):
            for line in lines:
                with contextlib.suppress(OSError):
                    line.sendall(words)
            words = drip

    thread = threading.Thread(target=say)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def until_hung_up(line: socket.socket) -> None:
    """Read to the end; a time-out fails."""
    with contextlib.suppress(ConnectionResetError):
        while line.recv(1 << 16):
            pass


async def long_answer(scope: Any, receive: Any, send: Any) -> None:
    """More than a connection holds of what is not read."""
    body = b"x" * 30_000_000
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("requests", [1, 2])
def test_an_answer_that_nobody_reads_holds_no_place(requests: int, hurry: None) -> None:
    with serving(long_answer) as address, contextlib.ExitStack() as held:
        for _ in range(3):
            line = held.enter_context(socket.create_connection(address, timeout=LIMIT))
            line.sendall(ASK * requests)
        wait_for(lambda: get(address, b"/", b"HEAD")[0] == 200)


def test_an_answer_that_is_read_slowly_is_sent_whole(hurry: None) -> None:
    with serving(long_answer) as address, socket.create_connection(address, timeout=LIMIT) as line:
        line.sendall(ASK)
        heard = 0
        while heard < 30_000_000 and (more := line.recv(1 << 19)):
            heard += len(more)
            time.sleep(0.05)  # in all a few times the server's patience, but something is read within each
        assert heard >= 30_000_000


def test_a_slow_answer_is_waited_for(hurry: None) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(4 * protocol.PATIENCE)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    with serving(slow) as address:
        assert get(address, b"/")[0] == 200


def test_who_goes_on_asking_keeps_the_connection(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "PATIENCE", 1)
    with serving(client.app) as address:
        line = http.client.HTTPConnection(*address)
        line.connect()
        line.auto_open = 0  # a new one would hide that the old one is gone
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            line.request("GET", "/api/search?q=node")
            assert len(line.getresponse().read()) > 0
        line.close()


NO_HTTP = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"hello\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"\x00" * 100,
    b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    b"CONNECT example.com:80 HTTP/1.1\r\n" + HOST + b"\r\n",
]  # fmt: skip


@pytest.mark.parametrize("words", NO_HTTP)
def test_what_is_no_request_is_told_so(address: tuple[str, int], words: bytes) -> None:
    check_refusal(exchange(address, words), 400)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=40), st.integers(0, len(ASK)))
def test_no_answer_goes_without_its_headers(address: tuple[str, int], damage: bytes, place: int) -> None:
    request = ASK[:place] + damage + ASK[place:]
    with socket.create_connection(address, timeout=LIMIT) as line:
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        heard = line.recv(1 << 16).decode("latin-1")
    for name, value in HEADERS.items():
        assert not heard or f"\r\n{name}: {value}\r\n" in heard


def test_bytes_that_are_no_text_are_refused_and_not_a_mistake(address: tuple[str, int]) -> None:
    """A raw byte in the query, which no browser sends."""
    for target in (b"/nothing?\xff\xfe", b"/api/predict?relation=\xff&head=n1", b"/\xff"):
        assert get(address, target)[0] in (400, 404)


ENDLESS = [
    b"GET /" + b"x" * 200_000,
    b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 200_000,
    b"GET / HTTP/1.1\r\n" + HOST + b"X" * 200_000,
    b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 30_000,
]


@pytest.mark.parametrize("endless", ENDLESS, ids=["line", "value", "name", "fields"])
def test_an_endless_head_is_cut_off(address: tuple[str, int], endless: bytes) -> None:
    with socket.create_connection(address) as line:
        for start in range(0, len(endless), 10_000):
            try:
                line.sendall(endless[start : start + 10_000])
            except OSError:
                break  # it hung up before all was said
            time.sleep(0.001)
        with contextlib.suppress(ConnectionResetError):
            assert line.makefile("rb").readline().split()[1] == b"400"
    # Others are answered as before, on one connection as often as they like and with a body that nobody reads.
    other = http.client.HTTPConnection(*address)
    for body in (None, b"z" * 300_000, None, b"z" * 300_000, *[None] * 30):
        other.request("GET", "/api/search?q=" + "n" * 400, body, {"X": "y" * 3000})
        answer = other.getresponse()
        assert answer.status == 200
        answer.read()
    other.close()


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 200), ("/page/app.js", 200), ("/page/none.js", 404), ("/openapi.json", 200), ("/api/run", 200),
        ("/api/entities", 200), ("/api/predict?head=n1&relation=next", 200), ("/api/predict?head=n1", 422),
        ("/api/predict?head=nobody&relation=next", 404), ("/api/metrics", 200), ("/nothing", 404),
    ],
)  # fmt: skip
def test_head_is_answered_as_get_without_the_body(address: tuple[str, int], target: str, status: int) -> None:
    for host, expected in ((HOST, status), (b"Host: evil.example\r\n", 421)):
        got, asked, nothing = get(address, target.encode(), b"HEAD", host)
        same, headers, body = get(address, target.encode(), host=host)
        assert (got, same, nothing) == (expected, expected, b"")
        assert {**asked, "date": ""} == {**headers, "date": ""}
        assert asked["content-length"] == str(len(body)) != "0"
