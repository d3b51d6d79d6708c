"""What each kind of negatives draws: shapes, distributions, repeatability, no waiting for the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from murp import Config, registry
from murp.engines import Chunk, Task, TorchEngine
from murp.engines.torch_engine import pieces
from murp.errors import ConfigError
from murp.models import MuRE
from murp.negatives import Negatives
from murp.negatives.checked import AGAIN
from runs_of_parts import assert_resumes_bit_for_bit
from trees import tree

ENTITIES, RELATIONS = 20, 4
# 99.9999 % of the draws of a χ² with 19 degrees of freedom lie below.
QUANTILE = 66.0


def facts() -> Tensor:
    """Relation 0 has the objects 0 … 9, relation 1 all even ones, relation 2 one, relation 3 none."""
    rows = [(s, 0, o) for s in range(5) for o in range(10)]
    rows += [(s, 1, 2 * s) for s in range(10)] + [(0, 1, 0), (7, 2, 13), (8, 2, 13)]
    return torch.tensor(rows, dtype=torch.int32)


def prepared(name: str, negatives: int = 7, device: str = "cpu") -> Negatives:
    found: Negatives = registry.find("corruption", name)(negatives=negatives)
    found.prepare(facts().to(device), ENTITIES, RELATIONS)
    return found


def test_one_false_triple_is_the_least() -> None:
    with pytest.raises(ConfigError, match="negatives must be at least 1, not 0"):
        Config(negatives=0)


def batches(steps: int = 3, size: int = 11) -> Tensor:
    chosen = torch.randint(len(facts()), (steps, size), generator=torch.Generator().manual_seed(5))
    return facts().long()[chosen]


def chi_square(drawn: Tensor, among: list[int]) -> float:
    counts = torch.bincount(drawn.flatten(), minlength=ENTITIES).double()
    assert counts.sum() == counts[among].sum(), "something else was drawn"
    expected = float(counts.sum()) / len(among)
    return float(((counts[among] - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", registry.NEGATIVES)
def test_shapes_and_repeatability(name: str, device: str) -> None:
    """A pure function of positives and generator: what was drawn before changes nothing."""
    positives = batches().to(device)
    source = prepared(name, device=device)

    def draw(seed: int) -> Any:
        return source.draw(positives, torch.Generator(device).manual_seed(seed))

    first, other, again = draw(1), draw(2), draw(1)
    assert torch.equal(first.objects, again.objects)
    assert not torch.equal(first.objects, other.objects)
    assert first.objects.shape in ((3, 7), (3, 11, 7))
    assert (first.objects.shape == (3, 7)) >= (name == "shared")
    assert first.objects.dtype == torch.int64
    assert bool(((first.objects >= 0) & (first.objects < ENTITIES)).all())
    assert (first.subjects is not None) >= (name == "both-sides")
    if first.subjects is not None:
        assert first.subjects.shape == (3, 11, 7)
        assert torch.equal(first.subjects, again.subjects)
    one = source.draw(positives[0], torch.Generator(device).manual_seed(1))
    assert one.objects.shape == first.objects.shape[1:]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", registry.NEGATIVES)
def test_the_negatives_of_a_triple_do_not_depend_on_other_triples(name: str, device: str) -> None:
    """One of many ranks has zeros in their place."""
    positives, part = batches().to(device), slice(4, 9)
    own = torch.zeros_like(positives)
    own[:, part] = positives[:, part]
    source = prepared(name, device=device)
    (expected, state), (found, same_state) = (
        (source.draw(given, generator).of(part), generator.get_state())
        for given, generator in ((given, torch.Generator(device).manual_seed(1)) for given in (positives, own))
    )
    assert torch.equal(found.objects, expected.objects)
    if expected.subjects is not None:
        assert torch.equal(found.subjects, expected.subjects)
    assert torch.equal(state, same_state)


def test_which_negatives_read_facts() -> None:
    found = {name for name in registry.NEGATIVES if prepared(name).reads_facts}
    assert found == {"checked", "by-relation", "unrelated", "relatives"}


@pytest.mark.parametrize("name", ["uniform", "with-head", "both-sides", "shared"])
def test_every_entity_is_as_likely(name: str) -> None:
    positives = batches(400, 5)
    drawn = prepared(name, negatives=21).draw(positives, torch.Generator().manual_seed(0))
    objects = drawn.objects[..., 1:] if name == "with-head" else drawn.objects
    assert chi_square(objects, list(range(ENTITIES))) < QUANTILE
    if drawn.subjects is not None:
        assert chi_square(drawn.subjects, list(range(ENTITIES))) < QUANTILE
        assert not torch.equal(drawn.subjects, drawn.objects)


@pytest.mark.parametrize("negatives", [1, 4])
def test_the_head_is_the_first_of_the_negatives(negatives: int) -> None:
    positives = batches()
    drawn = prepared("with-head", negatives).draw(positives, torch.Generator().manual_seed(0)).objects
    assert drawn.shape == (3, 11, negatives)
    assert torch.equal(drawn[..., 0], positives[..., 0])


@pytest.mark.parametrize(
    ("relation", "among"),
    [(0, range(10)), (1, range(0, 20, 2)), (2, range(ENTITIES)), (3, range(ENTITIES))],
    ids=["ten objects", "even objects", "one object: any entity", "no object: any entity"],
)
def test_negatives_by_relation_are_the_objects_it_has(relation: int, among: range) -> None:
    positives = torch.tensor([[[0, relation, 0]] * 50] * 20)
    drawn = prepared("by-relation", 30).draw(positives, torch.Generator().manual_seed(0)).objects
    assert chi_square(drawn, list(among)) < QUANTILE


def test_a_relation_with_one_object_draws_from_all_entities_and_from_nothing_else() -> None:
    source: Any = registry.find("corruption", "by-relation")(negatives=2000)
    source.prepare(torch.tensor([[0, 0, 5], [1, 0, 6], [2, 1, 7]]), 8, 2)
    drawn = source.draw(torch.tensor([[2, 1, 7]]), torch.Generator().manual_seed(0)).objects
    assert sorted(set(drawn.flatten().tolist())) == list(range(8))


def test_half_of_the_relatives_are_any_entity(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 and 2 lie below 0: a relative of 1 is one of these three, any entity is another in 17 of 20 cases."""
    source: Any = registry.find("corruption", "relatives")(negatives=20_000)
    monkeypatch.setattr(source, "again", 0, raising=False)
    source.prepare(torch.tensor([[1, 0, 0], [2, 0, 0]]), ENTITIES, 1)
    drawn = source.draw(torch.tensor([[1, 0, 0]]), torch.Generator().manual_seed(0)).objects
    assert float((drawn > 2).double().mean()) == pytest.approx(0.5 * 17 / 20, abs=0.02)  # five deviations


