"""What a newcomer waits for and needs: seconds from a fresh clone to the first prediction, and disk space.

    python benchmarks/newcomer.py --out results/newcomer.json    # takes some minutes and 3 GB of disk, freed later

``make quickstart`` runs in a new clone of this repository's last commit, with a new ``.venv`` and with empty caches.
Its lines are timed as they are printed. Then ``make .venv/tools`` installs the developers' tools. Sizes are those of
``du``: of the environment when it is installed, and after the first run, when Python has stored the bytecode of what it
imported. How long an installation takes depends on where packages come from: ``local_packages`` says whether pip's
settings name a folder of this machine, so that nothing has to be downloaded.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import parser, result, store

ROOT = Path(__file__).resolve().parent.parent
# What a line of `make quickstart` looks like when something has been reached.
INSTALLED = re.compile(r"The environment \.venv takes (\d+) MiB")
PREDICTED = re.compile(r"\s*1  \S")  # the first row of the answers

# Installs and predicts nothing, but prints what is waited for.
TOY = """
quickstart: .venv/tools
\t@echo "The environment .venv takes 0 MiB."
\t@echo " 1  India"
.venv/tools:
\t@mkdir -p $@
"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--torch-index", default="", metavar="URL", help="where to take PyTorch from, as for make")
    chosen = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        environment = _empty_caches(Path(scratch, "cache"))
        clone = Path(scratch, "murp")
        began = time.perf_counter()
        if chosen.quick:
            clone.mkdir()
            (clone / "Makefile").write_text(TOY, encoding="utf-8")
        else:
            subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        make = ["make", f"PYTHON={sys.executable}", f"TORCH_INDEX={chosen.torch_index}"]
        times, told = timed([*make, "quickstart"], [INSTALLED, PREDICTED], clone, environment, began)
        installed = int(told[0][1]) * 2**20
        sizes = {
            "installed": installed,
            "environment": size(clone / ".venv"),
            "PyTorch": sum(map(size, _packages(clone, "torch"))),
        }
        subprocess.run([*make, ".venv/tools"], check=True, cwd=clone, env=environment)
        sizes["environment with the developers' tools"] = size(clone / ".venv")
        names = [path.name for path in _packages(clone, "torch-*.dist-info")]
    figures = {"seconds": dict(zip(("installed", "first prediction", "end"), times, strict=True)), "bytes": sizes}
    versions = [name.removesuffix(".dist-info").partition("-")[2] for name in names]
    settings = {"torch": next(iter(versions), None), "local_packages": _local_packages(environment)}
    store(result("make quickstart in a fresh clone, with empty caches", settings, figures), chosen.out)


def timed(
    command: Sequence[str], marks: Sequence[re.Pattern[str]], folder: Path, environment: Mapping[str, str], began: float
) -> tuple[list[float], list[re.Match[str]]]:
    """Seconds since ``began`` when a line matched each of the marks, one after another, and at the end; and the
    matches."""
    times: list[float] = []
    found: list[re.Match[str]] = []
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", file=sys.stderr)
            if len(times) < len(marks) and (match := marks[len(times)].match(line)):
                times.append(time.perf_counter() - began)
                found.append(match)
    if process.returncode or len(times) < len(marks):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode} after {len(times)} of its marks.")
    return [*times, time.perf_counter() - began], found


def size(folder: Path) -> int:
    """Bytes on disk."""
    told = subprocess.run(["du", "-sk", folder], check=True, capture_output=True, text=True).stdout
    return int(told.split()[0]) * 1024


def _packages(clone: Path, name: str) -> list[Path]:
    return list((clone / ".venv" / "lib").glob(f"python*/site-packages/{name}"))


def _empty_caches(folder: Path) -> dict[str, str]:
    """This environment without what would let another checkout be imported, and without what caches hold."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "XDG_CACHE_HOME": str(folder)}


def _local_packages(environment: Mapping[str, str]) -> bool:
    command = [sys.executable, "-m", "pip", "config", "list"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True)
    return re.search(r"(find-links|index-url)='?(/|file:)", told.stdout) is not None


if __name__ == "__main__":
    main()
