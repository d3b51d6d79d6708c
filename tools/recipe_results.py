"""Write src/murp/recipe_results.json, what the recipes reached, from results/; with --check, say if it is up to date.

    python tools/recipe_results.py

A recipe names its stored results as patterns of files, each of one dataset and dimension with a file a seed. Those that
are not measured yet are left out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import murp
from murp.config import Config
from murp.recipes import RECIPES, RESULTS, Result, completed

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(murp.__file__).parent / RESULTS
PROTOCOL = "standard"
# Settings that say nothing of the recipe: what was trained on, which draw, where, and how often it was looked at.
OTHER = (
    "data", "data_dir", "split_seed", "seed", "dim", "device", "engine", "compile_after", "validate_every",
    "save_every", "tensorboard",
)  # fmt: skip


def everything(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The results of every recipe, as they are to be stored."""
    found = {
        name: [of_files(name, folder, files) for pattern in recipe.stored if (files := sorted(folder.glob(pattern)))]
        for name, recipe in RECIPES.items()
    }
    return {name: [dataclasses.asdict(one) for one in results] for name, results in found.items()}


def of_files(name: str, folder: Path, files: Sequence[Path]) -> Result:
    """The mean over files of one dataset, dimension and recipe, which they must be."""
    stored = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    others = [differing(name, one["settings"]) for one in stored]
    what = {(Path(one["settings"]["data"]).name, one["settings"]["dim"]) for one in stored}
    seeds = {one["settings"]["seed"] for one in stored}
    if len(what) != 1 or any(other != others[0] for other in others) or len(seeds) != len(files):
        raise SystemExit(f"recipe {name}: {', '.join(map(str, files))} are not one setting with several seeds.")
    ((data, dim),) = what
    mrr = [one["figures"]["test"][PROTOCOL]["mrr"] for one in stored]
    return Result(
        data=data,
        dim=dim,
        with_settings=others[0],
        protocol=PROTOCOL,
        mrr=round(statistics.fmean(mrr), 5),
        deviation=round(statistics.stdev(mrr), 5) if len(mrr) > 1 else None,
        seeds=len(mrr),
        files=tuple(f"results/{file.relative_to(folder).as_posix()}" for file in files),
    )


def differing(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run that are others than the recipe's."""
    planned = Config(**completed({"recipe": name})).to_dict()
    return {
        key: settings[key]
        for key, value in planned.items()
        if key not in OTHER and key in settings and settings[key] != value
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if it is out of date")
    text = json.dumps(everything(ROOT / "results"), indent=1) + "\n"
    if parser.parse_args(arguments).check:
        return int(FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
