"""Optimizers against dense ones, geoopt's and PyTorch's; what they cost, and what they keep."""

from __future__ import annotations

import math
from typing import Any

import geoopt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optimizer_judges import EPS, Dense, table_gradients, touched_rows
from torch import Tensor

from examples import at_most
from murp import registry
from murp.engines import Task, TorchEngine
from murp.errors import ConfigError, MurpError
from murp.geometry import Euclidean, Hyperboloid, PoincareBall, Product, Sphere
from murp.models import MODELS, Table
from murp.optimizers import Optimizer
from steps import ElementCount, random_batch

NAMES = list(registry.OPTIMIZERS)
WITH_STATE = [name for name in NAMES if name != "sgd"]
LR = dict.fromkeys(NAMES, 0.1) | {"sgd": 5.0, "adagrad": 0.3, "row-adagrad": 0.3, "adam": 0.05}
SPACES = {
    "euclidean": Euclidean(),
    "ball": PoincareBall(1.7),
    "hyperboloid": Hyperboloid(0.6),
    "sphere": Sphere(1.3),
    "product": Product(((PoincareBall(), 3), (Euclidean(), 2), (Sphere(), 2))),
}


def optimizer(name: str, **values: Any) -> Optimizer:
    return registry.find("optimizer", name)(**values)


def eps_of(name: str) -> dict[str, float]:
    """The judges' ε, for those that have one."""
    return {"eps": EPS} if "eps" in registry.find("optimizer", name).settings else {}


@settings(max_examples=at_most(40), deadline=None)
@given(
    name=st.sampled_from(NAMES),
    model_name=st.sampled_from(list(MODELS)),
    entities=st.integers(1, 12),  # few, so that rows repeat and subjects are their own objects
    size=st.integers(1, 9),
    negatives=st.integers(1, 7),
    dim=st.integers(1, 6),
    spread=st.sampled_from([1e-3, 0.5, 1.0]),
    clip=st.sampled_from([0.0, 0.01]),
    seed=st.integers(0, 2**16),
)
def test_steps_are_those_of_a_dense_optimizer_and_untouched_rows_keep_their_bits(
    name: str,
    model_name: str,
    entities: int,
    size: int,
    negatives: int,
    dim: int,
    spread: float,
    clip: float,
    seed: int,
) -> None:
    model = MODELS[model_name](entities, 3, dim, dtype=torch.float64).initialise(seed)
    draw = torch.Generator().manual_seed(seed)
    point = torch.randn(entities, dim, dtype=torch.float64, generator=draw)
    model.parameters["entity"] = model.geometry.exp0(spread * point / dim**0.5)
    engine = TorchEngine(Task(model, optimizer=optimizer(name, clip=clip, **eps_of(name))))
    dense = {
        t.name: Dense(name, model.parameters[t.name].reshape(model.rows_of(t), -1), t.geometry, LR[name], clip)
        for t in model.tables
    }
    for step in range(4):
        positives, false = random_batch(entities, 3, size, negatives, seed + step)
        gradients, touched = table_gradients(model, positives, false), touched_rows(model, positives, false)
        before = {key: values.clone() for key, values in (model.parameters | engine.states[0]).items()}
        engine.step(positives, false, LR[name])
        for table in model.tables:
            judge, mask = dense[table.name], touched[table.name]
            gradient = gradients[table.name].reshape(model.rows_of(table), -1)
            judge.step(gradient, mask)
            ours = model.parameters[table.name].reshape(judge.x.shape)
            torch.testing.assert_close(ours, judge.x, rtol=1e-8, atol=1e-9, msg=f"{name} {table.name} {step}")
            judge.x = ours.clone()  # what rounding did is not to add up
            for key in (table.name, *engine.updater.names[table.name].values()):
                now = (model.parameters | engine.states[0])[key]
                assert torch.equal(now[~mask], before[key][~mask])


@pytest.mark.parametrize("name", WITH_STATE)
@pytest.mark.parametrize("model_name", MODELS)
def test_a_row_that_occurs_often_counts_once(name: str, model_name: str) -> None:
    """The same fact many times over: the mean loss, the step and the state are those of the fact alone."""
    found = []
    for repeated in (1, 7):
        model = MODELS[model_name](9, 4, 5, dtype=torch.float64).initialise(3)
        engine = TorchEngine(Task(model, optimizer=optimizer(name)))
        positives, negatives = torch.tensor([[1, 2, 3]]), torch.tensor([[4, 3, 1, 4]])
        for _ in range(3):
            engine.step(positives.repeat(repeated, 1), negatives.repeat(repeated, 1), LR[name])
        found.append(model.parameters | engine.states[0])
    for key, values in found[0].items():
        torch.testing.assert_close(values, found[1][key], rtol=1e-9, atol=1e-12, msg=key)


