"""The estimator in scikit-learn's hands: clone, parameters, a pipeline, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from api_runs import QUICK
from murp.errors import ConfigError, DataError, UnknownNameError
from murp.graph import KnowledgeGraph
from trees import tree

pytest.importorskip("sklearn", reason="needs scikit-learn: pip install 'murp[sklearn]'")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from murp.bridges.sklearn import Embedder

SETTINGS = {name: QUICK[name] for name in ("lr", "batch_size", "negatives", "device", "engine")}


def facts_of(graph: KnowledgeGraph) -> list[tuple[str, str, str]]:
    e, r = graph.entities, graph.relations
    return [(e.id(h), r.id(k), e.id(t)) for h, k, t in graph.facts().tolist()]


FACTS = facts_of(tree())


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    out = tmp_path_factory.mktemp("sklearn") / "run"
    return Embedder(dim=3, epochs=4, settings=SETTINGS, valid=0.2, out=out).fit(FACTS)


def test_parameters_and_clone(fitted: Embedder) -> None:
    assert fitted.get_params() == {
        "graph": None, "model": "murp", "dim": 3, "epochs": 4, "seed": 0, "settings": SETTINGS, "valid": 0.2,
        "coordinates": None, "out": fitted.out,
    }  # fmt: skip
    again = clone(fitted).set_params(dim=2)
    assert again.get_params() == {**fitted.get_params(), "dim": 2}
    with pytest.raises(NotFittedError, match="call fit with triples first"):
        again.transform(["n1"])


def test_vectors_are_those_of_the_run(fitted: Embedder) -> None:
    names = ["n5", "n0", "n5"]
    expected = [fitted.run_.embedding(name, coordinates="tangent") for name in names]
    np.testing.assert_array_equal(fitted.transform(names), expected)
    np.testing.assert_array_equal(fitted.transform(np.array(names)[:, None]), expected)
    assert fitted.get_feature_names_out().tolist() == ["murp0", "murp1", "murp2"]
    with pytest.raises(UnknownNameError, match="row 2: unknown entity 'n99'"):
        fitted.transform(["n1", "n99"])
    with pytest.raises(DataError, match=r"one name a row, not an array of shape \(1, 2\)"):
        fitted.transform([["n1", "n2"]])


def test_verdicts_and_probabilities(fitted: Embedder) -> None:
    asked = FACTS[:20]
    scores = fitted.run_.score(asked)
    np.testing.assert_array_equal(fitted.decision_function(asked), scores)
    chances = fitted.predict_proba(asked)
    np.testing.assert_allclose(chances.sum(1), 1)
    np.testing.assert_allclose(chances[:, 1], 1 / (1 + np.exp(-scores)))
    r = fitted.run_.graph.relations
    thresholds = [fitted.thresholds_.by_relation.get(r.find(k), fitted.thresholds_.overall) for _, k, _ in asked]
    np.testing.assert_array_equal(fitted.predict(asked), scores >= thresholds)


def test_every_fact_is_used(fitted: Embedder) -> None:
    graph = fitted.run_.graph
    assert sorted(facts_of(graph)) == sorted(FACTS)
    assert len(graph.valid)
    assert len(graph.test) == 0


def test_embeddings_in_a_pipeline(fitted: Embedder, tmp_path: Path) -> None:
    names = np.array([f"n{i}" for i in range(63)])
    leaf = np.arange(63) >= 31
    own = Embedder(tree(), dim=3, epochs=4, settings=SETTINGS, out=tmp_path / "run")
    line = make_pipeline(own, LogisticRegression())
    shares = cross_val_score(line, names, leaf, cv=3)  # the folds share one run: it is trained once
    assert shares.shape == (3,)
    by_hand = LogisticRegression().fit(own.fit(names).transform(names), leaf)
    expected = by_hand.predict(own.transform(names))
    np.testing.assert_array_equal(line.fit(names, leaf).predict(names), expected)


def test_a_graph_is_taken_as_it_is_and_nothing_held_out_where_none_is_wanted(tmp_path: Path) -> None:
    of_graph = Embedder(dim=2, epochs=1, settings=SETTINGS, out=tmp_path / "graph").fit(tree())
    assert len(of_graph.run_.graph.test) == len(tree().test)
    whole = Embedder(dim=2, epochs=1, settings=SETTINGS, valid=0, out=tmp_path / "whole").fit(np.array(FACTS))
    assert len(whole.run_.graph.train) == len(FACTS)
    assert whole.thresholds_.overall == 0
    with pytest.raises(ConfigError, match="valid must be at least 0 and below 1, not 2"):
        Embedder(valid=2).fit(FACTS)
    with pytest.raises(DataError, match="no triples to fit to"):
        Embedder().fit([])
