"""Where the explorer runs: machines without IPv4 or names, other threads, a loop that runs already, a forked child."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from explorer_runs import client_of, made_run, nasty_graph, serving

from murp.errors import MurpError
from murp.explorer import server
from murp.explorer.app import create_app
from murp.explorer.collection import Collection
from murp.explorer.server import serve
from murp.graph import KnowledgeGraph
from murp.runs import load
from murp.web.server import address_of, bind

LIMIT = 60  # seconds until a test gives up
HERE = "127.0.0.1"


def without(monkeypatch: pytest.MonkeyPatch, family: int) -> None:
    """As on a machine that has no addresses of a family."""
    really = socket.socket.bind

    def refuses(line: socket.socket, address: Any) -> None:
        if line.family == family:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        really(line, address)

    monkeypatch.setattr(socket.socket, "bind", refuses)


def ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as line:
            line.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not ipv6(), reason="needs IPv6 on the loopback")
def test_without_ipv4_it_listens_on_the_other_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, socket.AF_INET)
    with bind("127.0.0.1", 0) as bound:
        assert address_of(bound) == f"http://[::1]:{bound.getsockname()[1]}/"


def test_a_name_is_tried_with_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of them may be of a family that this machine has no addresses of."""
    both = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    without(monkeypatch, socket.AF_INET6)
    with bind("localhost", 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_no_family_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, socket.AF_INET)
    with pytest.raises(MurpError, match=r"cannot listen on 127\.0\.0\.2, port 0: .* Choose another --host"):
        bind("127.0.0.2", 0)


def test_the_printed_address_needs_no_name() -> None:
    with bind("0.0.0.0", 0) as bound:
        assert address_of(bound) == f"http://127.0.0.1:{bound.getsockname()[1]}/"


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "", "\udcff"])
def test_what_is_no_host_name_is_refused(host: str) -> None:
    with pytest.raises(MurpError, match=r"cannot listen on --host .* Give an address of this machine"):
        bind(host, 0)


@pytest.fixture
def collection(small_tree: KnowledgeGraph, tmp_path: Path) -> Collection:
    return Collection([made_run(tmp_path, nasty_graph(small_tree))])


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[server.Server]:
    """Those that are started, to end them."""
    started: list[server.Server] = []

    class Known(server.Server):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            started.append(self)

    monkeypatch.setattr(server, "Server", Known)
    return started


def statuses(address: tuple[str, int], *targets: str) -> list[int]:
    line = http.client.HTTPConnection(*address, timeout=LIMIT)
    found = []
    for target in targets:
        line.request("GET", target)
        response = line.getresponse()
        response.read()
        found.append(response.status)
    line.close()
    return found


def test_it_serves_from_another_thread_and_without_standard_streams(
    collection: Collection, servers: list[server.Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    bound = bind(HERE, 0)
    address = bound.getsockname()
    thread = threading.Thread(target=serve, args=(collection, bound, HERE), daemon=True)
    thread.start()
    assert statuses(address, "/api/run", "/api/predict?head=nobody&relation=next", "/api/metrics") == [200, 404, 200]
    servers[0].should_exit = True
    thread.join(LIMIT)
    assert not thread.is_alive()


def test_it_serves_where_a_loop_runs_already(collection: Collection, servers: list[server.Server]) -> None:
    """As in a notebook."""
    bound = bind(HERE, 0)
    found: list[int] = []

    def ask(address: tuple[str, int]) -> None:
        found.extend(statuses(address, "/api/run", "/api/metrics"))
        servers[0].should_exit = True

    async def notebook() -> None:
        serve(collection, bound, HERE)

    asking = threading.Thread(target=ask, args=(bound.getsockname(),), daemon=True)
    asking.start()
    with threads_of_pytorch(2):
        asyncio.run(notebook())
        assert torch.get_num_threads() == 2  # what runs next in the notebook has its threads
    asking.join(LIMIT)
    assert found == [200, 200]


@contextlib.contextmanager
def threads_of_pytorch(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("collected", ["before", "after"])
def test_it_serves_in_a_forked_child(tmp_path: Path, collected: str) -> None:
    """Though its parent has served, evaluated and computed on threads that the child does not have."""
    run = made_run(tmp_path, KnowledgeGraph.load("wordnet-mini"), dim=40)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.ones(1_000_000).exp_()
    finally:
        torch.set_num_threads(before)
    asked = (
        "/api/predict?head=asia.n.01&relation=hypernym",
        "/api/entity?entity=nobody",
        "/api/project?centre=asia.n.01",
    )
    shown = Collection([run])
    with serving(create_app(shown)) as address:
        assert statuses(address, *asked, "/api/metrics") == [200, 404, 200, 200]

    bound = bind(HERE, 0)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: serve(shown if collected == "before" else Collection([run]), bound, HERE)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python advises against it; people do it all the same
        child.start()
    try:
        assert statuses(bound.getsockname(), *asked, "/api/metrics") == [200, 404, 200, 200]
        assert child.pid is not None
        os.kill(child.pid, signal.SIGINT)
        child.join(LIMIT)
        assert child.exitcode == 0
    finally:
        child.kill()
        bound.close()


def test_what_becomes_of_the_folder_changes_no_answer(tmp_path: Path, small_tree: KnowledgeGraph) -> None:
    """A training may save into it, or another one take its place, while the explorer shows it."""
    graph = nasty_graph(small_tree)
    path = tmp_path / "run"
    made_run(path, graph, save=True)
    shown, asked_before = (client_of(load(path, device="cpu")) for _ in range(2))
    targets = [f"/api/{q}" for q in ("run", "predict?head=n1&relation=next", "project?points=1", "metrics")]
    expected = [asked_before.get(target).json() for target in targets]

    shutil.rmtree(path)
    made_run(path, graph, seed=1, save=True)
    load(path, device="cpu").calibrate()
    assert [shown.get(target).json() for target in targets] == expected
    shutil.rmtree(path)
    assert [shown.get(target).json() for target in targets] == expected
