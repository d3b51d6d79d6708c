"""The short way gives the answers of the route, byte for byte, and leaves to the route what it must refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from explorer_runs import NASTY, made_run, nasty_graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from murp.explorer.app import LONGEST, MOST, create_app
from murp.explorer.collection import Collection
from murp.explorer.fast_path import PredictFastPath
from murp.graph import KnowledgeGraph
from murp.web.security import Guard

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class Both:
    """The application as it is served, and without the short way."""

    def __init__(self, collection: Collection) -> None:
        self.served = create_app(collection)
        assert isinstance(self.served, Guard)
        assert isinstance(self.served.app, PredictFastPath)
        self.fast_path = self.served.app
        self.route = Guard(self.fast_path.app, "127.0.0.1")

    def check(self, query: bytes, method: str = "GET", host: bytes = b"127.0.0.1") -> Answer:
        """The answer to a query, the same by both ways."""
        ours, theirs = (asyncio.run(answer(app, method, query, host)) for app in (self.served, self.route))
        assert ours == theirs
        return ours


async def answer(app: Any, method: str, query: bytes, host: bytes) -> Answer:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": "/api/predict", "raw_path": b"/api/predict", "query_string": query, "root_path": "",
        "headers": [(b"host", host)], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], sorted(sent[0]["headers"]), body


@pytest.fixture(scope="module")
def both(make_tree: Callable[..., KnowledgeGraph], tmp_path_factory: pytest.TempPathFactory) -> Both:
    graph, folder = nasty_graph(make_tree()), tmp_path_factory.mktemp("runs")
    runs = [made_run(folder, graph, model=model) for model in ("murp", "mure")]
    return Both(Collection(runs))


def quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


ENTITIES = ["n1", "n62", "node 40", "n999", "", "nod", *NASTY]
RELATIONS = ["parent", "next", "<b>parent</b>", "paren", ""]
NUMBERS = [
    "1", "2", "3", "10", "0", "-1", "007", "00001", "+5", " 5", "1_0", "1.0", "1e1", "ten", "", "٣", "²",
    str(MOST), str(MOST + 1), "9" * 30,
]  # fmt: skip
VALUES = {
    "head": st.sampled_from(ENTITIES) | st.text(max_size=5),
    "tail": st.sampled_from(ENTITIES) | st.text(max_size=5),
    "relation": st.sampled_from(RELATIONS) | st.text(max_size=5),
    "k": st.sampled_from(NUMBERS),
    "run": st.sampled_from(NUMBERS),
    "other": st.text(max_size=3),
}
FIELD = st.sampled_from(sorted(VALUES)).flatmap(lambda name: VALUES[name].map(lambda value: f"{name}={quoted(value)}"))
GOOD = st.builds(
    lambda side, entity, relation: [f"{side}={quoted(entity)}", f"relation={quoted(relation)}"],
    st.sampled_from(["head", "tail"]),
    st.sampled_from(["n1", "n62", "node 40", *NASTY]),
    st.sampled_from(RELATIONS[:3]),
)
QUERY = st.builds(lambda good, more: "&".join([*good, *more]).encode(), GOOD | st.just([]), st.lists(FIELD, max_size=3))
FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@FIXTURE
@given(QUERY)
def test_both_ways_answer_the_same(both: Both, query: bytes) -> None:
    status, _, _ = both.check(query)
    assert status in (200, 404, 422)


@FIXTURE
@given(st.binary(max_size=30), QUERY, st.integers(0, 80))
def test_both_ways_answer_the_same_to_damaged_queries(both: Both, damage: bytes, query: bytes, place: int) -> None:
    both.check(query[:place] + damage + query[place:])


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", ""])
@pytest.mark.parametrize("host", [b"localhost:80", b"evil.example", b""])
def test_methods_and_hosts_are_looked_at_first(both: Both, method: str, host: bytes) -> None:
    both.check(b"head=n1&relation=next", method, host)


def test_good_questions_go_the_short_way(both: Both) -> None:
    for query in (
        b"head=n1&relation=next",
        b"relation=parent&tail=node%2040&k=3&run=2",
        b"tail=n5&relation=next&k=1000",
    ):
        assert both.fast_path.answer(query) is not None, query


def test_a_name_that_is_too_long_is_refused_though_it_is_known(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    graph = nasty_graph(small_tree)
    for length, expected in ((LONGEST, 200), (LONGEST + 1, 422)):
        names = graph.entities.names.to_pylist()
        names[8] = "x" * length
        graph.entities.names = type(graph.entities)("entity", graph.entities.ids, names).names
        both = Both(Collection([made_run(tmp_path, graph)]))
        assert both.check(b"head=" + b"x" * length + b"&relation=next")[0] == expected


def test_scores_that_overflow_are_told_by_the_route(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = made_run(tmp_path, small_tree, model="mure")
    for name in ("subject_bias", "object_bias"):
        run.model.parameters[name][:] = 1.5e308  # finite, and the sum of two is not
    assert Both(Collection([run])).check(b"head=n1&relation=next")[0] == 500
