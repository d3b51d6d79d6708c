"""Known vulnerabilities in what murp is built and tested with, as pip-audit finds them.

    make audit

Looks every pinned package of constraints.txt up. Exit status: 0 none is known, 1 there are some, 2 the service could
not be asked about all of them, which are then listed: nothing was found is not said of what was not looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
HELP = "Nothing is known about these. Run `make audit` again where the vulnerability service can be reached."


def main(arguments: Sequence[str]) -> int:
    (program,) = arguments
    command = [program, "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        found = []
    status, text = verdict(pinned(CONSTRAINTS.read_text()), found)
    print(text)
    if not found:
        print(f"pip-audit said: {done.stderr.strip().splitlines()[-1:] or 'nothing'}")
    return status


def pinned(text: str) -> dict[str, str]:
    """Package to version, as a file of constraints says; names as registries compare them."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def verdict(wanted: dict[str, str], found: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """Exit status and what to say of the packages ``wanted``, given what pip-audit found."""
    looked_up = {entry["name"].lower().replace("_", "-"): entry for entry in found if "skip_reason" not in entry}
    unknown = {name: version for name, version in wanted.items() if name not in looked_up}
    flaws = [
        f"{name} {entry['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for name, entry in sorted(looked_up.items())
        for flaw in entry["vulns"]
    ]
    lines = [*flaws, f"{len(looked_up)} of {len(wanted)} packages looked up, {len(flaws)} known vulnerabilities."]
    if unknown:
        listed = ", ".join(f"{name} {version}" for name, version in sorted(unknown.items()))
        lines += [f"NOT looked up: {listed}.", HELP]
    return (1 if flaws else 2 if unknown else 0), "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
