"""What is asked over HTTP is what the run answers, one by one and in batches; what is wrong is named and refused."""

from __future__ import annotations

import http.client
import inspect
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

import murp
from examples import PATIENCE
from murp.client import RefusedError
from murp.runs import Run
from murp.serving import answering, parsing
from murp.serving.server import Service
from murp.web.security import HEADERS


def client_of(service: Service) -> murp.Client:
    return murp.Client(service.address, timeout=PATIENCE)


@pytest.fixture
def client(service: Service) -> murp.Client:
    return client_of(service)


def post(service: Service, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of one request."""
    parts = urlsplit(service.address)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    line.request("POST", path, body, headers)
    response = line.getresponse()
    answer = json.loads(response.read())
    line.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, answer


def same(found: Any, expected: Any) -> None:
    assert [one.id for one in found] == [one.id for one in expected]
    assert [one.known for one in found] == [one.known for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected])
    assert [one.probability for one in found] == pytest.approx([one.probability for one in expected])


@pytest.mark.parametrize("new_only", [False, True])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_a_question_is_answered_as_the_run_answers_it(run: Run, client: murp.Client, side: str, new_only: bool) -> None:
    asked: Any = {side: "n9", "relation": "parent", "k": 7, "new_only": new_only}
    same(client.ask(**asked), run.predict(**asked))


def test_a_batch_has_an_answer_for_each_question_in_their_order(run: Run, client: murp.Client) -> None:
    """Enough of them to be answered together, of two kinds, some of them twice."""
    asked: list[Any] = [{"head": f"n{i % 20}", "relation": "parent"} for i in range(30)]
    asked += [{"tail": "node 12", "relation": "next", "k": 100, "new_only": True}]
    answers = client.predict(asked, k=4)
    assert len(answers) == len(asked)
    for question, answer in zip(asked, answers, strict=True):
        same(answer.predictions, run.predict(**{"k": 4, **question}))
        assert (answer.head is None) == ("head" not in question)
        assert (answer.tail is None) == ("tail" not in question)
    assert answers[-1].tail == murp.shapes.Reference("n12", "node 12")  # type: ignore[attr-defined]
    assert len(answers[-1].predictions) < 100, "as many as there are"


def test_candidates_are_ranked_among_themselves(run: Run, client: murp.Client) -> None:
    every = run.predict(head="n9", relation="parent", k=62)
    chosen = ["node 20", "n30", "n40", "n40", "n9"]
    found = client.ask(head="n9", relation="parent", candidates=chosen)
    assert [one.rank for one in found] == [1, 2, 3, 4]
    assert {one.id for one in found} == {"n20", "n30", "n40", "n9"}, "who names the entity itself wants its rank"
    order = [one.id for one in every if one.id in {"n20", "n30", "n40"}]
    assert [one.id for one in found if one.id != "n9"] == order
    known = [one.id for one in every if one.known]
    assert client.ask(head="n9", relation="parent", candidates=known[:1], new_only=True) == []
    in_a_batch = client.predict([{"head": "n9", "relation": "parent", "candidates": chosen}] * 20)
    assert [[one.id for one in answer.predictions] for answer in in_a_batch] == [[one.id for one in found]] * 20


def test_candidates_of_all_questions_are_looked_up_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand questions about one long list would else shut everyone out for minutes."""
    entities = service.current.loaded.entities
    looked_up: list[str] = []
    known = entities.known
    monkeypatch.setattr(entities, "known", lambda text: looked_up.append(text) or known(text))
    question = {"head": "n9", "relation": "parent"}
    body = {"questions": [question, {**question, "candidates": None}] * 10, "candidates": ["n20"] * 100}
    status, _, answer = post(service, "/predict", json.dumps(body).encode())
    assert status == 200
    assert looked_up.count("n20") == 100
    assert [len(one["predictions"]) for one in answer["answers"]] == [1, 10] * 10, "null: none for this question"
    body["candidates"] = ["nobody"]
    assert "the body: unknown entity 'nobody'" in post(service, "/predict", json.dumps(body).encode())[2]["error"]


def test_types_leave_out_what_train_does_not_allow(run: Run, client: murp.Client) -> None:
    """One by one, in a batch, said once for all, and among candidates; n9 has its one parent in train."""
    asked: Any = {"head": "n9", "relation": "parent"}
    every, allowed = run.predict(**asked, k=62), run.predict(**asked, k=62, types=True)
    assert len(allowed) < len(every), "this test needs answers that are left out"
    same(client.ask(**asked, k=62, types=True), allowed)
    mixed = client.predict([asked, {**asked, "types": False}] * 10, k=62, types=True)
    for place, answer in enumerate(mixed):
        same(answer.predictions, every if place % 2 else allowed)
    refused = next(one.id for one in every if one.id not in {kept.id for kept in allowed})
    candidates = [refused, allowed[0].id]
    assert {one.id for one in client.ask(**asked, candidates=candidates)} == set(candidates)
    assert [one.id for one in client.ask(**asked, candidates=candidates, types=True)] == [allowed[0].id]


def test_a_server_may_have_types_for_every_question_that_does_not_say(run: Run) -> None:
    asked: Any = {"head": "n9", "relation": "parent", "k": 62}
    with murp.serve(run.path, types=True) as served:
        client = client_of(served)
        same(client.ask(**asked), run.predict(**asked, types=True))
        same(client.ask(**asked, types=False), run.predict(**asked))


def test_triples_are_scored(run: Run, client: murp.Client) -> None:
    triples = [("n1", "parent", "n2"), ("node 12", "<b>parent</b>", "n8"), ("n3", "next", "n3")] * 10
    assert [one.score for one in client.score(triples)] == pytest.approx(run.score(triples))
    stated = [run.graph.entities.id(int(i)) for i in run.graph.valid[0][[0, 2]]]
    relation = run.graph.relations.id(int(run.graph.valid[0][1]))
    (one,) = client.score([(stated[0], relation, stated[1])])
    assert one.known == "valid"
    assert client.score([]) == []


def test_a_plain_list_is_taken_too(service: Service) -> None:
    status, headers, answer = post(service, "/predict", b'[{"head": "n9", "relation": "parent", "k": 2}]')
    assert status == 200
    assert len(answer["answers"][0]["predictions"]) == 2
    assert headers.items() >= HEADERS.items()
    status, _, scores = post(service, "/score", b'[["n9", "parent", "n4"]]')
    assert (status, len(scores["scores"])) == (200, 1)
    named = b'{"triples": [{"head": "n9", "relation": "parent", "tail": "n4"}]}'
    assert post(service, "/score", named)[2] == scores
    assert post(service, "/predict", b"[]")[2] == {"answers": []}


GOOD = '{"head": "n9", "relation": "parent"}'
WRONG = {
    "no JSON": ("/predict", b"{", 400, "the body is no JSON"),
    "no UTF-8": ("/predict", b'"\xff"', 400, "the body is no JSON"),
    "too deep": ("/predict", b"[" * 19_000, 400, "nested too deeply"),
    "a text": ("/predict", b'"hello"', 422, "neither a list of questions"),
    "no list": ("/predict", b'{"k": 3}', 422, "no list 'questions'"),
    "another field of the body": ("/predict", b'{"questions": [], "limit": 3}', 422, "unknown field 'limit'"),
    "another field": ("/predict", f'[{GOOD}, {{"head": "n1", "relation": "next", "top": 3}}]', 422, "question 2 has"),
    "a number": ("/predict", f"[{GOOD}, 3]", 422, "question 2: it is no object"),
    "both": ("/predict", b'[{"head": "n1", "tail": "n2", "relation": "next"}]', 422, "either a head or a tail"),
    "neither": ("/predict", b'[{"relation": "next"}]', 422, "either a head or a tail"),
    "no relation": ("/predict", b'[{"head": "n1"}]', 422, "the relation is missing"),
    "a name that is no text": ("/predict", b'[{"head": 1, "relation": "next"}]', 422, "the head is missing"),
    "a long name": ("/predict", json.dumps([{"head": "x" * 501, "relation": "next"}]), 422, "more than 500 characters"),
    "an unknown entity": ("/predict", f'[{GOOD}, {{"head": "nod 9", "relation": "next"}}]', 404, "question 2: unknown"),
    "an unknown relation": ("/predict", b'[{"head": "n1", "relation": "parnt"}]', 404, "unknown relation 'parnt'"),
    "k of 0": ("/predict", b'{"questions": [{"head": "n1", "relation": "next"}], "k": 0}', 422, "k must be"),
    "k that is true": ("/predict", b'[{"head": "n1", "relation": "next", "k": true}]', 422, "k must be"),
    "new_only of 1": ("/predict", b'[{"head": "n1", "relation": "next", "new_only": 1}]', 422, "new_only must be"),
    "types of null": ("/predict", b'[{"head": "n1", "relation": "next", "types": null}]', 422, "types must be"),
    "no candidates": ("/predict", b'[{"head": "n1", "relation": "next", "candidates": []}]', 422, "candidates must be"),
    "an odd candidate": ("/predict", b'[{"head": "n1", "relation": "next", "candidates": [[]]}]', 422, "the candidate"),
    "too many": ("/predict", f"[{','.join([GOOD] * 51)}]", 413, "51 questions in one request; at most 50"),
    "too long": ("/predict", b" " * 20_001, 413, "more than 20,000 bytes"),
    "two names": ("/score", b'[["n1", "next"]]', 422, "triple 1: it is no list of head"),
    "an unknown tail": ("/score", b'[["n1", "next", "nobody"]]', 404, "triple 1: unknown entity 'nobody'"),
    "another path": ("/guess", b"[]", 404, "POST /guess"),
    "another method": ("/health", b"[]", 405, "POST /health"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_named(service: Service, kind: str) -> None:
    path, body, status, words = WRONG[kind]
    found, headers, answer = post(service, path, body if isinstance(body, bytes) else body.encode())
    assert (found, words in answer["error"]) == (status, True), answer
    assert answer["advice"]
    assert headers.items() >= HEADERS.items()


def test_a_misspelt_name_is_told_what_it_may_have_meant(client: murp.Client) -> None:
    with pytest.raises(RefusedError, match=r"question 1: unknown relation 'nexd'.* GET /relations") as refused:
        client.ask(head="n1", relation="nexd")
    assert refused.value.status == 404
    assert any("next" in one for one in refused.value.closest)


def test_an_answer_that_takes_too_long_is_refused_and_the_next_is_not(run: Run) -> None:
    with murp.serve(run.path, timeout=1e-9) as served:
        client = client_of(served)
        with pytest.raises(RefusedError, match="would take longer than 1e-09 s") as refused:
            client.predict([{"head": "n9", "relation": "parent"}] * 40)
        assert refused.value.status == 503
        assert len(client.ask(head="n9", relation="parent")) == 10, "one question is answered in place"


def test_one_question_among_very_many_entities_waits_in_the_thread_too(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered in place it would keep everyone waiting, and no time limit would hold for it."""
    monkeypatch.setattr(answering, "IN_PLACE", run.graph.num_entities)
    with murp.serve(run.path, timeout=1e-9) as served:
        client = client_of(served)
        with pytest.raises(RefusedError, match="would take longer than 1e-09 s"):
            client.ask(head="n9", relation="parent")


def test_looking_names_up_is_part_of_the_time_of_a_request(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "TURN", 2)
    with murp.serve(run.path, timeout=1e-9) as served:
        client = client_of(served)
        with pytest.raises(RefusedError, match="would take longer than 1e-09 s"):
            client.score([("n1", "next", "n2")])
        with pytest.raises(RefusedError, match="would take longer than 1e-09 s"):
            client.ask(head="n9", relation="parent", candidates=["n1", "n2"])


def test_every_field_of_a_question_is_documented() -> None:
    from murp.serving import schema

    assert set(schema.Question.model_fields) == parsing.FIELDS
    assert set(schema.Questions.model_fields) == parsing.SHARED | {"questions"}
    assert set(murp.shapes.Question.__annotations__) == parsing.FIELDS  # type: ignore[attr-defined]


def test_the_client_asks_with_the_parameters_of_a_run() -> None:
    """And with the same defaults, but for ``types``, where the server has one."""
    asked, predicted = (inspect.signature(one).parameters for one in (murp.Client.ask, Run.predict))
    assert set(asked) == {"self", *parsing.FIELDS}
    assert set(predicted) - set(asked) == {"approximate"}
    for name in set(asked) & set(predicted) - {"types"}:
        assert asked[name].default == predicted[name].default
