"""Accept clients, up to a maximum number of connections."""

from __future__ import annotations

import asyncio
import errno
import socket

import uvicorn

from murp.web.protocol import Protocol

CONNECTIONS = 128  # at a time
LEAST_IDLE = 0.1  # seconds that a connection may be idle while other clients wait to be accepted
LONGEST_WAIT = 1.0  # seconds that a client waits; after that the idlest connection is closed in any case
AGAIN = 0.01  # seconds between two looks for a free connection
TOO_MANY = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}  # for one more in this process


class Server(uvicorn.Server):
    """A server with at most ``CONNECTIONS`` connections.

    If all are in use, a new connection closes the one that has been idle for longest (neither sent a request nor read).
    So clients that are slow, silent or do not read never block others, however many they are. uvicorn would accept
    connections until the process can open no more files.
    """

    grace: float = 0.0  # seconds that requests may still take when the server is to end
    _accepting: tuple[asyncio.Task[None], ...] = ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._accepting = tuple(asyncio.create_task(self._accept(bound)) for bound in sockets or ())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more clients, and close all connections; those with a request in progress after at most ``grace``
        seconds.

        Otherwise a client that does not read, or waits for minutes, would delay the end.
        """
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        loop = asyncio.get_running_loop()
        end = loop.time() + self.grace
        while loop.time() < end and any(connection.answering for connection in self._connected()):
            await asyncio.sleep(AGAIN)
        for connection in self._connected():
            connection.hang_up()
        await super().shutdown(sockets=sockets)

    async def _accept(self, bound: socket.socket) -> None:
        """Accept one client after the other from the system's queue."""
        bound.setblocking(False)
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(bound)
            except OSError as error:
                await (self._make_room() if error.errno in TOO_MANY else asyncio.sleep(LEAST_IDLE))
            else:
                await self._take(client)

    async def _take(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        came = loop.time()
        try:
            while len(self.server_state.connections) >= CONNECTIONS:
                await self._make_room(loop.time() - came)
            await loop.connect_accepted_socket(self._protocol, client)
        except OSError:
            client.close()  # it has left again
        except asyncio.CancelledError:
            client.close()
            raise

    def _protocol(self) -> Protocol:
        return Protocol(config=self.config, server_state=self.server_state, app_state={})

    async def _make_room(self, waited: float = 0.0) -> None:
        """Close the idlest connection, if it has been idle for ``LEAST_IDLE`` or another client has waited for long; or
        wait."""
        idlest = max(self._connected(), key=lambda connection: connection.idle, default=None)
        if idlest is not None and (idlest.idle >= LEAST_IDLE or waited >= LONGEST_WAIT):
            idlest.hang_up()
            await asyncio.sleep(0)  # it leaves now
        else:
            await asyncio.sleep(AGAIN)

    def _connected(self) -> list[Protocol]:
        return [connection for connection in self.server_state.connections if isinstance(connection, Protocol)]
