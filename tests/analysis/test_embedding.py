"""Runs whose points are set by hand, so that what is to be found in them is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from murp import models
from murp.analysis.embedding import embedding_report
from murp.analysis.higher import compare
from murp.config import Config
from murp.errors import ConfigError, NotFiniteError, UnknownNameError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.runs import Run
from trees import tree

DEPTH = np.log2(np.arange(63) + 1).astype(int)  # in the tree, whose relation "parent" leads up


def run_with_norms(norms: np.ndarray, graph: KnowledgeGraph | None = None, **settings) -> Run:
    """A run on a tree with the given norms of entities and a subject bias equal to minus the norm."""
    graph = graph or tree()
    config = Config(dim=2, **settings)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(0)
    # Along the axes, so that equal norms are equal to the last bit.
    directions = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[torch.arange(len(norms)) % 4]
    points = directions * torch.as_tensor(norms, dtype=torch.float32)[:, None]
    model.parameters["entity"] = points
    if "subject_bias" in model.parameters:
        model.parameters["subject_bias"] = -torch.as_tensor(norms, dtype=torch.float32)
    return Run(Path("somewhere"), config, graph, model, {"epoch": 0})


def of(report, relation):
    return next(fit for fit in report.relations if fit.profile.relation == relation)


def test_norms_that_grow_with_depth_are_found():
    assert of(embedding_report(run_with_norms(0.1 + DEPTH / 10)), "parent").depth_and_norm.rho == pytest.approx(1)
    assert of(embedding_report(run_with_norms(0.9 - DEPTH / 10)), "parent").depth_and_norm.rho == pytest.approx(-1)


def test_a_relation_without_levels_has_no_correlation():
    """The ring of leaves is one cycle: one component, one depth."""
    fit = of(embedding_report(run_with_norms(0.1 + DEPTH / 10)), "next")
    assert fit.depth_and_norm.rho is None
    assert fit.profile.krackhardt == 0


def test_norms_against_biases_and_hits_against_scores():
    run = run_with_norms(np.linspace(0.1, 0.9, 63))
    report = embedding_report(run, split="valid", protocol="paper")
    assert report.norm_and_bias["subject_bias"].rho == pytest.approx(-1)
    assert report.norm_and_bias["object_bias"].rho is None  # all zero
    figures = run.evaluate("valid", "paper").by_relation
    assert (report.split, report.protocol) == ("valid", "paper")
    for name, metrics in figures.items():
        assert (of(report, name).hits, of(report, name).queries) == (metrics.hits[10], metrics.queries)
    assert report.score_and_hits.n == len(figures)
    assert embedding_report(run_with_norms(np.full(63, 0.5), bias="norm")).norm_and_bias == {}


def test_entities_that_training_never_saw_are_left_out():
    facts = np.array([[i, 0, i + 1] for i in range(6)], dtype=np.int32)
    names = Vocabulary("entity", [f"e{i}" for i in range(7)]), Vocabulary("relation", ["r"])
    graph = KnowledgeGraph("path", *names, train=facts[:4], valid=facts[4:5], test=facts[5:])
    norms = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 0.0])
    report = embedding_report(run_with_norms(norms, graph))
    assert report.relations[0].depth_and_norm.n == 5
    assert report.relations[0].depth_and_norm.rho == pytest.approx(1)
    assert report.norm_and_bias["subject_bias"].n == 5


def test_the_higher_of_two_by_graph_norm_and_score():
    run = run_with_norms(0.1 + DEPTH / 10)
    found = compare(run, "n62", "n2", "parent")
    assert found.path == ("n62", "n30", "n14", "n6", "n2")
    assert (found.by_graph, found.by_norm, found.direction) == ("n2", "n2", "up")
    assert (found.first.depth, found.second.depth) == (5, 1)
    assert found.depth_and_norm.rho == pytest.approx(1)
    turned = compare(run, "n2", "n62", "parent")
    assert (turned.path, turned.by_graph, turned.by_norm) == (found.path, "n2", "n2")
    assert (turned.first, turned.second) == (found.second, found.first)
    s, o = torch.tensor([62]), torch.tensor([2])
    forward, backward = run.model.score(s, torch.tensor([0]), o).item(), run.model.score(o, torch.tensor([0]), s).item()
    assert (found.first.score, found.second.score) == pytest.approx((forward, backward))
    assert found.by_score == turned.by_score == ("n2" if forward > backward else "n62")


def test_the_higher_of_two_along_a_relation_that_leads_down():
    up = tree()
    down = [part[part[:, 1] == 0][:, ::-1] for part in (up.train, up.valid, up.test)]
    graph = KnowledgeGraph("down", up.entities, up.relations, *down)
    found = compare(run_with_norms(0.1 + DEPTH / 10, graph), "n2", "n62", "parent")
    assert (found.direction, found.by_graph, found.path[0]) == ("down", "n2", "n2")
    assert found.by_score == ("n2" if found.first.score > found.second.score else "n62")


def test_where_nothing_decides():
    run = run_with_norms(0.1 + DEPTH / 10)
    strangers = compare(run, "n1", "n2", "parent")
    assert (strangers.path, strangers.by_graph, strangers.both_ways) == ((), None, False)
    assert strangers.by_norm is None
    ring = compare(run, "n31", "n40", "next")
    assert ring.both_ways
    assert ring.by_graph is None
    assert compare(run, "n0", "n31", "next").first.depth is None


def test_bad_questions_and_diverged_points_are_refused():
    run = run_with_norms(0.1 + DEPTH / 10)
    with pytest.raises(ConfigError, match="same entity"):
        compare(run, "n1", "n1", "parent")
    with pytest.raises(UnknownNameError, match="parent"):
        compare(run, "n1", "n2", "parents")
    run.model.parameters["entity"][5, 0] = torch.nan
    with pytest.raises(NotFiniteError, match="diverged"):
        compare(run, "n1", "n2", "parent")
