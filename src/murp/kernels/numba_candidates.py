"""Entities drawn for many questions at once, each question's a function of its key alone.

The u-th candidate of a question is π(u), where π is a pseudo-random permutation of 0 … m-1 chosen by the question's
key: a Feistel network over the bits of m-1, repeated until what comes is below m. So candidates are distinct, all m of
them come where all are wanted, and the arithmetic is that of whole numbers: the same on every machine and in every
version of the libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import take

announce(__name__, "the draw of candidates")

_ROUNDS = 6  # an even number: the two halves need not be equally wide
_BLOCK = 16


def draw(keys: Any, starts: Any, taken: Any, entities: int, most: int) -> Any:
    """Candidates (Q, most), int32, of questions with ``keys`` (Q), uint64; -1 if there are no more.

    No candidates of question q are ``taken[starts[q]:starts[q + 1]]``, which ascend.
    """
    found = np.full((len(keys), most), -1, np.int32)
    threads.share(_draw, keys, starts, taken, entities, found, work=32 * found.size)
    return found


@kernel
def _draw(counters: Any, keys: Any, starts: Any, taken: Any, entities: int, found: Any) -> None:
    """Take blocks of questions until none is left."""
    while True:
        first = take(counters, 0, _BLOCK)
        if first >= len(keys):
            return
        for q in range(first, min(first + _BLOCK, len(keys))):
            begin, end = starts[q], starts[q + 1]
            left = entities - (end - begin)
            for u in range(min(left, found.shape[1])):
                found[q, u] = _passed(taken, begin, end, _permuted(keys[q], u, left))


@kernel
def _passed(taken: Any, begin: int, end: int, u: int) -> int:
    """The u-th number that is not taken: u + j, where j of the taken stand before it."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if taken[middle] - (middle - begin) <= u:
            low = middle + 1
        else:
            high = middle
    return u + (low - begin)


@kernel
def _permuted(key: Any, u: int, size: int) -> Any:
    """π(u) for 0 ≤ u < size."""
    bits = 2
    while (size - 1) >> bits > 0:
        bits += 1
    place = np.int64(u)
    while True:
        place = _feistel(key, place, bits)
        if place < size:
            return place


@kernel
def _feistel(key: Any, place: Any, bits: int) -> Any:
    right_bits = bits // 2
    left_bits = bits - right_bits
    left, right = np.uint64(place >> right_bits), np.uint64(place & ((1 << right_bits) - 1))
    for number in range(_ROUNDS):
        mask = np.uint64((1 << left_bits) - 1)
        mixed = mix(right + mix(key + np.uint64(number + 1)))
        left, right = right, (left ^ mixed) & mask
        left_bits, right_bits = right_bits, left_bits
    return (np.int64(left) << right_bits) | np.int64(right)


@kernel
def mix(number: Any) -> Any:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014), on unsigned numbers of 64 bits."""
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@kernel
def question_keys(seed: Any, subjects: Any, relations: Any, targets: Any, keys: Any) -> None:
    """One key (Q) for each question: the seed, what is asked, and the answer, mixed one after the other."""
    for q in range(len(keys)):
        key = mix(np.uint64(seed))
        key = mix(key ^ np.uint64(subjects[q]))
        key = mix(key ^ np.uint64(relations[q]))
        keys[q] = mix(key ^ np.uint64(targets[q]))


def text_keys(offsets: Any, data: Any) -> Any:
    """One key (n), uint64, for each text: of its bytes ``data[offsets[i]:offsets[i + 1]]``."""
    keys = np.empty(len(offsets) - 1, np.uint64)
    _text_keys(offsets, data, keys)
    return keys


@kernel
def _text_keys(offsets: Any, data: Any, keys: Any) -> None:
    for i in range(len(keys)):
        key = mix(np.uint64(offsets[i + 1] - offsets[i]))
        for at in range(offsets[i], offsets[i + 1]):
            key = mix(key ^ np.uint64(data[at]))
        keys[i] = key


@kernel
def digest(questions: Any, entities: Any, drawn: Any) -> Any:
    """A number of all questions, with keys (Q), and their candidates (Q, n), with keys (N); the order of neither
    matters."""
    total = np.uint64(0)
    for q in range(len(questions)):
        among = np.uint64(0)
        for u in range(drawn.shape[1]):
            if drawn[q, u] >= 0:
                among += entities[drawn[q, u]]
        total += mix(questions[q] ^ mix(among))
    return total
