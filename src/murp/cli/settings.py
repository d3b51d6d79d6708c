"""The settings of a run as options: one for every field of :class:`Config`, with its words and its limits."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any, get_type_hints

from murp.config import Config
from murp.errors import ConfigError

_METAVARS = {int: "N", float: "X", str: "TEXT"}


def add_settings(group: argparse._ArgumentGroup, *, several: bool = False) -> None:
    """Every setting; ``several`` values each, which leaves out those that are on or off."""
    hints = get_type_hints(Config)
    for knob in dataclasses.fields(Config):
        name, kind, choices = knob.name, hints[knob.name], knob.metadata["choices"]
        words = knob.metadata["help"].replace("%", "%%")
        option: dict[str, Any] = {"default": argparse.SUPPRESS}
        if kind is bool:
            if several:
                continue
            option |= {"action": "store_true", "help": words}
        else:
            option |= {"choices": choices} if choices else {"type": _value(name, kind), "metavar": _METAVARS[kind]}
            option["nargs"] = "+" if several else None
            option["help"] = words if knob.default == "" else f"{words}; default: {knob.default}"
        group.add_argument("--" + name.replace("_", "-"), **option)


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Those that the command line names."""
    names = {knob.name for knob in dataclasses.fields(Config)}
    return {name: value for name, value in vars(options).items() if name in names}


def _value(name: str, kind: type) -> Callable[[str], Any]:
    """An argument type: the value of a setting, refused where :class:`Config` would refuse it."""

    def parse(text: str) -> Any:
        value = kind(text)
        try:
            return Config.checked(name, value)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{name} ").removesuffix(".")) from None

    parse.__name__ = kind.__name__  # what argparse says where the text is no such value: "invalid int value"
    return parse
