"""Access control: API keys, and a rate limit for each client."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from murp.errors import ConfigError
from murp.paths import not_a_file

SHORTEST = 16  # characters of a key: shorter ones can be guessed
CLIENTS = 10_000  # whose rate is kept; of more, those that have asked least of late are forgotten


def read_keys(path: Path) -> frozenset[bytes]:
    """The digests of the keys in a file: one per line; empty lines and those that begin with # do not count."""
    if (why := not_a_file(path)) is not None:
        raise ConfigError(f"{path} {why}. --keys names a file with one API key per line.")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:  # not UTF-8, or a name that no file has
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be read: {reason}. --keys names a file with one API key per line.") from None
    keys = {number: line.strip() for number, line in enumerate(lines, start=1)}
    return digests({f"{path}:{number}": key for number, key in keys.items() if key and not key.startswith("#")}, path)


def digests(keys: dict[str, str], where: object) -> frozenset[bytes]:
    """The digests of keys, each named by its place; an invalid key is refused without printing it."""
    for place, key in keys.items():
        if len(key) < SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(
                f"{place}: an API key has at least {SHORTEST} characters of ASCII without blanks. "
                "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` makes one."
            )
    if not keys:
        raise ConfigError(f"{where} has no API key. Put one a line into it, or leave --keys out.")
    return frozenset(digest(key.encode()) for key in keys.values())


def digest(key: bytes) -> bytes:
    """The digest of a key, which is stored and compared: the time of a comparison reveals nothing about the key."""
    return hashlib.sha256(key).digest()


def key_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The key of a request: ``X-API-Key: KEY`` or ``Authorization: Bearer KEY``."""
    for name, value in headers:
        if name == b"x-api-key":
            return value.strip()
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip()
    return None


class Rates:
    """Each client may send the questions of one second at once; they refill at ``rate`` per second.

    A client that was idle for a second may send a larger batch, and must then wait longer.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self._left: dict[bytes, tuple[float, float]] = {}  # questions, and when that was so

    def wait(self, client: bytes, questions: int) -> int:
        """Take questions from a client's allowance and return 0; or take none and return the seconds until it may ask
        again."""
        if not self.rate:
            return 0
        now, full = self.clock(), max(self.rate, 1.0)
        before, at = self._left.pop(client, (full, now))
        left = min(full, before + (now - at) * self.rate)
        missing = min(questions, full) - left
        self._left[client] = (left - questions if missing <= 0 else left, now)  # the newest last
        while len(self._left) > CLIENTS:
            del self._left[next(iter(self._left))]
        return math.ceil(max(missing, 0.0) / self.rate)
