"""The runs that a command line describes: their parts, and the defaults of their settings.

They depend on the model, the recipe, the file of settings or the run to continue that the command line names, so they
are known before it is parsed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murp import registry
from murp.config import Config, parts_of
from murp.errors import ConfigError, MurpError
from murp.recipes import AUTO, DECIDED, RECIPES, completed, with_origins
from murp.settings import Setting


@dataclass(frozen=True)
class Default:
    """The value of a setting that is not given, and the model, recipe, file, run or part that it is of (empty: every
    run).

    ``declared``: it is the default of the setting itself.
    """

    value: str
    of: str
    declared: bool


@dataclass(frozen=True)
class RequestedRuns:
    """The runs with the ``named`` parts and recipes, by option, and the ``stored`` settings ``of`` a file or a run.

    ``stored`` is None if they cannot be read.
    """

    named: Mapping[str, Sequence[str]]
    of: str
    stored: Mapping[str, Any] | None

    def parts(self) -> dict[str, list[str]]:
        """The names of the models, the objectives, … of these runs; no negatives if none of them draws any."""
        runs = [completed(run) for run in self._runs()]
        found = {
            kind: list(dict.fromkeys(run.get(kind, getattr(Config, kind)) for run in runs)) for kind in registry.KINDS
        }
        if not any(registry.find("objective", name).sampled for name in found["objective"]):
            del found["corruption"]
        return found

    def defaults(self) -> dict[str, str]:
        """What a setting of these runs is if its option is left out, in words; nothing if that is empty or off, or not
        known."""
        if self.stored is None:
            return {}
        found = self._found()
        for kind in registry.KINDS:
            if kind in self.named:  # so its option is not left out
                others = {name: values for name, values in self.named.items() if name != kind}
                found[kind] = RequestedRuns(others, self.of, self.stored)._found()[kind]
        words = {name: _in_words(defaults) for name, defaults in found.items()}
        return {name: text for name, text in words.items() if text}

    def _found(self) -> dict[str, list[Default]]:
        """The defaults of every setting, each once."""
        found: dict[str, dict[Default, None]] = {}
        for run in self._runs():
            for name, default in self._defaults_of(run):
                found.setdefault(name, {})[default] = None
        return {name: list(defaults) for name, defaults in found.items()}

    def _runs(self) -> Iterator[dict[str, Any]]:
        """What is named and stored, in every combination. Which recipe auto will take is not known: both."""
        options = {**{name: [value] for name, value in (self.stored or {}).items()}, **self.named}
        if list(options.get("recipe", ())) == [AUTO]:
            options["recipe"] = DECIDED
        for values in itertools.product(*options.values()):
            yield dict(zip(options, values, strict=True))

    def _defaults_of(self, run: Mapping[str, Any]) -> Iterator[tuple[str, Default]]:
        """Those of one run."""
        values = with_origins(run)
        known: list[tuple[str, Mapping[str, Setting]]] = [("", Config.settings)]
        for kind, part in parts_of({name: value for name, (value, _) in values.items()}).items():
            name, _ = values.get(kind, (getattr(Config, kind), ""))
            known.append((name, part.settings))
        for owner, settings in known:
            for name, one in settings.items():
                if name in values:
                    value, origin = values[name]
                    yield name, Default(_text(one, value), origin or self.of, declared=False)
                else:
                    yield name, Default(str(one.default), owner, declared=True)


def requested_runs(words: Sequence[str]) -> RequestedRuns:
    """What the arguments of a command name."""
    named: dict[str, list[str]] = {}
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        name = option.removeprefix("--")
        if name in (*registry.KINDS, "recipe", "config", "resume") and option.startswith("--"):
            rest = [value] if equals else []
            for other in words[place + 1 :] if not equals else ():
                if other.startswith("-"):
                    break
                rest.append(other)
            named[name] = rest or named.get(name, [])
    named = {name: values for name, values in named.items() if values}
    if "resume" in named:
        run = _settings_of(Path(named["resume"][0]))
        # Other parts are refused, with their settings, when the run is continued.
        return RequestedRuns(
            {name: values for name, values in named.items() if name in registry.KINDS}, "this run", run
        )
    file = named.pop("config", [""])[0]
    try:
        stored = Config.read(Path(file)) if file else {}
    except MurpError:
        stored = {}  # said when it is read in earnest
    return RequestedRuns(named, file, {name: value for name, value in stored.items() if _exists(name, value)})


def _settings_of(run: Path) -> dict[str, Any] | None:
    """Those of a run; None if they cannot be read, which is said when it is continued."""
    from murp.runs import folder

    try:
        return folder.read_config(run).to_dict()
    except MurpError:
        return None


def _exists(setting: str, value: Any) -> bool:
    """Whether there is the part or recipe that a setting of a file names; if not, it is said when the file is read in
    earnest."""
    if setting == "recipe":
        return value in (*RECIPES, AUTO)
    if setting not in registry.KINDS:
        return True
    try:
        registry.find(setting, value if isinstance(value, str) else "")
    except ConfigError:
        return False
    return True


def _text(one: Setting, value: Any) -> str:
    try:
        return str(one.checked(value))
    except ConfigError:  # of a file: said when it is read in earnest
        return str(value)


def _in_words(defaults: Sequence[Default]) -> str:
    """One value, and what it is of where a run usually has another; or several, each with what it is of."""
    owners: dict[str, list[str]] = {}
    for default in defaults:
        owners.setdefault(default.value, []).append(default.of)
    if set(owners) <= {"", str(False)}:
        return ""
    if len(owners) == 1 and any(default.declared for default in defaults):
        return next(iter(owners))
    words = [f"{value} (of {', '.join(dict.fromkeys(of))})" for value, of in owners.items() if "" not in of]
    return ", ".join([*words, *(f"else {value}" for value, of in owners.items() if "" in of)])
