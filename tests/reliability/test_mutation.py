"""The mutation check makes one mistake at a time and sees which of them the tests notice."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import mutation_check
import mutation_trial
import pytest
from mutation_operators import mutants, mutated

import copied_interpreter

ROOT = Path(__file__).resolve().parents[2]
TEXT = '''"""A docstring - nothing to mutate."""
def f(a: int, b: int = 2) -> int:
    if not a < b:
        raise ValueError(f"{a + b} is wrong")
    if b:
        pass
    a += 1
    return max(a, b) - g(-b, a)
'''


def test_every_kind_of_mistake_is_made_once() -> None:
    found = {(mutant.line, mutant.change) for mutant in mutants(TEXT)}
    assert found == {
        (2, "2 → 1"),
        (2, "2 → 3"),
        (3, "a < b → a <= b"),
        (3, "a < b → a >= b"),
        (3, "not a < b → a < b"),
        (5, "if b → if not b"),
        (7, "1 → 0"),
        (7, "1 → 2"),
        (7, "a += 1 → a -= 1"),
        (7, "a += 1 → pass"),
        (8, "-b → b"),
        (8, "g(-b, a) → g(a, -b)"),
        (8, "max(a, b) - g(-b, a) → max(a, b) + g(-b, a)"),
        (8, "max(a, b) → min(a, b)"),
    }
    assert len(mutants(TEXT)) == len(found)


@pytest.mark.parametrize("name", ["geometry/euclidean", "geometry/disk"])
def test_mutants_are_programs_and_differ(name: str) -> None:
    text = (ROOT / "src" / "murp" / f"{name}.py").read_text(encoding="utf-8")
    every = mutants(text)
    texts = {mutated(text, mutant) for mutant in every} | {ast.unparse(ast.parse(text))}
    for changed in texts:
        compile(changed, name, "exec")
    assert len(texts) == len(every) + 1


def test_the_harness_tells_the_killed_from_the_survivors_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "it.json"

    def run(*options: str) -> int:
        command = [sys.executable, ROOT / "reliability" / "mutation_check.py", "--quick", "--out", out, *options]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        with pytest.MonkeyPatch.context() as patch:
            if options:  # no mutant is tried: that takes a process that has not imported what is mutated
                patch.setattr(subprocess, "Popen", copied_interpreter.Popen)
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode in (0, mutation_check.UNFINISHED), done.stderr
        return done.returncode

    assert run("--seconds", "0") == mutation_check.UNFINISHED
    assert not out.exists()
    assert run() == 0
    stored = json.loads(out.read_text(encoding="utf-8"))
    modules = stored["figures"]["modules"]
    assert [name for name, figures in modules.items() if figures["tried"]] == ["geometry/disk"]
    module = modules["geometry/disk"]
    assert module["exist"] > module["tried"] == module["killed"] + len(module["survivors"]) == 2
    assert module["share tried"] == round(2 / module["exist"], 3)
    assert module["seeds"] == [0]
    assert stored["figures"]["together"]["all"]["killed"] >= 1
    every = sum(figures["exist"] for figures in modules.values())
    assert stored["figures"]["together"]["all"]["share tried"] == round(2 / every, 3)
    assert set(stored["parts"]) == {"geometry/disk"}
    assert {"what", "settings", "machine", "date"} <= stored.keys()
    out.unlink()
    assert run("--seconds", "0") == 0, "all verdicts are known"
    assert json.loads(out.read_text(encoding="utf-8"))["figures"] == stored["figures"]


def test_another_seed_draws_another_sample() -> None:
    every = mutants(mutation_check.source("geometry/hyperboloid"))
    one, other = (mutation_check.sample("geometry/hyperboloid", every, 20, [seed]) for seed in (0, 1))
    assert len(set(one)) == len(one) == 20
    assert set(one) != set(other)
    assert one[:7] == mutation_check.sample("geometry/hyperboloid", every, 7, [0]), "a larger sample goes on"
    assert one == mutation_check.sample("geometry/hyperboloid", every, 20, [0])
    assert set(mutation_check.sample("geometry/hyperboloid", every, 20, [0, 1])) == {*one, *other}
    assert one != mutation_check.sample("geometry/disk", every, 20, [0]), "each module has its own"
    assert set(mutation_check.sample("geometry/hyperboloid", every, 10**6, [0, 1])) == set(every)
    assert len(mutation_check.sample("geometry/hyperboloid", every, 10**6, [0, 1])) == len(every)


def test_every_module_that_is_mutated_exists_and_so_do_its_tests() -> None:
    for name, tests in mutation_check.MODULES.items():
        assert (ROOT / "src" / "murp" / f"{name}.py").is_file()
        assert all((ROOT / test).exists() for test in tests if test.startswith("tests/"))


def test_every_explanation_is_of_a_mutant_that_exists() -> None:
    keys = set()
    for name in mutation_check.MODULES:
        text = mutation_check.source(name)
        keys |= {mutation_check.key_of(name, mutant, text.splitlines()) for mutant in mutants(text)}
    assert mutation_check.explanations().keys() <= keys


def test_figures_of_a_module_that_has_changed_since_are_dropped(tmp_path: Path) -> None:
    out = tmp_path / "it.json"
    figures = {"exist": 2, "tried": 1, "killed": 1, "survivors": []}
    for name, said in [("geometry/disk", "as it was once"), ("geometry/spaces", None), ("geometry/hyperboloid", None)]:
        digest = said or mutation_check._digest_of(mutation_check.source(name))
        assert mutation_check._add(out, {}, name, {**figures, "source": digest}) == 0
    stored = json.loads(out.read_text(encoding="utf-8"))
    modules = stored["figures"]["modules"]
    assert modules.keys() == mutation_check.MODULES.keys()
    assert stored["parts"].keys() == {"geometry/spaces", "geometry/hyperboloid"}
    assert modules["geometry/disk"] == mutation_check.not_run("geometry/disk")


@pytest.mark.parametrize(
    ("module", "alone"),
    [
        ("murp.kernels.barrier", True),
        ("murp.evaluation.numba_ranks", True),
        ("murp.compiling", True),
        ("murp.models.blocks", False),
        ("murp.threads", False),
    ],
)
def test_mutants_of_kernels_share_no_compiled_code(module: str, alone: bool) -> None:
    assert mutation_trial.holds_kernels(module) is alone


def test_a_mutant_that_waits_without_end_is_killed_by_the_time_limit(tmp_path: Path) -> None:
    """In a process of its own: the trial forks one that has imported nothing of ours."""
    file = tmp_path / "test_it.py"
    file.write_text("def test_it():\n    from murp import notes_of_a_mutant\n")
    code = f"""
import mutation_trial
mutation_trial.import_what_all_share = lambda: None
text = "import time; time.sleep(600)"
print(mutation_trial.verdict("murp.notes_of_a_mutant", text, [{str(file)!r}], 1))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "reliability"), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == mutation_trial.TIMED_OUT
