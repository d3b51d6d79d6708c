"""How many threads murp uses, and how compiled loops share work among them.

The default is what the process may use: the processors of its affinity, and no more than the quota of its control group
(containers). ``MURP_NUM_THREADS``, ``OMP_NUM_THREADS`` and ``--threads`` set it.

Threads are Python threads. One that has done its work waits a moment for the next piece, which costs half of what a new
thread does; then it ends. A forked child starts its own. A compiled loop takes the next part of the work from a
counter, so that other threads do the work of a thread that the system has paused. A thread that waits for another
checks for some microseconds and then sleeps: it must not use the time that the other needs.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from murp.errors import ConfigError

# Below so many operations a second thread costs more than it brings.
_WORTH_A_THREAD = 2**20
MOST = 1024  # more would only cost memory: each has arrays of its own
_chosen: int | None = None
_openmp: str | None = None  # what OMP_NUM_THREADS was before :func:`use` set it


def use(number: int) -> None:
    """From now on use so many threads; 0: as many as the process may use."""
    global _chosen, _openmp
    if type(number) is not int or not 0 <= number <= MOST:
        raise ConfigError(
            f"threads must be a whole number from 1 to {MOST:,}, or 0 for as many as the process may use, "
            f"not {number!r}."
        )
    _chosen = number or None
    if "torch" in sys.modules:
        use_torch(count())
        return
    if _openmp is None:
        _openmp = os.environ.get("OMP_NUM_THREADS", "")
    os.environ["OMP_NUM_THREADS"] = _openmp  # what an earlier call left there is not the user's
    os.environ["OMP_NUM_THREADS"] = str(count())  # which PyTorch reads when it is imported


def use_torch(number: int) -> None:
    """Let PyTorch use so many threads on this one; in a forked child, whose parent had them all, one."""
    sys.modules["torch"].set_num_threads(1 if _forked else number)


def count() -> int:
    """How many threads to use."""
    if _chosen is not None:
        return _chosen
    for name in ("MURP_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").partition(",")[0].strip()
        if text.isdecimal() and text.strip("0"):
            return min(int(text), MOST) if len(text) < 20 else MOST  # Python refuses to read some thousand digits
    return available()


def available() -> int:
    """How many processors this process may use: its affinity, and the quota of its control group."""
    try:
        mine = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        mine = os.cpu_count() or 1
    quota = _quota()
    return max(1, mine if quota is None else min(mine, int(quota + 0.5)))


@cache
def _quota(root: Path = Path("/sys/fs/cgroup"), mine: Path = Path("/proc/self/cgroup")) -> float | None:
    """Processors' worth of time that the control groups of this process, or one above them, allow; None: no limit."""
    found = []
    try:
        lines = mine.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not path:
            continue
        if controllers == "":
            places, of_folder = [root, root / "unified"], _quota_of_version_2
        elif "cpu" in controllers.split(","):
            places, of_folder = [root / "cpu", root / controllers], _quota_of_version_1
        else:
            continue
        for place in places:
            folder = place / path.lstrip("/")
            for group in (folder, *folder.parents):
                found.append(of_folder(group))
                if group == place:
                    break
    limits = [limit for limit in found if limit is not None]
    return min(limits, default=None)


