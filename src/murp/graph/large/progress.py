"""How far a long reading is, with the time that is left: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from murp.display import aside, console, watched

EVERY = 30.0  # seconds between two lines


class Progress:
    """Told what part of a step is done, from 0 to 1."""

    def __init__(self) -> None:
        self._begun = self._said = time.monotonic()

    def show(self, step: str, done: float, facts: int) -> None:
        """Say so, if it is time to."""
        now = time.monotonic()
        if now - self._said >= EVERY:
            self._said = now
            aside(f"murp: {step}: {facts:,} facts, {done:.0%}{self._left(done, now)}")

    def _left(self, done: float, now: float) -> str:
        spent = now - self._begun
        return f", about {spent / done - spent:,.0f} s left" if 0 < done < 1 else ""


class _Bar(Progress):
    def __init__(self, shown: object, task: object) -> None:
        super().__init__()
        self._shown, self._task = shown, task

    def show(self, step: str, done: float, facts: int) -> None:
        words = f"{step}, {facts:,} facts"
        self._shown.update(self._task, completed=done, description=words)  # type: ignore[attr-defined]


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """What shows it: one for each step."""
    if not watched():
        yield Progress()
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Shown

    parts = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Shown(*parts, console=console(), transient=True) as shown:
        yield _Bar(shown, shown.add_task("reading", total=1.0))
