"""All entities in the disk, their edges and their spheres of influence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from boxes import assert_apart, assert_inside, drawn_boxes

from murp import models
from murp.config import Config
from murp.errors import ConfigError, NotFiniteError
from murp.geometry import PoincareBall, poincare
from murp.graph import KnowledgeGraph, Vocabulary
from murp.plots import ask, entities, question, save
from murp.plots.disk import answers_disk, view
from murp.plots.entities import degrees, entities_disk, main_relations
from murp.plots.layout import around, in_unit_disk, new_disk, reach
from murp.plots.spheres import spheres, spheres_around
from murp.runs import Run


def make_run(graph: KnowledgeGraph, **settings: Any) -> Run:
    config = Config(**settings)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(0)
    model.parameters["entity"] *= 100
    return Run(Path("a-run"), config, graph, model, {})


def points_of(run: Run) -> torch.Tensor:
    return run.model.parameters["entity"].double()


@pytest.mark.parametrize("model", ["murp", "mure"])
@pytest.mark.parametrize("dim", [1, 2, 3, 40])
def test_distances_from_the_centre_are_kept_and_in_two_dimensions_all(
    small_tree: KnowledgeGraph, model: str, dim: int
) -> None:
    run = make_run(small_tree, model=model, dim=dim)
    points, geometry = points_of(run), run.model.geometry
    plane = around(geometry, points, points[7])
    assert plane.shape == (len(points), 2)
    kept = [7] if dim > 2 else range(len(points))
    for i in kept:
        torch.testing.assert_close(
            geometry.distance(plane, plane[i]), geometry.distance(points, points[i]), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("settings", [{"curvature": 4.0}, {"model": "mure"}])
def test_every_point_is_drawn_in_the_unit_disk(small_tree: KnowledgeGraph, settings: Any) -> None:
    run = make_run(small_tree, dim=3, **settings)
    drawn = in_unit_disk(run.model.geometry, around(run.model.geometry, points_of(run), points_of(run)[0]))
    assert np.linalg.norm(drawn, axis=1).max() < 1
    assert drawn[0].tolist() == pytest.approx([0, 0], abs=1e-7)


def test_degrees_and_main_relations_by_counting(small_tree: KnowledgeGraph) -> None:
    counted: Counter[int] = Counter()
    by_relation: dict[int, Counter[int]] = {}
    for s, r, o in small_tree.facts().tolist():
        counted.update([s, o])
        for entity in (s, o):
            by_relation.setdefault(entity, Counter())[r] += 1
    assert degrees(small_tree).tolist() == [counted[i] for i in range(small_tree.num_entities)]
    groups = main_relations(small_tree)
    for i in range(small_tree.num_entities):
        (name,) = (name for name, (members, _) in groups.items() if members[i])
        relation = small_tree.relations.find(name)
        assert by_relation[i][relation] == max(by_relation[i].values())


@pytest.mark.parametrize("colour", ["norm", "depth", "relation"])
@pytest.mark.parametrize("settings", [{"dim": 2}, {"dim": 5}, {"dim": 5, "model": "mure", "bias": "norm"}])
def test_the_disk_has_every_entity_edges_between_them_and_names_apart(
    small_tree: KnowledgeGraph, settings: Any, colour: Any
) -> None:
    run = make_run(small_tree, **settings)
    figure = entities_disk(run, centre=3, edges=0, colour=colour)
    axes = figure.axes[0]
    points = axes.collections[2:]
    shown = {tuple(np.round(at, 9)) for part in points for at in part.get_offsets()}  # type: ignore[union-attr]
    assert len(shown) >= small_tree.num_entities
    edges = [np.array(line) for part in axes.collections[:2] for line in part.get_segments()]  # type: ignore[attr-defined]
    assert len(edges) == (small_tree.facts()[:, 1] == 0).sum()
    for edge in edges:
        assert {tuple(np.round(edge[0], 9)), tuple(np.round(edge[-1], 9))} <= shown
    texts = [text for text in axes.texts if text.get_text()]
    assert texts[0].get_text() == "n3"
    assert_apart(drawn_boxes(figure, texts))


def test_many_points_and_arcs_are_one_image_of_a_vector_file(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entities, "MANY", 20)
    save(entities_disk(make_run(small_tree, dim=2), edges=0), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().count("<image") == 2  # the other is the scale of colours


@pytest.mark.parametrize("projection", ["distances", "paper"])
def test_points_that_huddle_in_the_middle_are_shown_larger(small_tree: KnowledgeGraph, projection: Any) -> None:
    run = make_run(small_tree, dim=2)
    run.model.parameters["entity"] *= 0.9 / points_of(run).norm(dim=1).max()
    assert entities_disk(run).axes[0].get_xlim() == (-1.02, 1.02)
    run.model.parameters["entity"] *= 0.1
    run.model.parameters["entity"][0] = 0
    figure = entities_disk(run, centre=0, projection=projection)
    axes = figure.axes[0]
    radii = points_of(run).norm(dim=1).numpy()
    assert axes.get_xlim()[1] == pytest.approx(1.02 * 1.15 * np.quantile(radii, 0.99))
    assert "the rim is not shown: the picture ends at" in axes.get_xlabel().replace("\n", " ")
    assert_inside(figure)
    # One that lies far out alone does not shrink all the others to a dot: it is counted.
    at = np.concatenate([np.tile([[0.2, 0.0]], (300, 1)), [[0.0, 0.9]]])
    assert reach(at) == pytest.approx(0.23)
    _, axes = new_disk("", "note", at)
    assert axes.get_xlabel() == "note; the rim and 1 entity are not shown: the picture ends at 0.23 of the radius"


def test_names_may_be_long(small_tree: KnowledgeGraph) -> None:
    names = [f"{i} {'a very long name ' * 9}" for i in range(small_tree.num_entities)]
    relations = Vocabulary("relation", ["r " * 60, "s " * 60])
    splits = [small_tree.split(split) for split in ("train", "valid", "test")]
    graph = KnowledgeGraph("tree", Vocabulary("entity", small_tree.entities.ids, names), relations, *splits)
    run = make_run(graph, dim=5)
    run.model.parameters["subject_bias"] += 1
    for figure in (
        entities_disk(run, centre=3, edges=0, colour="depth"),
        entities_disk(run, centre=3, colour="relation"),
        spheres(run, centre=3),
        answers_disk(run, 3, 0),
        question({"MuRP d=5": ask(run.model, graph, 3, 0), "MuRE d=5": ask(run.model, graph, 3, 0)}),
    ):
        assert_inside(figure)


def test_a_group_without_members_has_no_place_in_the_legend(small_tree: KnowledgeGraph) -> None:
    groups = main_relations(small_tree)
    (legend,) = entities_disk(make_run(small_tree, dim=3), colour="relation").legends
    assert [text.get_text() for text in legend.texts] == [name for name, (who, _) in groups.items() if who.any()]
    assert not groups["another relation"][0].any()


def test_depth_is_that_of_the_tree(small_tree: KnowledgeGraph) -> None:
    figure = entities_disk(make_run(small_tree, dim=2), edges=0, colour="depth")
    (scale,) = (part for part in figure.axes[0].collections if part.get_array() is not None)
    assert Counter(np.asarray(scale.get_array()).tolist()) == {0: 1, 1: 2, 2: 4, 3: 8, 4: 16, 5: 32}


def test_depth_of_a_closure_is_that_of_its_tree(small_tree: KnowledgeGraph) -> None:
    """Where every ancestor is stated, all but the root are one edge below it."""
    parents = dict(small_tree.facts()[small_tree.facts()[:, 1] == 0][:, [0, 2]].tolist())
    facts = []
    for child in parents:
        above = parents.get(child)
        while above is not None:
            facts.append((child, 0, above))
            above = parents.get(above)
    closure = KnowledgeGraph(
        "closure",
        small_tree.entities,
        small_tree.relations,
        np.array(facts, dtype=np.int32),
        *[small_tree.valid[:0]] * 2,
    )
    figure = entities_disk(make_run(closure, dim=2), edges=0, colour="depth")
    (scale,) = (part for part in figure.axes[0].collections if part.get_array() is not None)
    assert Counter(np.asarray(scale.get_array()).tolist()) == {0: 1, 1: 2, 2: 4, 3: 8, 4: 16, 5: 32}


def test_the_papers_projection_needs_an_entity(small_tree: KnowledgeGraph) -> None:
    run = make_run(small_tree, dim=5)
    with pytest.raises(ConfigError, match="--centre"):
        entities_disk(run, projection="paper")
    assert entities_disk(run, centre=3, projection="paper").axes


@pytest.mark.parametrize("draw", [entities_disk, spheres])
def test_a_diverged_model_is_not_drawn(small_tree: KnowledgeGraph, draw: Any) -> None:
    run = make_run(small_tree, dim=3)
    run.model.parameters["entity"][3, 1] = float("nan")
    with pytest.raises(NotFiniteError, match="diverged"):
        draw(run)


@pytest.mark.parametrize("table", ["entity", "translation", "subject_stretch"])
def test_a_diverged_relation_is_not_asked(small_tree: KnowledgeGraph, table: str) -> None:
    run = make_run(small_tree, dim=3)
    run.model.parameters[table][0, 1] = float("nan")
    for draw in (ask, view):
        with pytest.raises(NotFiniteError, match="diverged"):
            draw(run.model, small_tree, 0, 0)


@pytest.mark.parametrize("c", [0.5, 1.0])
def test_spheres_are_the_points_at_distance_root_b(c: float) -> None:
    generator = torch.Generator().manual_seed(0)
    points = 0.3 * torch.randn(50, 2, dtype=torch.float64, generator=generator)
    biases = torch.linspace(-1, 3, 50, dtype=torch.float64)
    ball = PoincareBall(c)
    points = ball.project(points)
    shown = spheres_around(ball, points, biases, 20, 30)
    assert shown.entities[0] == 20
    nearest = torch.argsort(ball.distance(points, points[20]))[:31]
    assert set(shown.entities) == set(nearest.tolist())
    for i, at, middle, radius in zip(shown.entities, shown.points, shown.middles, shown.radii, strict=True):
        for angle in np.linspace(0, 6, 7):
            on = torch.from_numpy(middle + radius * np.array([np.cos(angle), np.sin(angle)])) / c**0.5
            distance = float(poincare.distance(on, torch.from_numpy(at) / c**0.5, c=c))
            assert distance == pytest.approx(max(float(biases[i]), 0) ** 0.5, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("model", ["murp", "mure"])
def test_the_picture_of_spheres(small_tree: KnowledgeGraph, model: str) -> None:
    run = make_run(small_tree, model=model, dim=4)
    run.model.parameters["subject_bias"] += 1
    figure = spheres(run, centre=3, count=10)
    axes = figure.axes[0]
    assert sum(len(part.get_offsets()) for part in axes.collections if part.get_label()[0] != "_") == 11  # type: ignore[arg-type,index]
    assert axes.texts[0].get_text() == "n3"
    assert_apart(drawn_boxes(figure, list(axes.texts)))
    assert "radius √b for an entity of head bias b" in axes.get_xlabel()
    run.model.parameters["subject_bias"][:] = -1
    run.model.parameters["subject_bias"][3] = 1
    figure = spheres(run, centre=3, count=10)
    assert "10 of 11 have a negative bias: no sphere" in figure.axes[0].get_xlabel().replace("\n", " ")
    with pytest.raises(ConfigError, match="learns no bias"):
        spheres(make_run(small_tree, model=model, dim=4, bias="norm"))
