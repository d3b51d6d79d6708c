"""Do what the Dockerfile says without Docker: for machines that can pull no image.

    python tools/dockerfile.py RUN              # install everything anew: minutes, and gigabytes
    python tools/dockerfile.py RUN --offline    # with the dependencies of this environment

``FROM`` is an empty environment of this Python, ``COPY`` takes what .dockerignore lets through, ``RUN`` runs its pip
commands there; its other commands make the user of the image, and are listed as left out. Then ``ENTRYPOINT`` serves
RUN on a free port, and the command of ``HEALTHCHECK`` must succeed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
MOUNTED = "/run/murp"  # where the image expects the run folder
PORT = "8000"
OFFLINE = ["--no-deps", "--no-index", "--no-build-isolation"]


def steps(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments; comments left out, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def copied(argument: str, image: Path) -> None:
    """COPY: files and folders of the repository that .dockerignore lets through, into the image's folder."""
    *sources, place = argument.split()
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for source in sources:
        if source not in allowed:
            raise SystemExit(f"COPY {source}: .dockerignore keeps it out of the image")
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / source, image / place, ignore=ignored)
        else:
            shutil.copy(ROOT / source, image / place)


def run(argument: str, image: Path, environment: Mapping[str, str], *, offline: bool) -> list[str]:
    """RUN: its pip commands; the others are given back."""
    left_out = []
    for command in argument.split("&&"):
        words = shlex.split(command)
        if words[0] != "pip":
            left_out.append(" ".join(words))
            continue
        # The pip of this environment, for the other one: making one takes longer than what it does.
        pip = [sys.executable, "-m", "pip", "--python", str(image / "venv/bin/python"), *words[1:]]
        subprocess.run([*pip, *(OFFLINE if offline else [])], cwd=image, env=dict(environment), check=True)
    return left_out


def served(entry: list[str], health: list[str], folder: Path, image: Path, environment: Mapping[str, str]) -> None:
    """ENTRYPOINT and HEALTHCHECK: the server starts with the run, and says that it is well."""
    command = [str(folder.resolve()) if word == MOUNTED else word for word in entry]
    with subprocess.Popen(
        [*command, "--port", "0"], cwd=image, env=dict(environment), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            words = server.stdout.readline().split()
            if not words:
                raise SystemExit("ENTRYPOINT: the server did not start")
            port = str(urlsplit(words[1]).port)
            check = [word.replace(PORT, port) for word in health]
            subprocess.run(check, cwd=image, env=dict(environment), check=True)
        finally:
            server.terminate()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder to serve")
    parser.add_argument("--offline", action="store_true", help="take the dependencies of this environment")
    options = parser.parse_args(arguments)
    done = steps((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    said = dict(done)
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch)
        venv.create(image / "venv", with_pip=False, symlinks=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"PATH": f"{image / 'venv' / 'bin'}:{environment['PATH']}"}
        environment |= dict(word.split("=", 1) for word in shlex.split(said["ENV"]))
        environment["NUMBA_CACHE_DIR"] = os.environ.get("NUMBA_CACHE_DIR", str(image / "cache"))  # no /var/cache here
        if options.offline:
            home = next((image / "venv" / "lib").glob("python*/site-packages"))
            (home / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
        for word, argument in done:
            if word == "COPY":
                copied(argument, image)
            elif word == "RUN":
                for command in run(argument, image, environment, offline=options.offline):
                    print(f"left out: {command}")
        health = json.loads(said["HEALTHCHECK"].partition("CMD ")[2])
        served(json.loads(said["ENTRYPOINT"]), health, options.run, image, environment)
    print("the steps of the Dockerfile work")


if __name__ == "__main__":
    main()
