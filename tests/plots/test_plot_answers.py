"""Figure 5: the paper's projection as laws, and the right objects in the right colours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from boxes import assert_apart, drawn_boxes
from hypothesis import given, settings
from hypothesis import strategies as st

from murp import models
from murp.geometry import Euclidean, euclidean, poincare
from murp.graph import KnowledgeGraph
from murp.plots import ask, question
from murp.plots.answers import judged, worth_a_name
from murp.plots.layout import along


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(0.01, 0.99))
def test_the_projection_keeps_norms_and_distances_to_the_subject(seed: int, dim: int, radius: float) -> None:
    directions = torch.randn(20, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    points = radius * directions / (1e-3 + torch.linalg.vector_norm(directions, dim=1).max())
    plane = along(Euclidean(), points, points[0])
    norms = torch.linalg.vector_norm(points, dim=1)
    assert plane[0].tolist() == pytest.approx([float(norms[0]), 0], abs=1e-7)
    torch.testing.assert_close(torch.linalg.vector_norm(plane, dim=1), norms)
    assert (plane[:, 1] >= 0).all()
    torch.testing.assert_close(euclidean.distance(plane, plane[0]), euclidean.distance(points, points[0]))
    ours, theirs = (poincare.distance(x, x[:1], c=1.0) for x in (plane, points))
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def test_a_subject_at_the_origin_has_no_direction_but_a_picture() -> None:
    plane = along(Euclidean(), torch.tensor([[0.3, 0.4]], dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    assert plane.tolist() == [[0.0, 0.5]]


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1))
def test_every_answer_is_in_one_group_and_the_groups_are_named_in_turns(answers: list[tuple[float, bool]]) -> None:
    probabilities, known = np.array([p for p, _ in answers]), np.array([k for _, k in answers])
    groups = judged(probabilities, known)
    assert (np.sum(list(groups.values()), axis=0) == 1).all()
    for i, (p, k) in enumerate(answers):
        assert groups[(("other", "new"), ("missed", "known"))[k][p >= 0.5]][i]
    shown = worth_a_name(probabilities, known)
    assert set(shown) == set(np.flatnonzero(~groups["other"]))
    for kind in ("new", "missed", "known"):
        own = [i for i in shown if groups[kind][i]]
        assert probabilities[own].tolist() == sorted(probabilities[own], reverse=True)
        # In turns: where n of a kind have their name, no other kind has more than one more.
        for n, i in enumerate(own):
            before = shown[: list(shown).index(i)]
            assert all(groups[other][before].sum() <= n + 1 for other in ("new", "missed", "known"))


@pytest.fixture(params=["murp", "mure"])
def model(request: pytest.FixtureRequest, small_tree: KnowledgeGraph) -> models.MultiRelational:
    built = models.MODELS[request.param](small_tree.num_entities, 2 * small_tree.num_relations, 5, dtype=torch.float64)
    built.initialise(0)
    built.parameters["entity"] *= 100
    built.parameters["object_bias"][:10] = 9.0
    return built


def test_known_and_predicted_objects_are_all_there_and_so_many_others(
    model: models.MultiRelational, small_tree: KnowledgeGraph
) -> None:
    subject, relation = 5, 0
    asked = ask(model, small_tree, subject, relation, others=20)
    facts = {f"n{o}" for s, r, o in small_tree.facts().tolist() if (s, r) == (subject, relation)}
    scores = model.score_objects(torch.tensor([subject]), torch.tensor([relation]))[0]
    likely = {f"n{i}" for i in range(small_tree.num_entities) if scores[i] >= 0 and i != subject}
    assert likely
    assert {name for name, known in zip(asked.names, asked.known, strict=True) if known} == facts
    assert {name for name, p in zip(asked.names, asked.probabilities, strict=True) if p >= 0.5} == likely
    assert len(asked.names) == len(facts | likely) + 20
    assert f"n{subject}" not in asked.names
    assert asked.names == ask(model, small_tree, subject, relation, others=20).names
    assert asked.names != ask(model, small_tree, subject, relation, others=20, seed=1).names


def test_after_the_move_the_picture_has_the_distances_of_the_score(
    model: models.MultiRelational, small_tree: KnowledgeGraph
) -> None:
    """Where an object was predicted only by its bias, φ = -d² + b: the distance in the plane is the model's."""
    asked = ask(model, small_tree, 5, 1)
    at = [int(name[1:]) for name in asked.names]
    scores = model.score_objects(torch.tensor([5]), torch.tensor([1]))[0][at]
    squared = model.parameters["subject_bias"][5] + model.parameters["object_bias"][at] - scores
    here, there = torch.from_numpy(asked.after), torch.tensor([[asked.subject_after, 0.0]], dtype=torch.float64)
    distance = poincare.distance(here, there, c=1.0) if asked.disk else euclidean.distance(here, there)
    torch.testing.assert_close(distance, squared.clamp(min=0).sqrt(), rtol=1e-6, atol=1e-6)


def test_the_figure_of_two_models_names_answers_that_do_not_overlap(
    model: models.MultiRelational, small_tree: KnowledgeGraph
) -> None:
    asked = ask(model, small_tree, 5, 0)
    figure = question({"MuRP": asked, "MuRE": asked})
    for axes in figure.axes:
        assert 0 < len(axes.texts) <= 25
        assert_apart(drawn_boxes(figure, list(axes.texts)))
        drawn = {c.get_label(): len(c.get_offsets()) for c in axes.collections}  # type: ignore[arg-type]
        for group, chosen in asked.answers().items():
            assert drawn[group] == chosen.sum()
        assert drawn["true tail, before"] == asked.known.sum()
    assert len(figure.legends) == 1
