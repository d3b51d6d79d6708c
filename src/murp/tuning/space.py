"""What is searched, and how it is written: ``lr=1..50``, ``negatives=10,50,250``, ``model=murp,mure``.

A setting with a search range (:class:`murp.settings.Setting`) is searched if its part is chosen, unless it has a value.
The user narrows this, or adds settings, by name. The settings depend on the model, the optimizer, …: if these are
searched too, each trial has the settings of the parts that it chose.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from murp import registry
from murp.config import Config, known_settings, parts_of
from murp.errors import ConfigError
from murp.recipes import completed
from murp.settings import Search, Setting, Span, refuse_unknown

# Settings that are not searched, and why.
NEVER = {
    "data": "a search has one graph",
    "seed": "a seed that does better does so by luck; compare seeds with `murp sweep`",
    "epochs": "trials that do worse are stopped early; give the most with --epochs",
    "dtype": "it is a matter of precision; give one value",
    "validate_candidates": "an MRR among few candidates is higher than one among many",
    "table_dtype": "it is a matter of precision; give one value",
}
LARGEST = 2000  # combinations of parts that are looked through


def read(words: Sequence[str]) -> dict[str, Search]:
    """A space as it is written on a command line, one ``NAME=LOW..HIGH`` or ``NAME=A,B,C`` each; values are texts."""
    space: dict[str, Search] = {}
    for word in words:
        name, equals, values = word.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not values.strip():
            raise ConfigError(f"--space {word!r}: write NAME=LOW..HIGH, or NAME=A,B,C, as in lr=1..50.")
        if name in space:
            raise ConfigError(f"--space names {name} twice.")
        low, dots, high = values.partition("..")
        if dots:
            try:
                space[name] = Span(float(low), float(high))
            except ValueError:
                raise ConfigError(
                    f"--space {word!r}: write two numbers with .. between them, as in lr=1..50."
                ) from None
        else:
            space[name] = tuple(value.strip() for value in values.split(","))
    return space


def given(space: Mapping[str, Any]) -> dict[str, Search]:
    """A space as Python has it: a Span, a text as on the command line, or a list of values."""
    found: dict[str, Search] = {}
    for name, value in space.items():
        if isinstance(value, str):
            found |= read([f"{name}={value}"])
        elif isinstance(value, Span):
            found[name] = value
        elif isinstance(value, Sequence) and value:
            found[name] = tuple(value)
        else:
            raise ConfigError(f"space: {name} is {value!r}; give a list of values, a Span, or a text as in '1..50'.")
    return found


@dataclass(frozen=True)
class Space:
    """What is searched (``searched``, by the user) and what has a value (``fixed``). :meth:`of` checks both."""

    fixed: Mapping[str, Any]
    searched: Mapping[str, Search]

    @classmethod
    def of(cls, fixed: Mapping[str, Any], searched: Mapping[str, Search]) -> Space:
        """A space without contradictions; otherwise an error with the names."""
        space = cls(dict(fixed), dict(searched))
        _refuse_unsearchable(space)
        combinations = list(space.combinations())
        known = {name: one for parts in combinations for name, one in space.known(parts).items()}
        refuse_unknown({**space.searched, **_settings(space.fixed)}, {**known, "recipe": None})
        checked = {name: _checked(known[name], value) for name, value in space.searched.items()}
        space = cls(space.fixed, checked)
        for parts in combinations:
            space.check(parts)
        if not any(space.spans(parts) for parts in combinations) and len(combinations) < 2:
            raise ConfigError("nothing is left to search: every setting has a value. Name some with --space.")
        return space

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Every choice of parts (model, objective, …) that is searched."""
        kinds = {kind: self.searched[kind] for kind in registry.KINDS if kind in self.searched}
        for kind, values in kinds.items():
            if isinstance(values, Span):
                raise ConfigError(f"space: {kind} is chosen by name: write {kind}=A,B.")
        number = 1
        for values in kinds.values():
            number *= len(tuple(values))  # type: ignore[arg-type]
        if number > LARGEST:
            raise ConfigError(f"space: {', '.join(kinds)} have {number:,} combinations; at most {LARGEST:,} are taken.")
        for chosen in itertools.product(*(tuple(values) for values in kinds.values())):  # type: ignore[arg-type]
            yield dict(zip(kinds, chosen, strict=True))

    def known(self, parts: Mapping[str, Any]) -> dict[str, Setting]:
        """The settings of runs with these parts."""
        return known_settings(completed({**self.fixed, **parts}))

    def spans(self, parts: Mapping[str, Any]) -> dict[str, tuple[str, Setting, Search]]:
        """What is searched in runs with these parts, by setting: what a trial calls it, the setting, its values.

        A setting of a part that is itself searched gets the part's name, since another part may have another range for
        it.
        """
        values = completed({**self.fixed, **parts})
        owners = {
            name: values[kind] for kind, part in parts_of(values).items() if kind in parts for name in part.settings
        }
        found = {}
        for name, one in self.known(parts).items():
            if name in registry.KINDS:
                continue
            search = self.searched.get(name, None if name in self.fixed else one.search)
            if search is None:
                continue
            default = values.get(name, one.default)
            if name not in self.searched and isinstance(search, Span):  # the default is always within
                search = Span(min(search.low, default), max(search.high, default), search.log and default > 0)
            found[name] = (f"{name} ({owners[name]})" if name in owners else name, one, search)
        return found

    def first(self) -> dict[str, Any]:
        """The values of the first trial, by what a trial calls them: the defaults, or the nearest to them searched."""
        parts = next(iter(self.combinations()))
        chosen = {kind: values[0] for kind, values in self.searched.items() if kind in registry.KINDS}  # type: ignore[index]
        for kind in chosen:
            if (usual := getattr(Config, kind)) in tuple(self.searched[kind]):  # type: ignore[arg-type]
                chosen[kind] = usual
        values = completed({**self.fixed, **{**parts, **chosen}})
        begin = dict(chosen)
        for name, (called, one, search) in self.spans(chosen).items():
            default = values.get(name, one.default)
            if isinstance(search, Span):
                begin[called] = one.kind(min(max(default, search.low), search.high))
            else:
                begin[called] = default if default in search else search[0]
        return begin

    def settings(self, suggest: Any) -> dict[str, Any]:
        """The settings of a trial: ``suggest(called, setting, search)`` chooses each value."""
        parts = {
            kind: suggest(kind, Config.settings[kind], self.searched[kind])
            for kind in registry.KINDS
            if kind in self.searched
        }
        chosen = {name: suggest(*span) for name, span in self.spans(parts).items()}
        return {**self.given(parts), **parts, **chosen}

    def given(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """The fixed settings of runs with these parts: what only others have is left out."""
        known = self.known(parts)
        return {name: value for name, value in self.fixed.items() if name in known or name == "recipe"}

    def check(self, parts: Mapping[str, Any]) -> None:
        """Raise if runs with these parts are refused at either end of a search range."""
        spans = self.spans(parts)
        for end in (0, -1):
            ends = {
                name: (one.kind(search.low if end == 0 else search.high) if isinstance(search, Span) else search[end])
                for name, (_, one, search) in spans.items()
            }
            try:
                config = Config(**completed({**self.given(parts), **parts, **ends}))
                if "engine" in self.fixed:
                    from murp.engines import refuse_engine  # imports PyTorch

                    refuse_engine(config)
            except ConfigError as error:
                names = ", ".join(f"{name}={value}" for name, value in {**parts, **ends}.items())
                raise ConfigError(
                    f"the search space contradicts itself: these settings cannot be combined: {names}: {error} "
                    "Change --space or the settings, or make two searches."
                ) from None

    def to_dict(self) -> dict[str, Any]:
        """For JSON, to compare two searches."""
        searched = {n: str(v) if isinstance(v, Span) else [str(one) for one in v] for n, v in self.searched.items()}
        return {"fixed": dict(self.fixed), "searched": searched}


def _settings(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The fixed settings that must be known to some combination; the recipe is none."""
    return {name: value for name, value in fixed.items() if name != "recipe"}


def _refuse_unsearchable(space: Space) -> None:
    both = [name for name in space.searched if name in space.fixed]
    if both:
        raise ConfigError(
            f"{', '.join(both)}: both searched and given a value ({', '.join(f'{n}={space.fixed[n]}' for n in both)}). "
            "Leave out one of the two."
        )
    for name in space.searched:
        one = Config.settings.get(name)
        if name in NEVER or (one is not None and one.free):
            why = NEVER.get(name, "it does not change what is learned")
            raise ConfigError(f"{name} is not searched: {why}.")
    if space.fixed.get("validate_candidates"):
        raise ConfigError("trials are judged by protocol standard: leave out validate_candidates, or train one run.")
    if space.fixed.get("validate_every") == 0:
        raise ConfigError("validate_every is 0, but trials are judged by their validations: give another, or none.")


def _checked(one: Setting, search: Search) -> Search:
    """What is searched for a setting, as values of its type within its bounds."""
    if isinstance(search, Span):
        if one.kind not in (int, float) or one.choices:
            raise ConfigError(f"space: {one.name} is no number: write its values, {one.name}=A,B.")
        if not search.low < search.high:
            raise ConfigError(
                f"space: {one.name} goes from {search.low:g} to {search.high:g}: the smaller number must be first."
            )
        for end in (search.low, search.high):
            if one.kind is int and not float(end).is_integer():  # neither is infinity
                raise ConfigError(f"space: {one.name} is a whole number, not {end:g}.")
            _value(one, one.kind(end))
        log = isinstance(one.search, Span) and one.search.log
        return Span(search.low, search.high, (search.log or log) and search.low > 0)
    values = tuple(_value(one, _of_kind(one, value)) for value in search)
    if len(set(values)) < len(values):
        raise ConfigError(f"space: {one.name} names a value twice: {', '.join(map(str, values))}.")
    return values


def _value(one: Setting, value: Any) -> Any:
    try:
        return one.checked(value)
    except ConfigError as error:
        raise ConfigError(f"space: {error}") from None


def _of_kind(one: Setting, value: Any) -> Any:
    """A text of the command line as a value of a setting; other values as they are."""
    if not isinstance(value, str) or one.kind is str:
        return value
    if one.kind is bool:
        words = {"true": True, "yes": True, "false": False, "no": False}
        if value.lower() not in words:
            raise ConfigError(f"space: {one.name} must be true or false, not {value!r}.")
        return words[value.lower()]
    try:
        return one.kind(value)
    except ValueError:
        raise ConfigError(f"space: {one.name} must be a number, not {value!r}.") from None
