"""Do the tests notice mistakes? Modules with one mistake each, and whether the module's tests fail for it.

    python reliability/mutation_check.py --out results/reliability_mutation.json
    python reliability/mutation_check.py --out results/reliability_mutation.json geometry/poincare evaluation/ranks
    until python reliability/mutation_check.py --seconds 200 --out results/reliability_mutation.json; do sleep 1; done
    python reliability/mutation_check.py --out results/reliability_mutation.json --seed 1 2 --most 40

There are more mutants than there is time for, so that a sample of each module's is drawn. Another ``--seed`` draws
another; of several seeds each draws its own, and all that they drew are tried. What share of all mutants was tried is
stored with the figures: what holds of a sample need not hold of the rest.

``mutation_operators`` makes the mutants, ``mutation_trial`` runs the tests that belong to one of them. A mutant is
killed if a test fails, the process dies or the time is up. Named modules are measured anew and replace what the file
says of them. A module that was never tried, or whose source has changed since, is stored with a share of 0.
Verdicts are kept beside the temporary files, under a digest of the mutant and its tests: a check that was stopped goes
on where it was. What survives is explained in ``reliability/survivors.toml``.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fcntl
import hashlib
import json
import os
import random
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent / "benchmarks"), str(Path(__file__).parent)]

from mutation_operators import Mutant, mutants, mutated  # noqa: E402 - beside this file
from mutation_trial import ROOT, SURVIVED, TIMED_OUT, in_child, verdict  # noqa: E402

_SPACES = ["tests/geometry/test_spaces.py", "tests/models/test_scores.py", "tests/engines/test_step.py"]
_LAWS = ["tests/geometry/test_space_laws.py", "tests/geometry/test_geoopt_agreement.py"]
_RANKS = ["tests/evaluation/test_every_engine.py", "tests/evaluation/test_fused_ranks.py", "-k"]
_NUMBA_STEPS = [
    "tests/engines/test_small_steps.py",
    "tests/engines/test_fused.py",
    "-k",
    "small_steps or numba and (torch_steps or boundary or zeros)",
]
_THREADS = ["tests/test_threads.py", *_NUMBA_STEPS[:-1], f"same_bits or refuses or {_NUMBA_STEPS[-1]}"]
_PRODUCTS = ["tests/kernels/test_products.py"]
_TRITON_STEPS = [
    "tests/engines/test_triton_math.py",
    "tests/engines/test_fused.py",
    "-k",
    "triton_math or every_transformation or several_tiles or set_back or draws"
    " or zeros and triton or side_by_side and mure",
]
# Of a part's settings: their defaults, and whether what is searched is within their bounds.
_SETTINGS = ["tests/tools/test_signatures.py", "tests/tuning/test_space.py"]
_OBJECTIVES = ["tests/objectives/test_objectives.py", "tests/objectives/test_grouped_answers.py", *_SETTINGS]
_OPTIMIZERS = ["tests/optimizers/test_optimizers.py", "tests/kernels/test_optimizer_loops.py"]
_OF_OPTIMIZERS = [*_OPTIMIZERS, *_SETTINGS]
_NEGATIVES = ["tests/negatives/test_negatives.py", "-k", "not resuming"]
_REGULARIZERS = ["tests/regularizers/test_regularizers.py", "-k", "not resumes"]
_GATHERED = ["tests/kernels/test_gathered.py", "tests/engines/test_steps_by_tables.py"]
# What is mutated, and the tests that are asked.
MODULES: dict[str, list[str]] = {
    "geometry/poincare": ["tests/geometry", "--ignore=tests/geometry/test_hyperboloid.py", *_SPACES[1:]],
    "geometry/euclidean": [*_SPACES, *_LAWS, "tests/geometry/test_batches.py"],
    "geometry/spaces": [*_SPACES, *_LAWS, "tests/optimizers/test_optimizers.py"],
    "geometry/hyperboloid": ["tests/geometry/test_batches.py", "tests/geometry/test_hyperboloid.py", *_LAWS],
    "geometry/sphere": ["tests/geometry/test_sphere.py", "tests/geometry/test_sphere_tangent.py", *_LAWS],
    "geometry/product": [*_LAWS, "tests/geometry/test_batches.py"],
    "geometry/disk": ["tests/geometry/test_batches.py", "tests/geometry/test_disk_laws.py"],
    "engines/step": ["tests/engines/test_step.py", "tests/negatives/test_negatives.py", *_REGULARIZERS],
    "engines/updates": ["tests/engines/test_steps_by_tables.py", "tests/engines/test_step.py", *_OPTIMIZERS],
    "engines/numba_engine": _THREADS,
    "engines/numba_steps": _THREADS,
    "engines/numba_math": _NUMBA_STEPS,
    "engines/numba_murp": _NUMBA_STEPS,
    "engines/numba_mure": _NUMBA_STEPS,
    "engines/triton_math": _TRITON_STEPS,
    "engines/triton_ball": _TRITON_STEPS,
    "engines/triton_gradient": _TRITON_STEPS,
    "engines/triton_update": _TRITON_STEPS,
    "graph/known_facts": [
        "tests/graph/test_known_facts.py",
        "tests/evaluation/test_ranks.py",
        "tests/evaluation/test_sampled.py",
    ],
    "evaluation/ranks": ["tests/evaluation/test_ranks.py", "tests/evaluation/test_every_engine.py", "-k", "not triton"],
    "evaluation/metrics": ["tests/evaluation/test_reports.py"],
    "evaluation/fused": [*_RANKS, "every_engine and not triton or only_the_published or fits or products"],
    "evaluation/numba_ranks": [*_RANKS, "every_engine and numba or logarithm or infinite and numba"],
    "prediction/numba_top": ["tests/prediction/test_top.py"],
    "kernels/elementary": [
        "tests/evaluation/test_fused_ranks.py",
        "tests/engines/test_small_steps.py",
        "-k",
        "logarithm or exponential or softplus",
    ],
    "kernels/intrinsics": [*_PRODUCTS, "tests/test_threads.py", "-k", "test_products or same_bits"],
    "kernels/numba_products": _PRODUCTS,
    "kernels/products": _PRODUCTS,
    "kernels/barrier": ["tests/test_threads.py", "-k", "same_bits or refuses"],
    "kernels/gathered": _GATHERED,
    "kernels/numba_gathered": _GATHERED,
    "kernels/all_entities": ["tests/kernels/test_all_entities.py"],
    "kernels/numba_all_entities": ["tests/kernels/test_all_entities.py"],
    "kernels/numba_distinct": ["tests/kernels/test_distinct.py"],
    "kernels/numba_optimizers": _OPTIMIZERS,
    **dict.fromkeys(
        (
            "objectives/objective",
            "objectives/every_score",
            "objectives/bernoulli",
            "objectives/self_adversarial",
            "objectives/softmax",
            "objectives/margin",
            "objectives/rank",
            "objectives/one_vs_all",
            "objectives/k_vs_all",
        ),
        _OBJECTIVES,
    ),
    **dict.fromkeys(
        (
            "optimizers/optimizer",
            "optimizers/sgd",
            "optimizers/adagrad",
            "optimizers/row_adagrad",
            "optimizers/adam",
        ),
        _OF_OPTIMIZERS,
    ),
    "negatives/negatives": [*_SETTINGS, *_NEGATIVES],
    **dict.fromkeys(
        (
            "negatives/uniform",
            "negatives/with_head",
            "negatives/both_sides",
            "negatives/shared",
            "negatives/by_relation",
            "negatives/checked",
        ),
        _NEGATIVES,
    ),
    "negatives/unrelated": ["tests/hierarchy/test_embedded_hierarchies.py", *_NEGATIVES],
    "regularizers/regularizer": [*_SETTINGS, *_REGULARIZERS],
    "regularizers/l2": [*_SETTINGS, *_REGULARIZERS],
    **dict.fromkeys(("regularizers/n3", "regularizers/dura", "regularizers/relation_prediction"), _REGULARIZERS),
    "models/blocks": ["tests/models", "tests/kernels/test_ties.py", "-k", "scores or torch or nearest or generic"],
    "models/model": ["tests/models", "tests/engines/test_step.py", "tests/prediction/test_top.py"],
    "threads": ["tests/test_threads.py"],
    "compiling": ["tests/test_compiling.py", "-k", "not told_once and not of_others and not strangers"],
}
UNEXPLAINED = "not explained"
# How the explanation of a mutant begins that changes no result: at most it takes a little more time or memory.
HARMLESS = ("equivalent", "speed", "memory")
UNFINISHED = 75  # exit status: the seconds are up, run it again (EX_TEMPFAIL)


class Verdicts:
    """What the tests said of a module's text, kept in a file that grows by a line a verdict."""

    def __init__(self, file: Path, limit: float, until: float) -> None:
        self.file, self.limit, self.until = file, limit, until
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.known: dict[str, tuple[str, float]] = {key: (said, spent) for key, said, spent in map(json.loads, lines)}
        self.new: list[str] = []

    def of(self, name: str, text: str) -> tuple[str, float]:
        """The verdict on module ``name`` with this text, and the processor seconds it took."""
        key = self._digest(name, text)
        if key not in self.known:
            if time.monotonic() > self.until:
                self.keep(name)
                sys.exit(UNFINISHED)
            began = _processor_seconds()
            said = self._try(name, text)
            self.known[key] = (said, round(_processor_seconds() - began, 2))
            self.new.append(key)
        return self.known[key]

    def keep(self, name: str) -> None:
        """Write down the new verdicts, if the module passes as it is: else tests may have failed for something else."""
        if self.new and (said := self._try(name, as_it_is(name))) != SURVIVED:
            raise SystemExit(f"{name}: its tests do not pass as it is ({said}): {' '.join(MODULES[name])}")
        with self.file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps([key, *self.known[key]]) + "\n" for key in self.new)
        self.new = []

    def _try(self, name: str, text: str) -> str:
        return verdict(f"murp.{name.replace('/', '.')}", text, MODULES[name], self.limit)

    def _digest(self, name: str, text: str) -> str:
        """Of what is mutated and what is asked: a change of another module does not make the verdict a new one."""
        asked = {Path(*Path(test).parts[:2]) for test in MODULES[name] if test.startswith("tests/")}
        tests = [file.read_text("utf-8") for place in sorted(asked) for file in _python_files(ROOT / place)]
        return hashlib.sha256("\0".join([name, text, *MODULES[name], str(self.limit), *tests]).encode()).hexdigest()


