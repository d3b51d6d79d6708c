"""Write docs/reliability.md from results/reliability_*.json; with --check, only say whether it is up to date.

    python tools/reliability_page.py

What is promised and how it is tested stands in reliability/promises.toml; every value comes from what the scripts
beside it stored.
A harness that was not run yet is left out of the page, and named as such.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import origins
from benchmark_results import RELIABILITY, machine, table
from murp.paper.contents import link

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "reliability.md"
PROMISES = ROOT / "reliability" / "promises.toml"
Values = Mapping[str, Any]
PROCESSORS = "instructions"  # the promise that lists the kinds of processor
LONGEST = 12  # of a list that is shown; of a longer one its length is


def promises() -> dict[str, Values]:
    """What users may rely on (``title``, ``promised``) and how that is ``tested``, by the name of its harness."""
    return tomllib.loads(PROMISES.read_text(encoding="utf-8"))


def stored(name: str) -> Values | None:
    """What a harness found, None where it was not run."""
    file = RESULTS / f"reliability_{name}.json"
    values: Values | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return values


def page() -> str:
    """The whole page."""
    all_of_them = list(promises().items())
    parts = [
        "# Reliability",
        f"What murp promises, how each promise is tested, and what happened. {headline()} The table has one line for "
        "each promise; the sections below have the details.",
        table(["promise", "what happened"], [[titled(name, promise), happened(name)] for name, promise in all_of_them]),
        "`python tools/reliability_page.py` makes this page from the results of the scripts under "
        "[reliability/](../reliability/) in [results/](../results/). The last section shows [where the results come "
        "from](#where-the-results-come-from).",
    ]
    missing = []
    for name, promise in all_of_them:
        found = stored(name)
        more = processors() if name == PROCESSORS else []
        if found is None:
            missing.append(f"{promise['title']} (`reliability_{name}.json`)")
            parts += [*heading(promise), *more, "Not measured yet."] if more else []
        else:
            parts += section(promise, found, more)
    if missing:
        parts += ["## Not measured yet", f"{'; '.join(missing)}."]
    parts += origins.section(checks(), RESULTS)
    return "\n\n".join(parts) + "\n"


FAILURES = ("failures", "failure", "failed", "errors", "untied")  # what the harnesses call them


def headline() -> str:
    """How many promises were tested, and which of them failed."""
    found = {str(promise["title"]): one for name, promise in promises().items() if (one := stored(name)) is not None}
    failed = [title for title, one in found.items() if any(Totals(one["figures"])[word] for word in FAILURES)]
    if failed:
        return f"**{len(failed)} of {len(found)} tested promises have failures: {'; '.join(failed)}.**"
    return f"**{len(found)} promises were tested, and no test failed.**"


def titled(name: str, promise: Values) -> str:
    """A promise's title, with a link to its section if there is one."""
    there = name == PROCESSORS or stored(name) is not None
    return link(promise["title"]) if there else str(promise["title"])


def happened(name: str) -> str:
    """The headline of a promise: its own words, with the stored values in them."""
    found, words_of_it = stored(name), promises()[name].get("happened", "see below")
    if found is None:
        return "not measured yet"
    return str(words_of_it).format(f=found["figures"], total=Totals(found["figures"]), count=len(found["figures"]))


class Totals:
    """``totals[NAME]``: the sum of all values of that name, in groups of groups too."""

    def __init__(self, figures: Values) -> None:
        self.figures = figures

    def __getitem__(self, name: str) -> int:
        groups = [value for value in self.figures.values() if isinstance(value, Mapping)]
        own = self.figures.get(name, 0)
        return (own if isinstance(own, int) else 0) + sum(Totals(group)[name] for group in groups)


def checks() -> origins.Results:
    """The results that this page is about."""
    return {name: found for name, found in origins.every(RESULTS).items() if name.startswith(RELIABILITY)}


def heading(promise: Values) -> list[str]:
    """Promise and test."""
    return [
        f"## {promise['title']}",
        "**Promised.** " + " ".join(promise["promised"].split()),
        "**Tested.** " + " ".join(promise["tested"].split()),
    ]


def processors() -> list[str]:
    """The kinds of processor that stored results come from, those of benchmarks too."""
    tried: dict[str, list[str]] = {}
    for name, found in origins.every(RESULTS).items():
        if "device" in found.get("machine", {}):
            tried.setdefault(found["machine"]["device"], []).append(name)
    rows = [[kind, f"{len(names)}", ", ".join(names)] for kind, names in sorted(tried.items())]
    return [
        "**Processors** on which stored results were measured:",
        table(["processor", "results", "which"], rows),
    ]


