"""Letting clients in, no more than there are places for."""

from __future__ import annotations

import asyncio
import errno
import socket

import uvicorn

from murp.web.protocol import Protocol

CONNECTIONS = 128  # at a time
COURTESY = 0.1  # seconds that a client may keep its place for nothing while others wait at the door
LONGEST_WAIT = 1.0  # seconds at the door; after that someone loses its place in any case
AGAIN = 0.01  # seconds until it is looked for a free place again
NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}  # for one more connection in this process


class Server(uvicorn.Server):
    """A server with ``CONNECTIONS`` places.

    When they are taken and someone new comes, whoever has neither asked nor read for longest loses its place. So
    clients that are slow, silent or do not read shut nobody out, however many they are, and not even those that never
    stop asking do. uvicorn would let in as many as come, until the process may open no more files.
    """

    grace: float = 0.0  # seconds that requests may still take when the server is to end
    _doors: tuple[asyncio.Task[None], ...] = ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._doors = tuple(asyncio.create_task(self._let_in(bound)) for bound in sockets or ())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody in, and hang up, on those who are being answered after ``grace`` seconds at most.

        A client that does not read, or waits for what takes minutes, would hold up the end.
        """
        for door in self._doors:
            door.cancel()
        await asyncio.gather(*self._doors, return_exceptions=True)
        loop = asyncio.get_running_loop()
        end = loop.time() + self.grace
        while loop.time() < end and any(connection.answering for connection in self._inside()):
            await asyncio.sleep(AGAIN)
        for connection in self._inside():
            connection.hang_up()
        await super().shutdown(sockets=sockets)

    async def _let_in(self, bound: socket.socket) -> None:
        """Take one client after the other from the queue that the system keeps."""
        bound.setblocking(False)
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(bound)
            except OSError as error:
                await (self._make_room() if error.errno in NO_ROOM else asyncio.sleep(COURTESY))
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
        """Hang up on the idlest client, if it has been idle for ``COURTESY`` or another waits for long; or wait."""
        idlest = max(self._inside(), key=lambda connection: connection.idle, default=None)
        if idlest is not None and (idlest.idle >= COURTESY or waited >= LONGEST_WAIT):
            idlest.hang_up()
            await asyncio.sleep(0)  # it leaves now
        else:
            await asyncio.sleep(AGAIN)

    def _inside(self) -> list[Protocol]:
        return [connection for connection in self.server_state.connections if isinstance(connection, Protocol)]
