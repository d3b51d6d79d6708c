"""Losses against plain loops in float64, PyTorch's own losses, and finite differences."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, margin_ranking_loss, softplus

from murp import Config, registry
from murp.errors import ConfigError
from murp.models import Model, MuRE, MuRP
from murp.objectives import Labels
from murp.objectives.bernoulli import Bernoulli
from murp.objectives.k_vs_all import KVsAll
from murp.objectives.margin import Margin
from murp.objectives.objective import one_label
from murp.objectives.one_vs_all import OneVsAll
from murp.objectives.rank import Rank
from murp.objectives.self_adversarial import SelfAdversarial
from murp.objectives.softmax import Softmax
from small_models import Blocks, Products

KINDS: dict[str, type[Model]] = {"products": Products, "mure": MuRE, "murp": MuRP, "blocks": Blocks}


def scores(seed: int = 0, size: int = 7, negatives: int = 5, spread: float = 3.0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return spread * torch.randn(size, 1 + negatives, dtype=torch.float64, generator=draw)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_self_adversarial_is_its_formula(temperature: float) -> None:
    given = scores()
    total = 0.0
    for true, *false in given.tolist():
        weights = [math.exp(temperature * one) for one in false]
        hard = sum(w / sum(weights) * math.log1p(math.exp(one)) for w, one in zip(weights, false, strict=True))
        total += 0.5 * (math.log1p(math.exp(-true)) + hard)
    found = SelfAdversarial(temperature=temperature).loss(given)
    assert float(found) == pytest.approx(total / len(given), rel=1e-12)


def test_the_weights_of_self_adversarial_are_constants_of_its_gradient() -> None:
    given = scores().requires_grad_()
    (found,) = torch.autograd.grad(SelfAdversarial(temperature=1.0).loss(given), given)
    expected = given.detach().sigmoid() / 2 / len(given)
    expected[:, 0] -= 1 / 2 / len(given)
    expected[:, 1:] *= given.detach()[:, 1:].softmax(1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-15)


def test_without_temperature_self_adversarial_is_bernoulli_with_balanced_sides() -> None:
    given = scores()
    sides = softplus(-given[:, 0]).mean() + softplus(given[:, 1:]).mean()
    torch.testing.assert_close(SelfAdversarial(temperature=0.0).loss(given), sides / 2, rtol=1e-8, atol=0)


def test_bernoulli_is_pytorchs_over_the_true_triple_and_the_false_ones() -> None:
    given = scores()
    targets = torch.zeros_like(given)
    targets[:, 0] = 1
    torch.testing.assert_close(Bernoulli().loss(given), binary_cross_entropy_with_logits(given, targets))
    assert torch.autograd.gradcheck(Bernoulli().loss, scores().requires_grad_())


def test_softmax_is_pytorchs_cross_entropy() -> None:
    given = scores()
    expected = cross_entropy(given, torch.zeros(len(given), dtype=torch.long))
    torch.testing.assert_close(Softmax().loss(given), expected)
    assert torch.autograd.gradcheck(Softmax().loss, scores().requires_grad_())


@pytest.mark.parametrize("margin", [0.1, 1.0, 10.0])
def test_margin_is_pytorchs_margin_ranking_loss(margin: float) -> None:
    given = scores()
    true, false = given[:, :1].expand(-1, 5), given[:, 1:]
    expected = margin_ranking_loss(true, false, torch.ones_like(false), margin=margin)
    torch.testing.assert_close(Margin(margin=margin).loss(given), expected)
    assert torch.autograd.gradcheck(Margin(margin=margin).loss, scores().requires_grad_())


@pytest.mark.parametrize("softness", [0.1, 1.0, 10.0])
def test_rank_is_its_formula(softness: float) -> None:
    given = scores()
    total = sum(1 / (1 + math.exp((true - one) / softness)) for true, *false in given.tolist() for one in false)
    assert float(Rank(softness=softness).loss(given)) == pytest.approx(total / len(given), rel=1e-12)
    assert torch.autograd.gradcheck(Rank(softness=softness).loss, scores().requires_grad_())


@pytest.mark.parametrize("softness", [0.0, -0.5])
def test_a_rank_without_softness_is_refused(softness: float) -> None:
    """σ has no slope then."""
    with pytest.raises(ConfigError, match="softness"):
        Config(objective="rank", softness=softness)
    assert Config(objective="rank").softness == 0.3, "what the stored embeddings of WordNet's nouns were trained with"


def test_hard_ranks_count_the_false_triples_above_the_true_one() -> None:
    given = scores()
    above = (given[:, 1:] > given[:, :1]).sum(1).double().mean()
    torch.testing.assert_close(Rank(softness=1e-6).loss(given), above)


def test_a_hopeless_triple_costs_no_more_than_its_rank_and_has_no_gradient() -> None:
    for dtype in (torch.float32, torch.float64):
        given = torch.tensor([[-1e4, 1e4, 1e4], [1e4, -1e4, -1e4]], dtype=dtype).requires_grad_()
        loss = Rank().loss(given)
        (gradient,) = torch.autograd.grad(loss, given)
        assert float(loss.detach()) == 1
        assert not gradient.any()


@pytest.mark.parametrize("objective", [Bernoulli(), SelfAdversarial(), Softmax(), Margin()])
def test_far_scores_have_finite_losses_and_gradients(objective: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        given = torch.tensor([[-1e4, 1e4, -1e4], [1e4, -1e4, 1e4]], dtype=dtype).requires_grad_()
        loss = objective.loss(given)
        (gradient,) = torch.autograd.grad(loss, given)
        assert bool(loss.isfinite())
        assert bool(gradient.isfinite().all())
        assert float(gradient[0, 0]) < 0 < float(gradient[0, 1])


def model_and_questions(name: str, size: int = 6, entities: int = 11) -> tuple[Model, Tensor, Tensor]:
    model = KINDS[name](entities, 4, 3, dtype=torch.float64).initialise(0, 0.25)
    draw = torch.Generator().manual_seed(1)
    for table in ("subject_bias", "object_bias"):
        if table in model.parameters:
            model.parameters[table].normal_(generator=draw)
    subjects, relations = (torch.randint(high, (size,), generator=draw) for high in (entities, 4))
    return model, subjects, relations


def loss_of(objective: OneVsAll, model: Model, subjects: Tensor, relations: Tensor, labels: Labels) -> Tensor:
    query = model.query(model.rows("subject", subjects), model.rows("relation", relations), {})
    return objective.loss(model, query, model.candidate(model.rows("object"), {}), labels)


def several_answers() -> Labels:
    """Of six questions; two pairs fill up the batch."""
    rows = torch.tensor([0, 0, 0, 1, 2, 2, 3, 4, 5, 5, 5])
    objects = torch.tensor([1, 4, 7, 2, 0, 10, 3, 3, 5, 1, 9])
    weight = torch.tensor([1.0] * 9 + [0.0] * 2)
    return Labels(rows, objects, weight)


def plain_loss(kind: str, smoothing: float, all_scores: list[list[float]], labels: Labels) -> float:
    """The docstring's formulas, cell by cell."""
    total = 0.0
    for b, row in enumerate(all_scores):
        pairs = zip(labels.rows.tolist(), labels.objects.tolist(), labels.weight.tolist(), strict=True)
        answers = {o for at, o, weight in pairs if at == b and weight}
        n = len(row)
        share = 1 / len(answers) if kind == "cross-entropy" else 1.0
        targets = [(1 - smoothing) * share * (o in answers) + smoothing / n for o in range(n)]
        if kind == "cross-entropy":
            total += math.log(sum(map(math.exp, row))) - sum(t * x for t, x in zip(targets, row, strict=True))
        else:
            total += sum(math.log1p(math.exp(x)) - t * x for t, x in zip(targets, row, strict=True)) / n
    return total / len(all_scores)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["cross-entropy", "bernoulli"])
