"""The harness that shows what protocols are worth changes what it says, and the leak exists there alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import protocols
from leaking_negatives import Leaking, leaking
from murp import registry
from murp.config import Config
from murp.errors import ConfigError
from murp.evaluation import evaluate
from murp.graph import KnowledgeGraph, Vocabulary
from murp.testing import tree
from murp.training import train
from murp.training.progress import Silent

ENTITIES, RELATIONS, UNSEEN = 30, 2, (28, 29)


def graph(drop: bool = False) -> KnowledgeGraph:
    """Random facts; two entities are in no training fact. ``drop``: the graph without them."""
    draw = np.random.default_rng(0)
    facts = np.stack([draw.integers(0, n, 300) for n in (ENTITIES, RELATIONS, ENTITIES)], 1).astype(np.int32)
    seen = ~np.isin(facts[:, [0, 2]], UNSEEN).any(1)
    valid, test = (np.arange(150)[start::2] for start in (0, 1))
    if drop:
        valid, test = valid[seen[valid]], test[seen[test]]
    return KnowledgeGraph(
        "random",
        Vocabulary("entity", [f"e{i}" for i in range(ENTITIES - len(UNSEEN) * drop)]),
        Vocabulary("relation", ["r", "q"]),
        train=facts[150:][seen[150:]],
        valid=facts[valid],
        test=facts[test],
    )


class Scores:
    """A few scores, so that many tie; the first entities of a larger table are those of a smaller one."""

    device = torch.device("cpu")

    def __init__(self, num_entities: int) -> None:
        self.num_entities = num_entities
        draw = torch.Generator().manual_seed(1)
        # 1,000 and 1,001 are one number in bfloat16.
        table = 1000.0 + torch.randint(6, (ENTITIES, 2 * RELATIONS, ENTITIES), generator=draw)
        self.table = table[:num_entities, :, :num_entities]

    def score_objects(self, subjects: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        return self.table[subjects, relations]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return protocols.effects(Scores(ENTITIES), graph())


def test_standard_and_the_subject_out_are_the_protocols_of_murp(found: dict[str, Any]) -> None:
    for name, protocol in (("standard", "standard"), ("subject out", "paper")):
        report = evaluate(Scores(ENTITIES), graph(), "test", protocol)  # type: ignore[arg-type]
        assert found[name] == pytest.approx(report.overall.to_dict(), rel=1e-12)


def test_dropping_what_train_has_not_is_a_graph_without_it(found: dict[str, Any]) -> None:
    smaller = evaluate(Scores(ENTITIES - len(UNSEEN)), graph(drop=True), "test", "standard")
    assert found["unseen dropped"] == pytest.approx(smaller.overall.to_dict(), rel=1e-12)
    whole, without = graph(), graph(drop=True)
    assert found["unseen"] == {"facts": len(whole.test) - len(without.test), "entities": len(UNSEEN)}
    assert found["unseen"]["facts"] > 0


def test_ties_move_ranks_one_way_each(found: dict[str, Any]) -> None:
    for figures in (found, found["in bfloat16"]):
        assert figures["ties against"]["mrr"] < figures["standard"]["mrr"] < figures["ties in favour"]["mrr"]
    assert 0 < found["tied"]["queries"] <= found["tied"]["in bfloat16"] <= found["standard"]["queries"]
    singles = [found[name]["mrr"] for name in ("standard", "subject out", "unseen dropped", "ties in favour")]
    assert found["all in favour"]["mrr"] > max(singles)


def test_leaking_negatives_are_no_facts_of_any_split() -> None:
    """And those that are checked against train alone are facts of test now and then."""
    whole = tree(3)
    every = {tuple(fact) for fact in whole.with_reciprocals(whole.facts()).tolist()}
    triples = torch.from_numpy(whole.with_reciprocals(whole.train))

    def facts_among(negatives: Any) -> int:
        negatives.prepare(triples, whole.num_entities, 2 * whole.num_relations)
        asked = torch.from_numpy(whole.with_reciprocals(whole.test)).long().repeat(20, 1)
        drawn = negatives.draw(asked, torch.Generator().manual_seed(0)).objects
        return sum(
            (s, r, o) in every for (s, r, _), row in zip(asked.tolist(), drawn.tolist(), strict=True) for o in row
        )

    with leaking(whole):
        assert facts_among(Leaking(negatives=20)) == 0
    assert facts_among(registry.find("corruption", "checked")(negatives=20)) > 0


def test_no_training_leaks_unless_the_harness_hands_the_facts_over(tmp_path: Path) -> None:
    assert "leaking_negatives:Leaking" not in registry.NEGATIVES.values()
    settings: dict[str, Any] = {"corruption": "leaking_negatives:Leaking", "epochs": 1, "dim": 2, "engine": "torch"}
    with leaking(tree(3)) as place:
        assert Config(corruption=place).corruption == settings["corruption"]
    with pytest.raises(ConfigError, match=r"They are for benchmarks/protocols\.py alone: choose corruption = checked"):
        train(tree(3), out=tmp_path / "run", progress=Silent(), device="cpu", **settings)
    assert not (tmp_path / "run").exists()


def test_a_run_is_ranked_as_it_is(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"model": "distmult", "epochs": 1, "dim": 2, "device": "cpu", "batch_size": 64}
    run = train(tree(3), out=tmp_path / "run", progress=Silent(), **settings)
    out = tmp_path / "it.json"
    protocols.main(["--runs", str(run.path), "--out", str(out)])
    stored = json.loads(out.read_text())["figures"]
    assert stored["trainings"] == []
    assert [one["run"] for one in stored["runs"]] == ["run"]
    assert stored["runs"][0]["test"]["standard"]["mrr"] == pytest.approx(run.evaluate("test").mrr, rel=1e-12)
