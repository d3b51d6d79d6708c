"""Commands that are printed for the user to copy."""

from __future__ import annotations

import os
import shlex


def command(*words: str | os.PathLike[str]) -> str:
    """``murp`` and ``words``, which are arguments or paths, as a shell takes them: ``murp evaluate 'my run'``."""
    return " ".join(["murp", *(_quoted(_path(word)) for word in words)])


def _path(word: str | os.PathLike[str]) -> str:
    """A path that begins with a dash would be taken for an option."""
    text = os.fspath(word)
    return f"./{text}" if not isinstance(word, str) and text.startswith("-") else text


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # Control characters, and bytes that are no text, survive a terminal only as escapes: $'caf\351'.
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    if character.isprintable() and character not in "\\'":
        return character
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))
