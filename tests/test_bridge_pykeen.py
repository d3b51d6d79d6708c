"""PyKEEN both ways: its datasets in, runs as its models; its evaluator finds the figures that ours finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import murp
from api_runs import QUICK
from murp.errors import DataError
from trees import tree

pytest.importorskip("pykeen", reason="needs PyKEEN: pip install 'murp[judges]'")
from pykeen.datasets import EagerDataset, Nations
from pykeen.evaluation import RankBasedEvaluator
from pykeen.models import Model
from pykeen.predict import predict_target
from pykeen.triples import CoreTriplesFactory

from murp.bridges.pykeen import factories, from_pykeen, to_pykeen


@pytest.fixture(scope="module")
def dataset() -> Any:
    return Nations()


@pytest.fixture(scope="module")
def run(dataset: Any, tmp_path_factory: pytest.TempPathFactory) -> murp.Run:
    settings = {**QUICK, "epochs": 10, "batch_size": 128, "validate_every": 5}
    return murp.train(from_pykeen(dataset), out=tmp_path_factory.mktemp("pykeen") / "run", **settings)


def test_a_dataset_keeps_its_numbers(dataset: Any, run: murp.Run) -> None:
    graph = run.graph
    assert graph.name == "nations"
    assert graph.counts() == {"entities": 14, "relations": 55, "train": 1592, "valid": 199, "test": 201}
    for split, factory in (("train", dataset.training), ("valid", dataset.validation), ("test", dataset.testing)):
        np.testing.assert_array_equal(graph.split(split), factory.mapped_triples.numpy())  # type: ignore[arg-type]
    assert [graph.entities.find(name) for name in dataset.entity_to_id] == list(dataset.entity_to_id.values())


@pytest.mark.parametrize("model", ["murp", "distmult"])
def test_its_evaluator_finds_our_figures(model: str, dataset: Any, run: murp.Run, tmp_path: Path) -> None:
    if model != "murp":
        run = murp.train(run.graph, out=tmp_path / "run", model=model, dim=4, epochs=2, device="cpu", engine="torch")
    asked = to_pykeen(run)
    assert isinstance(asked, Model)
    verdict = RankBasedEvaluator(filtered=True).evaluate(
        model=asked,
        mapped_triples=dataset.testing.mapped_triples,
        additional_filter_triples=[dataset.training.mapped_triples, dataset.validation.mapped_triples],
        batch_size=32,
        use_tqdm=False,
    )
    ours = run.evaluate("test")
    for side, figures in {"both": ours.overall, **ours.by_direction}.items():
        theirs = {
            "mrr": verdict.get_metric(f"{side}.realistic.inverse_harmonic_mean_rank"),
            "mr": verdict.get_metric(f"{side}.realistic.arithmetic_mean_rank"),
            **{f"hits@{k}": verdict.get_metric(f"{side}.realistic.hits_at_{k}") for k in (1, 3, 10)},
        }
        found = {name: value for name, value in figures.to_dict().items() if name != "queries"}
        assert found == pytest.approx(theirs, rel=1e-6), side


def test_its_predictions_are_ours(run: murp.Run) -> None:
    training = factories(run.graph)["training"]
    theirs = predict_target(model=to_pykeen(run), head="uk", relation="embassy", triples_factory=training).df
    ours = run.predict(head="uk", relation="embassy", k=5)
    without_itself = theirs[theirs.tail_label != "uk"]  # which murp leaves out, as the relation has no such fact
    assert without_itself.tail_label[:5].tolist() == [answer.id for answer in ours]


def test_scores_of_triples_of_some_and_of_relations(run: murp.Run) -> None:
    model, triples = to_pykeen(run), torch.from_numpy(run.graph.test[:6]).long()
    names = [
        (run.graph.entities.id(h), run.graph.relations.id(r), run.graph.entities.id(t)) for h, r, t in triples.tolist()
    ]
    expected = torch.from_numpy(run.score(names)).float()
    torch.testing.assert_close(model.predict_hrt(triples)[:, 0], expected)
    torch.testing.assert_close(model.predict_r(triples[:, [0, 2]]).gather(1, triples[:, 1:2])[:, 0], expected)
    some = torch.tensor([3, 1])
    torch.testing.assert_close(model.predict_t(triples[:, :2], tails=some), model.predict_t(triples[:, :2])[:, some])
    each = some.repeat(6, 1)
    torch.testing.assert_close(model.predict_t(triples[:, :2], tails=each), model.predict_t(triples[:, :2])[:, some])


def test_the_run_is_left_as_it_was(run: murp.Run) -> None:
    before = run.score([("uk", "embassy", "usa")])
    model = to_pykeen(run)
    with torch.no_grad():
        model.double()
    assert run.model.parameters["entity"].dtype == torch.float32
    np.testing.assert_array_equal(run.score([("uk", "embassy", "usa")]), before)


def test_a_graph_goes_out_and_comes_back() -> None:
    graph = tree()
    parts = factories(graph)
    back = from_pykeen(EagerDataset(parts["training"], parts["testing"], parts["validation"]), name="tree")
    assert back.entities == graph.entities
    assert back.relations == graph.relations
    assert all(np.array_equal(back.split(s), graph.split(s)) for s in ("train", "valid", "test"))  # type: ignore[arg-type]


def test_numbers_without_labels_are_ids_and_an_inductive_dataset_is_refused() -> None:
    triples = torch.tensor([[0, 0, 1], [1, 0, 2]])
    plain = CoreTriplesFactory(triples, num_entities=3, num_relations=1)
    graph = from_pykeen(EagerDataset(plain, plain))
    assert graph.entities.ids.to_pylist() == ["0", "1", "2"]
    assert len(graph.valid) == 0
    other = CoreTriplesFactory(triples, num_entities=5, num_relations=1)
    with pytest.raises(DataError, match=r"testing triples .* have entities or relations of their own"):
        from_pykeen(EagerDataset(plain, other))
