"""What the explorer refuses: bad input, foreign hosts, other methods; and what it tells a browser."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from explorer_runs import NASTY, TestClient, client_of, made_run, nasty_graph
from hypothesis import given
from hypothesis import strategies as st

from murp.errors import MurpError, NotFiniteError
from murp.explorer import schema
from murp.graph import KnowledgeGraph
from murp.web.encoding import packed, to_json
from murp.web.security import HEADERS, allowed
from murp.web.server import bind


@pytest.fixture(scope="module")
def client(make_tree: Callable[..., KnowledgeGraph], tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return client_of(made_run(tmp_path_factory.mktemp("run"), nasty_graph(make_tree())))


REFUSED = [
    ("/api/predict?relation=parent", 422, "either a head or a tail"),
    ("/api/predict?relation=parent&head=n1&tail=n2", 422, "either a head or a tail"),
    ("/api/predict?head=n1", 422, "relation: Field required"),
    ("/api/predict?relation=parent&head=n1&k=0", 422, "k: "),
    ("/api/predict?relation=parent&head=n1&k=1001", 422, "k: "),
    ("/api/predict?relation=parent&head=n1&k=ten", 422, "k: "),
    ("/api/predict?relation=parent&head=n1&run=5", 422, "run: "),
    ("/api/predict?relation=parent&head=n1&run=2", 404, "there is no run 2"),
    ("/api/predict?relation=parent&head=nod+12", 404, "unknown entity 'nod 12'. Closest: node 12"),
    ("/api/predict?relation=paren&head=n1", 404, "unknown relation 'paren'"),
    ("/api/predict?relation=parent&head=", 404, "unknown entity ''"),
    ("/api/predict?relation=parent&head=%00%ff", 404, "unknown entity"),
    (f"/api/search?q={'x' * 501}", 422, "q: "),
    (f"/api/neighbours?entity={'x' * 501}", 422, "entity: "),
    ("/api/neighbours?entity=nobody", 404, "unknown entity 'nobody'"),
    ("/api/project?centre=nobody", 404, "unknown entity 'nobody'"),
    ("/api/project?points=perhaps", 422, "points: "),
    ("/api/question?relation=parent&head=n1&projection=mercator", 422, "projection: "),
    ("/api/edges?relation=nothing", 404, "unknown relation 'nothing'"),
    ("/api/entity", 422, "entity: Field required"),
    ("/api/metrics?run=2", 404, "there is no run 2"),
    ("/api/nothing", 404, "Not Found"),
    ("/docs", 404, "Not Found"),
    ("/page/../app.py", 404, "Not Found"),
    ("/page/%2e%2e/app.py", 404, "Not Found"),
    ("/page/..%2f..%2f..%2fetc%2fpasswd", 404, "Not Found"),
    ("//etc/passwd", 404, "Not Found"),
]


@pytest.mark.parametrize(("address", "status", "words"), REFUSED, ids=[address[:60] for address, _, _ in REFUSED])
def test_bad_input_is_told_what_was_wrong(client: TestClient, address: str, status: int, words: str) -> None:
    response = client.get(address)
    assert response.status_code == status
    refusal = schema.Refusal.model_validate(response.json())
    assert words in refusal.error
    assert refusal.advice
    assert response.headers["content-type"] == "application/json"


def test_an_unknown_name_is_told_its_closest(client: TestClient) -> None:
    answer = client.get("/api/neighbours", params={"entity": "nod 12"}).json()
    assert answer["closest"][0] == "node 12 [n12]"


def test_an_ambiguous_name_is_told_its_ids(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    graph = nasty_graph(small_tree)
    graph.entities.names = graph.entities.names.take([0] * 2 + list(range(2, 63)))
    answer = client_of(made_run(tmp_path, graph)).get("/api/neighbours", params={"entity": NASTY[0]})
    assert answer.status_code == 404
    assert "2 ids share it (n0, n1). Give the id instead." in answer.json()["error"]
    assert answer.json()["closest"] == [f"{NASTY[0]} [n0]", f"{NASTY[0]} [n1]"]


def test_of_many_that_share_a_name_a_few_are_told(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    graph = nasty_graph(small_tree)
    graph.entities.names = graph.entities.names.take([40] * 63)
    answer = client_of(made_run(tmp_path, graph)).get("/api/predict", params={"tail": "node 40", "relation": "next"})
    assert answer.status_code == 404
    assert answer.json()["closest"] == [f"node 40 [n{i}]" for i in range(10)]
    assert client_of(made_run(tmp_path, graph)).get("/api/entity", params={"entity": "n40"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_reading(client: TestClient, method: str) -> None:
    response = client.request(method, "/api/run", headers={"origin": "http://elsewhere.example"})
    assert response.status_code == 405
    assert response.headers.get_list("allow") == ["GET, HEAD"]
    assert not [name for name in response.headers if name.startswith("access-control")]
    schema.Refusal.model_validate(response.json())


@pytest.mark.parametrize("address", ["/", "/page/app.js", "/page/style.css", "/api/run", "/openapi.json", "/nothing"])
def test_every_answer_has_the_security_headers(client: TestClient, address: str) -> None:
    response = client.get(address)
    for name, value in HEADERS.items():
        assert response.headers.get_list(name) == [value]
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy


def test_the_page_asks_nothing_of_other_hosts() -> None:
    for file in files("murp.explorer").joinpath("page").iterdir():
        text = file.read_text()
        assert "//" not in text.replace("// ", "").replace("http://www.w3.org/2000/svg", "").replace("//\n", ""), file
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
        assert "eval(" not in text


def test_names_travel_as_text(client: TestClient) -> None:
    for name in NASTY:
        answer = client.get("/api/search", params={"q": name}).json()
        assert name in [result["name"] for result in answer["results"]]
        assert client.get("/api/entity", params={"entity": name}).json()["name"] == name


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("LOCALHOST:99", True),
        ("[::1]:8000", True),
        ("127.8.8.8", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("192.168.0.7:8000", False),
        ("localhost:80:80", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_on_loopback_only_this_machine_is_answered(client: TestClient, host: str, answered: bool) -> None:
    for address in ("/", "/api/run", "/page/app.js"):
        response = client.get(address, headers={"host": host})
        assert response.status_code == (200 if answered else 421)
        if not answered:
            schema.Refusal.model_validate(response.json())
            assert response.headers["x-content-type-options"] == "nosniff"


def test_elsewhere_addresses_and_the_bound_name_are_answered() -> None:
    for host in ("192.168.0.7:8000", "[fe80::1]:80", "box.local", "localhost", "127.0.0.1"):
        assert allowed(host, "box.local"), host
    assert allowed("10.1.2.3", "0.0.0.0")
    for host in ("evil.example", "box.local.evil.example", ""):
        assert not allowed(host, "box.local"), host
        assert not allowed(host, "0.0.0.0"), host


@given(st.text(max_size=30))
def test_no_host_header_is_too_strange(header: str) -> None:
    assert not allowed(header, "127.0.0.1") or header.lower().lstrip("[").startswith(("127.", "localhost", "::"))


def test_two_host_headers_are_refused(client: TestClient) -> None:
    response = client.get("/api/run", headers=[("host", "127.0.0.1"), ("host", "evil.example")])
    assert response.status_code == 421


def test_nan_is_never_sent() -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(NotFiniteError):
            to_json({"probability": value})
        with pytest.raises(NotFiniteError):
            packed(np.array([0.0, value]), "float32")
    assert json.loads(to_json("\u2028 木")) == "\u2028 木"


def test_scores_that_overflow_are_an_error(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = made_run(tmp_path, small_tree, model="mure")
    for name in ("subject_bias", "object_bias"):
        run.model.parameters[name][:] = 1.5e308  # finite, and the sum of two is not
    response = client_of(run).get("/api/predict", params={"head": "n1", "relation": "next"})
    assert response.status_code == 500
    assert "NaN or infinity" in response.json()["error"]


def test_a_mistake_of_our_own_is_told_as_such(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("murp.explorer.answers.about", lambda _: 1 / 0)
    client = TestClient(
        client_of(made_run(tmp_path, small_tree)).app, base_url="http://localhost", raise_server_exceptions=False
    )
    response = client.get("/api/run")
    assert response.status_code == 500
    assert "ZeroDivisionError" in schema.Refusal.model_validate(response.json()).error
    assert response.headers["x-content-type-options"] == "nosniff"


def test_figures_that_cannot_be_had_say_why(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    none = small_tree.train[:0]
    graph = KnowledgeGraph("empty", small_tree.entities, small_tree.relations, none, none, none)
    response = client_of(made_run(tmp_path, graph)).get("/api/metrics")
    assert response.status_code == 500
    assert "has no triples" in response.json()["error"]


@pytest.mark.parametrize("port", [-1, 65536, 70_000])
def test_a_port_that_no_machine_has(port: int) -> None:
    """The system would take 65,536 off it and listen there."""
    with pytest.raises(MurpError, match=f"port {port}: ports end at 65535. Choose another with --port"):
        bind("127.0.0.1", port).close()


def test_a_port_in_use_and_an_address_of_another_machine() -> None:
    taken = bind("127.0.0.1", 0)
    try:
        port = taken.getsockname()[1]
        with pytest.raises(MurpError, match=rf"port {port} of 127\.0\.0\.1 is in use\. Choose another with --port"):
            bind("127.0.0.1", port)
    finally:
        taken.close()
    with pytest.raises(MurpError, match="cannot listen on"):
        bind("192.0.2.1", 0)
