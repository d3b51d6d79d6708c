"""The server around the answers: health, counters, documentation, keys, rates, a run that is replaced, and its end."""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from explorer_runs import made_run, nasty_graph, wait_for

import murp
from examples import PATIENCE
from murp.cli.main import main
from murp.client import RefusedError
from murp.errors import ConfigError, MurpError
from murp.runs import Run
from murp.serving import app, current
from murp.serving.access import Rates, read_keys
from murp.serving.server import Service, warning
from murp.web.security import HEADERS
from trees import tree

KEY = "a-key-of-the-tests-0123456789"
HTTP = httpx.Client(timeout=PATIENCE)


def serve(path: Path, **options: Any) -> Service:
    """A server that waits for a test on a busy machine."""
    return murp.serve(path, **{"timeout": PATIENCE, **options})


def client_of(service: Service, **options: Any) -> murp.Client:
    """A client that waits as well."""
    return murp.Client(service.address, timeout=PATIENCE, **options)


def test_health_says_what_is_served(run: Run, service: Service) -> None:
    found = client_of(service).health()
    assert (found.status, found.model, found.entities, found.epoch) == ("ok", "murp", run.graph.num_entities, 3)
    assert (found.reloads, found.reload_error) == (0, None)
    assert HTTP.head(f"{service.address}health").status_code == 200
    assert HTTP.get(f"{service.address}relations").json()["relations"][0] == {"id": "parent", "name": "<b>parent</b>"}


def test_counters_are_what_prometheus_reads(run: Run) -> None:
    with serve(run.path) as served:
        client = client_of(served)
        client.predict([{"head": "n9", "relation": "parent"}] * 3)
        client.score([("n1", "next", "n2")])
        with pytest.raises(RefusedError):
            client.ask(head="nobody", relation="next")
        HTTP.get(f"{served.address}nowhere")
        lines = client.metrics().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['murp_requests_total{path="/predict",status="200"}'] == "1"
    assert values['murp_requests_total{path="/predict",status="404"}'] == "1"
    assert values['murp_requests_total{path="other",status="404"}'] == "1"
    assert (values["murp_questions_total"], values["murp_triples_total"]) == ("3", "1")
    assert values['murp_request_seconds_bucket{path="/predict",le="+Inf"}'] == "2"
    assert values['murp_request_seconds_count{path="/predict"}'] == "2"
    assert values["murp_requests_open"] == "1"  # this one
    assert all(float(value) >= 0 for value in values.values())
    told = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {re.sub(r"(_bucket|_sum|_count)?({.*)?$", "", name) for name in values} <= told


def test_the_documentation_asks_nothing_of_another_host(service: Service) -> None:
    page = HTTP.get(f"{service.address}docs")
    assert page.headers.items() >= HEADERS.items()
    assert page.headers["content-type"].startswith("text/html")
    for words in ("/predict", "/score", "candidates", "new_only", "X-API-Key", "at most 50 questions"):
        assert words in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert "<script" not in page.text, "the policy lets none run"
    assert HTTP.get(f"{service.address}docs/style.css").headers["content-type"].startswith("text/css")
    document = HTTP.get(f"{service.address}openapi.json").json()
    assert set(document["paths"]) == {"/predict", "/score", "/relations", "/health", "/metrics"}


def test_every_documented_path_has_a_counter_of_its_own(service: Service) -> None:
    paths = HTTP.get(f"{service.address}openapi.json").json()["paths"]
    for path in paths:
        HTTP.get(service.address + path.removeprefix("/"))
    counted = HTTP.get(f"{service.address}metrics").text
    assert [path for path in (*paths, "/openapi.json") if f'murp_requests_total{{path="{path}"' not in counted] == []


def test_the_documented_examples_are_answered_as_documented(service: Service) -> None:
    """But for the names, which are those of another graph."""
    document = HTTP.get(f"{service.address}openapi.json").json()
    schema = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    (example,) = schema["examples"]
    for question in example["questions"]:
        question |= {"relation": "next"} | {side: "n9" for side in ("head", "tail") if side in question}
        question |= {"candidates": ["n1", "n2"]} if "candidates" in question else {}
    found = HTTP.post(f"{service.address}predict", json=example).json()
    from murp.serving.schema import Answers

    assert [len(one.predictions) for one in Answers.model_validate(found).answers] == [3, 2]


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
def test_keys_let_in_who_has_one(run: Run, header: str) -> None:
    with serve(run.path, keys=[KEY]) as served:
        body = [{"head": "n9", "relation": "parent"}]
        key = KEY if header == "x-api-key" else f"Bearer {KEY}"
        assert HTTP.post(f"{served.address}predict", json=body, headers={header: key}).status_code == 200
        for wrong in ({}, {header: f"{key}x"}, {header: ""}):
            refused = HTTP.post(f"{served.address}predict", json=body, headers=wrong)
            assert refused.status_code == 401
            assert refused.headers.items() >= HEADERS.items()
        assert HTTP.get(f"{served.address}metrics").status_code == 401
        assert HTTP.get(f"{served.address}health").status_code == 200, "who watches over it needs no key"
        there = HTTP.post(f"{served.address}predict", json=body, headers={header: key, "host": "predictions.example"})
        assert there.status_code == 200, "a service has names that this machine does not know"
        assert len(client_of(served, key=KEY).ask(head="n9", relation="parent")) == 10


