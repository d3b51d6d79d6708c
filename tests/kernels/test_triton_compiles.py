"""Triton's compiler accepts every kernel as it is launched, for GPUs of two architectures; no GPU is needed.

Elsewhere the tests run these kernels in Triton's interpreter, which accepts programs that the compiler refuses, and
which has no limit to what a program holds.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import murp
from examples import PATIENCE

PACKAGE = Path(murp.__file__).parent
# Their text is made for each formula.
MADE = {f"murp.kernels.triton_formulas.{name}" for name in ("of_queries", "of_entities")}


def compiler_is_missing() -> str | None:
    """Why nothing can be compiled here; None if it can."""
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        return "needs triton: pip install triton"
    programs = Path(found.origin).parent / "backends" / "nvidia" / "bin"
    missing = [name for name in ("ptxas", "cuobjdump") if not (programs / name).exists()]
    return f"this build of triton comes without {' and '.join(missing)} of NVIDIA's compiler" if missing else None


def jit_functions() -> tuple[set[str], set[str]]:
    """All functions of murp that are written for Triton, and those of them that host code launches: ``f[grid](…)``."""
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    trees = {
        ".".join(("murp", *path.relative_to(PACKAGE).with_suffix("").parts)): ast.parse(text)
        for path, text in sources.items()
        if "triton" in text
    }
    nodes = {module: list(ast.walk(tree)) for module, tree in trees.items()}
    written = {
        f"{module}.{one.name}"
        for module, found in nodes.items()
        for one in found
        if isinstance(one, ast.FunctionDef) and any("triton.jit" in ast.unparse(by) for by in one.decorator_list)
    }
    launched = set()
    for module, found in nodes.items():
        imports = [one for one in found if isinstance(one, ast.ImportFrom)]
        of = {name.name: one.module for one in imports for name in one.names}
        calls = [one.func.value for one in found if isinstance(one, ast.Call) and isinstance(one.func, ast.Subscript)]
        launched |= {f"{of.get(name.id, module)}.{name.id}" for name in calls if isinstance(name, ast.Name)}
    return written | MADE, launched & written | MADE


@pytest.mark.skipif(compiler_is_missing() is not None, reason=str(compiler_is_missing()))
@pytest.mark.parametrize(("architecture", "options"), [("80", ()), ("90", ("--others",))])
def test_every_kernel_is_compiled_and_fits(architecture: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """What is launched is recorded while host code runs, so that the variants are those of this code. The usual cases
    are compiled for the GPU with less room, the others for the other one."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, str(Path(__file__).with_name("compiled_launches.py")), architecture, *options]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    *variants, last = [json.loads(line) for line in ended.stdout.splitlines()]
    by_kernel = defaultdict(list)
    for variant in variants:
        assert "error" not in variant, f"{variant['kernel']} of {variant['case']}: {variant['error']}"
        by_kernel[variant["kernel"]].append(variant)
    for kernel, made in by_kernel.items():
        most = {what: max(one[what] for one in made) for what in ("shared", "registers", "spilled")}
        told = ", ".join(f"{number} {what}" for what, number in most.items())
        print(f"sm_{architecture} {kernel}: {len(made)} variants, at most {told}")
        greediest = max(made, key=lambda one: int(one["shared"]))
        assert most["shared"] <= last["room"], f"{kernel} of {greediest['case']} shares {most['shared']} bytes"
    written, launched = jit_functions()
    assert {"murp.engines.triton_gradient.gradient_kernel", "murp.kernels.triton_products._products"} <= launched
    if "--others" in options:
        assert {*launched, *last["helpers"]} == written
    else:
        assert set(by_kernel) == launched
