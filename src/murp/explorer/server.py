"""The explorer's applications, served: until Ctrl-C, or while a training goes on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from murp.explorer.app import create_app, create_live_app
from murp.explorer.collection import Collection
from murp.explorer.live import Live
from murp.threads import one_thread
from murp.web.connections import Server
from murp.web.security import is_loopback
from murp.web.server import configured, run_to_end


def ready(collection: Collection, host: str, *, framed: bool = False) -> Server:
    """A server that has compiled what it answers with; ``framed``: a page of this machine may show it in a frame."""
    server = Server(configured(create_app(collection, host, framed=framed)))
    for prepared in collection.prepared:
        prepared.answers.to_one(0, 0, 1)  # compiles, before the first who asks has to wait for it
    collection.evaluate()
    return server


@one_thread()
def serve(collection: Collection, bound: socket.socket, host: str) -> None:
    """Answer until Ctrl-C."""
    server = ready(collection, host)
    try:
        run_to_end(server, bound)
    except KeyboardInterrupt:
        pass  # how it is meant to end
    finally:
        bound.close()


@contextlib.contextmanager
def watching(live: Live, bound: socket.socket, host: str) -> Iterator[None]:
    """Show a training in a thread while the block trains."""
    server = Server(configured(create_live_app(live, host)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="murp-watched", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=10)


def warning(host: str) -> str | None:
    """What to tell a user who opens the explorer to others."""
    if is_loopback(host):
        return None
    return f"--host {host}: everyone who can reach this machine can read the run. There is no password."
