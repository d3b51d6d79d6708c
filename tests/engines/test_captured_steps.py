"""A step can be captured in a CUDA graph: it uses tensors of the GPU alone, and Python does not wait for their numbers.

And it holds no tensor of batch × entities.

PyTorch's device ``meta`` takes the place of a GPU. Its tensors have no numbers, so that whoever asks for one fails.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from murp import registry
from murp.config import Config
from murp.engines import Task, updates
from murp.engines import step as steps
from murp.engines.updates import Updater
from murp.errors import ConfigError
from murp.kernels import all_entities
from murp.models import from_config, model
from murp.negatives import Drawn
from murp.objectives import Labels, every_score
from murp.recipes import completed
from recorded import remembering

ENTITIES, RELATIONS, BATCH, NEGATIVES = 30, 2, 12, 7


class Elsewhere(TorchDispatchMode):
    """Raises if an operation has a tensor of the CPU; a single number is none: it is handed over with the launch."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for one in tree_leaves((args, kwargs, found)):
            if isinstance(one, Tensor) and one.device.type == "cpu" and one.dim():
                raise AssertionError(f"{func} has a tensor {tuple(one.shape)} of the CPU")
        return found


class Memory(TorchDispatchMode):
    """The size of the largest storage that is made, and of all that live at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.living: set[int] = set()
        self.now = self.most = self.largest = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        before = {one.untyped_storage()._cdata for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)}
        found = func(*args, **(kwargs or {}))
        for one in tree_leaves(found):
            if isinstance(one, Tensor) and (place := one.untyped_storage()._cdata) not in self.living | before:
                size = one.untyped_storage().nbytes()
                self.living.add(place)
                self.now += size
                self.most, self.largest = max(self.most, self.now), max(self.largest, size)
                weakref.finalize(one.untyped_storage(), self._gone, place, size)
        return found

    def _gone(self, place: int, size: int) -> None:
        self.living.discard(place)
        self.now -= size


class Launched:
    """Takes the place of a Triton kernel, and does nothing."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *given, **options: None


def recorded_aside(*given: Any, usual: Callable[..., Any] = every_score._formula) -> Any:
    """A model's ending is recorded once, before steps are captured."""
    with _disable_current_modes():
        return usual(*given)


def whole(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.int64, device="meta")


def take_a_step(
    monkeypatch: pytest.MonkeyPatch, compiled: Callable[[Any], Any] = lambda part: part, **settings: Any
) -> None:
    """One step; its parts as ``compiled`` makes them, and then without looking at its tensors."""
    config = Config(**completed({"dim": 8, **settings}))
    task = Task.of(config, remembering(from_config(config, ENTITIES, RELATIONS).initialise(0).to("meta")))
    task.model.training = True
    drawn, labels = None, None
    if task.objective.sampled:
        apart = config.corruption == "both-sides"
        shape = (NEGATIVES,) if config.corruption == "shared" else (BATCH, NEGATIVES)
        drawn = Drawn(whole(*shape), whole(*shape) if apart else None)
    elif task.objective.grouped:
        labels = Labels(whole(2 * BATCH), whole(2 * BATCH), torch.ones(2 * BATCH, device="meta"))
    # As operators of a compiled step, whose results have a form where nothing is launched.
    monkeypatch.setattr(all_entities, "_reduce", all_entities._registered)
    monkeypatch.setattr(model, "inner_products", lambda points, rows: points @ rows.T)
    monkeypatch.setitem(all_entities._CELLS, "meta", 64)
    monkeypatch.setattr(every_score, "_formula", recorded_aside)
    if find_spec("triton") is not None:
        from murp.kernels import triton_formulas

        made = triton_formulas.Kernels(Launched(), Launched())
        monkeypatch.setattr(triton_formulas, "kernels", lambda *given: made)
    updater = Updater(task)
    rate = torch.zeros((), device="meta")
    gathering, loss_of, update = (compiled(part) for part in (steps.gather, steps.loss_of, updater.update))
    with contextlib.nullcontext() if update != updater.update else Elsewhere():
        loss, touched = steps.row_gradients(task, whole(BATCH, 3), drawn, labels, loss_of, gathering)
        updater.prepare(touched)
        update(updater.tables(), touched, rate)
    assert loss.device.type == "meta"


