"""The rows of docs/field.md: read from field.toml, with their settings, their command and their expected time."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murp.commands import command
from murp.config import Config
from murp.recipes import completed
from murp.settings import current

FILE = Path(__file__).with_name("field.toml")
# Settings that may be others in two trainings of one row: where and how it was computed, and where the data lay.
ELSEWHERE = ("data", "data_dir", "device", "engine", "compile_after", "save_every", "tensorboard")


@dataclass(frozen=True)
class Row:
    """One training, to be repeated with several seeds.

    ``given`` are its settings beside data, dimension and seed: a model or a recipe, and what else it sets.
    """

    name: str
    data: str
    dim: int
    given: Mapping[str, Any]
    triples: int  # of train, with their reciprocals
    questions: int  # distinct (subject, relation) among them
    microseconds: float  # that a step is expected to take on an H200
    model: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self.config(0).model)

    @property
    def recipe(self) -> str | None:
        """The named recipe it stands for."""
        return self.given.get("recipe")

    def config(self, seed: int) -> Config:
        """Every setting of the run."""
        return Config(**completed({"data": self.data, "dim": self.dim, **self.given, "seed": seed}))

    def command(self, seed: int = 0) -> str:
        """The command that trains it; ``murp evaluate`` prints its figures."""
        words = ["train", "--data", self.data, "--dim", str(self.dim)]
        for name, value in self.given.items():
            words += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
        return command(*words, "--seed", str(seed))

    def seconds(self) -> float:
        """Of training on an H200, as expected: steps that are compiled already, without validation."""
        config = self.config(0)
        items = self.questions if config.parts["objective"].grouped else self.triples
        return config.epochs * items / config.batch_size * self.microseconds / 1e6


def rows(file: Path = FILE) -> list[Row]:
    """Every row, dataset by dataset, the recipes last."""
    told = tomllib.loads(file.read_text(encoding="utf-8"))
    found = [
        Row(
            name := f"{data}-{model}-d{dim}".lower(),
            data,
            dim,
            {"model": model, **own[about["kind"]], **about.get("set", {}), **told["rows"].get(name, {})},
            about["triples"],
            about["questions"],
            own["microseconds"][0 if dim <= 40 else 1],
        )
        for data, about in told["datasets"].items()
        for dim, models in (
            *((dim, told["models"]) for dim in about["dims"]),
            *((int(dim), models) for dim, models in about.get("also", {}).items()),
        )
        for model in models
        for own in (told["models"][model],)
    ]
    if unknown := set(told["rows"]) - {row.name for row in found}:
        raise ValueError(f"{file}: rows that there are not: {', '.join(sorted(unknown))}.")
    for name, one in told["recipes"].items():
        given = {"recipe": one["recipe"], **one.get("set", {})}
        about = told["datasets"][one["data"]]
        sizes = about["triples"], about["questions"]
        found.append(Row(name, one["data"], one["dim"], given, *sizes, one["microseconds"]))
    return found


def chosen(patterns: Sequence[str], everything: Sequence[Row]) -> list[Row]:
    """The rows whose names match one of the patterns (``wn18rr-*-d40``); all if there are none."""
    return [row for row in everything if not patterns or any(fnmatch.fnmatch(row.name, p) for p in patterns)]


def same(stored: Mapping[str, Any], config: Config) -> bool:
    """Whether a run with the settings ``stored`` is the one that ``config`` describes.

    A setting that there was not yet when the run was stored had its default.
    """
    usual = {name: one.default for name, one in config.known.items()}
    return all(
        current(name, stored.get(name, usual[name])) == value
        for name, value in config.to_dict().items()
        if name not in ELSEWHERE
    )
