"""Every stored result names the code that made it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import murp
from murp import provenance
from murp.errors import ConfigError
from murp.provenance import clean, command, commit, handed_in, identity
from murp.runs.stamp import stamp
from repository import Repository

A = "a" * 40


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "root")


def test_the_commit_is_the_one_git_tells(repository: Repository, tmp_path: Path) -> None:
    """Read from git's files: of a branch, of packed branches, of a worktree, of no branch."""
    root, git = repository.root, repository.git
    assert commit(tmp_path) is None
    assert commit(root) is None, "no commit yet"
    for place in ("root", "other"):
        assert repository.commit() == commit(root)
        git("pack-refs", "--all")
        assert commit(root) == git("rev-parse", "HEAD")
        git("worktree", "add", "--quiet", "-b", place, str(tmp_path / f"tree-{place}"))
        assert commit(tmp_path / f"tree-{place}") == git("rev-parse", place)
    git("commit", "--quiet", "--allow-empty", "--message=second", at=tmp_path / "tree-other")
    assert commit(tmp_path / "tree-other") != commit(root)
    git("checkout", "--quiet", "--detach")
    assert commit(root) == git("rev-parse", "HEAD")
    (root / ".git" / "HEAD").write_bytes(b"\xff")
    assert commit(root) is None


def test_a_tree_is_clean_up_to_results_and_pages(repository: Repository) -> None:
    root = repository.root
    repository.write("README.md", "old")
    repository.write(".gitignore", "work/\n")
    repository.commit(a="1")
    assert clean(root) is True
    for made in ("README.md", "results/new.json", "docs/page.md", "work/scratch.py"):
        repository.write(made, "new")
    assert clean(root) is True
    repository.write("src/murp/a.py", "2")
    assert clean(root) is False
    repository.commit()
    assert clean(root) is True
    repository.write("benchmarks/another.py", "nobody committed this")
    assert clean(root) is False
    repository.git("add", "--all")
    assert clean(root) is False


def test_without_git_it_is_not_known_whether_a_tree_is_clean(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = repository.commit(a="1")
    assert clean(tmp_path) is None, "no repository"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert clean(repository.root) is None
    assert commit(repository.root) == found


def test_a_variable_of_gits_does_not_lead_elsewhere(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook, where git names the repository of the hook."""
    repository.commit(a="1")
    other = Repository(tmp_path / "elsewhere")
    other.commit(a="2")
    repository.write("src/murp/a.py", "3")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    assert clean(repository.root) is False


class TestHandedIn:
    """A copy of the tree without its repository is told where it comes from."""

    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(provenance, "ROOT", tmp_path)
        for name in ("MURP_COMMIT", "MURP_CLEAN"):
            monkeypatch.delenv(name, raising=False)

    def test_nothing_is_unknown(self) -> None:
        assert identity.__wrapped__() == {"commit": None, "clean": None, "source": provenance.source_digest()}

    @pytest.mark.parametrize(("given", "tree"), [("1", True), ("0", False), ("", None)])
    def test_commit_and_clean(self, given: str, tree: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MURP_COMMIT", A)
        monkeypatch.setenv("MURP_CLEAN", given)
        assert identity.__wrapped__() == {"commit": A, "clean": tree, "source": provenance.source_digest()}

    def test_a_repository_knows_better(
        self, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(provenance, "ROOT", repository.root)
        monkeypatch.setenv("MURP_COMMIT", A)
        monkeypatch.setenv("MURP_CLEAN", "1")
        own = repository.commit(a="1")
        repository.write("src/murp/a.py", "2")
        assert identity.__wrapped__()["commit"] == own
        assert identity.__wrapped__()["clean"] is False
        monkeypatch.setenv("PATH", str(tmp_path))
        assert identity.__wrapped__()["clean"] is True, "git is not there to say otherwise"

    @pytest.mark.parametrize(
        ("name", "value", "told"),
        [
            ("MURP_COMMIT", "main", "git rev-parse HEAD"),
            ("MURP_COMMIT", A[:7], "all of its digits"),
            ("MURP_CLEAN", "yes", "MURP_CLEAN is 'yes'. Set it to 1"),
        ],
    )
    def test_what_is_wrong_is_refused(self, name: str, value: str, told: str) -> None:
        with pytest.raises(ConfigError, match=told):
            handed_in({name: value})


def test_a_result_says_all_that_is_needed_to_make_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/home/someone/benchmarks/it.py", "--out", "/tmp/x/it.json", "a=/b/c d", "e/f"])
    found = stamp()
    assert found["murp"] == murp.__version__
    assert {name: found[name] for name in identity()} == identity()
    assert found["command"] == "it.py --out it.json 'a=c d' e/f", "no folder of this machine"
    assert found["date"].endswith("Z")
    assert {"python", "torch", "numba", "device", "cores", "system"} <= found["machine"].keys()


def test_the_digest_tells_changed_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    digests = []
    for name, text in (("a.py", "1"), ("a.py", "2"), ("b/c.py", "3"), ("notes.txt", "no code")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        digests.append(provenance.source_digest.__wrapped__())
    assert len(set(digests)) == 3
    assert digests[-1] == digests[-2]


def test_what_is_told_of_the_code_needs_neither_torch_nor_git() -> None:
    """In a process of its own: asking for the code at the start of a command costs next to nothing."""
    program = "import sys, murp.provenance as p; p.code(); sys.exit('torch' in sys.modules)"
    variables = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=variables).returncode == 0


def test_the_command_of_a_relative_path_stays() -> None:
    assert command(["murp", "--out", "results/paper", "https://a/b"]) == "murp --out results/paper https://a/b"