def _quota_of_version_2(group: Path) -> float | None:
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_of_version_1(group: Path) -> float | None:
    try:
        quota, period = (int((group / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        return quota / period if quota > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def share(kernel: Callable[..., None], *arguments: Any, work: int) -> None:
    """Run a kernel whose first argument is an array of counters, all 0, from which it takes parts of its work.

    On as many threads as ``work``, a number of operations, is worth; on this one alone if it is one of several that
    share work (:func:`share_torch`). A kernel gives the same result on any number.
    """
    alone = work < _WORTH_A_THREAD or getattr(_here, "shares", False)
    number = 1 if alone else min(count(), 1 + work // _WORTH_A_THREAD)
    counters = np.zeros(8, np.int64)
    together(lambda thread: kernel(counters, *arguments), number)


def share_torch(work: Callable[[], None], number: int) -> None:
    """Call ``work`` on so many threads on which PyTorch starts none of its own; see :func:`together`."""

    def alone(thread: int) -> None:
        _here.shares = number > 1
        try:
            with torch_alone():
                work()
        finally:
            _here.shares = False

    with torch_alone():  # here first: a thread that has waited may have an older setting
        together(alone, number)


@contextlib.contextmanager
def torch_alone() -> Iterator[None]:
    """On this thread PyTorch starts no threads meanwhile.

    PyTorch and the library below it cut a tensor into parts for their threads, and wait for those spinning. That pays
    for large tensors on a quiet machine. How many threads they use is a setting of each thread, and a default for new
    ones; the first to come here remembers it for all that are here at the same time.
    """
    import torch

    global _usual, _inside
    if getattr(_here, "alone", False):  # until the block around this one ends
        yield
        return
    with _lock:
        usual = torch.get_num_threads()  # a new thread takes its setting from the default now, not in the block
        if _inside == 0:
            _usual = usual
        _inside += 1
        torch.set_num_threads(1)
    _here.alone = True
    try:
        yield
    finally:
        _here.alone = False
        with _lock:
            _inside -= 1
            torch.set_num_threads(_usual)


_lock = threading.Lock()
_here = threading.local()
_usual, _inside = 1, 0
_forked = False  # from a process that had PyTorch, and perhaps threads of it


def _before_fork() -> None:
    """Wait until no thread that Python takes for ended is still at work: half a second at most.

    For Python a thread has ended before the libraries below have cleared up after it. They hold a lock meanwhile, and a
    child forked at that moment would wait for it for ever: MKL did, in one fork of ten right after a thread had ended.
    """
    _Helper.end_all()  # not one by one, at any moment
    end = time.monotonic() + 0.5
    while "torch" in sys.modules and _ending() and time.monotonic() < end:
        time.sleep(0.001)


def _ending(tasks: Path = Path("/proc/self/task")) -> bool:
    """Whether a thread that Python does not know is awake; those of the libraries sleep when they have no work."""
    known = {thread.native_id for thread in threading.enumerate()}
    for task in tasks.iterdir() if tasks.is_dir() else ():
        with contextlib.suppress(OSError):  # it ended while we looked
            if int(task.name) not in known and (task / "stat").read_text().rpartition(")")[2].split()[0] != "S":
                return True
    return False


def _after_fork() -> None:
    """The threads of the libraries do not survive a fork, and PyTorch would wait for them without end."""
    global _lock, _inside, _usual, _forked
    _lock, _inside, _usual = threading.Lock(), int(getattr(_here, "alone", False)), 1
    _Helper.forget_all()
    if "torch" in sys.modules:
        _forked = True
        sys.modules["torch"].set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def together(work: Callable[[int], None], number: int, *, begun: Callable[[int], None] = lambda number: None) -> None:
    """Call ``work`` with 0 … number - 1, each on a thread of its own, the first on this one.

    The first error is raised. Where the system refuses another thread, fewer calls are made: ``work`` has to take what
    there is to do. ``begun`` is told how many there are as soon as that is known.
    """
    errors: list[BaseException] = []

    def guarded(thread: int) -> None:
        try:
            work(thread)
        except BaseException as error:
            errors.append(error)

    others: list[threading.Lock] = []
    for thread in range(1, number):
        try:
            others.append(_Helper.found().begin(guarded, thread))
        except RuntimeError:  # the system has no thread left
            break
    begun(1 + len(others))
    guarded(0)
    for other in others:
        other.acquire()
    if errors:
        raise errors[0]


class _Helper:
    """A thread that does pieces of work one after another, and ends if none has come for a while."""

    PATIENCE = 0.1  # seconds
    idle: ClassVar[list[_Helper]] = []
    lock = threading.Lock()  # of the list

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._help, name="murp-helper", daemon=True)
        self.thread.start()

    @classmethod
    def found(cls) -> _Helper:
        """One that waits for work, or a new one."""
        with cls.lock:
            if cls.idle:
                return cls.idle.pop()
        return cls()

    def begin(self, work: Callable[[int], None], thread: int) -> threading.Lock:
        """Let it call ``work`` with the number of a thread; the lock can be acquired when that is done."""
        done = threading.Lock()
        done.acquire()

        def piece() -> None:
            work(thread)
            with self.lock:
                self.idle.append(self)
            done.release()

        self.work.put(piece)
        return done

    def _help(self) -> None:
        while True:
            try:
                piece = self.work.get(timeout=self.PATIENCE)
            except queue.Empty:
                with self.lock:
                    if self not in self.idle:  # somebody has just chosen it
                        continue
                    self.idle.remove(self)
                return
            if piece is None:
                return
            piece()
            del piece  # and what it holds, however long the next one takes to come

    @classmethod
    def end_all(cls) -> None:
        """Before the interpreter ends."""
        with cls.lock:
            ending, cls.idle[:] = list(cls.idle), []
        for helper in ending:
            helper.work.put(None)
            helper.thread.join(1)

    @classmethod
    def forget_all(cls) -> None:
        """In a forked child, which has none of its parent's threads."""
        cls.lock = threading.Lock()
        cls.idle[:] = []


atexit.register(_Helper.end_all)


class Choice:
    """Finds the best number of threads for a piece of work that is repeated.

    Many threads may be slower than few: if the system pauses one for another busy process, or if a piece is too small.
    So half and twice the fastest number are tried now and then, for about one piece in twenty, and less often the
    slower they were. The result must not depend on the number.
    """

    def __init__(self) -> None:
        self.most = count()
        self._numbers: list[int] = sorted(
            {self.most, *(2**i for i in range(self.most.bit_length()) if 2**i < self.most)}
        )
        self._best = self._current = len(self._numbers) - 1
        self._seconds: dict[int, float] = {}
        self._pieces = 2  # until the next trial
        self._down = True

    def next(self) -> int:
        """The number of threads for the next piece."""
        self._current = self._best
        self._pieces -= 1
        if self._pieces <= 0 and len(self._numbers) > 1:
            place = self._best + (-1 if self._down else 1)
            self._down = not self._down
            if 0 <= place < len(self._numbers):
                self._current = place
            self._pieces = 1 if place not in self._seconds else self._pause(place)
        return self._numbers[self._current]

    def took(self, seconds: float) -> None:
        """What the piece took, for each unit of work."""
        self._seconds[self._current] = 0.5 * (self._seconds.get(self._current, seconds) + seconds)
        self._best = min(self._seconds, key=self._seconds.__getitem__)

    def _pause(self, place: int) -> int:
        slower: float = self._seconds[place] / max(self._seconds[self._best], 1e-9)
        return int(20 * min(max(slower, 1.0), 10.0))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on this thread alone, and on threads that are started meanwhile: for servers.

    Answers take a millisecond, so threads would cost more than they save. And a forked child does not have its parent's
    threads: PyTorch would wait for them forever.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