class Bowl:
    """The sum of squared distances to some points: something to minimise on rows of a space."""

    def __init__(self, geometry: Any, rows: int, width: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.geometry = geometry
        self.x, self.goal = (geometry.random(draw, (rows, width), 0.2, torch.float64) for _ in range(2))

    def loss(self, x: Tensor) -> Tensor:
        return self.geometry.squared_distance(x, self.goal).sum()

    def gradient(self, x: Tensor) -> Tensor:
        leaf = x.clone().requires_grad_()
        (found,) = torch.autograd.grad(self.loss(leaf), leaf)
        return found


def state_of(one: Optimizer, geometry: Any, x: Tensor) -> dict[str, Tensor]:
    shapes = one.state_shapes(Table("points", "entity", tuple(x.shape[1:]), geometry))
    return {name: torch.zeros(len(x), *shape, dtype=x.dtype) for name, shape in shapes.items()}


def test_adam_on_the_ball_is_geoopts() -> None:
    bowl = Bowl(PoincareBall(), 6, 5, seed=0)
    ours, theirs = optimizer("adam", beta1=0.8, beta2=0.95, eps=1e-6), geoopt.PoincareBallExact(c=1.0)
    point = geoopt.ManifoldParameter(bowl.x.clone(), manifold=theirs)
    judge = geoopt.optim.RiemannianAdam([point], lr=0.05, betas=(0.8, 0.95), eps=1e-6)
    x, state = bowl.x, state_of(ours, bowl.geometry, bowl.x)
    for _ in range(60):
        point.grad = bowl.gradient(point.detach())
        judge.step()
        x = ours.step(bowl.geometry, x, bowl.gradient(x), state, 0.05)
    torch.testing.assert_close(x, point.detach(), rtol=1e-8, atol=1e-10)
    assert float(bowl.loss(x)) < 0.01 * float(bowl.loss(bowl.x))


@pytest.mark.parametrize("name", ["adagrad", "adam"])
def test_flat_steps_are_pytorchs(name: str) -> None:
    bowl = Bowl(Euclidean(), 6, 5, seed=1)
    ours = optimizer(name, **({"beta1": 0.8, "beta2": 0.95} if name == "adam" else {}))
    point = torch.nn.Parameter(bowl.x.clone())
    judge: Any = torch.optim.Adagrad([point], lr=0.1)
    if name == "adam":
        judge = torch.optim.Adam([point], lr=0.1, betas=(0.8, 0.95))
    x, state = bowl.x, state_of(ours, bowl.geometry, bowl.x)
    for _ in range(30):
        point.grad = bowl.gradient(point.detach())
        judge.step()
        x = ours.step(bowl.geometry, x, bowl.gradient(x), state, 0.1)
    torch.testing.assert_close(x, point.detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["adagrad", "adam"])
def test_sparse_steps_are_pytorchs(name: str) -> None:
    """Repeated indices in a sparse gradient; PyTorch's Adam has one clock, so that here each row is in every batch."""
    rows = torch.tensor([0, 2, 2, 1, 0, 2]) if name == "adam" else torch.tensor([0, 2, 2, 4, 0, 2])
    weight = torch.nn.Parameter(torch.randn(3 if name == "adam" else 6, 4, dtype=torch.float64))
    ours, x = optimizer(name, eps=1e-14), weight.detach().clone()
    judge: Any = torch.optim.Adagrad([weight], lr=0.1, eps=1e-14)
    if name == "adam":
        judge = torch.optim.SparseAdam([weight], lr=0.1, eps=1e-14)
    state = state_of(ours, Euclidean(), x)
    for step in range(5):
        values = torch.randn(len(rows), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        weight.grad = torch.sparse_coo_tensor(rows[None], values, weight.shape, check_invariants=True)
        judge.step()
        where = rows.unique()
        part = {key: table[where] for key, table in state.items()}
        gradient = torch.zeros_like(x).index_add_(0, rows, values)
        x[where] = ours.step(Euclidean(), x[where], gradient[where], part, 0.1)
        for key, table in part.items():
            state[key][where] = table
    torch.testing.assert_close(x, weight.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_descends_in_every_space_and_stays_in_it(name: str, space: str) -> None:
    geometry = SPACES[space]
    bowl = Bowl(geometry, 5, 7, seed=2)
    one = optimizer(name)
    x, state, lr = bowl.x, state_of(one, geometry, bowl.x), {"sgd": 0.05, "adagrad": 0.5}.get(name, 0.2)
    for step in range(150):
        x = one.step(geometry, x, bowl.gradient(x), state, lr / (1 + step / 20))
        assert bool(geometry.contains(x).all())
    assert float(bowl.loss(x)) < 0.01 * float(bowl.loss(bowl.x))


@pytest.mark.parametrize("space", ["ball", "hyperboloid", "sphere", "product"])
def test_adams_mean_is_a_tangent_vector_where_the_row_is(space: str) -> None:
    geometry: Any = SPACES[space]
    bowl = Bowl(geometry, 5, 7, seed=4)
    one = optimizer("adam")
    x, state = bowl.x, state_of(one, geometry, bowl.x)
    for _ in range(40):
        x = one.step(geometry, x, bowl.gradient(x), state, 0.3)
    torch.testing.assert_close(geometry.project_tangent(x, state["mean"]), state["mean"], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_steps_do_not_depend_on_where_the_origin_of_the_ball_is(name: str) -> None:
    """An isometry before the steps or after them: lengths, transport and clipping are those of the metric."""
    geometry: Any = SPACES["ball"]
    bowl = Bowl(geometry, 5, 7, seed=5)
    centre = 0.3 * bowl.goal[:1]
    moved = Bowl(geometry, 5, 7, seed=5)
    moved.x, moved.goal = (geometry.recentre(points, centre) for points in (bowl.x, bowl.goal))
    found = []
    for one in (bowl, moved):
        chosen = optimizer(name, clip=0.8)
        x, state = one.x, state_of(chosen, geometry, one.x)
        for _ in range(15):
            x = chosen.step(geometry, x, one.gradient(x), state, 0.1)
        found.append(x)
    torch.testing.assert_close(geometry.recentre(found[0], centre), found[1], rtol=1e-8, atol=1e-10)
    assert float(geometry.distance(bowl.x, found[0]).min()) > 0.1


@pytest.mark.parametrize("space", SPACES)
def test_a_long_gradient_is_shortened_to_clip_in_the_metric(space: str) -> None:
    geometry: Any = SPACES[space]
    bowl = Bowl(geometry, 5, 7, seed=5)
    found = optimizer("sgd", clip=0.1).clipped(geometry, bowl.x, bowl.gradient(bowl.x))
    g = geometry.riemannian_gradient(bowl.x, found)
    torch.testing.assert_close(geometry.inner(bowl.x, g, g).sqrt(), torch.full((5, 1), 0.1, dtype=torch.float64))


def test_a_short_gradient_is_not_clipped() -> None:
    gradient = torch.tensor([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]])
    found = optimizer("sgd", clip=0.5).clipped(Euclidean(), torch.zeros(3, 2), gradient)
    torch.testing.assert_close(found, torch.tensor([[0.3, 0.4], [0.3, 0.4], [0.0, 0.0]]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model_name", MODELS)
def test_cost_of_a_step_does_not_depend_on_the_number_of_entities(name: str, model_name: str) -> None:
    counts = []
    for entities in (1000, 100_000):  # both many more than a batch reads
        model = MODELS[model_name](entities, 4, 8).initialise(0)
        engine = TorchEngine(Task(model, optimizer=optimizer(name, clip=1.0)))
        positives, negatives = random_batch(100, 4, 16, 5, seed=0)
        engine.step(positives, negatives, 0.1)
        with ElementCount() as count:
            engine.step(positives, negatives, 0.1)
        counts.append(count.elements)
    assert counts[0] == counts[1]
    assert counts[0] < 100_000


@pytest.mark.parametrize(("name", "most"), [("sgd", 1.06), ("row-adagrad", 1.1), ("adagrad", 2.1), ("adam", 3.1)])
@pytest.mark.parametrize("model_name", MODELS)
def test_what_is_kept_beside_the_parameters(name: str, most: float, model_name: str) -> None:
    """At d=40, all that grows with the number of entities: parameters, the optimizer's tables, the updater's own."""
    model = MODELS[model_name](5000, 2, 40).initialise(0)
    updater = TorchEngine(Task(model, optimizer=optimizer(name))).updater
    parameters = sum(values.nbytes for values in model.parameters.values())
    kept = sum(values.nbytes for values in (*updater.state.values(), *updater.claim.values()))
    assert (parameters + kept) / parameters <= most
    assert {values.dtype for values in updater.state.values()} <= {torch.float32}


def test_adam_counts_the_steps_of_each_row() -> None:
    model = MODELS["mure"](6, 2, 3).initialise(0)
    engine = TorchEngine(Task(model, optimizer=optimizer("adam")))
    for subject in (0, 0, 3):
        engine.step(torch.tensor([[subject, 0, 1]]), torch.tensor([[2]]), 0.1)
    assert engine.states[0]["optimizer.entity.steps"].flatten().tolist() == [2, 3, 3, 1, 0, 0]
    assert engine.states[0]["optimizer.subject_bias.steps"].flatten().tolist() == [2, 0, 0, 1, 0, 0]


def test_the_first_step_of_adam_in_float32_has_its_length() -> None:
    """1 - β₂ᵗ is 0.001 in the first step, and would lose four digits if it were subtracted."""
    one, x = optimizer("adam", beta2=0.999999, eps=1e-30), torch.zeros(1, 3)
    moved = one.step(Euclidean(), x, torch.tensor([[1e-3, -2.0, 30.0]]), state_of(one, Euclidean(), x), 0.1)
    torch.testing.assert_close(moved, torch.tensor([[-0.1, 0.1, -0.1]]), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("adam", {"beta1": 1.0}),
        ("adam", {"beta2": -0.1}),
        *((name, {"eps": 0.0}) for name in ("adam", "adagrad", "row-adagrad")),
        *((name, values) for name in NAMES for values in ({"clip": -1.0}, {"lr": 0.0}, {"unheard_of": 0.9})),
    ],
)
def test_settings_out_of_range_are_refused(name: str, values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        optimizer(name, **values)


def test_each_has_a_learning_rate_that_suits_it() -> None:
    for name, lr in {"sgd": 50.0, "adagrad": 0.1, "row-adagrad": 0.1, "adam": 1e-3}.items():
        assert registry.find("optimizer", name).settings["lr"].default == lr


def test_no_memory_for_the_state_is_told_with_what_needs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["mure"](50, 2, 3).initialise(0)
    zeros = torch.zeros

    def refuse(*shape: Any, **options: Any) -> Tensor:
        if shape[0] == (50, 3):
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return zeros(*shape, **options)

    monkeypatch.setattr(torch, "zeros", refuse)
    with pytest.raises(MurpError, match=r"50 × 3 numbers.*Adam.*--dim.*row-adagrad"):
        TorchEngine(Task(model, optimizer=optimizer("adam")))


def test_matrices_and_numbers_have_state_too() -> None:
    shapes = {shape: optimizer("adam").state_shapes(Table("t", "relation", shape)) for shape in ((3, 4), ())}
    assert shapes == {
        (3, 4): {"mean": (12,), "square": (12,), "steps": (1,)},
        (): {"mean": (1,), "square": (1,), "steps": (1,)},
    }
    assert math.prod(optimizer("row-adagrad").state_shapes(Table("t", "relation", (3, 4)))["sum"]) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model_name", MODELS)
def test_captured_steps_on_the_gpu_keep_the_state_of_the_cpu(name: str, model_name: str) -> None:
    engines = []
    for device in ("cpu", "cuda"):
        model = MODELS[model_name](40, 4, 9, dtype=torch.float64).initialise(0)
        model.to(device)
        engines.append(TorchEngine(Task(model, optimizer=optimizer(name, **eps_of(name)))))
    for size in (16, 5, 16):
        batches = [random_batch(40, 4, size, 6, seed=size + i) for i in range(6)]
        positives, negatives = (torch.stack(part) for part in zip(*batches, strict=True))
        engines[0].steps(positives, negatives, 0.125)
        engines[1].steps(positives.cuda(), negatives.cuda(), 0.125)
        ours, theirs = (engine.model.parameters | engine.states[0] for engine in engines)
        for key, values in ours.items():
            torch.testing.assert_close(theirs[key].cpu(), values, rtol=1e-7, atol=1e-9, msg=key)
