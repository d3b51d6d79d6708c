"""Engines: how a training step is computed. ``torch`` defines it; the fused ones are tested against it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from murp.config import Config
from murp.engines.engine import Chunk, Engine
from murp.engines.task import Task
from murp.engines.torch_engine import TorchEngine
from murp.errors import ConfigError
from murp.models import Model, MultiRelational, from_config
from murp.models.hierarchy import Distance
from murp.models.rounding import can_round

__all__ = [
    "Chunk",
    "Engine",
    "Task",
    "TorchEngine",
    "build",
    "can",
    "refuse_engine",
    "refuse_host_tables",
    "refuse_table_dtype",
    "side_by_side",
]


OTHER_MODEL = "knows MuRP and MuRE, no other model"
OTHER_PARTS = "knows MuRP and MuRE as published, not their other transformations and biases (triton, on cuda, does)"
FEW = 4  # models side by side, from which on two streams are worth while


@dataclass(frozen=True)
class Fused:
    """An engine for some tasks: where it runs, the package that it needs, what it does not know, how it is made."""

    device: str
    package: str
    unknown: Callable[[Task], str | None]  # what of a task it does not know; None if it knows all of it
    make: Callable[[Sequence[Task]], Engine]


def build(name: str, tasks: Sequence[Task | Model]) -> Engine:
    """The engine called ``name`` for models on their device; ``auto`` is the fastest that can.

    Several models of one shape train side by side, which only the engine triton does. A model alone is trained as in
    the paper.
    """
    given = [task if isinstance(task, Task) else Task(task) for task in tasks]
    if name == "auto":
        name = next((fused for fused in FUSED if can(fused, given[0])), "torch")
    reason = _cannot(name, given[0])
    if reason is not None:
        raise _refusal(name, reason)
    if name in FUSED:
        return FUSED[name].make(given)
    (task,) = given
    return TorchEngine(task)


def can(name: str, task: Task) -> bool:
    """Whether the engine called ``name`` trains this model where it is."""
    return _cannot(name, task) is None


def side_by_side(name: str, task: Task) -> bool:
    """Whether several models like this one can share an engine."""
    return name in ("auto", "triton") and not task.model.on_host and _cannot("triton", task) is None


def refuse_engine(config: Config) -> None:
    """Raise if the engine that a run names does not know its model or how it is trained, on any device."""
    if config.engine not in FUSED:
        return
    if (reason := _unknown(config.engine, Task.of(config, from_config(config, 1, 1)))) is not None:
        raise _refusal(config.engine, reason)


def _refusal(name: str, reason: str) -> ConfigError:
    return ConfigError(f"engine {name} {reason}. Engine torch can: use --engine torch or auto.")


def refuse_host_tables(config: Config) -> None:
    """Raise if a run on a GPU cannot have its entities' points in host memory."""
    why: str | None = None
    if config.engine not in ("auto", "triton"):
        why = f"engine {config.engine} needs its tables on the device that computes"
    elif (reason := _unknown("triton", Task.of(config, from_config(config, 1, 1)))) is not None:
        why = f"engine triton {reason}"
    if why is not None:
        raise ConfigError(
            "tables = host needs the engine triton on cuda, model murp or mure, objective bernoulli, corruption "
            f"uniform, optimizer sgd (without clip), no regularizer and no dropout; but {why}. Leave tables at device, "
            "or divide the rows among several GPUs with torchrun."
        )


def refuse_table_dtype(config: Config) -> None:
    """Raise if a run cannot store its entities' points in the precision that it asks for."""
    model = from_config(config, 1, 1)
    if model.point_dtype != model.dtype and not can_round(model.geometry):
        raise ConfigError(
            f"table_dtype = {config.table_dtype} is for points of Euclidean space or of the ball. Those of model "
            f"{config.model} are in {model.geometry.name} space, which rounding would take them out of: leave "
            "table_dtype at auto."
        )


def _cannot(name: str, task: Task) -> str | None:
    """Why the engine cannot train this model where it is; None if it can."""
    if name == "torch":
        return None
    needed, there = FUSED[name].device, task.model.device.type
    if there != needed:
        return f"runs on {needed}, and the model is on {there}"
    return _unknown(name, task)


def _unknown(name: str, task: Task) -> str | None:
    """Why a fused engine could not train this task, wherever the model is; None if it could."""
    fused = FUSED[name]
    if importlib.util.find_spec(fused.package) is None:
        return f"needs the package {fused.package}, which is not installed"
    return fused.unknown(task)


def _unknown_to_triton(task: Task) -> str | None:
    if not isinstance(task.model, MultiRelational) or not task.model.has_space_of_paper:
        return OTHER_MODEL
    if not task.as_published:
        return "knows the paper's objective, negatives and optimizer, and no regularizer"
    return None


def _unknown_to_numba(task: Task) -> str | None:
    if task.model.point_dtype != task.model.dtype:
        return "stores the entities' points as it computes, and not rounded (triton, on cuda, does)"
    if isinstance(task.model, Distance):
        from murp.engines.hierarchy_engine import cannot

        return cannot(task)
    if (reason := _unknown_to_triton(task)) is not None:
        return reason
    if not cast(MultiRelational, task.model).published:
        return OTHER_PARTS
    return None


def _triton(tasks: Sequence[Task]) -> Engine:
    from murp.engines.triton_engine import TritonEngine, TritonSideBySide

    models = [cast(MultiRelational, task.model) for task in tasks]
    together = TritonSideBySide if len(models) >= FEW and models[0].device.type == "cuda" else TritonEngine
    return together(models)


def _numba(tasks: Sequence[Task]) -> Engine:
    (task,) = tasks
    if isinstance(task.model, Distance):
        from murp.engines.hierarchy_engine import HierarchyEngine

        return HierarchyEngine(task)
    from murp.engines.numba_engine import NumbaEngine

    return NumbaEngine(cast(MultiRelational, task.model))


# The fastest first, as ``auto`` takes them. What none of them can train, the engine torch does.
FUSED = {
    "triton": Fused("cuda", "triton", _unknown_to_triton, _triton),
    "numba": Fused("cpu", "numba", _unknown_to_numba, _numba),
}