def test_without_keys_a_foreign_host_name_is_refused(service: Service) -> None:
    refused = HTTP.post(f"{service.address}predict", json=[], headers={"host": "evil.example"})
    assert refused.status_code == 421
    assert warning("0.0.0.0", keys=False) is not None
    assert warning("0.0.0.0", keys=True) is None
    assert warning("127.0.0.1", keys=False) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no API key"),
        ("# none\n\n", "has no API key"),
        ("good-key-0123456789\nshort", r":2: an API key has"),
    ],
)
def test_a_file_without_good_keys_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words) as refused:
        read_keys(file)
    assert "short" not in str(refused.value), "a secret is not shown"
    with pytest.raises(ConfigError, match=r"nothing cannot be read: No such file or directory\. --keys names a file"):
        read_keys(tmp_path / "nothing")


def test_a_client_waits_until_its_questions_have_filled_up_again() -> None:
    now = [0.0]
    rates = Rates(10, lambda: now[0])
    assert rates.wait(b"a", 25) == 0, "a batch of more than a second's worth"
    assert rates.wait(b"a", 1) == 2, "15 are owed, and one is wanted"
    assert rates.wait(b"b", 1) == 0, "another client"
    now[0] = 1.5
    assert rates.wait(b"a", 1) == 1
    now[0] = 1.6
    assert rates.wait(b"a", 1) == 0
    assert Rates(0).wait(b"a", 10**9) == 0


def test_who_asks_too_much_is_told_when_to_ask_again(run: Run) -> None:
    with serve(run.path, rate=0.01) as served:
        client = client_of(served)
        client.ask(head="n9", relation="parent")
        with pytest.raises(RefusedError, match=r"more than 0\.01 questions a second"):
            client.predict([{"head": "n9", "relation": "parent"}])
        refused = HTTP.post(f"{served.address}predict", json=[{"head": "n9", "relation": "parent"}])
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0


