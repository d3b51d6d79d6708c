"""A bar on standard error for long work, where a person watches it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from murp.display import console, watched


@contextlib.contextmanager
def bar(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Yield what is told how many more of ``total`` are done; silent where standard error is no terminal."""
    if not watched():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.update(task, advance=done)
