"""The settings of a run as options, with their help and limits: those of every run, and those of the chosen parts.

They depend on the model, the objective, …: so the command line is searched for these first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from murp import registry
from murp.cli.parser import Parser
from murp.cli.requested_runs import requested_runs
from murp.config import Config
from murp.errors import ConfigError
from murp.settings import WORDS, Setting, current

_METAVARS = {int: "N", float: "X", str: "TEXT"}


def add_settings(command: argparse.ArgumentParser, words: Sequence[str], *, several: bool = False) -> None:
    """Every setting of the runs that ``words``, the arguments of the command, describe; several values each, if asked.

    Settings that are on or off are then the same for all.
    """
    title = "settings, each with one value or several" if several else "settings"
    taken = set(Config.settings)
    found = requested_runs(words)
    parts, defaults = found.parts(), found.defaults()
    _add(command.add_argument_group(title), Config.settings, defaults, several)
    for kind, names in parts.items():
        for name in names:
            part = registry.find(kind, name)
            own = {key: one for key, one in part.settings.items() if key not in taken}
            taken |= set(own)
            if own:
                _add(command.add_argument_group(f"settings of {kind} {name}"), own, defaults, several)
    command.set_defaults(known=taken)
    if isinstance(command, Parser):
        there = [_name(option) for option in command._option_string_actions]
        command.elsewhere = lambda option: _whose(option, there, parts)


def with_default(help: str, default: str | None) -> str:
    """The help of an option as argparse takes it, with its default if there is one."""
    return (help if default is None else f"{help}; default: {default}").replace("%", "%%")


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Those that the command line names."""
    return {name: value for name, value in vars(options).items() if name in options.known}


def _whose(option: str, there: Sequence[str], parts: Mapping[str, Sequence[str]]) -> str:
    """What is added to the message that an option is not known; ``there`` has the names of those that are."""
    name = _name(option)
    found = registry.whose(name, parts, option) or registry.meant(name, there, parts, _option)
    return f". {found}" if found else ""


def _name(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _add(
    group: argparse._ArgumentGroup, settings: dict[str, Setting], defaults: Mapping[str, str], several: bool
) -> None:
    for name, one in settings.items():
        help = one.help
        if name in registry.KINDS:
            help += f": {', '.join(registry.names(name))}"
        help = with_default(help, defaults.get(name))
        option: dict[str, Any] = {"default": argparse.SUPPRESS}
        if one.kind is bool:
            option |= {"action": "store_true", "help": help}
        else:
            if one.choices:
                option |= {"type": partial(current, name), "choices": one.choices}
            else:
                option |= {"type": _value(one), "metavar": _METAVARS[one.kind]}
            option |= {"nargs": "+" if several else None, "help": help}
        group.add_argument(_option(name), **option)


def _value(one: Setting) -> Callable[[str], Any]:
    """An argument type: the value of a setting, refused where :class:`Config` would refuse it."""

    def parse(text: str) -> Any:
        try:
            value = one.kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {WORDS[one.kind]}, not {text!r}") from None
        try:
            return one.checked(value)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{one.name} ").removesuffix(".")) from None

    return parse
