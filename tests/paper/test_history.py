"""Whether a result's code is in the history, in a small repository; and that the pages say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from murp.cli.main import main
from murp.errors import RunError
from murp.paper import history, report
from murp.paper.history import History, Origin, listed, look_up, origin, refresh, summary, warnings
from murp.provenance import digest, source_digest
from repository import Repository

RESULTS = Path(__file__).parents[2] / "results"
UNKNOWN = "f" * 40


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "root")


def digest_of(*modules: str) -> str:
    return digest(module.encode() for module in modules)


class TestLookingUp:
    def test_digests_are_those_of_the_commits(self, repository: Repository) -> None:
        """Of many files the order counts: as pathlib has it, a folder before what begins like it."""
        first = repository.commit(**{"a": "1", "a-b": "2", "a/c": "3", "B": "é"})
        second = repository.commit(b="5")
        only_results = repository.commit()
        found = look_up(repository.root, [first, second, only_results, UNKNOWN], [])
        assert found is not None
        package = repository.root / "src" / "murp"
        now = digest(path.read_bytes() for path in sorted(package.rglob("*.py")))
        assert found.commits == {
            first: digest_of("é", "3", "2", "1"),
            second: now,
            only_results: now,
            UNKNOWN: None,
        }

    def test_a_digest_is_of_the_first_commit_that_has_it(self, repository: Repository) -> None:
        first = repository.commit(a="1")
        repository.commit()
        repository.commit(a="2")
        repository.commit(a="1")
        never = digest_of("3")
        found = look_up(repository.root, [], [digest_of("1"), never])
        assert found is not None
        assert found.sources == {digest_of("1"): first, never: None}

    def test_a_commit_of_another_branch_is_not_in_the_history(self, repository: Repository) -> None:
        first = repository.commit(a="1")
        repository.git("checkout", "--quiet", "-b", "aside")
        aside = repository.commit(a="2")
        repository.git("checkout", "--quiet", "--detach", first)
        found = look_up(repository.root, [first, aside], [digest_of("2")])
        assert found == History({first: digest_of("1"), aside: None}, {digest_of("2"): None})

    def test_a_commit_before_there_was_a_package(self, repository: Repository) -> None:
        first = repository.commit()
        second = repository.commit(a="1")
        found = look_up(repository.root, [first, second], [])
        assert found == History({first: digest_of(), second: digest_of("1")})

    def test_this_code_has_the_digest_of_its_commit(self, repository: Repository) -> None:
        """The digest of a result and the one of a commit are made in two ways, which must agree."""
        package = Path(history.__file__).parents[1]
        for file in package.rglob("*.py"):
            repository.write(f"src/murp/{file.relative_to(package)}", "")
            (repository.root / "src" / "murp" / file.relative_to(package)).write_bytes(file.read_bytes())
        here = repository.commit()
        assert look_up(repository.root, [here], []) == History({here: source_digest()})

    def test_where_there_is_no_history(
        self, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No repository; a part of one; no git."""
        assert look_up(tmp_path, [UNKNOWN], []) is None
        repository.commit(a="1")
        repository.commit(a="2")
        repository.git("clone", "--quiet", "--depth=1", repository.root.as_uri(), str(tmp_path / "shallow"))
        assert look_up(tmp_path / "shallow", [UNKNOWN], []) is None
        monkeypatch.setenv("PATH", str(tmp_path))
        assert look_up(repository.root, [UNKNOWN], []) is None


COMMIT, DIGEST, LOST = "a" * 40, "1" * 12, "2" * 12
LATER, LATER_DIGEST = "c" * 40, "4" * 12
KNOWN = History({COMMIT: DIGEST, UNKNOWN: None}, {DIGEST: COMMIT, LOST: None, LATER_DIGEST: LATER})
GOOD = {"commit": COMMIT, "clean": True, "source": DIGEST}
BY_DIGEST = f"commit {'a' * 7} by the digest of its code"
CHANGED = f"commit {'a' * 7} with changes that are not in the history"


@pytest.mark.parametrize(
    ("result", "text", "known"),
    [
        (GOOD, "commit aaaaaaa", True),
        ({}, "commit not recorded", False),
        ({"commit": None, "clean": None}, "commit unknown", False),
        ({"commit": UNKNOWN, "clean": True, "source": DIGEST}, "commit fffffff, not in the history", False),
        ({**GOOD, "commit": "b" * 40}, "commit bbbbbbb, not looked up in the history", False),
        ({**GOOD, "clean": False}, CHANGED, False),
        ({**GOOD, "source": LOST}, CHANGED, False),
        # A copy of a later commit's tree that came with the repository as it was before.
        ({**GOOD, "clean": False, "source": LATER_DIGEST}, "commit ccccccc by the digest of its code", True),
        ({"commit": COMMIT, "source": DIGEST}, BY_DIGEST, True),
        ({**GOOD, "clean": None}, BY_DIGEST, True),
        ({"commit": COMMIT}, "commit aaaaaaa, with or without changes", False),
        ({"source": DIGEST}, BY_DIGEST, True),
        ({"commit": None, "source": LOST}, f"code {LOST}, not in the history", False),
        ({"source": "3" * 12}, f"code {'3' * 12}, not looked up in the history", False),
        ({**GOOD, "parts": {"one": GOOD, "two": {}}}, "commit not recorded", False),
        ({**GOOD, "parts": {"one": GOOD}}, "commit aaaaaaa", True),
        ({**GOOD, "environment": {"source": DIGEST}}, "commit aaaaaaa", True),
        ({**GOOD, "environment": {"source": LOST}}, f"trained by code {LOST}, not in the history", False),
    ],
)
def test_what_is_said_of_a_result(result: dict[str, Any], text: str, known: bool) -> None:
    assert origin(result, KNOWN) == Origin(text, known)


