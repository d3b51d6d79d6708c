"""Gradients of a slice of a batch in a compiled loop; see :mod:`murp.engines.slices`.

The parts of a step that score candidates and find the coefficients of their gradients are those of the engine
(:mod:`murp.engines.numba_steps`). Here one thread adds the gradients to their rows at once, positive after positive, so
that a slice, which is much larger than a batch of the engine, needs no chains and no memory for coefficients. The order
of additions is fixed by the slice alone.
"""

from __future__ import annotations

from typing import Any

from murp.compiling import announce, kernel
from murp.engines.numba_math import prefetch_positive
from murp.engines.numba_mure import mure_positive
from murp.engines.numba_murp import murp_positive
from murp.kernels.intrinsics import add_difference, combine

announce(__name__, "the training step")

SUBJECT, OBJECT = 0, 1  # places in a row of ``biases``


@kernel
def slice_gradients(
    positives: Any, negatives: Any, batch: float, tables: Any, numbers: Any, space: Any, gradients: Any, biases: Any
) -> float:
    """The loss of positives (b, 3) with negatives (b, k): their part of the mean over a batch of ``batch`` positives.

    Adds to ``gradients`` those of entities, stretches and translations, and to ``biases`` (n, 2), in float64, those of
    subjects and objects. ``space`` is for one positive; the rest as in :func:`murp.engines.numba_steps.steps`.
    """
    entity, _, _, _, object_bias = tables
    of_entities, of_stretches, of_translations = gradients
    real, dim = entity.dtype.type, entity.shape[1]
    one, ball, tiny = real(1), numbers[1] > 0, numbers[4]
    size, false = negatives.shape
    moved, r = space.moved[0, :dim], space.r_copy[0, :dim]
    of_x, of_r, of_self, of_phi = space.of_x[0], space.of_r[0], space.of_self[0], space.of_phi[0]
    loss = 0.0
    for i in range(size):
        if i + 1 < size:
            prefetch_positive(entity, object_bias, positives[i + 1], negatives[i + 1])
        prefetch_positive(of_entities, biases, positives[i], negatives[i])  # they are at hand when all is scored
        if ball:
            murp_positive(0, 0, positives[i], negatives[i], tables, numbers, space, batch)
        else:
            mure_positive(0, 0, positives[i], negatives[i], tables, numbers, space, batch)
        loss += space.losses[0]
        subject, relation = positives[i, 0], positives[i, 1]
        for k in range(1 + false):
            row = positives[i, 2] if k == 0 else negatives[i, k - 1]
            g, v = of_entities[row], entity[row]
            biases[row, OBJECT] += of_phi[k]
            if ball:
                if of_self[k] != 0:
                    combine((g, moved, r, v), (one, of_x[k], of_r[k], real(of_self[k])))
            elif abs(of_phi[k]) >= tiny:
                add_difference((g, moved, v), real(2.0 * of_phi[k]))
        biases[subject, SUBJECT] += space.s_bias_gradient[0]
        combine((of_entities[subject], space.s_gradient[0, :dim]), (one, one))
        combine((of_stretches[relation], space.m_gradient[0, :dim]), (one, one))
        combine((of_translations[relation], space.r_gradient[0, :dim]), (one, one))
    return loss
