"""Many clients that are slow, silent, rude or gone: others are answered all the same, and nothing is logged."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import resource
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from explorer_runs import client_of, made_run, nasty_graph, running, serving, wait_for

from murp.graph import KnowledgeGraph
from murp.web import connections, protocol

LIMIT = 30  # seconds until a test gives up
ASK = b"GET /api/run HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LONG = b"x" * 500_000  # fifty of them are more than the system holds of what is not read
CROWD = 300

Address = tuple[str, int]


@pytest.fixture(params=["auto", "asyncio"])
def loop(request: pytest.FixtureRequest) -> str:
    """The loop that is taken, and the one that is taken where there is no uvloop."""
    return str(request.param)


@pytest.fixture(scope="module")
def app(make_tree: Callable[..., KnowledgeGraph], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return client_of(made_run(tmp_path_factory.mktemp("run"), nasty_graph(make_tree()))).app


@pytest.fixture
def nothing_said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fails where anything was logged or printed by the time the test, and the server with it, has ended."""
    caplog.set_level(logging.WARNING)
    yield
    assert [record.getMessage() for record in caplog.get_records("call")] == []
    printed = "".join(capfd.readouterr()).splitlines()
    assert [line for line in printed if not line.startswith("murp: compiling ")] == []


async def long_answer(scope: Any, receive: Any, send: Any) -> None:
    """More than a connection takes where nobody reads; short to who asks for /api/run."""
    body = b"{}" if scope["path"] == "/api/run" else LONG
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def crowd(address: Address, count: int, words: bytes) -> Iterator[list[socket.socket]]:
    """Connections on which something was said, and of which nothing is read."""
    with contextlib.ExitStack() as held:
        lines = []
        for _ in range(count):
            lines.append(held.enter_context(socket.create_connection(address, timeout=LIMIT)))
            with contextlib.suppress(OSError):  # it may have been hung up on
                lines[-1].sendall(words)
        yield lines


def answered(address: Address) -> int:
    """The status that a client hears who asks one thing."""
    line = http.client.HTTPConnection(*address, timeout=LIMIT)
    try:
        line.request("GET", "/api/run", headers={"Connection": "close"})
        response = line.getresponse()
        response.read()
        return response.status
    finally:
        line.close()