def _python_files(place: Path) -> list[Path]:
    return sorted(place.glob("*.py")) if place.is_dir() else [place]


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def source(name: str) -> str:
    return (ROOT / "src" / "murp" / f"{name}.py").read_text(encoding="utf-8")


def _digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def as_it_is(name: str) -> str:
    """Written from its tree as the mutants are, so that a mutant differs from it in its mistake alone."""
    return ast.unparse(ast.parse(source(name)))


def sample(name: str, every: Sequence[Mutant], most: int, seeds: Sequence[int]) -> list[Mutant]:
    """The mutants of a module that are tried: ``most`` of ``every`` for each seed, none twice.

    A larger sample has all mutants of a smaller one: what is known of those serves again.
    """
    drawn = (random.Random(f"{seed} {name}").sample(every, len(every))[:most] for seed in seeds)
    return list(dict.fromkeys(mutant for one in drawn for mutant in one))


def check(name: str, most: int, seeds: Sequence[int], verdicts: Verdicts) -> dict[str, Any]:
    """The figures of one module: ``most`` of its mutants for each seed."""
    text = source(name)
    every = mutants(text)
    drawn = sample(name, every, most, seeds)
    tried = [(mutant, *verdicts.of(name, mutated(text, mutant))) for mutant in drawn]
    verdicts.keep(name)
    survivors = [mutant for mutant, said, _ in tried if said == SURVIVED]
    lines = text.splitlines()
    return {
        **not_run(name),
        "tried": len(drawn),
        "share tried": round(len(drawn) / max(1, len(every)), 3),
        "seeds": list(seeds),
        "killed": len(drawn) - len(survivors),
        "of which by the time limit": sum(said == TIMED_OUT for _, said, _ in tried),
        "processor seconds": round(sum(spent for _, _, spent in tried)),
        "survivors": [{"key": key_of(name, mutant, lines), "line": mutant.line} for mutant in survivors],
    }


