"""Findings about data, from the readers and from the audit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EXAMPLES = 5


@dataclass(frozen=True)
class Finding:
    """The result of one check at one place: the count, its meaning, and up to five examples."""

    check: str
    where: str
    count: int
    text: str
    examples: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """For a warning."""
        return f"{self.text}: {'; '.join(self.examples[:3])}." if self.examples else f"{self.text}."


def number(count: int, words: str) -> str:
    """So many of what the words say, whose {s} is that of the plural."""
    return f"{count:,} {words.format(s='' if count == 1 else 's')}"


def noticed(check: str, where: str, count: int, words: str, examples: Iterable[str] = ()) -> list[Finding]:
    """A list with a finding, or empty if nothing was found; ``words`` has {s} for the plural."""
    shown = tuple(dict.fromkeys(examples))[:EXAMPLES]
    return [Finding(check, where, count, number(count, words), shown)] if count else []