@pytest.mark.parametrize("by_tables", [False, True])
@pytest.mark.parametrize("name", registry.MODELS)
def test_a_step_of_any_model_stays_on_the_gpu(name: str, by_tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its usual settings, and with every dropout that it has."""
    monkeypatch.setattr(steps, "MANY", 1 if by_tables else 2**62)
    monkeypatch.setattr(updates, "FEW_ROWS", 4 if by_tables else 0)
    take_a_step(monkeypatch, model=name)
    for dropout in ("query_dropout", "entity_dropout"):
        try:
            Config(**completed({"model": name, dropout: 0.2}))
        except ConfigError:
            continue
        take_a_step(monkeypatch, model=name, **{dropout: 0.2})


@pytest.mark.parametrize("kind", ["objective", "corruption", "optimizer", "regularizer"])
@pytest.mark.parametrize("name", ["mure", "murp", "complex", "lorentz", "mixed-curvature"])
def test_a_step_of_any_kind_stays_on_the_gpu(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for choice in registry.KINDS[kind]:
        weight = {"regularizer_weight": 0.1} if kind == "regularizer" and choice != "none" else {}
        drawing = {"objective": "bernoulli"} if kind == "corruption" else {}
        try:
            Config(**completed({"model": name, kind: choice, **weight, **drawing}))
        except ConfigError:
            continue
        take_a_step(monkeypatch, model=name, **{kind: choice, **weight, **drawing})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["mure", "murp"])
def test_a_step_of_points_with_fewer_digits_stays_on_the_gpu(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_a_step(monkeypatch, model=name, table_dtype=dtype, optimizer="adam")


COMPILED: list[dict[str, Any]] = [
    {"model": "murp", "table_dtype": "bfloat16", "optimizer": "adam"},
    {"model": "lorentz", "entity_dropout": 0.2, "optimizer": "adagrad"},
    {"model": "mixed-curvature", "optimizer": "row-adagrad"},
    {"model": "complex"},
]


@pytest.mark.parametrize("settings", COMPILED, ids=lambda settings: settings["model"])
def test_the_parts_of_a_step_are_compiled_whole(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What PyTorch's compiler does not know it would run by itself, each time, between two compiled halves."""
    compiled = functools.partial(torch.compile, fullgraph=True, dynamic=False, backend="eager")
    take_a_step(monkeypatch, compiled, **settings)


@pytest.mark.parametrize("objective", ["one-vs-all", "k-vs-all"])
@pytest.mark.parametrize("label_loss", ["cross-entropy", "bernoulli"])
def test_all_entities_of_fb15k_237_need_no_tensor_of_batch_by_entities(
    objective: str, label_loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step as large as that of the benchmark. Steps that are compiled hold less: these keep every result."""
    entities, relations, batch = 14_541, 474, 1024
    config = Config(**completed({"model": "rescal", "objective": objective, "label_loss": label_loss, "dim": 40}))
    task = Task.of(config, from_config(config, entities, relations).initialise(0).to("meta"))
    monkeypatch.setattr(all_entities, "_reduce", all_entities._registered)
    labels = Labels(whole(2 * batch), whole(2 * batch), torch.ones(2 * batch, device="meta"))
    with Memory() as memory:
        steps.row_gradients(
            task, whole(batch, 3), None, labels if task.objective.grouped else None, steps.loss_of, steps.gather
        )
    scores = 4 * batch * entities
    assert 0 < memory.largest < scores / 4
    assert memory.most < scores


def test_the_kernels_of_all_entities_ask_for_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the gradients there are the halves of both tables, and a gradient of the queries for each split."""

    pytest.importorskip("triton")
    from murp.kernels import triton_all_entities

    for name in ("_largest", "_rounded", "_scores", "_combined"):
        monkeypatch.setattr(triton_all_entities, name, Launched())
    q, v = (torch.zeros(rows, 40, device="meta") for rows in (1024, 14_541))
    for softmax in (True, False):
        with Memory() as memory:
            triton_all_entities.reduced(softmax, q, v, None, None, None, True)
        assert 0 < memory.most < 4 * 1024 * 14_541 / 4


@pytest.mark.parametrize("kind", ["log_sum_exp", "softplus", "mean"])
def test_the_kernels_of_a_formula_ask_for_little_memory(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the gradients there is a gradient of the queries for each split."""
    triton_formulas = pytest.importorskip("murp.kernels.triton_formulas")
    monkeypatch.setattr(triton_formulas, "kernels", lambda *given: triton_formulas.Kernels(Launched(), Launched()))
    monkeypatch.setattr("murp.kernels.triton_products._row_products", Launched())
    made = remembering(from_config(Config(**completed({"model": "murp", "dim": 40})), 41_000, 22))
    made.initialise(0).to("meta")
    asked = whole(500)
    query = made.query(made.rows("subject", asked), made.rows("relation", asked), made.rows("shared"))
    every = every_score.EveryScore(made, query, made.candidate(made.rows("object"), made.rows("shared")))
    assert every.formula is not None
    for part in (*query.vectors, *every.everything.vectors):
        part.requires_grad_()
    with Memory() as memory:
        getattr(every, kind)()
    assert 0 < memory.most < 4 * 500 * 41_000 / 2
