"""A tree that grows: its layout, its pictures, and what `murp demo` refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from murp.cli.main import main
from murp.explorer.live import Live
from murp.explorer.tree import Hierarchy, Tree
from murp.explorer.tree_demo import STEP, STEPS, curved, grown
from murp.geometry import PoincareBall
from murp.hierarchy import Taxonomy, reconstruct
from murp.hierarchy.tree_layout import by_levels
from murp.runs import load


def test_levels_stand_equally_far_apart_and_sectors_do_not_overlap(laid_out: Path) -> None:
    run = load(laid_out, device="cpu")
    hierarchy = Hierarchy.of(run.graph)
    tree = Tree(hierarchy, run.model)
    places = by_levels(tree.parent, STEP)
    assert np.allclose(2 * np.arctanh(np.linalg.norm(places, axis=1)), STEP * hierarchy.rank)
    assert np.array_equal(run.model.parameters["entity"].numpy(), places)
    angles = tree.angles()
    for level in range(1, int(hierarchy.rank.max()) + 1):
        own = np.sort(angles[hierarchy.rank == level])
        assert (np.diff(own) > 1e-9).all()  # each has a place of its own
    root = int(np.argmax(tree.below))
    assert tree.below[root] == len(places) == run.graph.num_entities
    assert run.graph.entities.name(root) == "furniture"


def test_it_grows_level_by_level(laid_out: Path) -> None:
    run = load(laid_out, device="cpu")
    tree = Tree(Hierarchy.of(run.graph), run.model)
    places = by_levels(tree.parent, STEP)
    assert np.allclose(grown(tree, places, 0), 0)  # all at the root
    one = grown(tree, places, 1)
    below = tree.hierarchy.rank > 1
    assert np.array_equal(one[~below], places[~below])
    for entity in np.flatnonzero(below):
        assert np.array_equal(one[entity], places[tree.path(int(entity))[-2]])  # where its ancestor is
    live = Live(laid_out)
    assert live.snapshots.epochs() == list(range(STEPS * int(tree.hierarchy.rank.max()) + 1))
    assert live.about()["done"]


def test_what_the_sliders_show_is_measured_alike(laid_out: Path) -> None:
    """The figures of the page against a reconstruction of what it draws: the layout at curvature -c."""
    run = load(laid_out, device="cpu")
    places, pairs = run.model.parameters["entity"].numpy(), Taxonomy.of(run.graph).closure()
    sliders = Live(laid_out).about()["sliders"]
    ranks = []
    for one in sliders["curvatures"]:
        found = reconstruct(PoincareBall(), curved(places, one["curvature"]), pairs)
        assert (one["map"], one["mean_rank"]) == pytest.approx((found.map, found.mean_rank), abs=0.01)
        ranks.append(one["mean_rank"])
    assert ranks == sorted(ranks, reverse=True)  # the more curved, the better a tree can be read
    assert np.allclose(curved(places, 1.0), places)
    assert [one["dim"] for one in sliders["dimensions"]] == [2, 3]
    assert all(0 < one["map"] <= 1 for one in sliders["dimensions"])
    assert Live(laid_out).snapshots.embedding(3).shape == places.shape


def test_a_layout_has_no_second_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "tree", "--beside", "--out", str(tmp_path / "run")]) == 1
    assert "--beside is for wordnet and countries" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
