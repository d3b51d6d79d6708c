"""The processes that train one model together: those that torchrun started, or only this one.

Tensors are sent with torch.distributed: gloo on CPUs, NCCL on GPUs. Values on which the ranks must agree are sent as
text, always with gloo. If one rank fails, the others stop too: at once if they get a message, or as soon as they notice
that it is gone. One of them prints why.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from murp.commands import command
from murp.errors import ConfigError, MurpError, first_line, is_of_memory

RUN_ID, RESTARTS = "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"  # which torchrun sets
PATIENCE = 5.0  # seconds in which the store of torchrun answers, unless its machine is gone
WATCH = 0.5  # seconds between two looks at what NCCL says
# For what one rank does alone while the others wait. They notice at once if it dies, and must not give up before:
# gloo usually waits 30 minutes.
LONGEST_WAIT = timedelta(days=7)
SAME_COMMAND = "Start torchrun with the same command on every machine."


class RankError(MurpError):
    """What stops all ranks. Only one rank prints it: the others are ``silent``.

    ``silent=None``: nothing was agreed on, and the first rank that asks :func:`speaks` prints its error. It asks when
    it is about to print: a rank that asked earlier might be stopped by torchrun before it has printed anything.
    """

    def __init__(self, message: str, *, silent: bool | None) -> None:
        super().__init__(message)
        self._silent = silent

    @property
    def silent(self) -> bool:  # type: ignore[override]
        """Whether another rank prints it."""
        if self._silent is None:
            self._silent = not speaks()
        return self._silent

    def __reduce__(self) -> tuple[Any, ...]:
        return _rank_error, (str(self), self.silent)


class GoneError(RankError):
    """Another rank is gone, for this ``reason``; ``advice`` says how to start again."""

    def __init__(self, reason: str, advice: str = "Then start the same command again.") -> None:
        self.reason = reason
        super().__init__(
            f"another rank has stopped without a message, or cannot be reached ({reason}). It may have been killed, "
            f"for example because memory was out: see what torchrun and the log of its machine say. {advice}",
            silent=None,
        )


def no_memory(error: BaseException) -> MurpError:
    """What to tell of a rank whose memory was refused."""
    return MurpError(f"memory was out ({first_line(error)}). Use more ranks, or free some memory.")


def _rank_error(message: str, silent: bool) -> RankError:
    return RankError(message, silent=silent)


@dataclass
class OnTheWay:
    """Numbers that are being sent; ``sent`` is kept until they have arrived."""

    sent: Tensor
    found: Tensor
    work: dist.Work | None

    def wait(self) -> Tensor:
        """What has arrived."""
        if self.work is not None:
            with missing():
                self.work.wait()
        return self.found


class Ranks:
    """This process (``rank``) among ``size``; ``sent`` counts the bytes that it has sent to others.

    ``group`` of torch.distributed; None is the default group.
    """

    def __init__(self, rank: int = 0, size: int = 1, group: dist.ProcessGroup | None = None) -> None:
        self.rank, self.size, self.group = rank, size, group
        self.sent = 0

    def aside(self, timeout: timedelta | None = None) -> Ranks:
        """The same processes with separate connections (gloo), for a thread: its messages do not mix with others.

        ``timeout``: how long they wait for each other; None: as long as gloo usually does.
        """
        if self.size == 1:
            return self
        try:
            with missing():
                return Ranks(self.rank, self.size, dist.new_group(backend="gloo", timeout=timeout))
        except (MemoryError, RuntimeError) as error:
            if not is_of_memory(error):
                raise
            failed()  # the others are waiting for this one's connections
            raise RankError(f"rank {self.rank} of {self.size}: {no_memory(error)}", silent=None) from error

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes what is written once."""
        return self.rank == 0

    def exchange(self, values: Tensor, outgoing: Sequence[int], incoming: Sequence[int]) -> Tensor:
        """Send parts of ``values`` (n), of lengths ``outgoing``, to the ranks. Returns what each rank sent,
        concatenated.

        ``incoming``: the lengths of the received parts.
        """
        return self.begin(values, outgoing, incoming).wait()

    def begin(self, values: Tensor, outgoing: Sequence[int], incoming: Sequence[int]) -> OnTheWay:
        """:meth:`exchange` without waiting. Every rank begins its exchanges in the same order."""
        if self.size == 1:
            return OnTheWay(values, values, None)
        self.sent += (len(values) - outgoing[self.rank]) * values.itemsize
        found, values = values.new_empty(sum(incoming)), values.contiguous()
        with missing():
            work = dist.all_to_all_single(found, values, list(incoming), list(outgoing), self.group, async_op=True)
        return OnTheWay(values, found, work)

    def total(self, values: Tensor) -> Tensor:
        """The sum over all ranks, in place; exact for whole numbers, and if only one rank has values other than
        zero."""
        if self.size > 1:
            with missing():
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
        with missing():
            dist.all_gather_object(found, value, self.group)
        return found

    def agreed(self, *flags: bool) -> tuple[bool, ...]:
        """Each flag is true if it is true on any rank."""
        if self.size == 1:
            return flags
        raised = torch.tensor(flags, dtype=torch.int32)
        with missing():
            dist.all_reduce(raised, dist.ReduceOp.MAX, self.group)
        return tuple(bool(flag) for flag in raised)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """If a rank fails with a :class:`MurpError` in this block, or has no memory, all ranks fail; the first of them
        prints the error."""
        failure: MurpError | None = None
        try:
            yield
        except MurpError as error:
            failure = error
        except (MemoryError, RuntimeError) as error:
            if not is_of_memory(error):
                raise
            failure = no_memory(error)
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

    def started(self, name: str, asked: dict[str, Any] | None = None) -> None:
        """Raise on every rank unless all were started with the command ``name``, and what is ``asked`` of it.

        This comes before all other messages, which other commands do not have in the same order.
        """
        names = self.gathered(name)
        for rank, other in enumerate(names):
            if other != names[0]:
                raise RankError(
                    f"the ranks were started with different commands: rank 0 with `murp {names[0]}`, rank {rank} with "
                    f"`murp {other}`. {SAME_COMMAND}",
                    silent=not self.first,
                )
        if asked is not None:
            self.same("arguments", asked, SAME_COMMAND)

    def same(self, what: str, values: dict[str, Any], advice: str) -> None:
        """Raise on every rank unless all have the same ``values``."""
        said = self.gathered(values)
        for rank, other in enumerate(said):
            if other != said[0]:
                names = [name for name in {**said[0], **other} if said[0].get(name) != other.get(name)]
                shown = "; ".join(
                    f"{name}: rank 0 has {said[0].get(name)}, rank {rank} has {other.get(name)}" for name in names
                )
                message = f"the ranks do not have the same {what}. They differ in {shown}. {advice}"
                raise RankError(message, silent=not self.first)


