"""Binding to a port and serving until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from murp.errors import MurpError
from murp.explorer.app import create_app, create_live_app
from murp.explorer.collection import Collection, one_thread
from murp.explorer.door import Server
from murp.explorer.live import Live
from murp.explorer.protocol import PATIENCE, Protocol
from murp.explorer.security import is_loopback

QUEUE = 1024  # clients that wait to be let in


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    missing: OSError | None = None
    for family, kind, protocol, _, address in _addresses(host, port):
        try:
            return _listening(socket.socket(family, kind, protocol), address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise MurpError(
                    f"port {port} of {host} is in use. Choose another with --port, or --port 0 for a free one."
                ) from None
            missing = missing or error
    why = missing.strerror if missing else "it has no address"
    raise MurpError(f"cannot listen on {host}, port {port}: {why}. Choose another --host or --port.")


def _addresses(host: str, port: int) -> list[Any]:
    """What a name stands for, often an address of each family; 127.0.0.1 is ::1 where there is no IPv4."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "this is no host name"
        raise MurpError(f"cannot listen on --host {host}: {why}. Give an address of this machine.") from None
    return found + _addresses("::1", port) if host == "127.0.0.1" and socket.has_ipv6 else found


def _listening(bound: socket.socket, address: Any) -> socket.socket:
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(QUEUE)
    except OSError:
        bound.close()
        raise
    return bound


def address_of(bound: socket.socket) -> str:
    """Where a browser on this machine finds the page; no name is in it, since this machine may know none."""
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def configured(app: ASGIApp) -> uvicorn.Config:
    """How an application is served."""
    return uvicorn.Config(
        app,
        http=Protocol,
        loop="auto",  # uvloop where there is one
        ws="none",
        lifespan="off",
        log_config=None,  # where it logs and how is left to whoever imports us, and needs no standard output
        log_level="error",  # what it warns of are requests that are no HTTP
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=PATIENCE,
    )


def ready(collection: Collection, host: str, *, framed: bool = False) -> Server:
    """A server that has compiled what it answers with; ``framed``: a page of this machine may show it in a frame."""
    server = Server(configured(create_app(collection, host, framed=framed)))
    for exhibit in collection.exhibits:
        exhibit.answers.to_one(0, 0, 1)  # compiles, before the first who asks has to wait for it
    collection.evaluate()
    return server


@one_thread()
def serve(collection: Collection, bound: socket.socket, host: str) -> None:
    """Answer until Ctrl-C."""
    server = ready(collection, host)
    try:
        _run(server, bound)
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


def _run(server: Server, bound: socket.socket) -> None:
    """Serve until the end; in a thread of its own where this one has a loop running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        server.run(sockets=[bound])
        return
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="murp-explorer")
    thread.start()
    try:
        thread.join()
    finally:
        server.should_exit = True
        thread.join()


def warning(host: str) -> str | None:
    """What to tell a user who opens the explorer to others."""
    if is_loopback(host):
        return None
    return f"--host {host}: everyone who can reach this machine can read the run. There is no password."
