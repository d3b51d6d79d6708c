"""The fuzzing harness as a toy; and that it would notice a traceback, a hang, a crash and an unclear refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import fuzz
import pytest
from damage import VALUES, mutated, mutated_value
from fuzz_oracle import WrongRefusal, told
from hypothesis import given
from hypothesis import strategies as st

from examples import PATIENCE
from murp.errors import DataError
from murp.graph.formats import FORMATS

SCRIPT = Path(fuzz.__file__)


def test_every_reader_survives_a_few_inputs(tmp_path: Path) -> None:
    out = tmp_path / "it.json"
    command = [sys.executable, str(SCRIPT), "--quick", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(out.read_text())["figures"]
    assert set(figures["readers"]) == set(fuzz.READERS)
    assert figures["failures"] == 0
    assert figures["inputs"] == figures["accepted"] + figures["refused"] == 5 * len(fuzz.READERS)
    assert figures["accepted"] > 0


def test_the_whole_is_a_hundred_thousand_inputs() -> None:
    assert sum(inputs for inputs, _ in fuzz.READERS.values()) >= 100_000


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_of_triples_has_a_reader_here(ending: str) -> None:
    assert any(name.endswith(ending) for name in fuzz.READERS)


def raising() -> bool:
    raise KeyError("field")


def hanging() -> bool:
    time.sleep(60)
    return True


def crashing() -> bool:
    os._exit(11)


def hoarding() -> bool:
    return bool(bytearray(8 << 30))


def test_time_that_others_had_the_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes three times as long as it may, and waits for the processor all the while: no hang."""
    monkeypatch.setattr(fuzz, "SECONDS", 0.1)
    monkeypatch.setattr(fuzz, "_own_time", lambda: 0.0)

    def starved(random: Random) -> bool:
        began = time.perf_counter()
        while time.perf_counter() - began < 0.3:
            pass
        return True

    assert fuzz.fuzzed("reader", lambda scratch: starved, 2, seed=0)["failures"] == []


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (raising, "KeyError: 'field'"),
        (hanging, "took more than 1 s"),
        (crashing, "the process ended with 11"),
        (hoarding, "MemoryError"),
    ],
)
def test_a_reader_that_fails_is_noticed(
    reader: Callable[[], bool], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "SECONDS", 1)

    def make(scratch: Path) -> Callable[[Random], bool]:
        del scratch
        calls = iter(range(1000))
        return lambda random: next(calls) < 4 or reader()  # three to warm up, one that is good

    found = fuzz.fuzzed("reader", make, 2, seed=0)
    assert found["accepted"] >= 1
    assert [failure["input"] for failure in found["failures"]] == [1]
    assert words in found["failures"][0]["error"]


def refuse(message: str) -> Callable[[], object]:
    def read() -> object:
        raise DataError(message)

    return read


def test_a_refusal_must_name_the_file() -> None:
    assert told(lambda: 1, "facts.tsv")
    assert not told(refuse("facts.tsv, line 3: no tab."), "facts.tsv")
    with pytest.raises(WrongRefusal, match="does not name facts"):
        told(refuse("something is wrong"), "facts.tsv")


@given(st.text())
def test_every_message_is_fit_to_print(text: str) -> None:
    message = str(DataError(f"x: {text}"))
    message.encode()
    assert all(c.isprintable() or c == "\n" for c in message)
    assert len(message) < 20_001


@given(st.binary(max_size=200), st.integers())
def test_damage_repeats(seed: bytes, number: int) -> None:
    assert mutated(seed, Random(number)) == mutated(seed, Random(number))


def test_damage_reaches_every_field() -> None:
    value = {"a": 1, "b": [2, {"c": 3}]}
    changed = [mutated_value(value, Random(i)) for i in range(2000)]
    assert {"a", "b"} <= {key for one in changed if isinstance(one, dict) for key in one if one[key] != value.get(key)}
    assert any(isinstance(one, dict) and "a" not in one for one in changed)
    assert any(one == {"a": 1, "b": [2, {"c": None}]} for one in changed)
    assert None in VALUES
