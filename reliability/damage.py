"""Damage done to good input, drawn from a random generator: bytes, texts and values as JSON holds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

TOKENS = [
    b"", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\r", b"\r\n", b"\n\n",
    b"\t", b",", b'"', b'""', b"'", b"\\", b"\\u0000", b"\\ud800", b"\x1b[2J", b"\x85", "\u2028".encode(), b" ",
    "\u202e".encode(), "木🌳".encode(), b"0", b"-1", b"1e999", b"-0.0", b"NaN", b"Infinity", b"null", b"true", b"[]",
    b"{}", b"9" * 400, b"9" * 5000, str(2**31).encode(), str(2**63).encode(), str(2**64).encode(), b"1" + b"0" * 309,
    b"[" * 3000, b'{"a":' * 3000, b"x" * 3000, b"a" * 140_000, b"\t" * 500, b"\n" * 500, b"../../../etc/passwd", b"?",
]  # fmt: skip
"""What readers stumble over."""

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "\0", "\ud800", "\x1b[2J", "x" * 3000, "../../../etc/passwd", "NaN", [], {}, [[]], [None], ["x"], {"": None},
    {"x": 1}, [1, "x", None], [10**6, 10**6],
]  # fmt: skip
"""What a field may be that should be something else."""


def mutated(seed: bytes, random: Random, others: Sequence[bytes] = ()) -> bytes:
    """``seed`` with one to four wounds."""
    data = seed
    for _ in range(random.randint(1, 4)):
        data = random.choice(_WOUNDS)(data, random, others or (seed,))
    return data


def _place(data: bytes, random: Random) -> int:
    return random.randint(0, len(data))


def _piece(data: bytes, random: Random) -> tuple[int, int]:
    begin = _place(data, random)
    return begin, min(len(data), begin + random.choice((1, 2, 4, 8, 40, 400)))


def _flip(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    flipped = bytearray(data or b"\0")
    for _ in range(random.choice((1, 1, 2, 8))):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _overwrite(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    begin, end = _piece(data, random)
    filling = random.choice((b"\0", b"\xff", b"\x7f", b"\x80", bytes([random.randrange(256)])))
    return data[:begin] + filling * (end - begin) + data[end:]


def _insert(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    begin = _place(data, random)
    return data[:begin] + random.choice(TOKENS) + data[begin:]


def _replace(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    begin, end = _piece(data, random)
    return data[:begin] + random.choice(TOKENS) + data[end:]


def _cut(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return data[: _place(data, random)]


def _remove(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    begin, end = _piece(data, random)
    return data[:begin] + data[end:]


def _repeat(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    begin, end = _piece(data, random)
    return data[:end] + data[begin:end] * random.choice((1, 2, 50)) + data[end:]


def _splice(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    other = random.choice(others)
    return data[: _place(data, random)] + other[_place(other, random) :]


_WOUNDS: list[Callable[[bytes, Random, Sequence[bytes]], bytes]] = [
    _flip, _flip, _overwrite, _insert, _insert, _replace, _replace, _cut, _remove, _repeat, _splice
]  # fmt: skip


def mutated_value(value: Any, random: Random) -> Any:
    """``value`` with one node, itself perhaps, replaced, removed, renamed or made twice."""
    if random.random() < 0.15 or not isinstance(value, dict | list) or not value:
        return random.choice(VALUES)
    if isinstance(value, list):
        place = random.randrange(len(value))
        inside = [value[place]] * 2 if random.random() < 0.1 else [mutated_value(value[place], random)]
        return [*value[:place], *([] if random.random() < 0.1 else inside), *value[place + 1 :]]
    key = random.choice(list(value))
    rest = {name: part for name, part in value.items() if name != key}
    chance = random.random()
    if chance < 0.15:
        return rest
    if chance < 0.25:
        return {**rest, random.choice(("", "x", "\0", key.upper())): value[key]}
    return {**value, key: mutated_value(value[key], random)}


def mutated_json(value: Any, random: Random) -> bytes:
    """``value`` as JSON after damage to its values or to its text."""
    if random.random() < 0.3:
        return mutated(json.dumps(value).encode(), random)
    for _ in range(random.choice((1, 1, 2))):
        value = mutated_value(value, random)
    return json.dumps(value).encode()