def test_a_body_that_drips_holds_no_place(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "SENDING", 0.2)
    with serve(run.path) as served:
        port = int(served.address.rstrip("/").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
            line.sendall(b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n[")
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 408 ")


@pytest.fixture
def asked_all_along() -> Callable[[Service, Callable[[], None]], list[Any]]:
    """What questions found that four threads asked without a pause while something was done."""

    def asked(service: Service, do: Callable[[], None]) -> list[Any]:
        found: list[Any] = []
        over = threading.Event()

        def ask() -> None:
            client = client_of(service)
            while not over.is_set():
                try:
                    found.append(client.ask(head="n9", relation="parent", k=1)[0].score)
                    client.predict([{"head": "n9", "relation": "parent"}] * 20)
                except MurpError as error:
                    found.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            do()
        finally:
            over.set()
            for thread in threads:
                thread.join()
        return found

    return asked


def test_a_run_that_is_replaced_is_served_without_a_failed_request(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked_all_along: Callable[[Service, Callable[[], None]], list[Any]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(current, "EVERY", 0.05)
    graph = nasty_graph(tree())
    place = tmp_path / "run"
    made_run(place, graph, save=True)
    made_run(tmp_path / "other", graph, seed=5, save=True)
    with serve(place) as served:
        client = client_of(served)
        before = client.ask(head="n9", relation="parent", k=1)[0].score

        def replace() -> None:
            os.rename(place, tmp_path / "old")
            time.sleep(0.2)  # for a while there is none at all
            os.rename(tmp_path / "other", place)
            wait_for(lambda: client.health().reloads == 1)
            time.sleep(0.1)

        found = asked_all_along(served, replace)
        after = client.ask(head="n9", relation="parent", k=1)[0].score
        assert after != before
        assert [one for one in found if isinstance(one, MurpError)] == []
        assert {before, after} == set(found)

        # Half a run changes nothing, and is told; whole again, it is served.
        weights = place / "last.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole[: len(whole) // 2])
        wait_for(lambda: client.health().reload_error is not None)
        assert client.ask(head="n9", relation="parent", k=1)[0].score == after
        assert "cannot be served, the one before it still is" in capfd.readouterr().err
        shutil.rmtree(place)
        os.rename(tmp_path / "old", place)
        wait_for(lambda: client.health().reloads == 2)
        assert client.health().reload_error is None
        assert client.ask(head="n9", relation="parent", k=1)[0].score == before


def test_a_port_in_use_and_a_broken_folder_are_told(
    run: Run, service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = service.address.rstrip("/").rpartition(":")[2]
    assert main(["serve", str(run.path), "--port", port]) == 1
    assert f"port {port} of 127.0.0.1 is in use. Choose another with --port" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "nothing"), "--port", "0"]) == 1
    assert "there is no run folder at" in capsys.readouterr().err
    shutil.copytree(run.path, broken := tmp_path / "broken")
    (broken / "last.safetensors").write_bytes(b"no weights")
    assert main(["serve", str(broken), "--port", "0"]) == 1
    assert "last.safetensors" in capsys.readouterr().err


def test_requests_that_are_being_answered_are_finished_at_the_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from murp.serving import answering

    begun = threading.Event()
    answered = answering._answered

    def slowly(*given: Any) -> Any:
        begun.set()
        time.sleep(0.5)
        return answered(*given)

    monkeypatch.setattr(answering, "_answered", slowly)
    served = serve(run.path)
    found: list[Any] = []
    client = client_of(served)
    asking = threading.Thread(
        target=lambda: found.extend(client.predict([{"head": "n9", "relation": "parent"}] * 20))  # type: ignore[arg-type]
    )
    asking.start()
    begun.wait(PATIENCE)
    served.close()
    asking.join()
    assert len(found) == 20
    with pytest.raises(MurpError, match=r"Is `murp serve` running there\?"):
        client.health()


def test_a_run_that_cannot_be_loaded_for_any_reason_does_not_end_the_watch(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A larger run may have no room beside the one that is served, which PyTorch tells by a RuntimeError."""
    served = current.Current(run.path, None, "cpu")
    before = served.loaded

    def refused() -> None:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] can't allocate memory")

    monkeypatch.setattr(served, "_load", refused)
    served.renew()
    assert (served.loaded, served.failures) == (before, 1)
    assert "can't allocate memory" in (served.error or "")
    assert "the one before it still is" in capsys.readouterr().err


def test_a_missing_folder_is_told_until_it_is_back(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "EVERY", 0.02)
    path, away = tmp_path / "served", tmp_path / "away"
    shutil.copytree(run.path, path)
    served = current.Current(path, None, "cpu")
    before = served.loaded
    served.watch()
    path.rename(away)
    wait_for(lambda: served.error is not None)
    assert "is missing, or is not a complete run folder" in str(served.error)
    away.rename(path)
    wait_for(lambda: served.error is None)
    assert (served.loaded, served.reloads) == (before, 0)
    served.close()


def test_a_run_of_many_ranks_that_is_replaced_is_noticed(run: Run, tmp_path: Path) -> None:
    """Its checkpoint is a folder of files, last.shards."""
    path = shutil.copytree(run.path, tmp_path / "run")
    weights = path / "last.shards"
    weights.mkdir()
    (path / "last.safetensors").rename(weights / "0.safetensors")
    before = current.look(path)
    assert before
    (weights / "0.safetensors").write_bytes(b"other weights")
    assert current.look(path) not in (before, ())


def test_a_client_asks_again_where_an_idle_connection_was_closed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(service)
    client.health()
    client._lines.open.sock.shutdown(socket.SHUT_RDWR)
    assert client.health().status == "ok"


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "http://host:99999", "http://host:abc", "http://[::1"])
def test_a_client_refuses_what_is_no_address(address: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a server"):
        murp.Client(address)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "two..dots"])
def test_a_client_names_a_host_that_no_machine_can_be(host: str) -> None:
    """Python encodes names before it looks them up, and says so by a UnicodeError."""
    with pytest.raises(MurpError, match=rf"http://{host}: .*Is `murp serve` running there"):
        murp.Client(f"http://{host}").health()


@pytest.mark.parametrize("key", ["with a line end\n", "ключ", ""])
def test_a_client_refuses_what_is_no_key_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError, match="not an API key") as refused:
        murp.Client("http://127.0.0.1:8000", key=key)
    assert not key or key.strip() not in str(refused.value)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"answers": [], "scores": [1]}'])
def test_a_client_says_so_where_another_program_answers(
    service: Service, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    client = client_of(service)
    monkeypatch.setattr(client, "_exchange", lambda *_: (200, body))
    questions: list[Callable[[], object]] = [
        client.health,
        lambda: client.ask(head="n1", relation="next"),
        lambda: client.score([("n1", "next", "n2")]),
    ]
    for ask in questions:
        with pytest.raises(MurpError, match=r"the answer is not from `murp serve`"):
            ask()
