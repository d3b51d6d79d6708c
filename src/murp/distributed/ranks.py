"""The processes that train one model together: those that torchrun has started, or this one alone.

Tensors travel through torch.distributed: gloo on CPUs, NCCL on GPUs. What the ranks have to agree on travels as text,
always through gloo. Where one rank fails the others stop too: at once if they are told, or as soon as they miss it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from murp.errors import MurpError, first_line

RUN_ID, RESTARTS = "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"  # which torchrun sets


class RankError(MurpError):
    """What another rank has failed with. It is told by one rank alone: the others are ``silent``."""

    def __init__(self, message: str, *, silent: bool) -> None:
        super().__init__(message)
        self.silent = silent

    def __reduce__(self) -> tuple[Any, ...]:
        return _rank_error, (str(self), self.silent)


def _rank_error(message: str, silent: bool) -> RankError:
    return RankError(message, silent=silent)


@dataclass
class OnTheWay:
    """Numbers that travel; ``sent`` is kept until they have arrived."""

    sent: Tensor
    found: Tensor
    work: dist.Work | None

    def wait(self) -> Tensor:
        """What has arrived."""
        if self.work is not None:
            with _missing():
                self.work.wait()
        return self.found


class Ranks:
    """This process (``rank``) among ``size``; ``sent`` counts the bytes that it has sent to others.

    ``group``: of torch.distributed; None is the one that all begin with.
    """

    def __init__(self, rank: int = 0, size: int = 1, group: dist.ProcessGroup | None = None) -> None:
        self.rank, self.size, self.group = rank, size, group
        self.sent = 0

    def aside(self) -> Ranks:
        """The same processes with connections of their own (gloo), for a thread: its messages meet no others."""
        if self.size == 1:
            return self
        with _missing():
            return Ranks(self.rank, self.size, dist.new_group(backend="gloo"))

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes what is written once."""
        return self.rank == 0

    def exchange(self, values: Tensor, outgoing: Sequence[int], incoming: Sequence[int]) -> Tensor:
        """Parts of ``values`` (n), as long as ``outgoing`` says, to each rank; what each sent, one after another.

        ``incoming`` says how long these are.
        """
        return self.begin(values, outgoing, incoming).wait()

    def begin(self, values: Tensor, outgoing: Sequence[int], incoming: Sequence[int]) -> OnTheWay:
        """:meth:`exchange` without waiting. Every rank begins its exchanges in the same order."""
        if self.size == 1:
            return OnTheWay(values, values, None)
        self.sent += (len(values) - outgoing[self.rank]) * values.itemsize
        found, values = values.new_empty(sum(incoming)), values.contiguous()
        with _missing():
            work = dist.all_to_all_single(found, values, list(incoming), list(outgoing), self.group, async_op=True)
        return OnTheWay(values, found, work)

    def total(self, values: Tensor) -> Tensor:
        """The sum over all ranks, in place; exact for whole numbers, and where one rank alone has no zeros."""
        if self.size > 1:
            with _missing():
                dist.all_reduce(values, group=self.group)
        return values

    def one_of(self, values: Tensor) -> Tensor:
        """The values of the rank that has them, bit for bit; all others have zeros there."""
        whole = {4: torch.int32, 8: torch.int64}[values.itemsize]
        return self.total(values.view(whole)).view(values.dtype)

    def gathered(self, value: Any) -> list[Any]:
        """What each rank says."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        with _missing():
            dist.all_gather_object(found, value, self.group)
        return found

    def agreed(self, *flags: bool) -> tuple[bool, ...]:
        """Each flag as it is where any rank has raised it."""
        if self.size == 1:
            return flags
        raised = torch.tensor(flags, dtype=torch.int32)
        with _missing():
            dist.all_reduce(raised, dist.ReduceOp.MAX, self.group)
        return tuple(bool(flag) for flag in raised)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Where a rank fails with a :class:`MurpError` in this block all ranks do; the first one tells it."""
        failure: MurpError | None = None
        try:
            yield
        except MurpError as error:
            failure = error
        if self.size == 1:
            if failure is not None:
                raise failure
            return
        if isinstance(failure, RankError):
            raise failure  # the others know
        said = self.gathered(None if failure is None else str(failure))
        failed = [rank for rank, text in enumerate(said) if text is not None]
        if not failed:
            return
        text = said[failed[0]]
        shown = text if len(failed) == self.size else f"rank {failed[0]} of {self.size}: {text}"
        raise RankError(shown, silent=not self.first) from failure

    def same(self, what: str, values: dict[str, Any], advice: str) -> None:
        """Raise on every rank unless all have the same ``values``."""
        said = self.gathered(values)
        for rank, other in enumerate(said):
            if other != said[0]:
                names = [name for name in {**said[0], **other} if said[0].get(name) != other.get(name)]
                shown = ", ".join(f"{name}: {said[0].get(name)} there, {other.get(name)} here" for name in names)
                message = f"the ranks do not have the same {what}. Rank 0 and rank {rank} differ in {shown}. {advice}"
                raise RankError(message, silent=not self.first)


@contextlib.contextmanager
def _missing() -> Iterator[None]:
    """What torch.distributed says when another rank has gone."""
    try:
        yield
    except (dist.DistError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError) or not dist.is_initialized():
            raise
        global _failed
        _failed = True
        raise RankError(
            f"another rank has stopped, and this one cannot go on without it ({first_line(error)}).",
            silent=True,
        ) from error


_joined: Ranks | None = None
_failed = False


def launched() -> bool:
    """Whether torchrun has started this process."""
    return RUN_ID in os.environ


def restarted() -> bool:
    """Whether torchrun has started it again, because a rank had failed."""
    return launched() and os.environ.get(RESTARTS, "0") not in ("", "0")


def join() -> Ranks:
    """The ranks that torchrun has started, connected with each other; without torchrun this process alone."""
    global _joined
    if not launched() or os.environ["WORLD_SIZE"] == "1":
        return Ranks()
    if _joined is None:
        _joined = _connected()
    return _joined


def _connected() -> Ranks:
    size, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if size == local and "lo" in (name for _, name in socket.if_nameindex()):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # one machine needs no network
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    try:
        store, rank, _ = next(rendezvous("env://"))
        # torchrun keeps its store from one attempt to the next, with the addresses of ranks that are gone.
        store = PrefixStore(f"murp/{os.environ.get(RESTARTS, '0')}", store)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    except (dist.DistError, RuntimeError, ValueError) as error:
        raise MurpError(f"the ranks cannot connect: {first_line(error)}") from error
    atexit.register(_leave)
    return Ranks(dist.get_rank(), dist.get_world_size())


def failed() -> None:
    """This rank has failed, and the others do not know it yet: they notice that it has gone."""
    global _failed
    _failed = True


def _leave() -> None:
    """At the end of the process. One that has failed does not say good-bye: gloo would wait for the others' answer."""
    if _failed or hasattr(sys, "last_value"):  # what was not caught
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(1)
    if dist.is_initialized():
        dist.destroy_process_group()
