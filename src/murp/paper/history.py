"""Whether the code that a stored result names is in git's history, and what a page says of it.

``history.json`` beside stored results keeps what git said of the commits and digests that they name, so that a page
is made from stored files alone, if there is no git, too. :func:`refresh` asks git again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from murp.errors import RunError
from murp.files import parse_json, write_text
from murp.provenance import digest, git, git_bytes

FILE = "history.json"
SOURCES = "src/murp"  # the folder in the repository whose modules a digest is of
NOT_RECORDED = "commit not recorded"
SHOWN = 5  # names in a line of a warning
BY_DIGEST = " by the digest of its code"
Result = Mapping[str, Any]


@dataclass(frozen=True)
class History:
    """What git said: of each commit the digest of its code, of each digest the first commit that has it.

    None: there is no such commit before or at the one that was checked out.
    """

    commits: Mapping[str, str | None] = field(default_factory=dict)
    sources: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Origin:
    """Where a result comes from: what a page says of it, and whether that code is in the history."""

    text: str
    known: bool


def origin(result: Result, history: History) -> Origin:
    """Where a result comes from; of one with parts, or whose training was another's, everything that is to be said."""
    found = [_origin(part, history) for part in (result, *result.get("parts", {}).values())]
    trained = result.get("environment", {}).get("source")
    if trained not in (None, result.get("source")):
        by = _of_source(trained, history)
        found.append(Origin(f"trained by {by.text}", by.known))
    told = [each for each in found if not each.known] or found
    return Origin("; ".join(dict.fromkeys(each.text for each in told)), all(each.known for each in found))


def _origin(result: Result, history: History) -> Origin:
    named, source, clean = result.get("commit"), result.get("source"), result.get("clean")
    if named is None:
        if source is not None:
            return _of_source(source, history)
        return Origin("commit unknown" if "commit" in result else NOT_RECORDED, False)
    short = f"commit {named[:7]}"
    if named not in history.commits:
        return Origin(f"{short}, not looked up in the history", False)
    if history.commits[named] is None:
        return Origin(f"{short}, not in the history", False)
    if clean is False or source not in (None, history.commits[named]):
        # A copy of the tree may come with the repository of an older commit: the digest knows better.
        if source not in (None, history.commits[named]) and history.sources.get(source) is not None:
            return _of_source(source, history)
        return Origin(f"{short} with changes that are not in the history", False)
    if clean is None:
        return Origin(f"{short}, with or without changes", False) if source is None else Origin(short + BY_DIGEST, True)
    return Origin(short, True)


def _of_source(source: str, history: History) -> Origin:
    """A digest alone: it is that of a commit's code, or of code that was never committed."""
    if source not in history.sources:
        return Origin(f"code {source}, not looked up in the history", False)
    found = history.sources[source]
    if found is None:
        return Origin(f"code {source}, not in the history", False)
    return Origin(f"commit {found[:7]}{BY_DIGEST}", True)


def listed(results: Mapping[str, Result], history: History) -> dict[Origin, list[str]]:
    """The names of results by where they come from: first those in the history."""
    found: dict[Origin, list[str]] = {}
    for name, result in results.items():
        found.setdefault(origin(result, history), []).append(name)
    return dict(sorted(found.items(), key=lambda entry: (not entry[0].known, entry[0].text)))


def summary(results: Mapping[str, Result], history: History, what: str = "results") -> str:
    """One line: how many results name code that is in the history, and what is to be said of the others."""
    found = listed(results, history)
    known = sum(len(names) for each, names in found.items() if each.known)
    line = f"The code of {known} of {len(results)} {what} is in the history"
    others = ", ".join(f"{len(names)} × {each.text}" for each, names in found.items() if not each.known)
    return f"{line}; of the others: {others}." if others else f"{line}."