def test_checked_negatives_are_no_training_facts() -> None:
    """Subject 0 has objects 0 … 9 under relation 0: half of all entities, of which 2⁻⁵ remain after four redraws."""
    positives = torch.tensor([[[0, 0, 3]] * 100, [[9, 1, 18]] * 100, [[19, 3, 1]] * 100])
    drawn = prepared("checked", 60).draw(positives, torch.Generator().manual_seed(0)).objects
    remaining = float((drawn[0] < 10).double().mean())
    assert remaining == pytest.approx(0.5 ** (1 + AGAIN), rel=0.25)
    assert chi_square(drawn[0][drawn[0] >= 10], list(range(10, 20))) < QUANTILE
    # (9, 1, 18) is its question's only fact, and no fact of another question is one of this.
    assert float((drawn[1] == 18).double().mean()) < 1e-3
    assert chi_square(drawn[1][drawn[1] != 18], [n for n in range(20) if n != 18]) < QUANTILE
    # A question that train does not have has no answers, so nothing is drawn again.
    assert chi_square(drawn[2], list(range(20))) < QUANTILE


def test_checked_draws_again_what_a_plain_search_finds() -> None:
    known = {tuple(fact) for fact in facts().tolist()}
    positives = batches(2, 30)
    before, after = (
        prepared(name, 40).draw(positives, torch.Generator().manual_seed(3)).objects.flatten().tolist()
        for name in ("uniform", "checked")
    )
    questions = [(s, r) for s, r, _ in positives.flatten(0, 1).tolist() for _ in range(40)]
    true = [(*question, o) in known for question, o in zip(questions, before, strict=True)]
    assert sum(true) > 300
    assert all(hit or old == new for hit, old, new in zip(true, before, after, strict=True))
    assert sum((*question, o) in known for question, o in zip(questions, after, strict=True)) < sum(true) / 8


