"""``murp compare``: test whether two runs differ."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from murp.cli.evaluate import add_ranking, memory
from murp.cli.reports import about, described
from murp.cli.text import Commands, add_output, add_run, fast_imports, print_table, whole
from murp.errors import ConfigError
from murp.tables import Number

if TYPE_CHECKING:
    from murp.evaluation import Comparison, Difference

DIGITS = 4  # differences are small


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("compare", help="test whether two runs differ, with a bootstrap over the facts")
    add_run(command, several=True)
    add_ranking(command)
    command.add_argument("--by-relation", action="store_true", help="also a row for every relation")
    command.add_argument(
        "--samples", type=whole(least=100), metavar="N", help="number of bootstrap samples; default: 10,000"
    )
    command.add_argument("--seed", type=whole(least=0), default=0, metavar="N", help="seed of the samples; default: 0")
    add_output(command, "one JSON object, by relation too")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Rank, compare, and print one table with a verdict, or one JSON object."""
    if len(options.path) != 2:
        raise ConfigError(
            f"compare takes two runs, not {len(options.path)}. `murp evaluate` prints several side by side."
        )
    with fast_imports():
        from murp.api.training import load
        from murp.evaluation.comparison import SAMPLES

    a, b = (load(path, checkpoint=options.checkpoint, device=options.device) for path in options.path)
    found = a.compare(
        b,
        options.split,
        options.protocol,
        samples=options.samples or SAMPLES,
        seed=options.seed,
        memory=memory(options),
    )
    if options.json:
        print(json.dumps({"a": options.path[0], "b": options.path[1], **found.to_dict()}))
        return
    if options.format == "text":
        print(f"A: {described(a)} ({options.path[0]})\nB: {described(b)} ({options.path[1]})")
        print(f"split {found.split}, protocol {found.protocol}, filtered\n")
    rows = [_row("all", found.overall)]
    if options.by_relation:
        rows += [_row(name, one) for name, one in sorted(found.by_relation.items())]
    header = ["", "MRR A", "MRR B", "A - B", "low", "high", "p", "queries"]
    shared = {"A": options.path[0], "B": options.path[1], **about(options)}
    print_table(options, header, rows, right=range(1, 8), about=shared)
    if options.format == "text":
        print(f"\n{verdict(found)}")
        print(
            "low, high: the 95 % interval of the difference; p: the chance of such a difference if there is "
            f"none.\nPaired bootstrap, {found.samples:,} samples of the {found.overall.queries // 2:,} facts with both "
            f"their queries, seed {found.seed}."
        )
        if options.by_relation:
            print(f"{_by_chance(found)}")


def verdict(found: Comparison) -> str:
    """What the overall difference says, in a sentence."""
    one = found.overall
    if one.p is None:
        return "There are too few facts to say whether this is a difference."
    if not one.is_one:
        return f"No difference is shown: p = {one.p:.3f}, and 0 lies within the interval."
    better = "A" if one.difference > 0 else "B"
    by = f"{abs(one.difference):.{DIGITS}f}"
    return f"{better} is better, by {by} of MRR: p {_p(one.p)}, and 0 lies outside the interval."


def _by_chance(found: Comparison) -> str:
    count = sum(one.p is not None for one in found.by_relation.values())
    shown = sum(one.is_one for one in found.by_relation.values())
    return (
        f"Relations: {shown} of {count} have a p below .05; where no relation differs, about {0.05 * count:.1f} have "
        "one by chance."
    )


def _row(name: str, one: Difference) -> list[object]:
    ends = [Number(value, DIGITS, sign=True) for value in (one.difference, one.low, one.high)]
    return [
        name,
        Number(one.mrr_a, DIGITS),
        Number(one.mrr_b, DIGITS),
        *ends,
        Number(one.p, DIGITS),
        Number(one.queries),
    ]


def _p(p: float) -> str:
    return f"= {p:.{DIGITS}f}" if p >= 10**-DIGITS else f"below {10**-DIGITS:.{DIGITS}f}"
