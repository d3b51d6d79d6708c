"""The interface answers what the library answers."""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from explorer_runs import TestClient, client_of, made_run, nasty_graph
from hypothesis import given
from hypothesis import strategies as st

from murp.config import Config
from murp.explorer import answers, schema
from murp.explorer.collection import Collection
from murp.graph import SPLITS, KnowledgeGraph, Vocabulary
from murp.models import BIASES, TRANSFORMATIONS
from murp.prediction.search import Scores
from murp.projection import Points, question
from murp.runs import Run
from murp.web.names import Names

NOBODY = np.zeros(0, np.int32)


@pytest.fixture(params=["murp", "mure"])
def run(request: pytest.FixtureRequest, small_tree: KnowledgeGraph, tmp_path: Path) -> Run:
    return made_run(tmp_path, nasty_graph(small_tree), model=request.param)


CLIENTS: dict[str, tuple[Run, TestClient]] = {}


def get(run: Run, path: str, **parameters: Any) -> Any:
    """An answer about a run; one client for all that is asked about it."""
    if CLIENTS.get("last", (None,))[0] is not run:
        CLIENTS["last"] = run, client_of(run)
    response = CLIENTS["last"][1].get(path, params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def unpacked(packed: dict[str, Any]) -> Any:
    kind = {"float32": "<f4", "uint32": "<u4", "uint8": "u1"}[packed["type"]]
    return np.frombuffer(base64.b64decode(packed["base64"]), kind).reshape(packed["shape"])


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize("relation", ["parent", "next"])
def test_predictions_are_those_of_the_library(run: Run, side: str, relation: str, tmp_path: Path) -> None:
    loop = np.append(run.graph.train, np.array([[50, 1, 50]], dtype=np.int32), axis=0)
    graph = KnowledgeGraph("loop", run.graph.entities, run.graph.relations, loop, run.graph.valid, run.graph.test)
    run = made_run(tmp_path, graph, save=True)
    run.calibrate()
    for entity in ("n0", "n5", "n40", "n50"):
        answer = get(run, "/api/predict", relation=relation, k=63, **{side: entity})
        expected = run.predict(relation=relation, k=63, **{side: entity})
        assert [(p["rank"], p["id"], p["name"], p["known"]) for p in answer["predictions"]] == [
            (p.rank, p.id, p.name, p.known) for p in expected
        ]
        assert (entity in [p["id"] for p in answer["predictions"]]) == (relation == "next")
        for field in ("score", "probability", "calibrated"):
            ours = [p[field] for p in answer["predictions"]]
            assert ours == pytest.approx([getattr(p, field) for p in expected], rel=1e-9)
        assert answer["query"][side]["id"] == entity


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("bias", BIASES)
def test_scores_of_every_choice_of_parts(
    small_tree: KnowledgeGraph, tmp_path: Path, transformation: str, bias: str
) -> None:
    for name in ("murp", "mure"):
        model = made_run(tmp_path, small_tree, model=name, transformation=transformation, bias=bias).model
        scores = Scores(model, ready=True)
        for subject, relation in ((0, 0), (7, 3), (7, 1)):
            expected = model.score_objects(torch.tensor([subject]), torch.tensor([relation]))[0]
            torch.testing.assert_close(torch.from_numpy(scores(subject, relation)), expected, rtol=1e-9, atol=1e-9)
            for k in (1, 10, small_tree.num_entities):
                objects, values = scores.best(subject, relation, k, NOBODY)
                np.testing.assert_allclose(values, torch.topk(expected, k).values, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(expected[objects], values, rtol=1e-9, atol=1e-9)
                assert len(set(objects.tolist())) == k
            others = scores.best(subject, relation, small_tree.num_entities - 1, np.array([subject], np.int32))
            assert sorted([*others[0].tolist(), subject]) == list(range(small_tree.num_entities))
            np.testing.assert_allclose(expected[others[0]], others[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", ["murp", "mure"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_at_the_rim_and_at_the_origin(
    small_tree: KnowledgeGraph, tmp_path: Path, model: str, dtype: str
) -> None:
    run = made_run(tmp_path, small_tree, model=model, dtype=dtype)
    entity = run.model.parameters["entity"]
    entity[0] = 0
    entity[1] *= 0.999 / entity[1].norm()
    run.model.parameters["object_bias"][2] = run.model.parameters["object_bias"][1]
    entity[2] = entity[1]
    scores = Scores(run.model, ready=True)
    for subject in range(4):
        found = scores(subject, 1)
        expected = run.model.score_objects(torch.tensor([subject]), torch.tensor([1]))[0].numpy()
        tolerance = 1e-9 if dtype == "float64" else 1e-3
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        # Equal points tie, and of equal ones the first goes first.
        ranking = scores.best(subject, 1, 63, NOBODY)[0].tolist()
        assert ranking.index(2) == ranking.index(1) + 1


def test_more_best_objects_than_one_pass_keeps(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = Scores(run.model, ready=True)
    kept = scores.best(5, 1, 63, NOBODY)
    monkeypatch.setattr("murp.prediction.search.MOST_KEPT", 62)
    for ours, theirs in zip(scores.best(5, 1, 63, NOBODY), kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("model", ["murp", "mure"])
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_a_question_is_seen_as_the_model_moves_its_objects(
    small_tree: KnowledgeGraph, tmp_path: Path, model: str, transformation: str
) -> None:
    curvature = {"curvature": 0.5} if model == "murp" else {}
    run = made_run(tmp_path, small_tree, model=model, transformation=transformation, **curvature)
    geometry, points = run.model.geometry, Points(run.model.geometry, run.model.parameters["entity"])
    rows = run.model.rows("relation", torch.tensor([3]))
    moved = Points(geometry, run.model.move_object(points.rows, rows))
    centre = run.model.move_subject(points.rows[7:8], rows)[0]
    seen = question(run.model, points, 7, 3, "distances")
    np.testing.assert_allclose(seen.after, moved.around(centre).positions, rtol=0, atol=1e-9)
    seen = question(run.model, points, 7, 3, "paper")
    np.testing.assert_allclose(seen.after, moved.along(centre), rtol=0, atol=1e-7)


def test_neighbours_are_the_nearest(run: Run) -> None:
    answer = get(run, "/api/neighbours", entity="node 9", k=7)
    expected = run.nearest("n9", 7)
    assert [(n["rank"], n["id"], n["name"]) for n in answer["neighbours"]] == [(n.rank, n.id, n.name) for n in expected]
    assert [n["distance"] for n in answer["neighbours"]] == pytest.approx([n.distance for n in expected], rel=1e-9)
    card = get(run, "/api/entity", entity="n9", k=7)
    assert card["neighbours"] == answer["neighbours"]
    assert card["norm"] == pytest.approx(float(run.model.parameters["entity"][9].norm()))
    assert card["biases"]["head"] == pytest.approx(float(run.model.parameters["subject_bias"][9]))
    assert card["gloss"] == run.graph.entities.gloss(9)


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
@pytest.mark.parametrize("model", ["murp", "mure"])
@pytest.mark.parametrize("centre", [None, "n3"])
def test_distances_from_the_centre_are_true(
    small_tree: KnowledgeGraph, tmp_path: Path, dim: int, model: str, centre: str | None
) -> None:
    curvature = {"curvature": 0.5} if model == "murp" else {}
    run = made_run(tmp_path, small_tree, model=model, dim=dim, **curvature)
    given_centre = {} if centre is None else {"centre": centre}
    answer = get(run, "/api/project", k=63, points=True, **given_centre)
    points = run.model.parameters["entity"]
    middle = torch.zeros_like(points[0]) if centre is None else points[3]
    distances = run.model.geometry.distance(middle, points).numpy()
    # In more than two dimensions all are about as far: distances are stretched, and around the origin the hole is cut.
    assert (answer["scale"], answer["cut"]) == (1, 0) or dim > 2
    assert answer["cut"] == 0 or centre is None
    told = answer["scale"] * (distances - answer["cut"])
    drawn = np.tanh(math.sqrt(0.5) * told / 2) if model == "murp" else told
    assert np.linalg.norm(unpacked(answer["points"]), axis=1) == pytest.approx(drawn[order(run)], abs=1e-5)
    if dim > 2:
        assert np.quantile(drawn if model == "murp" else drawn / (1 + drawn), 0.99) >= 0.85
    nearest = answer["nearest"]
    assert [n["distance"] for n in nearest] == pytest.approx(np.sort(distances), abs=1e-9)
    assert [math.hypot(n["x"], n["y"]) for n in nearest] == pytest.approx(np.sort(drawn), abs=1e-9)
    if centre is not None:
        assert nearest[0]["id"] == centre
        assert nearest[0]["distance"] == pytest.approx(0, abs=1e-12)


def test_a_model_of_two_dimensions_is_drawn_as_it_is(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = made_run(tmp_path, small_tree, dim=2)
    at_origin = unpacked(get(run, "/api/project", points=True)["points"])
    assert at_origin == pytest.approx(run.model.parameters["entity"].numpy()[order(run)], abs=1e-6)
    around = unpacked(get(run, "/api/project", centre="n3", points=True)["points"])
    points = run.model.parameters["entity"]
    assert around == pytest.approx(run.model.geometry.recentre(points, points[3]).numpy()[order(run)], abs=1e-6)


def order(run: Run) -> np.ndarray:
    """The entities in the order of their points, the most important first."""
    return np.array([int(id[1:]) for id in get(run, "/api/entities")["ids"]])


def test_levels_follow_the_norms(run: Run) -> None:
    levels = unpacked(get(run, "/api/project", points=True)["levels"])
    norms = run.model.parameters["entity"].norm(dim=-1).numpy()[order(run)]
    assert (np.diff(levels[np.argsort(norms)].astype(int)) >= 0).all()
    assert set(levels) == set(range(8))


@pytest.mark.parametrize("side", ["head", "tail"])
def test_a_question_shows_its_four_kinds_before_and_after(run: Run, side: str) -> None:
    graph, model = run.graph, run.model
    given_entity, relation = 5, 0
    row = relation + (graph.num_relations if side == "tail" else 0)
    query = {"relation": "parent", side: f"n{given_entity}"}
    seen = get(run, "/api/question", projection="distances", **query)
    expected = run.predict(relation="parent", k=63, **{side: f"n{given_entity}"})
    at = np.argsort(order(run))  # the place of an entity among the points
    kinds = unpacked(seen["kinds"])[at]
    for p in expected:
        assert kinds[graph.entities.find(p.id)] == 2 * (p.known is not None) + (p.probability >= 0.5)
    assert sum(seen["counts"].values()) == graph.num_entities
    # The entity asked about is no answer to this question, and is not counted as one.
    assert seen["counts"]["new"] == sum(p.known is None and p.probability >= 0.5 for p in expected)
    assert kinds[given_entity] == 0

    rows = model.rows("relation", torch.tensor([row]))
    points = model.parameters["entity"]
    subject, objects = model.move_subject(points[given_entity], rows), model.move_object(points, rows)
    after = model.geometry.distance(subject, objects).numpy()
    before = model.geometry.distance(points[given_entity], points).numpy()
    for moment, distances in (("before", before), ("after", after)):
        drawn = np.tanh(distances / 2) if run.config.model == "murp" else distances
        assert np.linalg.norm(unpacked(seen[moment])[at], axis=1) == pytest.approx(drawn, abs=1e-5)
        assert seen["given"][moment] == [0, 0]

    # The paper's projection keeps every norm and the component along the subject.
    seen = get(run, "/api/question", projection="paper", **query)
    for moment, own, all_ in (("before", points[given_entity], points), ("after", subject[0], objects)):
        drawn = unpacked(seen[moment])[at]
        assert np.linalg.norm(drawn, axis=1) == pytest.approx(all_.norm(dim=-1).numpy(), abs=1e-5)
        assert drawn[:, 0] == pytest.approx((all_ @ own / own.norm()).numpy(), abs=1e-5)
        assert (drawn[:, 1] >= 0).all()
        assert seen["given"][moment] == pytest.approx([float(own.norm()), 0], abs=1e-6)


def test_edges_are_the_distinct_facts(run: Run) -> None:
    for relation, id in enumerate(["parent", "next"]):
        answer = get(run, "/api/edges", relation=id)
        facts = {(int(h), int(t)) for h, r, t in run.graph.facts() if r == relation}
        edges = order(run)[unpacked(answer["edges"])]
        assert {tuple(map(int, edge)) for edge in edges} == facts
        for (h, t), split in zip(edges, unpacked(answer["splits"]), strict=True):
            assert [h, relation, t] in run.graph.split(SPLITS[split]).tolist()
        assert answer["facts"] == len(facts)


def test_metrics_are_those_of_an_evaluation(run: Run) -> None:
    answer, report = get(run, "/api/metrics"), run.evaluate("test", "standard")
    assert answer["protocol"] == "standard"
    assert answer["split"] == "test"
    assert answer["overall"] == pytest.approx(report.overall.to_dict())
    for row in answer["relations"]:
        figures = {key: value for key, value in row.items() if key not in ("id", "name")}
        assert figures == pytest.approx(report.by_relation[row["id"]].to_dict())
    assert {row["id"] for row in answer["relations"]} == set(report.by_relation)


def test_of_a_large_graph_the_most_important_are_drawn(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murp.explorer.collection.MOST_POINTS", 20)
    monkeypatch.setattr("murp.explorer.answers.MOST_NAMED", 15)
    drawn = get(run, "/api/entities")
    assert len(drawn["ids"]) == len(drawn["names"]) == 15
    monkeypatch.setattr("murp.explorer.answers.MOST_NAMED", 20)
    CLIENTS.clear()  # what is drawn is chosen once
    indices = [int(id[1:]) for id in get(run, "/api/entities")["ids"]]
    assert indices[:3] == [0, 1, 2]  # the root, and the two below it
    assert len(indices) == 20
    answer = get(run, "/api/project", centre="n62", points=True, k=5)  # a centre that may not be drawn
    points = run.model.parameters["entity"]
    distances = run.model.geometry.distance(points[62], points[indices]).numpy()
    assert answer["points"]["shape"] == [20, 2]
    assert [n["distance"] for n in answer["nearest"]] == pytest.approx(np.sort(distances)[:5])
    ends = {int(i) for i in unpacked(get(run, "/api/edges", relation="parent")["edges"]).ravel()}
    assert ends <= set(range(20))


def test_every_answer_has_its_documented_shape(run: Run) -> None:
    asked = {"head": "n5", "relation": "parent"}
    shapes: list[tuple[type[schema.Strict], str, dict[str, Any]]] = [
        (schema.About, "/api/run", {}),
        (schema.Drawn, "/api/entities", {}),
        (schema.Search, "/api/search", {"q": "node"}),
        (schema.Entity, "/api/entity", {"entity": "n5"}),
        (schema.Neighbours, "/api/neighbours", {"entity": "n5"}),
        (schema.Predictions, "/api/predict", asked),
        (schema.Why, "/api/why", {**asked, "answer": "n7"}),
        (schema.Column, "/api/column", {"name": "community"}),
        (schema.Grown, "/api/tree", {}),
        (schema.Projected, "/api/project", {"centre": "n5", "points": True}),
        (schema.Asked, "/api/question", asked),
        (schema.Edges, "/api/edges", {"relation": "next"}),
        (schema.MetricsTable, "/api/metrics", {}),
    ]
    for shape, path, parameters in shapes:
        shape.model_validate(get(run, path, **parameters))
    documented = client_of(run).get("/openapi.json").json()["paths"]
    assert set(documented) == {path for _, path, _ in shapes} | {"/api/differences"}  # of two runs


NAMES = st.lists(st.text("aAbB _", max_size=4), min_size=1, max_size=12)


@given(NAMES, st.text("aAbB _", max_size=3), st.integers(1, 12))
def test_search_finds_everything_that_contains_the_text(names: list[str], text: str, k: int) -> None:
    ids = [f"{i}:{name}" for i, name in enumerate(names)]
    weights = np.arange(len(names))[::-1] % 3
    found = Names(Vocabulary("entity", ids, names), weights).search(text, k)
    wanted = text.strip().lower()

    def rank(i: int) -> int:
        fields = (names[i].lower(), ids[i].lower())
        if not wanted or wanted in fields:
            return 0
        return 1 if any(field.startswith(wanted) for field in fields) else 2

    matching = [i for i in range(len(names)) if wanted in names[i].lower() or wanted in ids[i].lower()]
    assert found == sorted(matching, key=lambda i: (rank(i), -weights[i], i))[:k]


@given(st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=8), st.text("ab", max_size=2))
def test_a_name_is_known_if_it_is_one_entity(names: list[str], text: str) -> None:
    vocabulary = Vocabulary("entity", [f"id{i}" for i in range(len(names))], names)
    known = Names(vocabulary, np.ones(len(names), dtype=np.int64)).known(text)
    assert known == (names.index(text) if names.count(text) == 1 else None)


def test_a_diverged_run_is_refused(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = made_run(tmp_path, small_tree)
    run.model.parameters["object_bias"][3] = math.inf
    with pytest.raises(Exception, match=r"object_bias holds NaN or infinity.*lower learning rate"):
        Collection([run])


def test_runs_of_two_graphs_are_refused(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    first = made_run(tmp_path / "first", small_tree)
    other = made_run(tmp_path / "other", nasty_graph(small_tree))
    assert answers.about(Collection([first, other]))["runs"][1]["name"] == "other"  # ids decide, names do not
    swapped = KnowledgeGraph(
        "tree", small_tree.entities, small_tree.relations, small_tree.train, small_tree.test, small_tree.valid
    )
    with pytest.raises(Exception, match=r"other was trained on another valid split of tree than .*first"):
        Collection([first, made_run(tmp_path / "other", swapped)])
    fewer = KnowledgeGraph(
        "wood", Vocabulary("entity", [f"m{i}" for i in range(63)]), small_tree.relations,
        small_tree.train, small_tree.valid, small_tree.test,
    )  # fmt: skip
    with pytest.raises(Exception, match=r"another graph than .*wood with 63 entities and 2 relations against tree"):
        Collection([first, made_run(tmp_path / "other", fewer)])


def test_two_runs_answer_for_themselves(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    runs = [made_run(tmp_path, small_tree, model=model, seed=i) for i, model in enumerate(("murp", "mure"))]
    client = client_of(*runs)
    for number, run in enumerate(runs, start=1):
        asked = {"head": "n5", "relation": "parent", "run": number}
        answer = client.get("/api/predict", params=asked).json()
        expected = run.predict(head="n5", relation="parent")
        assert answer["run"] == number
        assert [p["id"] for p in answer["predictions"]] == [p.id for p in expected]
    differing = client.get("/api/differences").json()
    schema.Differences.model_validate(differing)
    apart = [max(one["ranks"]) / min(one["ranks"]) for one in differing["questions"]]
    assert apart == sorted(apart, reverse=True)
    for one in differing["questions"][:3]:
        given_side = "head" if one["direction"] == "tail" else "tail"
        for run, rank in zip(runs, one["ranks"], strict=True):
            asked = {given_side: one["entity"]["id"], "relation": one["relation"]["id"]}
            new = [p for p in run.predict(k=63, **asked) if p.known is None or p.id == one["answer"]["id"]]
            place = [p.id for p in new].index(one["answer"]["id"]) + 1
            assert place <= rank <= place + 1  # the entity asked about is ranked by the protocol, and is no answer
    about = client.get("/api/run").json()
    assert [run["geometry"] for run in about["runs"]] == ["poincare", "euclidean"]
    assert about["runs"][1]["curvature"] is None
    assert Config().curvature == about["runs"][0]["curvature"]