@pytest.mark.parametrize("name", KINDS)
def test_all_entities_are_counted_as_in_plain_loops(name: str, kind: str, smoothing: float) -> None:
    model, subjects, relations = model_and_questions(name)
    every = model.score_objects(subjects, relations).tolist()
    one = one_label(torch.tensor([3, 1, 4, 1, 5, 10]))
    for objective, labels in ((OneVsAll, one), (KVsAll, several_answers())):
        found = loss_of(objective(label_loss=kind, label_smoothing=smoothing), model, subjects, relations, labels)
        assert float(found) == pytest.approx(plain_loss(kind, smoothing, every, labels), rel=1e-10)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("name", KINDS)
def test_all_entities_as_pytorch_counts_them(name: str, smoothing: float) -> None:
    model, subjects, relations = model_and_questions(name)
    every = model.score_objects(subjects, relations)
    objects = torch.tensor([3, 1, 4, 1, 5, 10])
    found = loss_of(OneVsAll(label_smoothing=smoothing), model, subjects, relations, one_label(objects))
    torch.testing.assert_close(found, cross_entropy(every, objects, label_smoothing=smoothing))
    labels = several_answers()
    targets = torch.full_like(every, smoothing / every.shape[1])
    targets[labels.rows[:9], labels.objects[:9]] += 1 - smoothing
    found = loss_of(KVsAll(label_loss="bernoulli", label_smoothing=smoothing), model, subjects, relations, labels)
    torch.testing.assert_close(found, binary_cross_entropy_with_logits(every, targets))


