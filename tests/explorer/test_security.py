"""The explorer as an attacker meets it: requests no page sends, names that are script, links out of the run."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from explorer_runs import TestClient, client_of, made_run, nasty_graph, serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from murp.errors import RunError
from murp.explorer.app import LONGEST, MOST, create_app
from murp.explorer.collection import Collection
from murp.explorer.export import write_page
from murp.graph import KnowledgeGraph, Vocabulary
from murp.runs import load
from murp.web.security import HEADERS

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install 'murp[dev]'")
positive_data_acceptance = pytest.importorskip("schemathesis.specs.openapi.checks").positive_data_acceptance

GET = {
    "/api/run", "/api/entities", "/api/search", "/api/entity", "/api/metrics", "/api/predict", "/api/neighbours",
    "/api/project", "/api/question", "/api/edges", "/api/tree", "/api/column", "/api/why", "/api/differences",
}  # fmt: skip


@pytest.fixture(scope="module")
def client(make_tree: Callable[..., KnowledgeGraph], tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return client_of(made_run(tmp_path_factory.mktemp("run"), nasty_graph(make_tree())))


@pytest.fixture(scope="module")
def described(client: TestClient) -> Any:
    return schemathesis.openapi.from_dict(client.get("/openapi.json").json())


def test_all_that_is_offered_is_described(described: Any) -> None:
    paths = described.raw_schema["paths"]
    assert set(paths) == GET
    for path in GET:
        answers = paths[path]["get"]["responses"]
        assert set(answers) == {"200", "400", "404", "405", "421", "422", "500"}
        for status in set(answers) - {"200"}:
            ((kind, content),) = answers[status]["content"].items()
            assert (kind, content["schema"]["$ref"]) == ("application/json", "#/components/schemas/Refusal")


@pytest.mark.parametrize("path", sorted(GET))
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_answer_is_as_the_interface_says(client: TestClient, described: Any, path: str, data: Any) -> None:
    """Schemathesis draws requests from the OpenAPI description, fitting and not, and judges the answers by it."""
    case = data.draw(described[path]["GET"].as_strategy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        response = client.request(case.method, case.formatted_path, params=case.query or {})
        # That a question has a head or a tail, and not both, OpenAPI cannot say.
        case.validate_response(schemathesis.Response.from_any(response), excluded_checks=[positive_data_acceptance])
    assert response.status_code in (200, 404, 422)
    for name, value in HEADERS.items():
        assert response.headers.get_list(name) == [value]


@given(st.text(alphabet=st.characters(codec="latin-1"), max_size=60), st.binary(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_address_reaches_a_file(client: TestClient, path: str, query: bytes) -> None:
    pages = {f"/page/{file.name}" for file in files("murp.explorer").joinpath("page").iterdir()}
    response = client.get(
        "http://127.0.0.1:8000/" + "".join(f"%{ord(c):02x}" for c in path) + "?" + "".join(f"%{b:02x}" for b in query)
    )
    assert response.status_code in (404, 422) or f"/{path}" in pages | GET | {"/", "/openapi.json"}


@pytest.mark.parametrize(
    "address",
    [
        "/config.toml", "/run/config.toml", "/page/../../runs/folder.py", "/page/%2e%2e/app.py", "/page/..%5capp.py",
        "/page//etc/passwd", "/page/%00", "/page/app.js/../../app.py", "/..;/app.py", "/static/../app.py", "/page/",
        "/page",
    ],
)  # fmt: skip
def test_nothing_outside_the_page_is_served(client: TestClient, address: str) -> None:
    assert client.get(address).status_code == 404


def test_counts_and_lengths_are_bounded(client: TestClient) -> None:
    for path, fields in {
        "/api/predict": {"head": "n1", "relation": "next"},
        "/api/neighbours": {"entity": "n1"},
        "/api/entity": {"entity": "n1"},
        "/api/project": {"centre": "n1"},
        "/api/search": {"q": "n"},
    }.items():
        assert client.get(path, params={**fields, "k": MOST}).status_code == 200
        for k in (0, -1, MOST + 1, 10**30, "1e9"):
            assert client.get(path, params={**fields, "k": k}).status_code == 422
        for name in fields:
            assert client.get(path, params={**fields, name: "x" * (LONGEST + 1)}).status_code == 422


@pytest.mark.parametrize("member", ["config.toml", "metrics.jsonl", "calibration.json", "graph"])
def test_a_run_with_a_link_is_not_opened(small_tree: KnowledgeGraph, member: str, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", small_tree, save=True).path
    if (run / member).exists():
        shutil.move(run / member, tmp_path / "elsewhere")
    (run / member).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=rf"{member} is a symbolic link|is not a run folder"):
        load(run)


ALERTS = [
    "<script>alert('name')</script>",
    "<img src=x onerror=alert('name')>",
    "'\"><svg onload=alert('name')>",
    "</title><script>alert('name')</script>",
    "javascript:alert('name')",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert('name')}",
    "</script><script>alert('name')</script>",
]
CHROMIUM = os.environ.get("MURP_CHROMIUM") or shutil.which("chromium")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt-get install chromium, or name one in MURP_CHROMIUM")
@pytest.mark.parametrize("page", [{"reduced_motion": "reduce"}], indirect=True, ids=["still"])  # no point has to glide
def test_no_name_runs_in_a_browser(page: Any, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Names, glosses, ids, relations and the graph itself are script; neither the page nor its export runs one."""
    n = small_tree.num_entities
    names = [ALERTS[i % len(ALERTS)] + (str(i) if i >= len(ALERTS) else "") for i in range(n)]
    ids = [f"{ALERTS[i % len(ALERTS)]}#{i}" for i in range(n)]
    graph = KnowledgeGraph(
        ALERTS[0],
        Vocabulary("entity", ids, names, [ALERTS[i % len(ALERTS)] for i in range(n)]),
        Vocabulary("relation", ALERTS[:2], ALERTS[2:4]),
        *(small_tree.train, small_tree.valid, small_tree.test),
    )
    run = made_run(tmp_path / "run", graph)
    write_page(run, tmp_path / "page.html")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    with serving(create_app(Collection([run]))) as (host, port):
        for address in (f"http://{host}:{port}/", (tmp_path / "page.html").as_uri()):
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            for name in ALERTS:
                page.locator("#search").fill(name)
                page.locator("#completions strong").first.wait_for()
                page.keyboard.press("Enter")
                page.wait_for_selector("body[data-ready]")
            page.wait_for_timeout(100)
            assert dialogs == []
            assert page.locator("#panel script, #panel img, #panel svg[onload], #completions img").count() == 0
