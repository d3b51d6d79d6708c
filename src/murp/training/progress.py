"""What a person or a machine sees while a model trains."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from murp.engines import Chunk
from murp.training.state import State


class Silent:
    """Says nothing; also the interface of the other two."""

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        """Training begins, or goes on, at ``state``; ``done`` of the epoch's ``steps`` steps are behind it."""

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        """The steps of ``chunk`` are done, in ``seconds``; their mean loss."""

    def epoch(self, record: dict[str, Any]) -> None:
        """An epoch is done; ``record`` is its line of metrics.jsonl."""

    def stop(self) -> None:
        """Training ended, however it did."""


class JsonLines(Silent):
    """One JSON object a line on standard output for every epoch."""

    def epoch(self, record: dict[str, Any]) -> None:
        print(json.dumps(record), flush=True)


class Bar(Silent):
    """A progress bar on standard error with loss, validation MRR, triples a second and time left."""

    def __init__(self) -> None:
        from rich.console import Console

        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            TextColumn("loss {task.fields[loss]}  valid MRR {task.fields[mrr]}  {task.fields[speed]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        self.steps, self.epochs = steps, epochs
        self.loss, self.speed = "–", 0.0
        self.mrr = "–" if state.best_mrr is None else f"{state.best_mrr:.3f}"
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
        self.bar.update(self.task, **self._fields(record["epoch"]))

    def stop(self) -> None:
        self.bar.stop()

    def _fields(self, epoch: int) -> dict[str, Any]:
        speed = f"{self.speed:,.0f} triples/s" if self.speed else ""
        return {"epoch": f"{epoch}/{self.epochs}", "loss": self.loss, "mrr": self.mrr, "speed": speed}


def for_terminal() -> Silent:
    """A bar where a person watches standard error, silence otherwise."""
    return Bar() if sys.stderr.isatty() else Silent()
