"""The sparse step against a dense one, and its cost against the number of entities."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from examples import at_most
from murp import threads
from murp.engines import Chunk, TorchEngine, build
from murp.models import BIASES, MODELS, TRANSFORMATIONS, MultiRelational
from steps import ElementCount, random_batch


def dense_step(
    model: MultiRelational, positives: Tensor, negatives: Tensor, lr: float
) -> tuple[float, dict[str, Tensor]]:
    """The same step on whole tables: gradients for every row, every row moved by the geometry's own maps."""
    tables = {name: values.clone().requires_grad_() for name, values in model.parameters.items()}
    objects = torch.cat([positives[:, 2:], negatives], dim=1)
    rows = {
        role: {t.name: tables[t.name][where] for t in model.tables if role in t.roles}
        for role, where in (("subject", positives[:, 0]), ("relation", positives[:, 1]), ("object", objects))
    }
    scores = model.score_rows(rows["subject"], rows["relation"], rows["object"])
    labels = torch.zeros_like(scores)
    labels[:, 0] = 1
    loss = binary_cross_entropy_with_logits(scores, labels)
    gradients = dict(zip(tables, torch.autograd.grad(loss, list(tables.values())), strict=True))
    moved = {}
    for table in model.tables:
        x, geometry = tables[table.name].detach(), table.geometry
        velocity = -lr * geometry.riemannian_gradient(x, gradients[table.name])
        moved[table.name] = geometry.project(geometry.exp(x, velocity))
    return float(loss.detach()), moved


def assert_steps_agree(model: MultiRelational, positives: Tensor, negatives: Tensor, lr: float) -> None:
    loss, expected = dense_step(model, positives, negatives, lr)
    before = {name: values.clone() for name, values in model.parameters.items()}
    ours = TorchEngine(model).steps(positives[None], negatives[None], lr)
    assert float(ours) == pytest.approx(loss, rel=1e-10)
    for name, values in model.parameters.items():
        torch.testing.assert_close(values, expected[name], rtol=1e-9, atol=1e-12, msg=name)
    touched = torch.cat([positives[:, 0], positives[:, 2], negatives.flatten()]).unique()
    others = torch.ones(model.num_entities, dtype=torch.bool)
    others[touched] = False
    # To the bit: these rows are not written to.
    assert torch.equal(model.parameters["entity"][others], before["entity"][others])


@settings(max_examples=at_most(60), deadline=None)
@given(
    name=st.sampled_from(list(MODELS)),
    entities=st.integers(1, 12),  # few, so that rows repeat and subjects are their own objects
    size=st.integers(1, 9),
    negatives=st.integers(1, 7),
    dim=st.integers(1, 8),
    spread=st.sampled_from([1e-3, 0.5, 2.0]),
    lr=st.sampled_from([0.1, 5.0, 50.0]),
    seed=st.integers(0, 2**16),
)
def test_only_touched_rows_move_and_as_in_the_dense_step(
    name: str, entities: int, size: int, negatives: int, dim: int, spread: float, lr: float, seed: int
) -> None:
    model = MODELS[name](entities, 3, dim, dtype=torch.float64).initialise(seed)
    draw = torch.Generator().manual_seed(seed)
    point = torch.randn(entities, dim, dtype=torch.float64, generator=draw)
    model.parameters["entity"] = model.geometry.exp0(spread * point / dim**0.5)
    assert_steps_agree(model, *random_batch(entities, 3, size, negatives, seed), lr)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_every_choice_of_parts_steps_as_the_dense_step(name: str, transformation: str, bias: str) -> None:
    model = MODELS[name](10, 4, 5, transformation=transformation, bias=bias, dtype=torch.float64).initialise(0)
    model.parameters["entity"] = model.geometry.exp0(300 * model.parameters["entity"])
    assert_steps_agree(model, *random_batch(10, 4, 8, 5, seed=1), lr=2.0)


