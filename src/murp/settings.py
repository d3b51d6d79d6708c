"""Settings: their names, explanations and legal values, declared by the part that they belong to.

A part of a run (a model, an objective, an optimizer, …) is a class that derives from :class:`Part` and declares its
settings as class attributes:

    class Margin(Sampled):
        margin: float = setting(1.0, "by how much true triples should score above false ones", above=0, search=Span(0.1,
        10))

This one line is used for ``config.toml``, the command line, ``--help``, Python and the search of `murp tune`.
"""

from __future__ import annotations

import difflib
import math
import operator
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from murp.errors import ConfigError
from murp.paths import not_text

LARGEST = 2**63 - 1  # of whole numbers: no library below counts further
# Old names of values, by setting, and their names now. Stored runs, results and files of settings have the old ones.
FORMER = {
    "bias": {"subject": "head", "object": "tail"},
    "corruption": {"with-subject": "with-head"},
}
# What is often taken for a setting of a run, and how it is set.
NO_SETTINGS = {
    "threads": "threads is not a setting of a run: give --threads N on the command line, set MURP_NUM_THREADS=N in the "
    "environment, or call murp.threads.use(N) in Python.",
}
WORDS: dict[type, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Span:
    """A range to search: ``low`` to ``high``, uniform, or (``log``) uniform in the logarithm."""

    low: float
    high: float
    log: bool = False

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}"


# What is searched: a span of numbers, or values to choose from.
Search = Span | tuple[Any, ...]


@dataclass(frozen=True)
class Setting:
    """One setting; its type is that of its default."""

    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    free: bool = False  # may change in a run that has begun
    search: Search | None = None  # what `murp tune` tries, where nothing else is asked for
    name: str = ""

    @property
    def kind(self) -> type:
        """int, float, str or bool."""
        return type(self.default)

    def checked(self, value: Any) -> Any:
        """The value if it is legal (a whole number becomes a float for a float setting); otherwise an error."""
        name = self.name
        kind: Any = self.kind
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            try:
                value = float(value)
            except OverflowError:
                raise ConfigError(f"{name} is beyond the largest number that a computer holds.", name) from None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ConfigError(f"{name} must be {WORDS[kind]}, not {value!r}.", name)
        if kind is float and not math.isfinite(value):
            raise ConfigError(f"{name} must be a finite number, not {value!r}.", name)
        if kind is str and (why := not_text(value)) is not None:
            raise ConfigError(f"{name} cannot be {value!r}, which {why}.", name)
        value = current(name, value)
        if self.choices and value not in self.choices:
            raise ConfigError(f"{name} must be one of {', '.join(self.choices)}, not {value!r}.", name)
        if self.least is not None and value < self.least:
            raise ConfigError(f"{name} must be at least {self.least}, not {value!r}.", name)
        most = LARGEST if kind is int and self.most is None else self.most
        if most is not None and value > most:
            raise ConfigError(f"{name} must be at most {most}, not {value!r}.", name)
        if self.above is not None and value <= self.above:
            raise ConfigError(f"{name} must be above {self.above}, not {value!r}.", name)
        if self.below is not None and value >= self.below:
            raise ConfigError(f"{name} must be below {self.below}, not {value!r}.", name)
        return value


def current(name: str, value: Any) -> Any:
    """The name that a value of a setting has now; other values as they are."""
    return FORMER.get(name, {}).get(value, value) if isinstance(value, str) else value


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    free: bool = False,
    search: Search | None = None,
) -> Any:
    """A setting of a class; see :class:`Part`. The class attribute is the default.

    ``search`` is what `murp tune` tries; without it the setting stays at its value.
    """
    return Setting(default, help, choices, least, most, above, below, free, search)


@dataclass(frozen=True)
class Again:
    """See :func:`again`."""

    default: Any
    search: Search


def again(default: Any, *, search: Search) -> Any:
    """Another default and other values to search, for a setting of a base class."""
    return Again(default, search)


class Part(ABC):  # noqa: B024 - the base class of a kind says what it must define
    """A part of a run with its own settings. ``settings`` has all of them, those of its base classes first."""

    settings: ClassVar[dict[str, Setting]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.settings = {name: one for base in reversed(cls.__bases__) for name, one in _settings_of(base).items()}
        for name, value in list(vars(cls).items()):
            if isinstance(value, Setting):
                cls.settings[name] = Setting(**{**vars(value), "name": name})
                setattr(cls, name, value.default)
            elif isinstance(value, Again):
                cls.settings[name] = Setting(**{**vars(cls.settings[name]), **vars(value)})
                setattr(cls, name, value.default)
            elif name in cls.settings and not callable(value):  # another default for a setting of a base class
                cls.settings[name] = Setting(**{**vars(cls.settings[name]), "default": value})

    def __init__(self, **values: Any) -> None:
        refuse_unknown(values, self.settings)
        for name, one in self.settings.items():
            setattr(self, name, one.checked(values.get(name, one.default)))

    @classmethod  # noqa: B027 - most refuse nothing
    def refuse(cls, config: Any) -> None:
        """Raise if this part does not work with the other settings of a run; the error says what works."""


def whole_number(name: str, value: Any, *, least: int = 1) -> int:
    """Check that an argument is a whole number of Python or NumPy; anything else is an error that names it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ConfigError(f"{name} must be a whole number, not {value!r}.") from None
    if number < least:
        raise ConfigError(f"{name} must be at least {least}, not {number}.")
    return number


def refuse_unknown(
    names: Mapping[str, Any], known: Mapping[str, Any], whose: Callable[[str], str] = lambda name: ""
) -> None:
    """Raise if a name is not a setting, and say ``whose`` it is, how it is set, or which name is close."""
    for name in names:
        if name not in known:
            if found := whose(name) or NO_SETTINGS.get(name):
                raise ConfigError(found, name)
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"Known settings: {', '.join(sorted(known))}."
            raise ConfigError(f"unknown setting {name!r}. {hint}", name)


def _settings_of(base: type) -> dict[str, Setting]:
    return base.settings if issubclass(base, Part) else {}
