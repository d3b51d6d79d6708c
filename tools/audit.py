"""What is known against the packages that murp is built and tested with.

    make audit

Asks two things about every version that constraints.txt pins. Of the package index, through pip: is it still there,
was it withdrawn ("yanked"), what is the newest? Of the services of known vulnerabilities, through pip-audit: PyPI's,
then OSV's about what the first did not know. Exit status: 0 nothing is known, 1 there are vulnerabilities or withdrawn
versions, 2 not every package could be asked about; those are listed: nothing was found is not said of what was not
looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import measure

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"
SERVICES = ("pypi", "osv")
HELP = "Nothing is known about these. Run `make audit` again where a vulnerability service can be reached."
Versions = dict[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    options = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    options.add_argument("tools", type=Path, help="the folder with pip and pip-audit")
    options.add_argument("--out", type=Path, help="write the result here")
    given = options.parse_args(arguments)
    wanted = pinned(CONSTRAINTS.read_text())
    index, index_text, index_figures = index_verdict(
        wanted,
        on_index(given.tools / "pip", [f"{name}=={version}" for name, version in wanted.items()]),
        on_index(given.tools / "pip", wanted),
    )
    flaws, flaws_text, flaws_figures = flaws_verdict(wanted, known_flaws(given.tools / "pip-audit"))
    print(index_text, flaws_text, sep="\n")
    settings = {"packages": len(wanted), "file": CONSTRAINTS.name, "services": list(SERVICES)}
    measure.store(measure.result("dependencies", settings, {**index_figures, **flaws_figures}), given.out)
    return 1 if 1 in (index, flaws) else max(index, flaws)


def pinned(text: str) -> Versions:
    """Package to version, as a file of constraints says."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {normal(name): version for name, version in pairs}


def normal(name: str) -> str:
    """A package's name as registries compare it."""
    return name.lower().replace("_", "-").replace(".", "-")


def on_index(pip: Path, requirements: Iterable[str]) -> list[dict[str, Any]]:
    """What pip would install for these requirements, each alone; nothing where the index lacks one of them."""
    with tempfile.TemporaryDirectory() as work:
        report = Path(work) / "report.json"
        alone = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", str(report)]
        subprocess.run([pip, "install", *alone, *requirements], capture_output=True)
        found: list[dict[str, Any]] = json.loads(report.read_text())["install"] if report.exists() else []
    return found


def known_flaws(pip_audit: Path) -> list[dict[str, Any]]:
    """What pip-audit says of each pinned package: the first service's answer that is one."""
    answers: dict[str, dict[str, Any]] = {}
    for service in SERVICES:
        options = ["--vulnerability-service", service, "--no-deps", "--disable-pip", "--format", "json"]
        done = subprocess.run([pip_audit, "--requirement", CONSTRAINTS, *options], capture_output=True, text=True)
        try:
            found = json.loads(done.stdout)["dependencies"]
        except ValueError:  # a service that cannot be reached ends pip-audit with a traceback
            found = []
        for entry in found:
            if "skip_reason" not in entry:
                answers.setdefault(normal(entry["name"]), entry)
    return list(answers.values())


def index_verdict(
    wanted: Versions, found: Sequence[Mapping[str, Any]], newest: Sequence[Mapping[str, Any]]
) -> tuple[int, str, dict[str, Any]]:
    """Exit status, what to say and figures, given pip's report of the ``wanted`` versions and of the newest ones."""
    there = {normal(entry["metadata"]["name"]): entry for entry in found}
    latest = {normal(entry["metadata"]["name"]): entry["metadata"]["version"] for entry in newest}
    withdrawn = {name: wanted[name] for name, entry in there.items() if entry["is_yanked"]}
    behind = {
        name: f"{version} (newest {latest[name]})"
        for name, version in wanted.items()
        if latest.get(name, version) != version
    }
    missing = {name: version for name, version in wanted.items() if name not in there}
    lines = [f"{len(there)} of {len(wanted)} packages on the index, {len(withdrawn)} of them withdrawn."]
    lines += [
        f"{what}: {listed(which)}." for what, which in (("Withdrawn", withdrawn), ("Not found", missing)) if which
    ]
    lines += [f"Behind the newest version: {listed(behind)}."] if behind else []
    figures = {"on the index": len(there), "withdrawn": len(withdrawn), "behind the newest version": listed(behind)}
    return (1 if withdrawn else 2 if missing else 0), "\n".join(lines), figures


def flaws_verdict(wanted: Versions, found: Sequence[Mapping[str, Any]]) -> tuple[int, str, dict[str, Any]]:
    """Exit status, what to say and figures, given what pip-audit knows of the ``wanted`` versions."""
    known = {normal(entry["name"]): entry for entry in found}
    unknown = {name: version for name, version in wanted.items() if name not in known}
    flaws = [
        f"{name} {entry['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for name, entry in sorted(known.items())
        for flaw in entry["vulns"]
    ]
    summary = f"{len(known)} of {len(wanted)} packages looked up, {len(flaws)} known vulnerabilities."
    lines = [*flaws, summary if known else "No service of known vulnerabilities answered."]
    lines += [f"NOT looked up: {listed(unknown)}.", HELP] if unknown else []
    figures = {"looked up for vulnerabilities": len(known), "known vulnerabilities": len(flaws) if known else None}
    return (1 if flaws else 2 if unknown else 0), "\n".join(lines), figures


def listed(versions: Versions) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


if __name__ == "__main__":
    sys.exit(main())