@pytest.mark.parametrize("name", MODELS)
def test_cost_of_a_step_does_not_depend_on_the_number_of_entities(name: str) -> None:
    counts = []
    for entities in (1000, 100_000):  # both many more than a batch reads
        model = MODELS[name](entities, 4, 8).initialise(0)
        engine = TorchEngine(model)
        positives, negatives = random_batch(100, 4, 16, 5, seed=0)
        engine.step(positives, negatives, 1.0)
        with ElementCount() as count:
            engine.step(positives, negatives, 1.0)
        counts.append(count.elements)
    assert counts[0] == counts[1]
    assert counts[0] < 100_000


@pytest.mark.gpu
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_captured_steps_on_the_gpu_are_the_steps_of_the_cpu(name: str, transformation: str, bias: str) -> None:
    """Two batch sizes, several steps each: the graph is captured, replayed, and captured anew."""
    models = [
        MODELS[name](40, 4, 9, transformation=transformation, bias=bias, dtype=torch.float64).initialise(0)
        for _ in ("cpu", "cuda")
    ]
    models[1].to("cuda")
    engines = [TorchEngine(model) for model in models]
    for size in (16, 5, 16):
        batches = [random_batch(40, 4, size, 6, seed=size + i) for i in range(3)]
        positives, negatives = (torch.stack(part) for part in zip(*batches, strict=True))
        on_cpu = engines[0].steps(positives, negatives, 5.0)
        on_gpu = engines[1].steps(positives.cuda(), negatives.cuda(), 5.0)
        torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-9, atol=1e-9)
        for table, values in models[0].parameters.items():
            torch.testing.assert_close(models[1].parameters[table].cpu(), values, rtol=1e-8, atol=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_compiled_steps_are_the_steps(name: str) -> None:
    models = [MODELS[name](40, 4, 9, dtype=torch.float64).initialise(0) for _ in ("cpu", "cuda")]
    models[1].to("cuda")
    engines = [TorchEngine(models[0]), TorchEngine(models[1], compile_after=0)]
    for i in range(3):
        batches = [random_batch(40, 4, 16, 6, seed=3 * i + j) for j in range(3)]
        positives, negatives = (torch.stack(part) for part in zip(*batches, strict=True))
        on_cpu = engines[0].steps(positives, negatives, 5.0)
        on_gpu = engines[1].steps(positives.cuda(), negatives.cuda(), 5.0)
        torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-9, atol=1e-9)
    assert all(compiled for _, compiled, *_ in engines[1].graphs)
    for table, values in models[0].parameters.items():
        torch.testing.assert_close(models[1].parameters[table].cpu(), values, rtol=1e-8, atol=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("engine_name", ["torch", "triton"])
def test_an_engine_no_longer_used_does_not_disturb_the_next_capture(engine_name: str) -> None:
    """Python's collector must not destroy the old engine's graphs while the new one's are captured."""
    thresholds = gc.get_threshold()
    gc.set_threshold(5, 1, 1)  # collect all the time
    try:
        for _ in range(4):
            model = MODELS["murp"](40, 4, 9).initialise(0).to("cuda")
            positives, _ = random_batch(40, 4, 16, 6, seed=0)
            chunk = Chunk(positives[None].repeat(300, 1, 1).cuda(), 40, 6, seed=0)
            loss = build(engine_name, [model]).run([chunk], [1.0])
            assert bool(loss.isfinite().all())
    finally:
        gc.set_threshold(*thresholds)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MODELS)
def test_the_number_of_threads_changes_no_bit(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch shares the rows of a batch among its threads and never a sum within one."""
    found = []
    for number in (1, 2, 3):
        monkeypatch.setattr(threads.Choice, "next", lambda _, number=number: number)
        model: Any = MODELS[name](2000, 6, 40, dtype=dtype).initialise(0)
        draw = torch.Generator().manual_seed(1)
        positives = torch.stack([torch.randint(n, (3, 128), generator=draw) for n in (2000, 6, 2000)], dim=-1)
        loss = TorchEngine(model).run([Chunk(positives, 2000, 50, 7)], [5.0])
        found.append([loss, *model.parameters.values()])
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))