def test_results_are_counted_and_listed() -> None:
    results = {"a": {}, "b": GOOD, "c": {}, "d": {**GOOD, "clean": False}}
    assert [(each.text, names) for each, names in listed(results, KNOWN).items()] == [
        ("commit aaaaaaa", ["b"]),
        (CHANGED, ["d"]),
        ("commit not recorded", ["a", "c"]),
    ]
    assert summary(results, KNOWN) == (
        f"The code of 1 of 4 results is in the history; of the others: 1 × {CHANGED}, 2 × commit not recorded."
    )
    assert summary({"b": GOOD}, KNOWN, "runs") == "The code of 1 of 1 runs is in the history."


def test_what_is_warned_of() -> None:
    assert warnings({"b": GOOD}, KNOWN) == []
    count, names = warnings({"b": GOOD, **{f"n{i}": {} for i in range(7)}}, KNOWN)
    assert count.startswith("The code of 1 of 8 results")
    assert names == "  commit not recorded: n0, n1, n2, n3, n4 and 2 more"
    assert "was not looked up" in warnings({"b": GOOD}, None)[0]


def test_what_git_said_is_kept_for_where_it_is_not(repository: Repository, tmp_path: Path) -> None:
    here = repository.commit(a="1")
    results = [{"commit": here, "source": digest_of("1")}, {"parts": {"x": {"source": LOST}}}]
    assert refresh(tmp_path, results, tmp_path / "nowhere") is None
    assert history.read(tmp_path) == History()
    found = refresh(tmp_path, results, repository.root)
    assert found == History({here: digest_of("1")}, {digest_of("1"): here, LOST: None})
    assert history.read(tmp_path) == found
    assert refresh(tmp_path, results, tmp_path / "nowhere") is None
    assert history.read(tmp_path) == found
    repository.commit(a="2")
    assert refresh(tmp_path, results, repository.root) == found, "later commits change nothing"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    for text in ("{", "[]", "{}", '{"commits": 1, "sources": {}}'):
        (tmp_path / history.FILE).write_text(text)
        with pytest.raises(RunError, match=r"history\.json cannot be read.*Remove it"):
            history.read(tmp_path)


def test_the_report_warns_and_says_where_its_results_come_from(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, docs = tmp_path / "paper", tmp_path / "docs"
    assert main(["paper", "run", "hierarchy", "--quick", "--out", str(out)]) == 0
    file = out / "hierarchy.json"
    monkeypatch.setattr(report, "ROOT", repository.root)
    here = repository.commit(a="1")
    capsys.readouterr()

    def told(**code: object) -> str:
        """What the command warns of; the page says the same."""
        file.write_text(json.dumps({**json.loads(file.read_text()), **code}))
        assert main(["paper", "report", "--out", str(out), "--to", str(docs)]) == 0
        warned = capsys.readouterr().err
        page = (docs / "reproduction.md").read_text()
        assert warned.partition("\n")[0].removeprefix("warning: ") in page
        return warned

    assert told(commit=here, clean=True, source=digest_of("1")) == ""
    assert f"| commit {here[:7]} | 1 | hierarchy |" in (docs / "reproduction.md").read_text()
    assert "1 × commit fffffff, not in the history" in told(commit=UNKNOWN)
    assert "with changes that are not in the history" in told(commit=here, clean=False)
    assert f"code {LOST}, not in the history: hierarchy" in told(commit=None, clean=None, source=LOST)


def test_everything_that_a_stored_result_names_was_looked_up() -> None:
    """A result that is new since `make figures` last ran is noticed here."""
    for folder in (RESULTS, RESULTS / "paper"):
        files = [*folder.glob("*.json"), *folder.glob("runs/*.json")]
        stored = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.name != history.FILE]
        guides = [guide for content in stored if "first-graph" in content for guide in content.values()]
        known = history.read(folder)
        for commit, source in history.named_by([*stored, *guides]):
            assert commit is None or commit in known.commits, "run `make figures`"
            assert source is None or source in known.sources, "run `make figures`"
