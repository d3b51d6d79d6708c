"""How much a client may ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from murp.errors import ConfigError
from murp.web.refusals import Refused

MOST_ANSWERS = 1000  # to one question
LONGEST_NAME = 500  # characters


class LateError(Exception):
    """The time of a request is over."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one request: its ``questions`` (or triples), its ``bytes``, and the ``seconds`` its answer may take.

    ``rate``: questions a second of one client, over time; 0: any number. A client is an API key where there are keys,
    an address if there are none.
    """

    questions: int = 1000
    bytes: int = 4 * 2**20
    seconds: float = 10.0
    rate: float = 0.0

    def __post_init__(self) -> None:
        for name in ("questions", "bytes", "seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"the limit of {name} must be above 0, not {getattr(self, name)!r}.")
        if not 0 <= self.rate < float("inf"):
            raise ConfigError(f"the rate must be 0 (no limit) or above, not {self.rate!r}.")

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[float]:
        """Refuse what takes longer than ``seconds``: looking names up and answering. Gives the moment when it is late.

        That is for work in a thread, which raises :class:`LateError` then.
        """
        try:
            async with asyncio.timeout(self.seconds):
                yield time.monotonic() + self.seconds
        except (TimeoutError, LateError):
            raise Refused(
                503, f"the answer would take longer than {self.seconds:g} s.", "Ask less at a time, or later."
            ) from None
