"""The parser of the command line: a command reports its own mistyped arguments and suggests close names."""

from __future__ import annotations

import argparse
import difflib
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from murp.paths import not_text

SHORT = 3  # letters of names that are not guessed


class Parser(argparse.ArgumentParser):
    """An ``ArgumentParser`` whose commands report their own wrong arguments and suggest close names."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        self.given: list[str] = []
        # What is to be said of an option that this command does not have now; nothing, where it never has.
        self.elsewhere: Callable[[str], str] = lambda option: ""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As in argparse, but unknown arguments are reported here: the parser above knows less about them.

        If a command is required and none is given, the help lists them.
        """
        self.given = list(sys.argv[1:] if args is None else args)
        if not self.given and self._subparsers is not None:
            self.print_help(sys.stderr)
            self.exit(2)
        for word in self.given:
            if (why := not_text(word)) is not None:
                super().error(f"{word!r} {why}")  # nothing is misspelt
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return options, []

    def error(self, message: str) -> NoReturn:
        """Print the error below the usage and exit with status 2; suggest a close option for each misspelt one."""
        known = list(self._option_string_actions)
        words = (word.partition("=")[0] for word in self.given if word.startswith("--"))
        misspelt = [word for word in words if not any(option.startswith(word) for option in known)]
        super().error(message + "".join(self.elsewhere(word) or did_you_mean(word, known) for word in misspelt))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            # Short names are close to others, as `cpu` to `gpu`: all are shown.
            close = did_you_mean(str(value), [choice for choice in choices if len(choice) > SHORT])
            hint = close or f" (choose from {', '.join(choices)})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def explain(self, sentence: str, examples: Sequence[str]) -> None:
        """What ``--help`` says above and below the options."""
        self.description = textwrap.fill(sentence, 80)
        self.epilog = "\n  ".join(["examples:", *examples])


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A question with the closest of ``known``; empty if none is close."""
    close = difflib.get_close_matches(word, known, n=1)
    return f". Did you mean {close[0]}?" if close else ""
