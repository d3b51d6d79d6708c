"""What it costs to send the bytes of a step through sockets, and nothing else.

Part of benchmarks/distributed.py. Gloo sends through the same kind of sockets, so this is the least that ranks on one
machine can pay: the system copies every message from the sender into the kernel and from there to the receiver.
"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import selectors
import socket
from collections.abc import Sequence
from multiprocessing.connection import Connection


def work_of_sending(ranks: int, length: int, times: int) -> list[float]:
    """Seconds of processor time that each of ``ranks`` processes needs to send ``length`` bytes to each of the others
    and to receive as many, so many ``times``."""
    context = multiprocessing.get_context("spawn")
    ends: list[list[socket.socket]] = [[] for _ in range(ranks)]
    for a, b in itertools.combinations(range(ranks), 2):
        for rank, end in zip((a, b), _connected(), strict=True):
            ends[rank].append(end)
    pipes = [context.Pipe() for _ in range(ranks)]
    processes = [
        context.Process(target=_rank, args=(own, length, times, pipe))
        for own, (_, pipe) in zip(ends, pipes, strict=True)
    ]
    try:
        for process in processes:
            process.start()
        # A process that dies closes the last copies of its ends, and the others notice.
        for closed in (*itertools.chain(*ends), *(pipe for _, pipe in pipes)):
            closed.close()
        return [pipe.recv() for pipe, _ in pipes]
    finally:
        for process in processes:
            process.join(10)
            process.terminate()
            process.join()


def _connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    return one, other


def _rank(peers: Sequence[socket.socket], length: int, times: int, pipe: Connection) -> None:
    """One process. The first rounds are not counted: the system lets the buffers of a connection grow."""
    outgoing = {peer: memoryview(bytearray(length)) for peer in peers}
    incoming = {peer: memoryview(bytearray(length)) for peer in peers}
    for peer in peers:
        peer.setblocking(False)
    for _ in range(min(times, 8)):
        _exchange(outgoing, incoming)
    before = _work()
    for _ in range(times):
        _exchange(outgoing, incoming)
    pipe.send(_work() - before)


def _work() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _exchange(outgoing: dict[socket.socket, memoryview], incoming: dict[socket.socket, memoryview]) -> None:
    """Send and receive what there is, whichever can go on; the process sleeps where nothing can."""
    unsent, missing = dict(outgoing), dict(incoming)
    with selectors.DefaultSelector() as selector:
        for peer in outgoing:
            selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while selector.get_map():
            for key, events in selector.select():
                peer = key.fileobj
                assert isinstance(peer, socket.socket)
                if events & selectors.EVENT_WRITE:
                    unsent[peer] = unsent[peer][peer.send(unsent[peer]) :]
                if events & selectors.EVENT_READ:
                    count = peer.recv_into(missing[peer])
                    if count == 0:
                        raise ConnectionError("another process has ended")
                    missing[peer] = missing[peer][count:]
                wanted = (selectors.EVENT_WRITE if unsent[peer] else 0) | (selectors.EVENT_READ if missing[peer] else 0)
                if not wanted:
                    selector.unregister(peer)
                elif wanted != key.events:
                    selector.modify(peer, wanted)