@pytest.mark.parametrize("name", KINDS)
def test_frequent_answers_weigh_as_pytorchs_classes_do(name: str) -> None:
    model, subjects, relations = model_and_questions(name)
    every = model.score_objects(subjects, relations)
    seen = torch.tensor([[0, 0, o] for o in [1, 1, 1, 1, 3, 3, 4, 9]])  # of 5 and 10 nothing is known
    weights = torch.ones(11, dtype=torch.float64)
    weights[[1, 3, 4, 9]] += 9 * torch.tensor([1.0, 0.5, 0.25, 0.25], dtype=torch.float64)
    one, several = OneVsAll(answer_weight=9.0), KVsAll(answer_weight=9.0)
    for objective in (one, several):
        objective.prepare(seen, 11)
    objects = torch.tensor([3, 1, 4, 1, 5, 10])
    found = loss_of(one, model, subjects, relations, one_label(objects))
    torch.testing.assert_close(found, cross_entropy(every, objects, weight=weights))
    labels = several_answers()
    losses, shares = [], []
    for b in range(6):
        answers = labels.objects[(labels.rows == b) & (labels.weight > 0)]
        losses.append(every[b].logsumexp(0) - every[b, answers].mean())
        shares.append(weights[answers].mean())
    expected = sum(w * x for w, x in zip(shares, losses, strict=True)) / sum(shares)
    torch.testing.assert_close(loss_of(several, model, subjects, relations, labels), expected)


@pytest.mark.parametrize(
    ("name", "value"), [("label_smoothing", -0.5), ("label_smoothing", 1.0), ("answer_weight", -0.5)]
)
def test_settings_of_labels_have_bounds(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        Config(objective="one-vs-all", **{name: value})


@pytest.mark.parametrize("weight", [0.0, 9.0])
def test_favoured_answers_weigh_more(weight: float) -> None:
    model, subjects, relations = model_and_questions("products")
    every = model.score_objects(subjects, relations)
    objects, factors = torch.tensor([3, 1, 4, 1, 5, 10]), 1 + torch.arange(11) / 5
    objective = OneVsAll(answer_weight=weight)
    objective.prepare(torch.tensor([[0, 0, 1], [0, 0, 1], [0, 0, 4]]), 11)
    objective.favour(factors)
    weights = factors.double()
    weights[[1, 4]] *= 1 + weight * torch.tensor([1.0, 0.5], dtype=torch.float64)
    found = loss_of(objective, model, subjects, relations, one_label(objects))
    torch.testing.assert_close(found, cross_entropy(every, objects, weight=weights), rtol=1e-6, atol=0.0)
    smoothed = OneVsAll(label_smoothing=0.1)
    smoothed.favour(factors)
    assert smoothed.weights is None


def test_weights_of_answers_are_for_a_cross_entropy_without_smoothing() -> None:
    Config(objective="one-vs-all", answer_weight=9.0)
    for other in ({"label_loss": "bernoulli"}, {"label_smoothing": 0.1}):
        with pytest.raises(ConfigError, match="answer_weight = 9 weighs"):
            Config(objective="one-vs-all", answer_weight=9.0, **other)


@pytest.mark.parametrize("kind", ["cross-entropy", "bernoulli"])
@pytest.mark.parametrize("name", KINDS)
def test_gradients_over_all_entities_are_finite_differences(name: str, kind: str) -> None:
    model, subjects, relations = model_and_questions(name)
    names = list(model.parameters)

    def value(*tables: Tensor) -> Tensor:
        model.parameters = dict(zip(names, tables, strict=True))
        objective = KVsAll(label_loss=kind, label_smoothing=0.1)
        return loss_of(objective, model, subjects, relations, several_answers())

    tables = [values.clone().requires_grad_() for values in model.parameters.values()]
    assert torch.autograd.gradcheck(value, tables, fast_mode=True)


def test_questions_are_grouped_with_all_their_answers_by_k_vs_all_alone() -> None:
    assert [name for name in registry.OBJECTIVES if registry.find("objective", name).grouped] == ["k-vs-all"]


@pytest.mark.parametrize("bias", ["both", "head", "tail", "norm", "transformed-norm"])
@pytest.mark.parametrize("transformation", ["published", "translation-only", "stretch-only", "stretch-both", "swapped"])
def test_the_linear_form_of_mure_is_its_score(transformation: str, bias: str) -> None:
    model = MuRE(9, 4, 3, dtype=torch.float64, transformation=transformation, bias=bias).initialise(0, 0.5)
    everyone = torch.arange(9)
    query = model.query(model.rows("subject", everyone), model.rows("relation", everyone % 4), {})
    form = model.linear(query, model.candidate(model.rows("object"), {}))
    possible = transformation in ("published", "translation-only", "stretch-only") and "norm" not in bias
    assert (form is not None) == possible
    if form is not None:
        q, v, a, c = form
        assert a is not None
        assert c is not None
        found = q @ v.T + a[:, None] + c
        torch.testing.assert_close(found, model.score_objects(everyone, everyone % 4), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("objective", ["one-vs-all", "k-vs-all"])
def test_negatives_of_an_objective_that_draws_none_are_refused_with_those_that_do(objective: str) -> None:
    with pytest.raises(ConfigError, match=r"draws no false triples.*bernoulli, self-adversarial, softmax, margin"):
        Config(objective=objective, corruption="checked")
    assert "negatives" not in Config(objective=objective).to_dict()
