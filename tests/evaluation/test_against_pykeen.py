"""The same scores through PyKEEN's evaluator, as an independent judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from brute_force import TableScorer, graph_of

from murp.evaluation import PROTOCOLS, Protocol, evaluate

pykeen_evaluation = pytest.importorskip("pykeen.evaluation", reason="needs PyKEEN as a judge: pip install murp[judges]")


class TableModel(torch.nn.Module):
    """As much of a PyKEEN model as its evaluator asks for."""

    device = torch.device("cpu")

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.table = torch.from_numpy(table)
        self.num_entities, double, _ = table.shape
        self.num_relations = double // 2

    def predict(self, hrt_batch: torch.Tensor, target: str, **_: Any) -> torch.Tensor:
        heads, relations, tails = hrt_batch.T
        if target == "tail":
            return self.table[heads, relations]
        return self.table[tails, relations + self.num_relations]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("levels", [4, 1000], ids=["many ties", "few ties"])
@pytest.mark.parametrize("num_entities", [5, 60])
def test_pykeen_finds_the_same_figures(protocol: Protocol, levels: int, num_entities: int) -> None:
    num_relations = 3
    draw = np.random.default_rng([levels, num_entities])
    triples = np.stack([draw.integers(0, n, 400) for n in (num_entities, num_relations, num_entities)], axis=1).astype(
        np.int32
    )
    graph = graph_of(num_entities, num_relations, train=triples[:250], valid=triples[250:300], test=triples[300:])
    table = draw.integers(0, levels, (num_entities, 2 * num_relations, num_entities)).astype(np.float32)

    filtered = torch.from_numpy(graph.facts()).long()
    if protocol == "paper":
        # Were every (x, r, x) a fact, the entity asked about would be filtered out: the paper's protocol.
        entity, relation = torch.arange(num_entities), torch.arange(num_relations)
        loops = torch.cartesian_prod(entity, relation)[:, [0, 1, 0]]
        filtered = torch.cat([filtered, loops])
    judge = pykeen_evaluation.RankBasedEvaluator(filtered=True)
    verdict = judge.evaluate(
        model=TableModel(table),
        mapped_triples=torch.from_numpy(graph.test).long(),
        additional_filter_triples=filtered,
        batch_size=16,
        use_tqdm=False,
    )

    report = evaluate(TableScorer(table), graph, "test", protocol)
    for side, ours in {"both": report.overall, **report.by_direction}.items():

        def theirs(metric: str, side: str = side) -> Any:
            return pytest.approx(verdict.get_metric(f"{side}.realistic.{metric}"), rel=1e-6)

        assert ours.mrr == theirs("inverse_harmonic_mean_rank")
        assert ours.mr == theirs("arithmetic_mean_rank")
        for k in (1, 3, 10):
            assert ours.hits[k] == theirs(f"hits_at_{k}")
