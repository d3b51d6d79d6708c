"""The progress of a training in a notebook: a bar that is redrawn in the output of its cell."""

from __future__ import annotations

import time
from typing import Any

from murp.engines import Chunk
from murp.training.progress import VALID, Silent, validated
from murp.training.state import State

EVERY = 0.2  # seconds between two pictures


class NotebookBar(Silent):
    """Epochs, loss, validation MRR, speed and time left; the last state stays when training ends."""

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        from IPython.display import HTML, display

        super().start(state, done, steps, epochs)
        self.epochs, self.steps, self.done = epochs, steps * epochs, steps * state.epoch + done
        self.first, self.begun_at, self.drawn_at = self.done, time.monotonic(), 0.0
        self.loss, self.speed, self.at = "–", 0.0, state.epoch
        self.validated, self.mrr = VALID, "–" if state.best_mrr is None else f"{state.best_mrr:.3f}"
        self.html = HTML
        self.cell: Any = display(HTML(self.picture()), display_id=True)

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        speed = chunk.triples / max(seconds, 1e-9)
        self.speed = speed if not self.speed else 0.8 * self.speed + 0.2 * speed
        self.loss, self.done, self.at = f"{loss:.4f}", self.done + chunk.steps, state.epoch
        if time.monotonic() - self.drawn_at >= EVERY:
            self._draw()

    def epoch(self, record: dict[str, Any]) -> None:
        self.at, self.loss = record["epoch"], f"{record['loss']:.4f}"
        if "valid" in record:
            self.validated, self.mrr = validated(record), f"{record['valid']['mrr']:.3f}"

    def stop(self) -> None:
        if self.begun:
            self._draw()

    def picture(self) -> str:
        """The bar and the numbers beside it, as HTML."""
        passed = time.monotonic() - self.begun_at
        behind = self.done - self.first
        left = passed * (self.steps - self.done) / behind if behind else 0.0
        speed = f"{self.speed:,.0f} triples/s, " if self.speed else ""
        time_left = f"{left:,.0f} s left" if self.done < self.steps else f"{passed:,.0f} s"
        return (
            f'<progress value="{self.done}" max="{self.steps}" style="width:16em;vertical-align:middle"></progress> '
            f"epoch {self.at}/{self.epochs}, loss {self.loss}, {self.validated} {self.mrr}, {speed}{time_left}"
        )

    def _draw(self) -> None:
        self.drawn_at = time.monotonic()
        if self.cell is not None:  # no frontend gave a place to redraw
            self.cell.update(self.html(self.picture()))