def section(promise: Values, found: Values, more: Sequence[str] = ()) -> list[str]:
    """Promise, test, settings and values of one harness; ``more`` comes before the values."""
    settings = ", ".join(f"{words(name)} {shown(value)}" for name, value in found["settings"].items())
    return [
        *heading(promise),
        *more,
        *sampled(found),
        *tables(with_shares(found["figures"])),
        *survivors(found["figures"]),
        f"*Settings: {settings}.*",
        machine(found),
    ]


def tables(figures: Values, title: str = "") -> Iterator[str]:
    """Plain figures as one table, figures by name (reader, module, engine …) as another with a row a name.

    What is nested deeper has tables of its own, and so has a short list of figures.
    """
    plain = {name: value for name, value in figures.items() if not isinstance(value, Mapping)}
    groups = {name: value for name, value in figures.items() if isinstance(value, Mapping)}
    rows = {name: group for name, group in groups.items() if not any(isinstance(v, Mapping) for v in group.values())}
    single = {name: value for name, value in plain.items() if not _is_table(value)}
    if single:
        yield table([title, "value"], [[words(name), shown(value)] for name, value in single.items()])
    if rows:
        yield of_rows(title, [words(name) for name in rows], list(rows.values()))
    for name, value in plain.items():
        if _is_table(value) and 0 < len(value) <= LONGEST:
            yield of_rows(words(name), [str(number) for number in range(1, len(value) + 1)], value)
    for name, group in groups.items():
        if name not in rows:
            yield from tables(group, words(name))


def _is_table(value: Any) -> bool:
    """Whether it is a list of figures by name, or an empty list, whose length says nothing that is not said beside."""
    return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)


def of_rows(title: str, names: Sequence[str], rows: Sequence[Values]) -> str:
    """A table of rows that need not have the same columns."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[name, *(shown(row.get(c, "")) for c in columns)] for name, row in zip(names, rows, strict=True)]
    return table([title, *map(words, columns)], cells)


def sampled(found: Values) -> list[str]:
    """Of a sample: how much of the whole it is, and what it was drawn by."""
    whole = found["figures"].get("together", {}).get("all", {})
    if not {"exist", "tried"} <= whole.keys():
        return []
    seeds = {seed for module in found["figures"]["modules"].values() for seed in module.get("seeds", [])}
    seeds |= {found["settings"]["seed"]} if "seed" in found["settings"] else set()
    by = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, sorted(seeds)))}"
    return [
        f"**A sample.** {whole['tried']:,} of {whole['exist']:,} possible changes were tried, "
        f"{whole['tried'] / whole['exist']:.0%}, drawn module by module ({by}). The values below are of these alone."
    ]


def with_shares(figures: Values) -> Values:
    """The figures with the share that was tried wherever it says how many there are; older files do not have it."""
    if {"exist", "tried"} <= figures.keys():
        share = round(figures["tried"] / max(1, figures["exist"]), 3)
        parts: list[tuple[str, Any]] = []
        for name, value in figures.items():
            parts += [(name, value), ("share tried", share)] if name == "tried" else [(name, value)]
        return dict(parts)
    return {name: with_shares(part) if isinstance(part, Mapping) else part for name, part in figures.items()}


def survivors(figures: Values) -> list[str]:
    """The mutants that no test noticed, with the reason."""
    rows = [
        [f"`{one['key']}`", one["explanation"]]
        for module in figures.get("modules", {}).values()
        for one in module.get("survivors", [])
    ]
    return [table(["survivor", "why"], rows)] if rows else []


def words(name: str) -> str:
    """memory_growth_mib → memory growth, MiB; a setting (NAME=value) stays as it is"""
    if "=" in name:
        return name
    for ending, unit in (("_mib", "MiB"), ("_ms", "ms")):
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')}, {unit}"
    return name.replace("_", " ")


def shown(value: Any) -> str:
    """A value in a cell: numbers readable; of a list its length, where it holds more than words."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{words(name)} {shown(part)}" for name, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            " ".join(map(str, value))
            if value and all(isinstance(part, str | int | float) for part in value)
            else (f"{len(value):,}")
        )
    return str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the page is out of date")
    if parser.parse_args().check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page())
    origins.warn(checks(), RESULTS)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