def not_run(name: str) -> dict[str, Any]:
    """The figures of a module of which no mutant was tried yet; ``source`` tells which state of it they are of."""
    text = source(name)
    nothing = dict.fromkeys(("tried", "share tried", "killed", "of which by the time limit", "processor seconds"), 0)
    return {"source": _digest_of(text), "exist": len(mutants(text)), "seeds": [], "survivors": [], **nothing}


def key_of(name: str, mutant: Mutant, lines: list[str]) -> str:
    """How an explanation names a mutant: by its line's text and not its number, to outlive an edit elsewhere."""
    return f"{name}: {lines[mutant.line - 1].strip()}: {mutant.column}: {mutant.change}"


def explanations() -> dict[str, str]:
    """Why a mutant survives, by its key."""
    return tomllib.loads((Path(__file__).parent / "survivors.toml").read_text(encoding="utf-8"))


def summary(modules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """All modules together, and by folder."""
    folders = sorted({name.partition("/")[0] for name in modules})
    parts = {folder: [m for name, m in modules.items() if name.startswith(folder)] for folder in folders}
    parts["all"] = list(modules.values())
    return {folder: _together(part) for folder, part in parts.items()}


def _together(modules: list[dict[str, Any]]) -> dict[str, Any]:
    """Two shares: of all that were tried, and of those that are no other way to write the same (``HARMLESS``)."""
    counts = {count: sum(module[count] for module in modules) for count in ("exist", "tried", "killed")}
    survivors = [survivor for module in modules for survivor in module["survivors"]]
    harmless = sum(survivor["explanation"].startswith(HARMLESS) for survivor in survivors)
    return {
        "exist": counts["exist"],
        "tried": counts["tried"],
        "share tried": round(counts["tried"] / max(1, counts["exist"]), 3),
        "killed": counts["killed"],
        "harmless": harmless,
        "not explained": sum(survivor["explanation"] == UNEXPLAINED for survivor in survivors),
        "share killed": round(counts["killed"] / max(1, counts["tried"]), 3),
        "share killed of those not harmless": round(counts["killed"] / max(1, counts["tried"] - harmless), 3),
    }


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Several of these may measure different modules at once; one at a time adds to the file."""
    with (Path(tempfile.gettempdir()) / f"{out.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("modules", nargs="*", help=f"of {', '.join(MODULES)}; by default all")
    options.add_argument("--out", type=Path, help="write the result here")
    options.add_argument("--most", type=int, default=24, help="mutants of each module in a sample; default: 24")
    options.add_argument("--seed", type=int, nargs="+", default=[0], help="of each sample that is drawn; default: 0")
    options.add_argument("--limit", type=float, default=60, help="seconds of processor time a mutant has")
    options.add_argument("--seconds", type=float, default=float("inf"), help=f"stop after so many, with {UNFINISHED}")
    options.add_argument("--quick", action="store_true", help="two mutants of one module: does it run at all?")
    given = options.parse_args()
    names, most = (["geometry/disk"], 2) if given.quick else (given.modules or list(MODULES), given.most)
    settings = {"limit in seconds": given.limit}
    kept = Path(tempfile.gettempdir()) / "mutation_verdicts.jsonl"
    verdicts = Verdicts(kept, given.limit, time.monotonic() + given.seconds)
    for name in names:
        found = check(name, most, given.seed, verdicts)
        share = f"{found['share tried']:.0%} of the {found['exist']} that exist"
        print(f"{name}: {found['killed']} of {found['tried']} killed, {share} tried", file=sys.stderr)
        for survivor in found["survivors"]:
            print(f"  {survivor['line']}: {survivor['key']}", file=sys.stderr)
        if given.out is not None:
            with _alone(given.out):
                if in_child(partial(_add, given.out, settings, name, found)) != 0:
                    raise SystemExit(f"{given.out} could not be written.")


def _add(out: Path, settings: dict[str, Any], name: str, found: dict[str, Any]) -> int:
    from measure import parts, result
    from murp.files import write_text

    before = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    earlier = before["figures"]["modules"] if before else {}
    kept = {n: m for n, m in earlier.items() if n in MODULES and m.get("source") == _digest_of(source(n))}
    modules = {n: found if n == name else kept.get(n) or not_run(n) for n in MODULES}
    explained = explanations()
    for survivor in (survivor for module in modules.values() for survivor in module["survivors"]):
        survivor["explanation"] = explained.get(survivor["key"], UNEXPLAINED)
    figures = {"modules": modules, "together": summary(modules)}
    tried = [n for n, module in modules.items() if module["tried"]]
    whole = {**result("mutation", settings, figures), "parts": parts(before, tried, [name])}
    write_text(out, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    main()
