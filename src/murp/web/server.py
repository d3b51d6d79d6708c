"""Binding to a port, and serving an application until its end."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from murp.errors import MurpError
from murp.web.connections import Server
from murp.web.protocol import PATIENCE, Protocol

QUEUE = 1024  # clients that wait to be let in
LAST_PORT = 65535


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    if not 0 <= port <= LAST_PORT:
        raise MurpError(
            f"port {port}: ports end at {LAST_PORT}. Choose another with --port, or --port 0 for a free one."
        )
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
    """What a name stands for, often an address of each family; 127.0.0.1 is ::1 if there is no IPv4."""
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
        loop="auto",  # uvloop if there is one
        ws="none",
        lifespan="off",
        log_config=None,  # where it logs and how is left to whoever imports us, and needs no standard output
        log_level="error",  # what it warns of are requests that are no HTTP
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=PATIENCE,
    )


def run_to_end(server: Server, bound: socket.socket) -> None:
    """Serve until the end; in a thread of its own where this one has a loop running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        server.run(sockets=[bound])
        return
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="murp-server")
    thread.start()
    try:
        thread.join()
    finally:
        server.should_exit = True
        thread.join()
