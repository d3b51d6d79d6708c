"""``murp recipes``: named sets of settings."""

from __future__ import annotations

import argparse
import dataclasses
import json

from murp.cli.text import Commands, add_output, print_table
from murp.recipes import AUTO, RECIPES, RULE, Recipe, Result, results
from murp.tables import Number


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("recipes", help="named sets of settings, with the results they reached")
    add_output(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print every recipe with its settings as options, and a table of what they reached on test sets."""
    if options.json:
        print(json.dumps({name: _object(name, recipe) for name, recipe in RECIPES.items()}, indent=1))
        return
    if options.format == "text":
        for name, recipe in RECIPES.items():
            settings = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in recipe.settings.items())
            print(f"{name}: {recipe.about}\n  {settings}")
        print(f"{AUTO}: {RULE}\n")
    rows = [_row(name, found) for name in RECIPES for found in results(name)]
    header = ["recipe", "data", "d", "MRR", "deviation", "seeds", "protocol", "with", "stored"]
    print_table(options, header, rows, right=(2, 3, 4, 5), about={"split": "test"})


def _object(name: str, recipe: Recipe) -> dict[str, object]:
    return {**dataclasses.asdict(recipe), "results": [dataclasses.asdict(found) for found in results(name)]}


def _row(name: str, found: Result) -> list[object]:
    others = ", ".join(f"{key} {value}" for key, value in found.with_settings.items())
    first = found.files[0] if len(found.files) == 1 else f"{found.files[0]} …"
    figures = Number(found.mrr), Number(found.deviation, 4), Number(found.seeds)
    return [name, found.data, found.dim, *figures, found.protocol, others, first]