@contextlib.contextmanager
def missing() -> Iterator[None]:
    """Turn torch.distributed's errors about a missing rank into a GoneError. A lack of memory is not one of them."""
    try:
        yield
    except (dist.DistError, RuntimeError) as error:
        if is_of_memory(error) or not dist.is_initialized():
            raise
        failed()
        raise GoneError(_reason(error)) from error


@contextlib.contextmanager
def resumable(path: Path) -> Iterator[None]:
    """There is a run folder at ``path``: if a rank is gone, the message says how to continue that run."""
    _runs.append(path)
    try:
        yield
    except GoneError as error:
        raise GoneError(error.reason, _advice(path)) from error.__cause__
    finally:
        _runs.remove(path)


def _advice(path: Path) -> str:
    again = command("train", "--resume", path)
    return f"Unless torchrun starts all ranks again, continue with `{again}`, with torchrun or without it."


def _watch() -> None:
    """End this process, with a message, as soon as NCCL says that another rank is gone.

    A thread of PyTorch would end it a minute later, with a trace of C++ code. The rank may have ended with a message of
    its own that all ranks know: that message comes first.
    """
    nccl = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cuda"))
    while (found := nccl.get_error().name) == "SUCCESS":
        time.sleep(WATCH)
    time.sleep(PATIENCE)
    error = GoneError(f"NCCL: {found.lower().replace('_', ' ')}", *map(_advice, _runs[-1:]))
    if not error.silent:
        print(f"murp: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def _reason(error: Exception) -> str:
    """What torch.distributed says, without places in its source and its own advice."""
    line = re.sub(r"^(\[[^\]]*\.cc:\d+\]\s*)+", "", first_line(error))
    return re.split(r"\.\s+(?=[A-Z])", line)[0].rstrip(".")


_joined: Ranks | None = None
_runs: list[Path] = []  # those that this process works on
_store: Store | None = None
_status = 0  # of this process, if it has failed
_speaks: bool | None = None  # once it has asked


def launched() -> bool:
    """Whether torchrun has started this process."""
    return RUN_ID in os.environ


def restarted() -> bool:
    """Whether torchrun has restarted this process after a rank failed."""
    return launched() and os.environ.get(RESTARTS, "0") not in ("", "0")


def joined() -> bool:
    """Whether this process has met the other ranks."""
    return _joined is not None


def join() -> Ranks:
    """The ranks that torchrun started, connected with each other; without torchrun only this process."""
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
    os.environ.setdefault("NCCL_DEBUG_FILE", "/dev/stderr")  # standard output is for results
    if not torch.cuda.is_available():
        _undisturbed()
    try:
        store, rank, _ = next(rendezvous("env://"))
        # torchrun keeps its store from one attempt to the next, with the addresses of ranks that are gone.
        store = PrefixStore(f"murp/{os.environ.get(RESTARTS, '0')}", store)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    except (dist.DistError, RuntimeError, ValueError) as error:
        raise MurpError(f"the ranks cannot connect: {first_line(error)}") from error
    global _store
    _store = store
    atexit.register(_leave)
    if torch.cuda.is_available():
        threading.Thread(target=_watch, daemon=True).start()
    return Ranks(dist.get_rank(), dist.get_world_size())


def _undisturbed() -> None:
    """Ask the system not to interrupt a thread of this process when another one is woken (Linux: SCHED_BATCH).

    A message wakes gloo's thread. If that takes the core from a thread that is writing to the same connection, it finds
    the connection locked and asks the system for messages again and again. Threads that are made later inherit this.
    Only without a GPU: with one, tensors are sent by NCCL.
    """
    if not hasattr(os, "SCHED_BATCH"):
        return
    with contextlib.suppress(OSError):  # a container may forbid it, and it only saves time
        if os.sched_getscheduler(0) == os.SCHED_OTHER:  # the usual one: nobody has chosen another
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def own_gpu() -> None:
    """From now on use the GPU of this rank: the first rank of a machine has its first GPU, and so on."""
    if not launched():
        return
    number, ranks, gpus = int(os.environ["LOCAL_RANK"]), os.environ["LOCAL_WORLD_SIZE"], torch.cuda.device_count()
    if number >= gpus:
        raise ConfigError(
            f"this machine has {gpus} GPU{'s' if gpus != 1 else ''} and {ranks} ranks, and each rank needs its own "
            f"GPU. Start torchrun with --nproc-per-node {gpus}, or train and evaluate with --device cpu."
        )
    torch.cuda.set_device(number)


def failed(status: int = 1) -> None:
    """Mark that this rank has failed, and ends with ``status``; the others notice that it is gone."""
    global _status
    _status = status


def speaks() -> bool:
    """Whether this rank prints why all stop: the first one that asks, since a rank asks before it leaves.

    Without an answer it does: the process that has the store is gone.
    """
    global _speaks
    if _speaks is None:
        answers: list[bool] = []
        asking = threading.Thread(target=_ask, args=(answers,), daemon=True)
        try:
            asking.start()
            asking.join(PATIENCE)
        except RuntimeError:  # no memory for a thread
            _ask(answers)
        _speaks = answers[0] if answers else True
    return _speaks


def _ask(answers: list[bool]) -> None:
    if _store is not None:
        with contextlib.suppress(RuntimeError):
            answers.append(_store.add("speaks", 1) == 1)


def _leave() -> None:
    """At the end of the process. A rank that failed does not close its connections: gloo would wait for the others."""
    if _status or hasattr(sys, "last_value"):  # what was not caught, and is printed
        speaks()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(_status or 1)
    if dist.is_initialized():
        dist.destroy_process_group()
