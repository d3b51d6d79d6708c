"""The name of the processor that a result says."""

from __future__ import annotations

from pathlib import Path

import pytest

from murp.runs.folder import processor

ONE = "processor\t: {}\nvendor_id\t: Maker\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: {}\nflags\t\t: fpu: vme\n\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("AMD EPYC 9654 96-Core Processor", "AMD EPYC 9654 96-Core Processor"),
        ("AMD EPYC", "AMD EPYC (family 26, model 2)"),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel(R) Xeon(R) CPU @ 2.20GHz (family 26, model 2)"),
        ("Intel(R) Xeon(R) Processor", "Intel(R) Xeon(R) Processor (family 26, model 2)"),
    ],
)
def test_a_name_without_a_number_is_told_with_its_family(tmp_path: Path, name: str, said: str) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(ONE.format(0, name) + ONE.format(1, "the second one").replace("26", "99"))
    assert processor(file) == said


def test_systems_that_tell_less(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    assert processor(file)  # there is none
    file.write_bytes(b"BogoMIPS\t: 50.00\n\xff\xfe\n")
    assert processor(file)
    file.write_text("model name\t: A board\n")
    assert processor(file) == "A board"
