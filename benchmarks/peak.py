"""Products at the processor's peak: all numbers stay in registers, and nothing is read or written meanwhile.

No loop that multiplies can be faster. Used by ``any_model.py`` to say what bounds a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from murp import threads
from murp.kernels.intrinsics import Vectors, take
from murp.kernels.numba_products import PANEL_BYTES, POINTS

_SUMS = 2 * POINTS  # independent sums, more than the latency of a product asks for
_ROUNDS = 2**12  # of products with each sum, in one piece of work
_LANES = PANEL_BYTES // 4


@intrinsic
def _products(typingctx: Any, x: Any) -> Any:
    """_ROUNDS times y ← ay + b with each of _SUMS vectors y."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i64 = ir.IntType(64)
        vectors = Vectors(context, builder, x.dtype, _LANES)
        data = context.make_array(x)(context, builder, arguments[0]).data
        a, b = (vectors.load(data, i64(_LANES * i)) for i in range(2))
        sums = [cgutils.alloca_once_value(builder, vectors.load(data, i64(_LANES * i))) for i in range(_SUMS)]
        with cgutils.for_range(builder, i64(_ROUNDS)):
            for place in sums:
                builder.store(vectors.fma(builder.load(place), a, b), place)
        for i, place in enumerate(sums):
            vectors.store(builder.load(place), data, i64(_LANES * i))
        return context.get_dummy_value()

    return types.void(x), codegen


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _pieces(counters: Any, rooms: Any, pieces: int) -> None:
    room = rooms[min(take(counters, 1, 1), len(rooms) - 1)]
    while take(counters, 0, 1) < pieces:
        _products(room)


def multiply_and_add(number: int) -> None:
    """So many products of float32 with an addition each, on all threads."""
    rooms = np.full((threads.count(), _SUMS * _LANES), 0.5, np.float32)
    threads.share(_pieces, rooms, round(number / (_SUMS * _LANES * _ROUNDS)), work=number)
