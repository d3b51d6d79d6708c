"""A small git repository that tests commit to. Tests need git; murp does not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


class Repository:
    """A repository at ``root`` with the package's folder in it."""

    def __init__(self, root: Path) -> None:
        if shutil.which("git") is None:
            pytest.fail("git is not installed. murp runs without it; its tests of provenance do not: install git.")
        self.root = root
        root.mkdir()
        self.git("init", "--quiet")

    def git(self, *words: str, at: Path | None = None) -> str:
        """What git prints. It knows no one here, and takes no one's settings."""
        named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", *named, *words]
        return subprocess.run(command, cwd=at or self.root, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, path: str, text: str) -> None:
        """A file of the repository, not committed."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def commit(self, **modules: str) -> str:
        """Write modules of the package and commit everything; the commit."""
        for name, text in modules.items():
            self.write(f"src/murp/{name}.py", text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=a commit")
        return self.git("rev-parse", "HEAD")