def test_checked_has_room_for_the_largest_graphs() -> None:
    """s · 2R · N + r · N + o would be beyond 64 bits here."""
    entities, relations = 2**31 - 1, 2**20
    rows = torch.tensor([[entities - 1, relations - 1, o] for o in (0, 5, entities - 1)])
    source: Any = registry.find("corruption", "checked")(negatives=3)
    source.prepare(rows, entities, relations)
    given = iter([torch.tensor([0, 5, 7])] + [torch.tensor([11, 12, 13])] * AGAIN)
    source.uniform = lambda shape, *_: next(given).expand(shape).clone()
    assert source.draw(rows[:1], None).objects.tolist() == [[11, 12, 7]]


@pytest.mark.gpu
@pytest.mark.parametrize("name", registry.NEGATIVES)
def test_drawing_does_not_wait_for_the_gpu(name: str) -> None:
    source, positives = prepared(name, device="cuda"), batches().cuda()
    generator = torch.Generator("cuda").manual_seed(0)
    torch.cuda.set_sync_debug_mode("error")
    try:
        source.draw(positives, generator)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", registry.NEGATIVES)
def test_a_step_scores_the_triples_that_were_drawn(name: str) -> None:
    """The loss of a step against the scores of its triples, one by one."""
    source = prepared(name)
    model = MuRE(ENTITIES, RELATIONS, 3, dtype=torch.float64).initialise(0, 0.5)
    positives = batches()[0]
    drawn = source.draw(positives, torch.Generator().manual_seed(0))
    total = 0.0
    for b, (s, r, o) in enumerate(positives.tolist()):
        triples = [(s, r, o)]
        for k in range(7):
            subject = s if drawn.subjects is None else int(drawn.subjects[b, k])
            objects = drawn.objects if drawn.objects.dim() == 1 else drawn.objects[b]
            triples.append((subject, r, int(objects[k])))
        scores = model.score(*torch.tensor(triples).unbind(1))
        scores[0] = -scores[0]
        total += float(torch.log1p(scores.exp()).sum())
    found = TorchEngine(Task(model, negatives=source)).step(positives, drawn, 0.1)
    assert float(found) == pytest.approx(total / (11 * 8), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in registry.NEGATIVES if name != "uniform"])
def test_resuming_is_bit_for_bit_with_every_kind(name: str, tmp_path: Path) -> None:
    assert_resumes_bit_for_bit(tree(4), tmp_path, corruption=name)


@pytest.mark.parametrize("name", registry.names("corruption"))
def test_part_of_a_batch_has_the_negatives_that_it_has_in_the_whole(name: str) -> None:
    task, chunk = Task(MuRE(ENTITIES, RELATIONS, 2), negatives=prepared(name)), Chunk(batches(), ENTITIES, 7, seed=9)
    ((_, whole),) = pieces(task, chunk)
    ((positives, some),) = pieces(task, chunk, slice(4, 9))
    assert torch.equal(positives, chunk.positives)
    shared = whole.objects.dim() == 2
    assert torch.equal(some.objects, whole.objects if shared else whole.objects[:, 4:9])
    if whole.subjects is not None:
        assert some.subjects is not None
        assert torch.equal(some.subjects, whole.subjects[:, 4:9])
