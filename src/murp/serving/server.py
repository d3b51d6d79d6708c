"""Serving a run: until Ctrl-C or SIGTERM, or in the background of a Python process."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from murp.errors import ConfigError
from murp.runs.run import Checkpoint
from murp.serving.access import digests, read_keys
from murp.serving.app import create_app
from murp.serving.current import Current
from murp.serving.limits import Limits
from murp.threads import one_thread
from murp.web.background import Background
from murp.web.connections import Server
from murp.web.security import is_loopback
from murp.web.server import bind, configured, run_to_end

GRACE = 10.0  # seconds that requests may still take when the server is to end


class Service(Background):
    """A running server of predictions: ``address`` is where this machine finds it.

    It ends with :meth:`close`, at the end of a ``with``, or with the process.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        keys: str | os.PathLike[str] | list[str] | None = None,
        limits: Limits | None = None,
        types: bool = False,
        approximate: bool = False,
        checkpoint: Checkpoint | None = None,
        device: str = "cpu",
    ) -> None:
        known = _known(keys)
        bound = bind(host, port)
        try:
            self.current, server = ready(
                Path(path), host, known, limits or Limits(), checkpoint, device, types=types, approximate=approximate
            )
        except BaseException:
            bound.close()
            raise
        super().__init__(server, bound)
        self.current.watch()

    def close(self) -> None:
        """End the server; what is closed already stays so."""
        self.current.close()
        super().close()


def ready(
    path: Path,
    host: str,
    keys: frozenset[bytes],
    limits: Limits,
    checkpoint: Checkpoint | None,
    device: str,
    *,
    types: bool,
    approximate: bool,
) -> tuple[Current, Server]:
    """The run, loaded, and a server of it."""
    with one_thread():
        current = Current(path, checkpoint, device, types=types, approximate=approximate)
    server = Server(configured(create_app(current, limits, keys, host)))
    server.grace = GRACE
    return current, server


def serve(current: Current, server: Server, bound: socket.socket) -> None:
    """Answer until Ctrl-C."""
    current.watch()
    try:
        with one_thread():
            run_to_end(server, bound)
    except KeyboardInterrupt:
        pass  # how it is meant to end
    finally:
        current.close()
        bound.close()


def _known(keys: str | os.PathLike[str] | list[str] | None) -> frozenset[bytes]:
    """The digests of keys: of a list, or of a file with one per line."""
    if keys is None:
        return frozenset()
    if isinstance(keys, list):
        if not all(isinstance(key, str) for key in keys):
            raise ConfigError("keys is a file with an API key a line, or a list of texts.")
        return digests({f"key {number}": key for number, key in enumerate(keys, start=1)}, "keys")
    return read_keys(Path(keys))


def warning(host: str, keys: bool) -> str | None:
    """What to tell a user who opens the server to others."""
    if keys or is_loopback(host):
        return None
    return f"--host {host}: everyone who can reach this machine can ask the run. --keys FILE lets in who has a key."
