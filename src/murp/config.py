"""The settings of a run: one dataclass that feeds the file, the command line and Python.

    murp train --dim 40 --lr 50            # the command line
    murp train --config runs/first/config.toml   # the file a run writes: it repeats the run
    murp.train(graph, dim=40, lr=50)       # Python

Every setting is explained where its default stands; the same words are the command line's help and
the comments of ``config.toml``.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypedDict, get_type_hints

from murp.errors import ConfigError
from murp.paths import not_a_file, not_text

Choice = tuple[str, ...]

LARGEST = 2**63 - 1  # of whole numbers: no library below counts further


def setting(
    default: Any,
    help: str,
    *,
    choices: Choice = (),
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    free: bool = False,
) -> Any:
    """A field of :class:`Config`: its default, what it does, which values are legal, and whether it is ``free``: may
    change in a run that has begun."""
    rules = {"help": help, "choices": choices, "least": least, "most": most, "above": above, "free": free}
    return field(default=default, metadata=rules)


@dataclass(frozen=True)
class Config:
    """Complete description of a training run. The defaults are the paper's, but for the number of epochs (500)."""

    data: str = setting(
        "wordnet-mini", "dataset name, folder with train, valid and test, or one file to split", free=True
    )
    data_dir: str = setting(
        "", "where to look for named datasets before MURP_DATA and the cache; empty: nowhere else", free=True
    )
    split_seed: int = setting(0, "draws valid and test where the data is one file", least=0, most=2**63 - 1, free=True)
    model: str = setting("murp", "murp (Poincaré ball) or mure (Euclidean space)", choices=("murp", "mure"))
    dim: int = setting(40, "dimension d of the embedding", least=1)
    lr: float = setting(
        50.0,
        "learning rate; the paper: 50 for WN18RR and NELL, 10 for FB15k-237; small, dense graphs need less",
        above=0,
    )
    epochs: int = setting(
        100, "passes over the training triples and their reciprocals; the paper: 500", least=1, free=True
    )
    batch_size: int = setting(128, "positive triples a step", least=1)
    negatives: int = setting(50, "uniformly drawn false objects for each positive triple", least=1)
    seed: int = setting(
        0, "same seed, same machine, same number of threads: same bits on the CPU", least=0, most=2**63 - 1
    )
    device: str = setting(
        "auto", "where to train: auto takes the GPU if there is one", choices=("auto", "cpu", "cuda"), free=True
    )
    dtype: str = setting("float32", "precision of the parameters", choices=("float32", "float64"))
    engine: str = setting(
        "auto",
        "how a step is computed: auto takes the fastest that can train the model",
        choices=("auto", "torch", "numba", "triton"),
        free=True,
    )
    initial_scale: float = setting(
        1e-3, "standard deviation of the initial entities and translations about the origin", above=0, most=1e3
    )
    curvature: float = setting(1.0, "murp only: curvature c of the ball, whose radius is 1/√c", above=0)
    transformation: str = setting(
        "published",
        "how a relation moves subject and object (the paper's table 2)",
        choices=("published", "translation-only", "stretch-only", "stretch-both", "swapped"),
    )
    bias: str = setting(
        "both",
        "what is added to minus the squared distance (the paper's table 2)",
        choices=("both", "subject", "object", "norm", "transformed-norm"),
    )
    lr_schedule: str = setting(
        "constant",
        "learning rate by epoch: constant, or falling to 0 by a line or a cosine",
        choices=("constant", "linear", "cosine"),
    )
    validate_every: int = setting(
        10, "epochs between validations (filtered MRR on valid); 0: never", least=0, free=True
    )
    patience: int = setting(
        0, "stop after so many validations without a better MRR; 0: never stop early", least=0, free=True
    )
    save_every: float = setting(
        60.0, "seconds between checkpoints while training; one is always written at the end", least=0, free=True
    )
    tensorboard: bool = setting(False, "also write TensorBoard event files into the run folder", free=True)

    def __post_init__(self) -> None:
        for knob in dataclasses.fields(self):
            object.__setattr__(self, knob.name, self.checked(knob.name, getattr(self, knob.name)))
        if self.model == "mure" and self.curvature != 1.0:
            raise ConfigError("curvature is a setting of murp; mure lives in Euclidean space. Leave it out.")
        if self.patience and not self.validate_every:
            raise ConfigError("patience needs validations to count: set validate_every above 0.")

    @classmethod
    def checked(cls, name: str, value: Any) -> Any:
        """A legal value of one setting, a whole number as a float where it is to be one; any other is an error."""
        return _checked(name, value, get_type_hints(cls)[name], cls.__dataclass_fields__[name].metadata)

    @classmethod
    def from_mapping(cls, values: dict[str, Any], where: str) -> Self:
        """A configuration from named values; ``where`` (a file, the command line) is named in errors."""
        known = {knob.name for knob in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {close[0]!r}?" if close else f"Known settings: {', '.join(sorted(known))}."
                raise ConfigError(f"{where}: unknown setting {name!r}. {hint}")
        try:
            return cls(**values)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

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

    @classmethod
    def free(cls) -> list[str]:
        """The settings that may change in a run that has begun; a learning rate that depends on epochs holds those."""
        return [knob.name for knob in dataclasses.fields(cls) if knob.metadata["free"]]

    def to_toml(self) -> str:
        """The whole configuration with its explanations; ``Config.read`` gives the same values back."""
        lines = [
            "# Every setting of this run; `murp train --config` with this file repeats it.",
            f"# In this run itself only these may be changed: {', '.join(self.free())}.",
            "",
        ]
        for knob in dataclasses.fields(self):
            choices = knob.metadata["choices"]
            lines.append(f"# {knob.metadata['help']}" + (f" ({' | '.join(choices)})" if choices else ""))
            lines.append(f"{knob.name} = {_toml(getattr(self, knob.name))}")
        return "\n".join(lines) + "\n"


class Settings(TypedDict, total=False):
    """The settings as the arguments of :func:`murp.train`, for editors and type checkers; ``data`` is its graph.

    A test keeps it equal to :class:`Config`.
    """

    data_dir: str
    split_seed: int
    model: str
    dim: int
    lr: float
    epochs: int
    batch_size: int
    negatives: int
    seed: int
    device: str
    dtype: str
    engine: str
    initial_scale: float
    curvature: float
    transformation: str
    bias: str
    lr_schedule: str
    validate_every: int
    patience: int
    save_every: float
    tensorboard: bool


def _checked(name: str, value: Any, kind: Any, rules: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise ConfigError(f"{name} is beyond the largest number that a computer holds.") from None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{name} must be {_words[kind]}, not {value!r}.")
    if kind is float and not math.isfinite(value):
        raise ConfigError(f"{name} must be a finite number, not {value!r}.")
    if kind is str and (why := not_text(value)) is not None:
        raise ConfigError(f"{name} cannot be {value!r}, which {why}.")
    if rules["choices"] and value not in rules["choices"]:
        raise ConfigError(f"{name} must be one of {', '.join(rules['choices'])}, not {value!r}.")
    if rules["least"] is not None and value < rules["least"]:
        raise ConfigError(f"{name} must be at least {rules['least']}, not {value!r}.")
    most = LARGEST if kind is int and rules["most"] is None else rules["most"]
    if most is not None and value > most:
        raise ConfigError(f"{name} must be at most {most}, not {value!r}.")
    if rules["above"] is not None and value <= rules["above"]:
        raise ConfigError(f"{name} must be above {rules['above']}, not {value!r}.")
    return value


_words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _toml(value: Any) -> str:
    # A JSON string is a TOML basic string, and Python writes finite numbers as TOML reads them.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
