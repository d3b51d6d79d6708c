"""Some of the numbers that ``torch.randint`` draws on the CPU, without the others.

PyTorch's generator there is the Mersenne Twister MT19937, and a number below ``most`` is its next 32 bits modulo
``most``. The generator has to pass over numbers that are left out, but need not finish them, which is most of the work.

Matsumoto, Nishimura: Mersenne Twister, ACM Transactions on Modeling and Computer Simulation 8, 1998.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp.compiling import announce, kernel

announce(__name__, "the training step")

MOST = 2**28  # from here on PyTorch takes 64 bits a number
WORDS = 624  # of the generator's state: so many numbers come of it before it is turned
AHEAD = 397
UPPER, LOWER, MATRIX = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x9908B0DF)
MASK1, MASK2 = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)
ONE, FACTOR = np.uint32(1), np.uint32(1812433253)
S7, S11, S15, S18, S30 = (np.uint32(bits) for bits in (7, 11, 15, 18, 30))


@kernel
def _begin(seed: Any, state: Any) -> None:
    """The state that a seed stands for."""
    state[0] = seed
    for i in range(1, WORDS):
        state[i] = FACTOR * (state[i - 1] ^ (state[i - 1] >> S30)) + np.uint32(i)


@kernel
def _turned(upper: Any, lower: Any, far: Any) -> Any:
    both = (upper & UPPER) | (lower & LOWER)
    return far ^ (both >> ONE) ^ (MATRIX * (lower & ONE))


@kernel
def _turn(state: Any) -> None:
    """The next 624 words. Three loops, in none of which a word needs one that the same loop has just made."""
    for i in range(WORDS - AHEAD):
        state[i] = _turned(state[i], state[i + 1], state[i + AHEAD])
    for i in range(WORDS - AHEAD, WORDS - 1):
        state[i] = _turned(state[i], state[i + 1], state[i + AHEAD - WORDS])
    state[WORDS - 1] = _turned(state[WORDS - 1], state[0], state[AHEAD - 1])


@kernel
def _draw(seed: Any, state: Any, first: int, stride: int, most: Any, out: Any) -> None:
    """``out[s, j]`` is number s · stride + first + j of the generator, modulo ``most``."""
    _begin(seed, state)
    made = 0
    rows, width = out.shape
    for s in range(rows):
        done = 0
        while done < width:
            at = s * stride + first + done
            while made <= at:
                _turn(state)
                made += WORDS
            begin = at - made + WORDS
            count = min(width - done, WORDS - begin)
            for i in range(count):
                y = state[begin + i]
                y ^= y >> S11
                y ^= (y << S7) & MASK1
                y ^= (y << S15) & MASK2
                y ^= y >> S18
                out[s, done + i] = y % most
            done += count


def randint(most: int, shape: tuple[int, int, int], part: slice, seed: int) -> Tensor:
    """``torch.randint(most, shape)[:, part]`` of a new generator with this seed on the CPU; ``most`` below ``MOST``."""
    steps, batch, each = shape
    begin, end, _ = part.indices(batch)
    out = torch.empty(steps, end - begin, each, dtype=torch.int64)
    state = np.empty(WORDS, np.uint32)
    _draw(np.uint32(seed & 0xFFFFFFFF), state, begin * each, batch * each, np.uint32(most), out.view(steps, -1).numpy())
    return out


@cache
def agrees() -> bool:
    """Whether this PyTorch draws so: it promises no numbers, and another version may draw others."""
    shape, part, seed = (3, 8, 37), slice(2, 5), 2**40 + 7
    for most in (1000, MOST - 1):
        drawn = torch.randint(most, shape, generator=torch.Generator().manual_seed(seed))
        if not torch.equal(drawn[:, part], randint(most, shape, part, seed)):
            return False
    return True
