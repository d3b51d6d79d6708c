"""Fused gradients of a slice of a batch, for ranks that share a model; see :mod:`murp.distributed.engine`.

The kernels of the fused engines, but rows do not move: their owner moves them, with any optimizer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from murp.engines import FUSED, OTHER_MODEL, OTHER_PARTS
from murp.engines.task import Task
from murp.errors import ConfigError
from murp.models import Model, MultiRelational
from murp.models.model import Rows
from murp.negatives.by_relation import ByRelation
from murp.negatives.checked import Checked
from murp.negatives.local import Local
from murp.negatives.uniform import Uniform
from murp.negatives.with_head import WithHead
from murp.objectives.bernoulli import Bernoulli
from murp.regularizers.none import Nothing

# Negatives (B, k): false objects of each triple.
OWN_OBJECTS = (Uniform, WithHead, Local, ByRelation, Checked)


class SliceGradients(Protocol):
    """Gradients of the objective bernoulli on a slice."""

    name: str

    def __call__(self, model: Model, positives: Tensor, negatives: Tensor, weight: float) -> tuple[Tensor, Rows]:
        """``weight`` times the mean loss, and times its gradients by every table.

        ``model`` has only the rows that positives (b, 3) and negatives (b, k) name, each at least once. Its tables may
        be overwritten.
        """


def fused_gradients(name: str, task: Task) -> SliceGradients | None:
    """What the engine called ``name`` computes gradients with; None: autograd. ``auto`` is the fastest that can."""
    if name == "auto":
        name = next((fused for fused in SLICES if _cannot(fused, task) is None), "torch")
    if name == "torch":
        return None
    if (reason := _cannot(name, task)) is not None:
        raise ConfigError(f"engine {name} {reason}. Use --engine auto or torch.")
    return SLICES[name]()


def unknown(name: str, task: Task) -> str | None:
    """Why a fused engine cannot compute gradients of slices for this task, on any device; None if it can."""
    if name not in SLICES:
        return "has no gradients of slices"
    package, model = FUSED[name].package, task.model
    if importlib.util.find_spec(package) is None:
        return f"needs the package {package}, which is not installed"
    if not isinstance(model, MultiRelational) or not model.has_space_of_paper:
        return OTHER_MODEL
    if name == "numba" and not model.published:
        return OTHER_PARTS
    if model.uses_chance:
        return "knows no dropout"
    if type(task.objective) is not Bernoulli or type(task.regularizer) is not Nothing:
        return "knows the objective bernoulli without a regularizer"
    if type(task.negatives) not in OWN_OBJECTS:
        return "knows the corruptions uniform, with-head, local, by-relation and checked"
    return None


def _cannot(name: str, task: Task) -> str | None:
    needed, there = FUSED[name].device, task.model.device.type
    if needed != there:
        return f"runs on {needed}, and the model is on {there}"
    return unknown(name, task)


def _triton() -> SliceGradients:
    from murp.engines.triton_slices import TritonSlices

    return TritonSlices()


def _numba() -> SliceGradients:
    from murp.engines.numba_engine import NumbaSlices

    return NumbaSlices()


# The fastest first, as ``auto`` takes them.
SLICES: dict[str, Callable[[], SliceGradients]] = {"triton": _triton, "numba": _numba}