SLOW = {
    "silent": b"",
    "half a head": ASK[:20],
    "idle after an answer": ASK,
    "half a body": b"POST /api/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nz",
    "not reading": 50 * ASK.replace(b"/api/run", b"/long"),
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_crowd_of_slow_clients_shuts_nobody_out(loop: str, kind: str, nothing_said: None) -> None:
    with serving(long_answer, loop) as address, crowd(address, CROWD, SLOW[kind]):
        assert [answered(address) for _ in range(5)] == [200] * 5


def test_clients_that_wait_for_a_slow_answer_shut_nobody_out(loop: str, nothing_said: None) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/api/run":
            await asyncio.sleep(10 * LIMIT)
        await long_answer(scope, receive, send)

    with serving(slow, loop) as address, crowd(address, CROWD, ASK.replace(b"/api/run", b"/slow")):
        assert answered(address) == 200


def test_clients_that_never_stop_asking_shut_nobody_out(
    loop: str, nothing_said: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS", 3)
    done = threading.Event()

    def ask_on(address: Address) -> None:
        while not done.is_set():
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=LIMIT) as line:
                while not done.is_set():
                    line.sendall(ASK)
                    if not line.recv(1 << 16):
                        break

    with serving(long_answer, loop) as address:
        threads = [threading.Thread(target=ask_on, args=(address,), daemon=True) for _ in range(5)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: in_time(address))
        finally:
            done.set()
            for thread in threads:
                thread.join(LIMIT)


def in_time(address: Address) -> bool:
    """Whether one question is answered; on a busy machine it may come too late to keep the place."""
    try:
        return answered(address) == 200
    except (OSError, http.client.HTTPException):
        return False


def test_who_asks_is_not_hung_up_on_for_those_who_wait(
    loop: str, nothing_said: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once, more than there are places: every one is answered."""
    monkeypatch.setattr(connections, "CONNECTIONS", 8)
    for seconds in ("LEAST_IDLE", "LONGEST_WAIT"):  # on a busy machine a thread may be late
        monkeypatch.setattr(connections, seconds, LIMIT)
    with serving(long_answer, loop) as address:
        together = threading.Barrier(40)
        heard: list[int] = []

        def ask() -> None:
            together.wait(LIMIT)
            heard.append(answered(address))

        threads = [threading.Thread(target=ask) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
    assert heard == [200] * 40


def test_clients_that_ask_ahead_and_never_read_are_cut_off_without_a_word(
    loop: str, nothing_said: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "PATIENCE", 0.5)
    ask = ASK.replace(b"/api/run", b"/long")
    with running(long_answer, loop) as (server, address), crowd(address, 100, 50 * ask):
        assert answered(address) == 200
        wait_for(lambda: not server.server_state.connections)


def heard_to_the_end(line: socket.socket) -> int:
    """Bytes until the server hangs up; a time-out fails."""
    heard = 0
    with contextlib.suppress(ConnectionResetError):
        while more := line.recv(1 << 20):
            heard += len(more)
    return heard


def test_what_one_client_may_ask_ahead_is_bounded(loop: str, app: Any, nothing_said: None) -> None:
    with serving(app, loop) as address:
        with socket.create_connection(address, timeout=LIMIT) as line:
            line.sendall(protocol.MOST_ASKED * ASK)
            heard = b""
            while heard.count(b"HTTP/1.1 200 OK") < protocol.MOST_ASKED:
                more = line.recv(1 << 16)
                assert more
                heard += more
        with socket.create_connection(address, timeout=LIMIT) as line:
            line.sendall(5000 * b"GET / HTTP/1.1\r\n\r\n")  # read in one piece
            with contextlib.suppress(ConnectionResetError):
                assert b"HTTP/1.1 400 Bad Request" in line.recv(1 << 16)
        assert answered(address) == 200


RUDE = {
    "garbage": b"\x00\xff\r\n\r\n",
    "garbage after a request": ASK + b"\x00\xff\r\n\r\n",
    "a web socket": ASK[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "another upgrade": ASK[:-2] + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown name": ASK.replace(b"run", b"predict?head=nobody&relation=next"),
    "figures": ASK.replace(b"run", b"metrics"),
    "many requests": 50 * ASK,
    "an endless head": b"GET / HTTP/1.1\r\nX: " + 100_000 * b"y",
    "a promised body": ASK[:-2] + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
}


@pytest.mark.parametrize("end", ["close", "reset", "half"])
@pytest.mark.parametrize("kind", RUDE)
def test_nothing_that_a_client_does_is_logged(loop: str, app: Any, kind: str, end: str, nothing_said: None) -> None:
    with serving(app, loop) as address:
        for _ in range(10):
            with socket.create_connection(address, timeout=LIMIT) as line, contextlib.suppress(OSError):
                line.sendall(RUDE[kind])
                if end == "reset":
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                elif end == "half":
                    line.shutdown(socket.SHUT_WR)
                    heard_to_the_end(line)
        assert answered(address) == 200


def test_an_answer_ends_when_its_client_leaves(loop: str, nothing_said: None) -> None:
    begun, ended = threading.Semaphore(0), threading.Semaphore(0)

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            ended.release()

    with serving(endless, loop) as address:
        with socket.create_connection(address, timeout=LIMIT) as line:
            line.sendall(ASK)
            assert begun.acquire(timeout=LIMIT)
        assert ended.acquire(timeout=LIMIT)


FLOOD = """
import socket, sys
lines = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30) for _ in range(300)]
print("open", flush=True)
sys.stdin.readline()
"""


def test_a_crowd_that_takes_all_files_shuts_nobody_out(loop: str, nothing_said: None) -> None:
    """The limit of open files is lower than that of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with serving(long_answer, loop) as address:
        command = [sys.executable, "-I", "-S", "-c", FLOOD, str(address[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flood:
            assert flood.stdin is not None
            assert flood.stdout is not None
            with socket.socket() as line:  # opened while there are files left
                line.settimeout(LIMIT)
                resource.setrlimit(resource.RLIMIT_NOFILE, (line.fileno() + 20, hard))
                try:
                    assert flood.stdout.readline() == b"open\n"
                    line.connect(address)
                    line.sendall(ASK)
                    assert line.recv(12) == b"HTTP/1.1 200"
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                    flood.stdin.close()


def test_it_ends_though_clients_do_not_read(loop: str, nothing_said: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "PATIENCE", 10 * LIMIT)
    with running(long_answer, loop) as (server, address), crowd(address, 10, SLOW["not reading"]):
        wait_for(lambda: sum(line.flow.write_paused for line in tuple(server.server_state.connections)) == 10)
