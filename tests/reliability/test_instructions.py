"""The numeric tests under choices of instructions, as a toy; and that a failure and a missing instruction are told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import instructions
import pytest
from instructions import CHOICES, LOWEST, Choice


def test_the_lowest_instructions_take_effect_and_the_tests_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructions, "QUICK", ["tests/geometry/test_batches.py"])
    out = tmp_path / "it.json"
    assert instructions.main(["--quick", "--out", str(out)]) == 0
    stored = json.loads(out.read_text(encoding="utf-8"))
    found = stored["figures"][LOWEST]
    assert (found["PyTorch"], found["Numba"], found["threads"]) == ("DEFAULT", "generic", "1")
    assert (found["passed"] > 20, found["failed"]) == (True, 0)
    assert {"commit", "source", "machine"} <= stored.keys()
    assert capsys.readouterr().out.startswith(f"{LOWEST}: {found['passed']} passed, 0 failed (PyTorch DEFAULT")


def test_a_failing_test_is_told_and_is_the_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that a choice gets what it sets, and nothing that this process was given."""
    test = tmp_path / "test_threads.py"
    test.write_text(
        "import os\n\n"
        "def test_threads():\n    assert os.environ['OMP_NUM_THREADS'] == '1'\n\n"
        "def test_nothing_else():\n    assert 'MKL_CBWR' not in os.environ\n"
    )
    monkeypatch.setattr(instructions, "TESTS", [str(test)])
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    name = "three threads"
    monkeypatch.setitem(CHOICES, name, Choice({"MURP_NUM_THREADS": "3", "OMP_NUM_THREADS": "3"}))
    assert instructions.main(["--only", name]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"{name}: 1 passed, 1 failed (")
    assert "threads 3" in said.splitlines()[0]
    assert "FAILED" in said
    assert "test_threads.py::test_threads" in said


@pytest.mark.usefixtures("copied")
def test_tests_that_do_not_run_are_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("")
    found = instructions.tested(Choice({}), [str(tmp_path)])
    assert (found["failed"], found["ended"]) == (1, "status 5")
    assert "status 5" in instructions.line("none", found)


def test_what_the_processor_does_not_have_is_named() -> None:
    found = instructions.tested(Choice({}, needs="instructions-to-come"), instructions.TESTS)
    assert found["failed"] == 0
    assert instructions.line("new", found) == "new: not tried, this processor does not have instructions-to-come"


def test_tests_of_pytorch_alone_are_left_out_only_where_they_would_meet_nothing_new() -> None:
    """Only PyTorch computes there; a choice that leaves them out sets, but for Numba, what one that runs them sets."""
    (tests,) = instructions.BY_PYTORCH
    source = instructions.ROOT / "src" / "murp" / Path(tests).name
    for file in [*(instructions.ROOT / tests).glob("*.py"), *source.glob("*.py")]:
        assert not re.search(r"numba|numpy|scipy|murp\.(kernels|threads|engines)", file.read_text()), file
    run = [choice.environment for choice in CHOICES.values() if choice.pytorch]
    assert {environment["ATEN_CPU_CAPABILITY"] for environment in run} == {"default", "avx2"}
    for choice in CHOICES.values():
        chosen = {pair for pair in choice.environment.items() if "THREADS" not in pair[0] and "NUMBA" not in pair[0]}
        assert choice.pytorch or any(chosen <= environment.items() for environment in run)


def test_the_choices_are_those_that_are_promised() -> None:
    environments = [choice.environment for choice in CHOICES.values()]
    for name, value in (
        ("ATEN_CPU_CAPABILITY", "default"),
        ("ATEN_CPU_CAPABILITY", "avx2"),
        ("MKL_CBWR", "COMPATIBLE"),
        ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"),
        ("NUMBA_CPU_NAME", "generic"),
        ("MURP_NUM_THREADS", "1"),
        ("MURP_NUM_THREADS", "3"),
    ):
        assert any(environment.get(name) == value for environment in environments)
    assert all((instructions.ROOT / test).exists() for test in instructions.TESTS + instructions.QUICK)