def warnings(results: Mapping[str, Result], history: History | None) -> list[str]:
    """Lines for whoever makes a page: the summary and the names, where there is something to warn of."""
    if history is None:
        return ["git or its history is not here: whether it has the results' code was not looked up."]
    unknown = {each.text: names for each, names in listed(results, history).items() if not each.known}
    lines = [f"  {text}: {_first(names)}" for text, names in unknown.items()]
    return [summary(results, history), *lines] if lines else []


def _first(names: Sequence[str]) -> str:
    """The first few; all of them are on the page."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def read(folder: Path) -> History:
    """What is kept of the history beside the results in ``folder``; nothing if nothing is kept."""
    file = folder / FILE
    if not file.exists():
        return History()
    try:
        kept = parse_json(file.read_text(encoding="utf-8"))
        return History(dict(kept["commits"]), dict(kept["sources"]))
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise RunError(f"{file} cannot be read ({error}). Remove it; `murp paper report` makes it again.") from error


def refresh(folder: Path, results: Iterable[Result], root: Path) -> History | None:
    """Ask the repository at ``root`` about everything that the results name, keep the answers in ``folder``.

    None if there is no git, no repository or only a part of its history: then what is kept stays.
    """
    named = list(named_by(results))
    found = look_up(root, [commit for commit, _ in named if commit], [source for _, source in named if source])
    if found is not None and found != read(folder):
        answers = {"commits": dict(sorted(found.commits.items())), "sources": dict(sorted(found.sources.items()))}
        write_text(folder / FILE, json.dumps(answers, indent=1) + "\n")
    return found


def named_by(results: Iterable[Result]) -> Iterable[tuple[str | None, str | None]]:
    """The commits and digests that results name, those of their parts and of the training behind them included."""
    for result in results:
        for part in (result, *result.get("parts", {}).values()):
            yield part.get("commit"), part.get("source")
        yield None, result.get("environment", {}).get("source")


def look_up(root: Path, commits: Sequence[str], sources: Sequence[str]) -> History | None:
    """What the repository at ``root`` says; None if it cannot be asked about all of its history."""
    if not (root / ".git").exists() or git(root, "rev-parse", "--is-shallow-repository") != "false\n":
        return None
    every = (git(root, "rev-list", "HEAD") or "").split()
    digests = _digests(root, every)
    first = {digests[one]: one for one in every}  # the newest come first, so that the oldest stays
    return History(
        {one: digests.get(one) for one in commits},
        {one: first.get(one) for one in sources},
    )


def _digests(root: Path, commits: Sequence[str]) -> dict[str, str]:
    """Of each commit the digest of the package as it was, as :func:`murp.provenance.source_digest` has it."""
    asked = "".join(f"{commit}:{SOURCES}\n" for commit in commits)
    trees = [line.split() for line in (git(root, "cat-file", "--batch-check", given=asked) or "").splitlines()]
    modules = {tree: _modules(root, tree) for tree, kind, *_ in trees if kind == "tree"}
    contents = _contents(root, sorted({blob for blobs in modules.values() for blob in blobs}))
    of_tree = {tree: digest(contents[blob] for blob in blobs) for tree, blobs in modules.items()}
    nothing = digest([])
    return {commit: of_tree.get(tree, nothing) for commit, (tree, *_) in zip(commits, trees, strict=True)}


def _modules(root: Path, tree: str) -> list[str]:
    """The names of the contents of a tree's modules, in the order of their paths."""
    rows = [line.split("\t") for line in (git(root, "ls-tree", "-r", "-z", tree) or "").split("\0") if line]
    modules = sorted((PurePosixPath(path), about.split()[2]) for about, path in rows if path.endswith(".py"))
    return [blob for _, blob in modules]


def _contents(root: Path, blobs: Sequence[str]) -> dict[str, bytes]:
    """What git keeps under these names."""
    told = git_bytes(root, "cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs).encode()) or b""
    found, place = {}, 0
    for blob in blobs:
        head = told.index(b"\n", place)
        size = int(told[place:head].split()[2])
        found[blob] = told[head + 1 : head + 1 + size]
        place = head + 1 + size + 1  # a line's end follows each
    return found
