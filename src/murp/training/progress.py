"""Shows the progress of a training, to people or to programs."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from murp.display import console, in_notebook, show, watched
from murp.engines import Chunk
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.training.state import State

# A log gets a line at least once in so many seconds, be there a validation or not.
LINE_EVERY = 30.0
VALID = "valid MRR"


class Silent:
    """Says nothing; also the interface of the others."""

    begun = False  # whether there was anything to train

    def watch(self, path: Path, graph: KnowledgeGraph, model: Model) -> None:
        """Called before training with the model and the run folder, for a progress that looks at them after an
        epoch."""

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        """Training begins or continues at ``state``; ``done`` of the epoch's ``steps`` steps are done."""
        self.begun = True

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        """The steps of ``chunk`` are done, in ``seconds``; their mean loss."""

    def epoch(self, record: dict[str, Any]) -> None:
        """An epoch is done; ``record`` is its line of metrics.jsonl."""

    def stop(self) -> None:
        """Training ended, for any reason."""


class JsonLines(Silent):
    """One JSON object per line on standard output for every epoch; output that cannot be written is dropped."""

    def epoch(self, record: dict[str, Any]) -> None:
        show(json.dumps(record), sys.stdout)


class Named(Silent):
    """Passes every record to another progress, with the name of its run."""

    def __init__(self, shown: Silent, run: Path) -> None:
        self.shown, self.run = shown, run

    def watch(self, path: Path, graph: KnowledgeGraph, model: Model) -> None:
        self.shown.watch(path, graph, model)

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        self.shown.start(state, done, steps, epochs)

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        self.shown.advance(state, chunk, seconds, loss)

    def epoch(self, record: dict[str, Any]) -> None:
        self.shown.epoch({"run": str(self.run), **record})

    def stop(self) -> None:
        self.shown.stop()


class Lines(Silent):
    """A line on standard error for every validation, and if there is none for long; for logs."""

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        super().start(state, done, steps, epochs)
        self.epochs = epochs
        self.said = time.monotonic()

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        if time.monotonic() - self.said >= LINE_EVERY:
            speed = f"{chunk.triples / max(seconds, 1e-9):,.0f} triples/s"
            self._say(f"in epoch {state.epoch + 1}/{self.epochs}: loss {loss:.4f}, {speed}")

    def epoch(self, record: dict[str, Any]) -> None:
        if "valid" in record:
            run = f"{record['run']}, " if "run" in record else ""
            figures = f"loss {record['loss']:.4f}, {validated(record)} {record['valid']['mrr']:.3f}"
            self._say(f"{run}epoch {record['epoch']}/{self.epochs}: {figures}, {record['seconds']:,.0f} s")

    def _say(self, line: str) -> None:
        show(line, sys.stderr)
        self.said = time.monotonic()


class Bar(Silent):
    """A progress bar on standard error with loss, validation MRR, triples per second and time left."""

    def __init__(self) -> None:
        self.bar = Progress(console=console(), transient=True)

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        super().start(state, done, steps, epochs)
        self.epochs, self.width = epochs, 0
        self.loss, self.speed = "–", 0.0
        self.validated, self.mrr = VALID, "–" if state.best_mrr is None else f"{state.best_mrr:.3f}"
        self.task = self.bar.add_task(
            "", total=steps * epochs, completed=steps * state.epoch + done, **self._fields(state.epoch)
        )
        self.bar.start()

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        speed = chunk.triples / max(seconds, 1e-9)
        self.speed = speed if not self.speed else 0.8 * self.speed + 0.2 * speed
        self.loss = f"{loss:.4f}"
        self.bar.update(self.task, advance=chunk.steps, **self._fields(state.epoch))

    def epoch(self, record: dict[str, Any]) -> None:
        if "valid" in record:
            self.mrr = f"{record['valid']['mrr']:.3f}"
            if (name := validated(record)) != self.validated:
                self.validated, self.width = name, 0  # its column is made again
        self.bar.update(self.task, **self._fields(record["epoch"]))

    def stop(self) -> None:
        self.bar.stop()

    def _fields(self, epoch: int) -> dict[str, Any]:
        if self.bar.console.width != self.width:  # a terminal may be made narrower while it is watched
            self.width = self.bar.console.width
            self.bar.columns = columns(self.width, self.epochs, self.validated)
        speed = f"{self.speed:,.0f} triples/s" if self.speed else ""
        return {"epoch": f"{epoch}/{self.epochs}", "loss": self.loss, "mrr": self.mrr, "speed": speed}


def validated(record: dict[str, Any]) -> str:
    """What the MRR of a validation is called: of a few candidates it is another number than of all entities."""
    return "sampled MRR" if record["valid"].get("protocol") == "sampled" else VALID


def columns(width: int, epochs: int, validated: str = VALID) -> tuple[ProgressColumn, ...]:
    """The columns that fit into ``width`` characters, in their order; the speed is dropped first, then the bar, the
    MRR.

    A column needs its own width and a space before it.
    """
    epoch = len("epoch /") + 2 * len(str(epochs))
    parts: list[tuple[int, int, ProgressColumn]] = [  # how soon it is dropped, its width, itself
        (0, epoch, TextColumn("epoch {task.fields[epoch]}")),
        (4, 21, BarColumn(bar_width=20)),
        (2, 12, TextColumn("loss {task.fields[loss]}")),
        (3, 8 + len(validated), TextColumn(f" {validated} {{task.fields[mrr]}}")),
        (5, 24, TextColumn(" {task.fields[speed]}")),
        (1, 8, TimeRemainingColumn()),
    ]
    kept: set[int] = set()
    for rank, needed, _ in sorted(parts, key=lambda part: part[0]):
        if needed > width:
            break
        width -= needed
        kept.add(rank)
    return tuple(column for rank, _, column in parts if rank in kept)


def chosen(*, json: bool, quiet: bool) -> Silent:
    """The progress that a command's options choose."""
    if json:
        return JsonLines()
    return Silent() if quiet else usual()


def usual() -> Silent:
    """A bar in a notebook or on a terminal; otherwise lines for a log."""
    if in_notebook():
        from murp.training.notebook import NotebookBar

        return NotebookBar()
    return Bar() if watched() else Lines()
