"""A newcomer's path: the wheel in a clean environment, and ten lines from a data frame to a first prediction."""

from __future__ import annotations

import importlib.util
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import murp
from murp.graph import KnowledgeGraph

ROOT = Path(__file__).parents[1]
TEN_LINES = """
import pandas
import murp
people = ["ann", "bob", "cem", "dai", "eva", "fay"]
rows = [(a, "knows", b) for a in people for b in people if a < b] + [(a, "likes", b) for a in people for b in people]
facts = pandas.DataFrame(rows, columns=["who", "does", "whom"])
graph = murp.KnowledgeGraph.from_dataframe(facts, columns=["who", "does", "whom"])
run = murp.train(graph, dim=5, epochs=20, lr=1.0, engine="torch", validate_every=0)
first = run.predict(head="ann", relation="knows", k=3)
print(first.to_dataframe())
"""


def test_the_path_has_ten_lines() -> None:
    assert len(TEN_LINES.strip().splitlines()) <= 10


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel in it; its dependencies are those of this environment."""
    for name in ("pip", "setuptools"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name} to build and install the wheel")
    folder = tmp_path_factory.mktemp("newcomer")
    tree = folder / "tree"  # a copy: building leaves files behind
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    build = [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", wheels, tree]
    subprocess.run(build, check=True, capture_output=True, env=_bare())
    (wheel,) = wheels.glob(f"murp-{murp.__version__}-*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    install = [*pip, "--python", python, "install", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True, env=_bare())
    home = next((folder / "venv" / "lib").glob("python*/site-packages"))
    # Packages are found here, but what is installed for editing, murp itself, is not: only folders on the path count.
    (home / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return python


def _bare() -> dict[str, str]:
    """The environment without what would let this checkout be imported."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_the_wheel_holds_what_it_needs(clean: Path, tmp_path: Path) -> None:
    check = (
        "import murp, pathlib; home = pathlib.Path(murp.__file__).parent; print(home);"
        "print(len(murp.KnowledgeGraph.load('wordnet-mini').train), (home / 'py.typed').exists(),"
        " (home / 'explorer/page/index.html').exists(), murp.dataset('wordnet-mini').name)"
    )
    told = subprocess.run([clean, "-c", check], cwd=tmp_path, env=_bare(), capture_output=True, text=True, check=True)
    home, said = told.stdout.splitlines()
    assert home.startswith(str(clean.parents[1]))
    assert said == "17575 True True wordnet-mini"


@pytest.mark.skipif(not hasattr(KnowledgeGraph, "from_dataframe"), reason="this version reads no data frames yet")
def test_from_a_data_frame_to_a_first_prediction(clean: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="needs pandas: pip install 'murp[pandas]'")
    (tmp_path / "first.py").write_text(TEN_LINES)
    done = subprocess.run([clean, "first.py"], cwd=tmp_path, env=_bare(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:4] == ["rank", "id", "name", "score"]
    assert len(done.stdout.splitlines()) == 4
    assert [folder.name for folder in (tmp_path / "runs").iterdir()] == ["graph-murp-d5-seed0"]
