"""Code that the commands share: common arguments, tables and numbers as text, a progress bar, and faster imports."""

from __future__ import annotations

import argparse
import contextlib
import gc
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murp.display import console, watched
from murp.settings import LARGEST
from murp.tables import FORMATS
from murp.tables import table as table

if TYPE_CHECKING:
    from murp.api.run import Run
    from murp.distributed.ranks import Ranks
    from murp.graph import KnowledgeGraph

    # The type is private to argparse, and the only name that a subparser's home has.
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = Any


NAMELESS = "part"  # what a column is called in a file that has no heading in a terminal


def figure(value: float | None, digits: int = 3) -> str:
    """A metric as the literature prints it; a dash if there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def add_output(command: argparse.ArgumentParser, json: str = "one JSON object") -> None:
    """Options for the output of a command that prints a table: ``--json``, with this help, or ``--format``."""
    output = command.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help=json)
    output.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="format of the table; formats other than text print only the table; default: text",
    )


def print_table(
    options: argparse.Namespace,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Sequence[int] = (),
    about: Mapping[str, object] | None = None,
) -> None:
    """Print a table in the format that ``--format`` names."""
    named = [name or ("" if options.format == "text" else NAMELESS) for name in header]
    print(table(named, rows, right, format=options.format, about=about))


def whole(*, least: int) -> Callable[[str], int]:
    """An argument type: a whole number of at least ``least`` that the machine can count to."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        if value > LARGEST:
            raise argparse.ArgumentTypeError(f"must be at most {LARGEST}, not {value}")
        return value

    return parse


def positive(*, zero: bool = False) -> Callable[[str], float]:
    """An argument type: a finite number above 0, or 0 where that is allowed too."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            raise argparse.ArgumentTypeError(f"must be {'0 or ' if zero else ''}above 0, not {text}")
        return value

    return parse


def add_run(command: argparse.ArgumentParser, *, several: bool = False) -> None:
    """The arguments of every command on a run folder; with ``several``, ``path`` is a list."""
    command.add_argument(
        "path", metavar="RUN", nargs="+" if several else None, help="run folder that `murp train` made"
    )
    command.add_argument(
        "--checkpoint",
        choices=("best", "last"),
        help="weights of the best validation, or the newest weights; default: best",
    )
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto")


def one_of_many() -> bool:
    """Whether torchrun has started this process and others."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def join_ranks(name: str, options: argparse.Namespace) -> Ranks:
    """The ranks that torchrun started, all with the command ``name`` and the same arguments.

    The run folder may have another path on another machine.
    """
    with fast_imports():
        from murp.distributed.ranks import join

    ranks = join()
    given = {option: value for option, value in vars(options).items() if option not in ("path", "threads", "run")}
    dashed = {f"--{o.replace('_', '-')}" if len(o) > 1 else f"-{o}": value for o, value in given.items()}
    ranks.started(name, dashed)
    return ranks


def open_run(options: argparse.Namespace) -> Run:
    """The run that the arguments of :func:`add_run` name."""
    with fast_imports():
        from murp.api.training import load

    return load(options.path, checkpoint=options.checkpoint, device=options.device)


def add_types(command: argparse.ArgumentParser, further: str = "") -> None:
    """Whether type constraints hold."""
    words = "leave out answers of the wrong type, learned from train, and second answers if a relation has only one"
    command.add_argument("--types", action="store_true", help=words + further)


def add_approximate(command: argparse.ArgumentParser) -> None:
    """Whether questions are answered by the index of the run."""
    command.add_argument(
        "--approximate", action="store_true", help="use the index of `murp index`: faster, but may miss answers"
    )


def add_source(command: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """DATA, where to look for it, and how a single file is split."""
    command.add_argument(
        "source",
        metavar="DATA",
        nargs="?" if optional else None,
        help="dataset name, folder with train, valid and test, or one file",
    )
    add_reading(command)


def add_reading(command: argparse.ArgumentParser) -> None:
    """Where to look for data, how a single file is split, and what its columns are."""
    command.add_argument("--data-dir", metavar="DIR", help="folder to search first for named datasets")
    command.add_argument(
        "--split-seed",
        type=whole(least=0),
        default=0,
        metavar="N",
        help="seed that splits a single file; default: 0",
    )
    command.add_argument(
        "--columns",
        default="",
        metavar="head=…,relation=…,tail=…",
        help="which column is which, by title or by number from 1; default: by known titles",
    )
    command.add_argument(
        "--no-header", action="store_true", help="the first row is a fact, even if it looks like a header"
    )


def load_source(options: argparse.Namespace) -> KnowledgeGraph:
    """The graph that these arguments name."""
    from murp.graph import KnowledgeGraph

    return KnowledgeGraph.load(
        options.source,
        data_dir=data_dir(options),
        seed=options.split_seed,
        columns=options.columns,
        header=not options.no_header,
    )


def data_dir(options: argparse.Namespace) -> Path | None:
    """The folder given by ``--data-dir``."""
    return None if options.data_dir is None else Path(options.data_dir)


@contextlib.contextmanager
def bar(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds to the number of ``total`` that are done; silent if standard error is not a
    terminal."""
    if not watched():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console(), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.update(task, advance=done)


@contextlib.contextmanager
def fast_imports() -> Iterator[None]:
    """Import PyTorch and what comes with it without Python's collector, which would look through it over and over.

    What was imported is frozen, so that the collector does not look through it when the process ends either. Where
    PyTorch has been imported already nothing is done: what is garbage when it is frozen would stay.
    """
    if "torch" in sys.modules:
        yield
        return
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()
