"""Facts of valid and test never reach training: other ones change no bit, and nothing that trains is given any."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from murp import registry
from murp.engines import Task
from murp.graph import KnowledgeGraph
from murp.negatives import Negatives
from murp.training import sampler
from runs_of_parts import assert_same_bits, train
from trees import tree

SAMPLED = [name for name in registry.OBJECTIVES if registry.find("objective", name).sampled]
PREPARING = [name for name in registry.NEGATIVES if "prepare" in vars(registry.find("corruption", name))]
PAIRS = [{"objective": objective, "corruption": name} for objective in SAMPLED for name in PREPARING]
PAIRS += [{"objective": name} for name in registry.OBJECTIVES if name not in SAMPLED]


def with_other_held_out_facts(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The same training facts; valid and test are every other fact that could be drawn, half of them each."""
    n = graph.num_entities
    known = {tuple(fact) for fact in graph.train.tolist()}
    every = [(s, r, o) for s in range(n) for r in range(2) for o in range(n)]
    others = np.array([fact for fact in every if fact not in known], dtype=np.int32)
    return replace(graph, valid=others[::2], test=others[1::2])


def test_the_parts_that_know_facts_are_known_here() -> None:
    """Who learns facts before training prepares; the pairs are made of these."""
    assert set(PREPARING) >= {"by-relation", "checked", "unrelated", "relatives"}
    assert len(PAIRS) >= len(PREPARING) * len(SAMPLED) + 2


@pytest.mark.parametrize("chosen", PAIRS, ids=lambda chosen: " ".join(chosen.values()))
def test_other_facts_of_valid_and_test_change_no_bit(chosen: dict[str, Any], tmp_path: Path) -> None:
    graph = tree(3)
    first = train(graph, tmp_path / "first", epochs=1, **chosen)
    other = train(with_other_held_out_facts(graph), tmp_path / "other", epochs=1, **chosen)
    assert_same_bits(first, other)


@pytest.mark.parametrize("chosen", [PAIRS[0], PAIRS[1], *PAIRS[-2:]], ids=lambda chosen: " ".join(chosen.values()))
def test_all_that_trains_is_given_training_facts_alone(
    chosen: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = with_other_held_out_facts(tree(3))
    seen: dict[str, list[Any]] = {}

    def spied(where: Any, name: str, number: int) -> None:
        whole = getattr(where, name)

        def spy(*arguments: Any, **named: Any) -> Any:
            seen.setdefault(where.__name__, []).append(arguments[number])
            return whole(*arguments, **named)

        monkeypatch.setattr(where, name, spy)

    spied(sampler.Sampler, "__init__", 1)
    spied(sampler.Answers, "__init__", 1)
    spied(Negatives, "prepare", 1)
    spied(Task, "of", 0)
    train(graph, tmp_path / "run", epochs=1, **chosen)
    train_facts = graph.with_reciprocals(graph.train)
    given = [facts for name in ("Sampler", "Answers", "Negatives") for facts in seen.get(name, [])]
    assert len(given) == (3 if chosen["objective"] == "k-vs-all" else 2)
    for facts in given:
        assert np.array_equal(torch.as_tensor(facts).numpy(), train_facts)
    # Beside these facts the parts of a run have its settings, and no graph.
    assert [type(one).__name__ for one in seen["Task"]] == ["Config"]
