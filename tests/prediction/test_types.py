"""Type constraints against their rules, written a second time by hand, and what they do to answers and ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import murp
from api_runs import QUICK
from murp.cli.main import main
from murp.errors import ConfigError
from murp.evaluation import evaluate
from murp.graph import KnowledgeGraph
from murp.graph.types import FEWEST, SHARE, Types
from murp.training import train

TOWNS, PEOPLE = 40, 60


def town(i: int) -> str:
    return f"town{i % TOWNS}"


def facts() -> list[tuple[str, str, str]]:
    """People born in one town each and knowing others; towns twinned; a rare relation."""
    found = [(f"p{i}", "born_in", town(i)) for i in range(PEOPLE) if i % TOWNS < 30]
    found += [(f"p{i}", "knows", f"p{(7 * i + j) % PEOPLE}") for i in range(PEOPLE) for j in (1, 2)]
    found += [(town(i), "twinned_with", town(3 * i + 1)) for i in range(TOWNS)]
    return [*found, ("p1", "admires", "p2"), ("p1", "admires", "p3")]


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    held = [("p30", "born_in", "town35"), ("p3", "knows", "p9"), ("p4", "admires", "town1"), ("p0", "born_in", "town7")]
    return KnowledgeGraph.from_triples(facts(), valid=held, test=held)


@pytest.fixture(scope="module")
def run(graph: KnowledgeGraph, tmp_path_factory: pytest.TempPathFactory) -> murp.Run:
    out = tmp_path_factory.mktemp("types") / "run"
    train(graph, out=out, **{**QUICK, "epochs": 2})
    return murp.load(out, device="cpu")


def by_hand(graph: KnowledgeGraph, role: int) -> set[int]:
    """The entities that may be the object of a relation, by the rules in their words."""
    triples = graph.with_reciprocals(graph.train).tolist()
    roles: dict[int, set[int]] = {e: set() for e in range(graph.num_entities)}
    for _, r, o in triples:
        roles[o].add(r)
    members = {r: {e for e, own in roles.items() if r in own} for r in range(2 * graph.num_relations)}
    if sum(r == role for _, r, _ in triples) < FEWEST or len(members[role]) < FEWEST:
        return set(roles)
    near = {r for r in members if members[r] and len(members[r] & members[role]) >= SHARE * len(members[r])}
    return {e for e, own in roles.items() if not own or own & {*near, role}}


def test_every_role_has_the_entities_that_the_rules_give_it(graph: KnowledgeGraph) -> None:
    types = Types(graph)
    for role in range(2 * graph.num_relations):
        assert set(np.flatnonzero(types.allowed(role))) == by_hand(graph, role), role
    born, admires = graph.relations.find("born_in"), graph.relations.find("admires")
    allowed = {graph.entities.id(i) for i in np.flatnonzero(types.allowed(born))}
    assert "town35" in allowed  # nobody is born there, but it is a town
    assert "p5" not in allowed
    assert types.allowed(admires).all()  # two facts say nothing
    one = types[born]
    assert (one.relation, one.one_tail_a_head, one.one_head_a_tail) == ("born_in", True, False)
    assert types[admires].tails_allowed is None
    assert len(types.columns()["relation"]) == len(list(types)) == 4


def test_who_has_the_one_answer_has_no_second(graph: KnowledgeGraph, run: murp.Run) -> None:
    found = run.predict(head="p0", relation="born_in", k=5, types=True)
    assert [(one.id, one.known) for one in found] == [("town0", "train")]
    assert run.predict(head="p0", relation="born_in", k=5, types=True, new_only=True) == []
    free = run.predict(head="p30", relation="born_in", k=200, types=True)
    assert {one.id[:4] for one in free} == {"town"}
    assert len(run.predict(head="p30", relation="born_in", k=200)) > len(free)


def test_an_answer_that_has_its_one_question_is_not_offered_to_another(run: murp.Run, tmp_path: Path) -> None:
    """A person with a town is not offered as born in another one, however the question is put."""
    settled = {h for h, r, _ in facts() if r == "born_in"}
    asked = {"tail": "town5", "relation": "born_in", "k": 200, "types": True}
    assert {one.id for one in run.predict(**asked)} & settled == {"p5", "p45"}  # the two that are born there
    assert not {one.id for one in run.predict(**asked, new_only=True)} & settled
    out = tmp_path / "answers.jsonl"
    run.predict_file([(None, "born_in", "town5")], out, k=200, types=True, new_only=True)
    assert not {json.loads(line)["head"] for line in out.read_text().splitlines()} & settled


def test_new_facts_agree_with_all_that_is_known_and_with_each_other(run: murp.Run) -> None:
    # The town of p30 is in valid and test. It is not told to whoever asks, but p30 needs no new one.
    assert len(run.predict(head="p30", relation="born_in", k=200, types=True)) > 1
    assert run.predict(head="p30", relation="born_in", k=200, types=True, new_only=True) == []
    new = [one.head for one in run.discover("born_in", 500, heads="all", types=True)]
    assert new
    assert len(new) == len(set(new))
    assert "p30" not in new


def test_files_and_discoveries_give_what_single_questions_give(run: murp.Run, tmp_path: Path) -> None:
    asked = [("p0", "born_in", None), ("p30", "born_in", None), (None, "knows", "p9")]
    out = tmp_path / "answers.jsonl"
    run.predict_file(asked, out, k=4, types=True)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for number, (head, relation, tail) in enumerate(asked, start=1):
        single = run.predict(head=head, relation=relation, tail=tail, k=4, types=True)
        answer = "head" if head is None else "tail"
        assert [row[answer] for row in rows if row["query"] == number] == [one.id for one in single]
    new = run.discover("born_in", 500, heads="all", types=True)
    stated = {h for h, r, _ in facts() if r == "born_in"}
    assert len(new)
    assert all(one.tail.startswith("town") and one.head not in stated for one in new)


class Fixed:
    """Scores that are given."""

    device = torch.device("cpu")

    def __init__(self, scores: torch.Tensor) -> None:
        self.scores = scores
        self.num_entities = scores.shape[1]

    def score_objects(self, subjects: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        return self.scores[subjects]


def test_refused_answers_rank_behind_allowed_ones_and_none_is_dropped(graph: KnowledgeGraph) -> None:
    draw = torch.Generator().manual_seed(0)
    model = Fixed(torch.randint(5, (graph.num_entities, graph.num_entities), generator=draw).float())
    plain, typed = (evaluate(model, graph, "test", protocol) for protocol in ("standard", "types"))  # type: ignore[arg-type]
    assert typed.protocol == typed.to_dict()["protocol"] == "types"
    assert typed.queries == plain.queries == 8
    types = Types(graph)
    known = {tuple(row) for row in graph.with_reciprocals(graph.facts()).tolist()}
    ranks = np.concatenate([typed.ranks.tail, typed.ranks.head])
    for (s, r, o), rank in zip(graph.with_reciprocals(graph.test).tolist(), ranks, strict=True):
        may = types.masks(np.array([s]), np.array([r]))[0]
        others = [e for e in range(graph.num_entities) if e != o and (s, r, e) not in known]
        key = [(bool(may[e]), float(model.scores[s, e])) for e in range(graph.num_entities)]
        better, equal = (sum(test(key[e], key[o]) for e in others) for test in (tuple.__gt__, tuple.__eq__))
        assert rank == 1 + better + equal / 2


def test_the_protocol_has_its_own_name_and_the_command_line_says_it(run: murp.Run, capsys: Any) -> None:
    assert main(["evaluate", str(run.path), "--protocol", "types", "--device", "cpu"]) == 0
    assert "protocol types" in capsys.readouterr().out
    assert main(["predict", str(run.path), "--head", "p0", "--relation", "born_in", "--types", "--new-only"]) == 0
    assert "no answer is left: --new-only and --types leave out every entity" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="unknown protocol"):
        evaluate(run.model, run.graph, "test", "type")  # type: ignore[arg-type]
