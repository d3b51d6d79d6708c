"""The settings of a run: one object that feeds the file, the command line and Python.

    murp train --dim 40 --lr 50            # the command line
    murp train --config runs/first/config.toml   # the file a run writes: it repeats the run
    murp.train(graph, dim=40, lr=50)       # Python

The settings of every run stand here. Those of its model, objective, negatives, optimizer and regularizer are declared
by these (:mod:`murp.settings`), and are settings of the run when they are chosen. Every setting is explained where its
default stands; the same words are the command line's help and the comments of ``config.toml``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from murp import registry
from murp.errors import ConfigError
from murp.paths import not_a_file
from murp.schedules import SCHEDULES
from murp.settings import NO_SETTINGS, Part, Setting, Span, refuse_unknown, setting

# Files of before, when every run had all settings, name these of MuRP and MuRE in every run.
OF_EVERY_RUN = {"curvature": 1.0, "transformation": "published", "bias": "both"}


class Config(Part):
    """Complete description of a training run. The defaults are the paper's, but for the number of epochs (500)."""

    data: str = setting(
        "wordnet-mini", "dataset name, folder with train, valid and test, or one file to split", free=True
    )
    data_dir: str = setting(
        "", "folder to search for named datasets, before MURP_DATA and the cache; empty: none", free=True
    )
    split_seed: int = setting(
        0, "seed that splits the data into train, valid and test if it is one file", least=0, most=2**63 - 1, free=True
    )
    columns: str = setting(
        "", "head=…,relation=…,tail=…: columns of the data by title or number from 1; empty: by known titles", free=True
    )
    no_header: bool = setting(False, "the first row of the data is a fact, even if it looks like a header", free=True)
    model: str = setting("murp", "name of the model, or package.module:Class of your own model")
    objective: str = setting("bernoulli", "the loss that training minimises")
    corruption: str = setting("uniform", "how negatives are drawn, for objectives that need them")
    optimizer: str = setting("sgd", "how parameters are updated")
    regularizer: str = setting("none", "what keeps parameters small")
    epochs: int = setting(
        100, "passes over the training triples and their reciprocals; 500 in the paper", least=1, free=True
    )
    init_from: str = setting(
        "", "run folder with initial weights for entities and relations of the same id; empty: new initial values"
    )
    batch_size: int = setting(128, "positive triples in a step", least=1, search=Span(64, 1024, log=True))
    slices: int = setting(
        0,
        "parts of a batch that are divided among the ranks (torchrun); the same number gives the same bits on any "
        "number of ranks and on one process; 0: one for each rank, and none on one process",
        least=0,
    )
    seed: int = setting(
        0,
        "random seed; the same seed, machine and number of threads give the same bits on the CPU",
        least=0,
        most=2**63 - 1,
    )
    device: str = setting(
        "auto", "where to train; auto: on the GPU if there is one", choices=("auto", "cpu", "cuda"), free=True
    )
    dtype: str = setting("float32", "precision of the parameters", choices=("float32", "float64"))
    table_dtype: str = setting(
        "auto",
        "precision in which the entities' points are stored while training and in checkpoints; auto: as dtype; float16 "
        "and bfloat16 need half the memory of float32: steps still compute in dtype, and a row is rounded when it is "
        "written",
        choices=("auto", "float32", "float16", "bfloat16"),
    )
    engine: str = setting(
        "auto",
        "which code computes a step; auto: the fastest that can train the model",
        choices=("auto", "torch", "numba", "triton"),
        free=True,
    )
    tables: str = setting(
        "device",
        "where the entity table is: on the device that computes, or in host memory, for tables larger than the GPU's "
        "memory (engine triton)",
        choices=("device", "host"),
        free=True,
    )
    compile_after: float = setting(
        20.0,
        "with the engine torch on a GPU, steps are compiled after so many seconds of training; compiling takes about "
        "as long and makes steps several times faster; 0: at once",
        least=0,
        free=True,
    )
    lr_schedule: str = setting(
        "constant",
        "learning rate by epoch: constant, falling to 0 (linear or cosine), or divided by 10 after three validations "
        "without a better MRR (plateau)",
        choices=tuple(SCHEDULES),
    )
    warmup: int = setting(0, "number of epochs at the beginning in which the learning rate rises to its value", least=0)
    validate_every: int = setting(
        10, "epochs between validations (filtered MRR on valid); 0: never", least=0, free=True
    )
    validate_candidates: int = setting(
        0,
        "validate by protocol sampled with this many candidates for each question, drawn by the seed of the run: for "
        "graphs on which ranking all entities takes too long; 0: among all entities",
        least=0,
    )
    patience: int = setting(
        0, "stop after this many validations without a better MRR; 0: never stop early", least=0, free=True
    )
    save_every: float = setting(
        60.0, "seconds between checkpoints while training; one is always written at the end", least=0, free=True
    )
    tensorboard: bool = setting(False, "also write TensorBoard event files into the run folder", free=True)

    def __init__(self, **values: Any) -> None:
        parts = parts_of(values)
        known = known_settings(values)
        for name, usual in OF_EVERY_RUN.items():
            if name not in known and values.get(name) == usual:
                values = {other: value for other, value in values.items() if other != name}
        names = {kind: [str(values.get(kind, getattr(Config, kind)))] for kind in parts}

        def whose(name: str) -> str:
            if (found := registry.whose(name, names, name)) or name in NO_SETTINGS:
                return found
            meant = registry.meant(name, known, names, repr)
            return f"unknown setting {name!r}. {meant}" if meant else ""

        refuse_unknown(values, known, whose)
        chosen = {name: one.checked(values.get(name, one.default)) for name, one in known.items()}
        self.known: dict[str, Setting]
        self.__dict__.update({"known": known, "parts": parts, **chosen})
        for part in parts.values():
            part.refuse(self)
        if self.table_dtype == "float32" and self.dtype == "float64":
            raise ConfigError(
                "table_dtype = float32 does not go with dtype = float64: choose auto, float16 or bfloat16."
            )
        if self.patience and not self.validate_every:
            raise ConfigError("patience needs validations to count: set validate_every above 0.")
        if self.lr_schedule == "plateau" and not self.validate_every:
            raise ConfigError("the schedule plateau needs validations to count: set validate_every above 0.")

    def __getattr__(self, name: str) -> Any:
        # Only for type checkers and for names that are no settings: settings lie in the instance.
        raise AttributeError(f"this run has no setting {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings do not change: make others with Config.replace({name}=…)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().items()))

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Every setting by its name."""
        return {name: self.__dict__[name] for name in self.known}

    def replace(self, **changes: Any) -> Config:
        """These settings with others in the place of some."""
        return Config(**{**self.to_dict(), **changes})

    def settings_of(self, kind: str) -> dict[str, Any]:
        """The values of the settings that the model, the objective, … declares."""
        return {name: self.__dict__[name] for name in self.parts[kind].settings}

    def part(self, kind: str) -> Any:
        """The objective, the optimizer, … with its settings; a model needs sizes too and is built elsewhere."""
        return self.parts[kind](**self.settings_of(kind))

    @classmethod
    def checked(cls, name: str, value: Any) -> Any:
        """A legal value of one setting of every run; any other is an error."""
        return cls.settings[name].checked(value)

    @classmethod
    def from_mapping(cls, values: dict[str, Any], where: str) -> Self:
        """A configuration from named values; ``where`` (a file, the command line) is named in errors."""
        with naming(where):
            return cls(**values)

    @classmethod
    def read(cls, path: Path) -> dict[str, Any]:
        """The values of a TOML file, unchecked, to be completed from the command line."""
        if (why := not_a_file(path)) is not None:
            raise ConfigError(f"{path} {why}.")
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"no configuration file at {path}.") from None
        except RecursionError:
            raise ConfigError(f"{path} is not a readable TOML file: it is nested too deeply.") from None
        except (OSError, ValueError) as error:  # not UTF-8, not TOML, or a number of thousands of digits
            raise ConfigError(f"{path} is not a readable TOML file: {error}.") from None

    @property
    def validated_by(self) -> str:
        """The protocol of the validations of this run."""
        few = self.validate_candidates
        return f"sampled: {few:,} candidates a question" if few else "standard"

    def free(self) -> list[str]:
        """The settings that may change in a run that has begun; a learning rate that depends on epochs holds those."""
        held = {"epochs"} if SCHEDULES[self.lr_schedule].by_epochs else set()
        return [name for name, one in self.known.items() if one.free and name not in held]

    def to_toml(self) -> str:
        """The whole configuration with its explanations; ``Config.read`` gives the same values back."""
        lines = [
            "# Every setting of this run; `murp train --config` with this file repeats it.",
            f"# In this run itself only these may be changed: {', '.join(self.free())}.",
            "",
        ]
        for name, one in self.known.items():
            lines.append(f"# {one.help}" + (f" ({' | '.join(one.choices)})" if one.choices else ""))
            lines.append(f"{name} = {_toml(self.__dict__[name])}")
        return "\n".join(lines) + "\n"


def parts_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The classes that some settings choose: model, objective, corruption, optimizer, regularizer."""
    found = {}
    for kind in registry.KINDS:
        name = Config.settings[kind].checked(values.get(kind, getattr(Config, kind)))
        found[kind] = registry.find(kind, name)
    if not found["objective"].sampled:
        del found["corruption"]  # nothing is drawn
    return found


@contextmanager
def naming(where: str, file: Path | None = None, given: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Errors about settings say ``where`` they come from: of one in a ``file`` of settings, its line.

    ``given``: settings that replace those of the file.
    """
    try:
        yield
    except ConfigError as error:
        line = None if file is None or error.setting in given else _line(file, error.setting)
        place = where if line is None else f"{file}, line {line}"
        raise ConfigError(f"{place}: {error}", error.setting) from None


def _line(file: Path, setting: str | None) -> int | None:
    """The line of a TOML file on which a setting, or the table of this name, stands."""
    if setting is None:
        return None
    begins = re.compile(rf"""\s*(\[\s*)?["']?{re.escape(setting)}["']?\s*[]=.]""")
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if begins.match(line)), None)


def known_settings(values: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings of every run, and those of the parts that some settings choose."""
    found = dict(Config.settings)
    for kind, part in parts_of(values).items():
        if both := found.keys() & part.settings.keys():
            chosen = values.get(kind, getattr(Config, kind))
            raise ConfigError(
                f"{kind} {chosen} has settings with names of other settings of a run: {', '.join(sorted(both))}. "
                "Choose other names there."
            )
        found |= part.settings
    return found


def _again(values: dict[str, Any]) -> Config:
    return Config(**values)


def _toml(value: Any) -> str:
    # A JSON string is a TOML basic string, and Python writes finite numbers as TOML reads them.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
