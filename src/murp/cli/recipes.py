"""``murp recipes``: settings that go together, by name."""

from __future__ import annotations

import argparse
import dataclasses
import json

from murp.cli.text import Commands, figure
from murp.recipes import RECIPES


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("recipes", help="settings that go together, by name, with what they reached")
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print every recipe: what it is for, its settings as options, its stored results."""
    if options.json:
        print(json.dumps({name: dataclasses.asdict(recipe) for name, recipe in RECIPES.items()}, indent=1))
        return
    for name, recipe in RECIPES.items():
        settings = " ".join(f"--{setting.replace('_', '-')} {value}" for setting, value in recipe.settings.items())
        print(f"{name}: {recipe.about}\n  {settings}")
        for found in recipe.results:
            print(
                f"  {found.data}, {found.with_settings}: test MRR {figure(found.mrr)} ({found.protocol}; {found.file})"
            )
