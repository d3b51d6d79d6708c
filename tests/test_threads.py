"""How many threads murp uses, and what becomes of work where the system gives fewer, or where they fail."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from murp import threads
from murp.engines import Chunk
from murp.engines.numba_engine import NumbaEngine
from murp.errors import ConfigError
from murp.models import MODELS


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No setting from outside counts here, and none is left."""
    for name in ("MURP_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    yield
    threads.use(0)
    torch.set_num_threads(before)


def affinity(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)


def quota(monkeypatch: pytest.MonkeyPatch, processors: float | None) -> None:
    monkeypatch.setattr(threads, "_quota", lambda: processors)


def test_threads_follow_the_affinity_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may be bound to its processors after murp was imported, and after it was first used."""
    quota(monkeypatch, None)
    for processors in (3, 1, 7):
        affinity(monkeypatch, processors)
        assert threads.available() == threads.count() == processors


@pytest.mark.parametrize("refusal", [AttributeError, OSError])
def test_where_the_system_tells_no_affinity_all_processors_count(
    refusal: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> set[int]:
        raise refusal

    quota(monkeypatch, None)
    monkeypatch.setattr(os, "sched_getaffinity", refuse, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert threads.available() == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.available() == 1


@pytest.mark.parametrize(("allowed", "expected"), [(0.01, 1), (0.5, 1), (1.0, 1), (1.5, 2), (2.4, 2), (64.0, 4)])
def test_a_quota_of_part_of_a_core_is_rounded_and_never_nothing(
    allowed: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    affinity(monkeypatch, 4)
    quota(monkeypatch, allowed)
    assert threads.available() == expected


class Groups:
    """A folder like /sys/fs/cgroup and a file like /proc/self/cgroup."""

    def __init__(self, folder: Path) -> None:
        self.root, self.mine = folder / "cgroup", folder / "self"
        self.root.mkdir()

    def member(self, *lines: str) -> None:
        self.mine.write_text("".join(f"{line}\n" for line in lines))

    def version_2(self, group: str, text: str) -> None:
        self._write(f"{group}/cpu.max", text)

    def version_1(self, group: str, limit: str, period: str = "100000") -> None:
        self._write(f"{group}/cpu.cfs_quota_us", limit)
        self._write(f"{group}/cpu.cfs_period_us", period)

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def quota(self) -> float | None:
        return threads._quota(self.root, self.mine)


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    return Groups(tmp_path)


def test_version_2_the_smallest_limit_of_a_group_and_those_above_counts(groups: Groups) -> None:
    groups.member("0::/a/b/c")
    groups.version_2("a/b/c", "max 100000")
    groups.version_2("a/b", "150000 100000")
    groups.version_2("a", "400000 100000")
    assert groups.quota() == 1.5


def test_version_2_within_a_container_whose_own_group_is_the_root(groups: Groups) -> None:
    groups.member("0::/")
    groups.version_2(".", "50000 100000")
    assert groups.quota() == 0.5


def test_version_2_beside_version_1(groups: Groups) -> None:
    groups.member("3:memory:/x", "0::/a")
    groups.version_2("unified/a", "200000 100000")
    assert groups.quota() == 2.0


@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct"])
def test_version_1_in_the_folder_of_its_controllers(controllers: str, groups: Groups) -> None:
    groups.member("9:name=systemd:/a", f"4:{controllers}:/a/b", "3:cpuset:/c")
    groups.version_1(f"{controllers}/a/b", "-1")
    groups.version_1(f"{controllers}/a", "250000")
    groups.version_1(f"{controllers}/c", "1000")  # another's
    groups.version_1("cpuset/c", "1000")
    assert groups.quota() == 2.5


@pytest.mark.parametrize(
    "text", ["max 100000", "", "100000", "1 2 3", "much 100000", "100000 0", "9" * 30 + " 100000 x"]
)
def test_version_2_what_limits_nothing(text: str, groups: Groups) -> None:
    groups.member("0::/a")
    groups.version_2("a", text)
    assert groups.quota() is None


@pytest.mark.parametrize(("limit", "period"), [("-1", "100000"), ("0", "100000"), ("5", "0"), ("", "1"), ("x", "y")])
def test_version_1_what_limits_nothing(limit: str, period: str, groups: Groups) -> None:
    groups.member("4:cpu:/a")
    groups.version_1("cpu/a", limit, period)
    assert groups.quota() is None


def test_groups_that_cannot_be_read_limit_nothing(groups: Groups) -> None:
    assert groups.quota() is None  # no such file
    groups.member("0::/a", "4:cpu:/a")
    (groups.root / "a" / "cpu.max").mkdir(parents=True)  # which reading refuses, for root too
    assert groups.quota() is None


@pytest.mark.parametrize("line", ["", "0", "0:", "cpu", "::", "no group at all"])
def test_a_line_that_names_no_group_is_passed_over(line: str, groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    groups.member(line, "0::/a")
    groups.version_2("a", "300000 100000")
    assert groups.quota() == 3.0


def test_a_group_whose_name_is_no_text(groups: Groups) -> None:
    groups.mine.write_bytes(b"4:memory:/\xff\xfe\n0::/a\n")
    groups.version_2("a", "300000 100000")
    assert groups.quota() == 3.0


@pytest.mark.parametrize("name", ["MURP_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3), (" 3 ", 3), ("4,2", 4), ("", 6), ("0", 6), ("-2", 6), ("2.5", 6), ("many", 6), (",2", 6),
        ("²", 6), ("9" * 5000, threads.MOST), ("9" * 26, threads.MOST),
    ],
)  # fmt: skip
def test_the_environment_sets_the_number_and_rubbish_does_not(
    name: str, text: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    affinity(monkeypatch, 6)
    quota(monkeypatch, None)
    monkeypatch.setenv(name, text)
    assert threads.count() == expected


def test_our_own_variable_comes_before_that_of_openmp_and_what_was_chosen_before_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MURP_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads.count() == 3
    threads.use(2)
    assert (threads.count(), torch.get_num_threads()) == (2, 2)
    threads.use(0)
    assert (threads.count(), torch.get_num_threads()) == (3, 3)


def test_what_was_chosen_before_pytorch_is_imported_is_its_number_too(monkeypatch: pytest.MonkeyPatch) -> None:
    affinity(monkeypatch, 6)
    quota(monkeypatch, 4.0)
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "")  # so that it is taken back
    threads.use(3)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    threads.use(0)
    assert (threads.count(), os.environ["OMP_NUM_THREADS"]) == (4, "4")


@pytest.mark.parametrize("number", [-1, -(10**30), threads.MOST + 1, 2**63 - 1, 10**26, 1.5, True, "2", None])
def test_a_number_that_makes_no_sense_is_refused_and_changes_nothing(number: Any) -> None:
    threads.use(2)
    with pytest.raises(ConfigError, match=r"^threads must be a whole number from 1 to [\d,]+, or 0"):
        threads.use(number)
    assert (threads.count(), torch.get_num_threads()) == (2, 2)


def refuse_threads(monkeypatch: pytest.MonkeyPatch, granted: int) -> None:
    """The system starts so many threads, and no further ones."""
    threads._Helper.end_all()
    start, left = threading.Thread.start, [granted]

    def limited(self: threading.Thread) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_where_the_system_refuses_threads_those_that_are_there_do_the_work(
    granted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_threads(monkeypatch, granted)
    called: list[int] = []
    told: list[int] = []
    known = threading.Event()

    def work(thread: int) -> None:
        known.wait(60)  # a thread that had ended already would be given another piece
        called.append(thread)

    def begun(number: int) -> None:
        told.append(number)
        known.set()

    threads.together(work, 5, begun=begun)
    assert sorted(called) == list(range(1 + granted))
    assert told == [1 + granted]


def trained(model_name: str, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The tables after some steps."""
    model: Any = MODELS[model_name](50, 4, 6, dtype=dtype).initialise(0)
    draw = torch.Generator().manual_seed(1)
    positives = torch.stack([torch.randint(n, (6, 40), generator=draw) for n in (50, 4, 50)], dim=-1)
    NumbaEngine(model).run([Chunk(positives, 50, 7, 3)], [5.0])
    return dict(model.parameters)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_training_has_the_same_bits_on_any_number_of_threads_asked_or_given(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of every sum is fixed by the batch, and each operation is one that IEEE 754 defines to the bit."""
    threads.use(1)
    expected = trained(name, dtype)
    threads.use(4)
    for granted in (3, 1, 0):
        with monkeypatch.context() as patch:
            refuse_threads(patch, granted)
            found = trained(name, dtype)
        assert all(torch.equal(found[table], expected[table]) for table in expected), granted


@pytest.mark.parametrize("failing", [0, 2])
def test_an_error_on_any_thread_is_raised_after_all_have_ended(failing: int) -> None:
    ended = []

    def work(thread: int) -> None:
        if thread == failing:
            raise ConfigError("a fault")
        ended.append(thread)

    with pytest.raises(ConfigError, match="a fault"):
        threads.together(work, 3)
    assert sorted(ended) == [thread for thread in range(3) if thread != failing]


def test_a_thread_that_waits_gets_the_next_piece_and_ends_if_none_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    threads._Helper.end_all()
    monkeypatch.setattr(threads._Helper, "PATIENCE", 60.0)
    workers: list[Any] = [{}, {}]
    for of in workers:
        threads.together(lambda thread, of=of: of.setdefault(thread, threading.current_thread()), 3)
    assert {workers[1][1], workers[1][2]} == {workers[0][1], workers[0][2]}
    assert workers[0][0] is threading.current_thread()
    threads._Helper.end_all()
    assert not any(one.is_alive() for one in (workers[0][1], workers[0][2]))
    monkeypatch.setattr(threads._Helper, "PATIENCE", 0.01)
    threads.together(lambda thread: workers[0].__setitem__(thread, threading.current_thread()), 2)
    workers[0][1].join(60)
    assert not workers[0][1].is_alive()
    assert threads._Helper.idle == []


def test_pieces_of_several_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With threads that end between two pieces as often as they can."""
    monkeypatch.setattr(threads._Helper, "PATIENCE", 1e-4)
    counts = [0] * 4

    def much(place: int) -> None:
        for i in range(100):
            done: list[int] = []
            threads.together(done.append, 1 + i % 4)
            counts[place] += sorted(done) == list(range(1 + i % 4))

    callers = [threading.Thread(target=much, args=(place,)) for place in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120)
    assert counts == [100] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    threads.together(lambda thread: None, 3)
    assert threads._Helper.idle
    if (child := os.fork()) == 0:
        try:
            done: list[int] = []
            threads.together(done.append, 3)
            os._exit(0 if sorted(done) == [0, 1, 2] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_a_thread_that_waited_brings_back_no_old_setting_of_pytorch() -> None:
    for number in (3, 2, 1):
        torch.set_num_threads(number)
        threads.share_torch(lambda: time.sleep(0.01), 3)
        assert torch.get_num_threads() == number


def test_nobody_goes_on_before_the_last_thread_has_ended() -> None:
    ended, first_has_ended = [], threading.Event()

    def work(thread: int) -> None:
        if thread == 0:
            first_has_ended.set()
        else:
            first_has_ended.wait(60)
            time.sleep(0.2)  # time enough for the first to go on, if it did not wait
        ended.append(thread)

    threads.together(work, 3)
    assert sorted(ended) == [0, 1, 2]


def test_an_error_of_a_kernel_is_raised_in_the_caller() -> None:
    def broken(counters: Any) -> None:
        raise ZeroDivisionError

    threads.use(3)
    with pytest.raises(ZeroDivisionError):
        threads.share(broken, work=2**40)


def test_pytorch_starts_no_threads_until_the_outermost_block_ends() -> None:
    torch.set_num_threads(3)
    with threads.torch_alone():
        with threads.torch_alone():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    with pytest.raises(ConfigError), threads.torch_alone():
        raise ConfigError("a fault")
    assert torch.get_num_threads() == 3
    torch.set_num_threads(2)
    with threads.torch_alone():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2, "what an earlier block found does not count"


@pytest.mark.parametrize("others", [0, 2])
def test_a_forked_child_has_a_free_lock_and_counts_its_own_block_alone(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done after a fork, done here: whoever held the lock or was in a block is not in the child."""
    for name in ("_lock", "_forked", "_usual", "_inside"):
        monkeypatch.setattr(threads, name, getattr(threads, name))  # as it was, afterwards
    threads._inside += others
    threads._lock = threading.Lock()
    threads._lock.acquire()
    threads._after_fork()
    assert (threads._inside, threads._forked, threads._lock.locked()) == (0, True, False)
    with threads.torch_alone():
        threads._inside += others
        threads._after_fork()
        assert threads._inside == 1


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system shows no threads")
def test_a_fork_waits_for_a_thread_that_python_takes_for_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """MKL clears up after it with a lock held, and a child forked meanwhile waited for that lock for ever."""
    at_work, over = threading.Event(), threading.Event()

    def clearing_up() -> None:
        at_work.set()
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
        over.set()

    thread = threading.Thread(target=clearing_up)
    monkeypatch.setattr(threading, "enumerate", lambda: [t for t in known() if t is not thread])
    thread.start()
    at_work.wait()
    threads._before_fork()
    assert over.is_set()
    thread.join()


def known() -> list[threading.Thread]:
    """The threads that Python knows."""
    return list(threading._active.values())  # type: ignore[attr-defined]


def test_blocks_of_several_threads_that_overlap_leave_pytorch_as_it_was() -> None:
    """Each is within while another comes and goes; nobody waits for a clock."""
    torch.set_num_threads(3)
    inside, leave = threading.Barrier(4), [threading.Event() for _ in range(3)]
    found: list[tuple[int, int]] = []

    def work(which: int) -> None:
        with threads.torch_alone():
            inside.wait(60)
            leave[which].wait(60)
            within = torch.get_num_threads()
        found.append((within, torch.get_num_threads()))

    started = [threading.Thread(target=work, args=(which,)) for which in range(3)]
    for thread in started:
        thread.start()
    inside.wait(60)
    for event, thread in zip(leave, started, strict=True):
        event.set()
        thread.join(60)
    assert found == [(1, 3)] * 3
    new: list[int] = []
    last = threading.Thread(target=lambda: new.append(torch.get_num_threads()))
    last.start()
    last.join()
    assert (new, torch.get_num_threads()) == ([3], 3)


def test_threads_for_pytorch_each_have_it_alone() -> None:
    torch.set_num_threads(3)
    found: list[int] = []
    threads.share_torch(lambda: found.append(torch.get_num_threads()), 4)
    assert found == [1] * 4
    assert torch.get_num_threads() == 3


Cost = Callable[[int], float]


def pieces(choice: threads.Choice, cost: Cost, count: int) -> tuple[list[int], float]:
    """The numbers that were chosen for so many pieces, and what they took altogether; no clock is asked."""
    chosen, total = [], 0.0
    for _ in range(count):
        chosen.append(choice.next())
        choice.took(cost(chosen[-1]))
        total += cost(chosen[-1])
    return chosen, total


def choice_of(most: int) -> threads.Choice:
    threads.use(most)
    return threads.Choice()


def alone(number: int) -> float:
    return 1.0 / number


def neighbours(number: int) -> float:
    """One thread is as quick as ever; several wait for the one that has no processor."""
    return 1.0 if number == 1 else 2.0 + number


def crowded(number: int) -> float:
    """Up to eight threads help; from there on they are in each other's way."""
    return 1.0 / number + number / 64.0


@pytest.mark.parametrize("most", [2, 3, 8, 64])
@pytest.mark.parametrize(("cost", "best"), [(alone, None), (neighbours, 1), (crowded, 8)])
def test_the_quickest_number_is_found_and_trials_cost_little(cost: Cost, best: int | None, most: int) -> None:
    choice = choice_of(most)
    best = min(best or most, most)
    first, _ = pieces(choice, cost, 600)
    assert first[0] == most  # a quiet machine is what is hoped for
    chosen, total = pieces(choice, cost, 2000)
    assert chosen.count(best) >= 0.9 * len(chosen)
    assert total <= 1.1 * len(chosen) * cost(best)
    assert set(chosen) <= {most, *(2**i for i in range(7) if 2**i < most)}


@pytest.mark.parametrize("most", [2, 8])
def test_neighbours_come_and_go(most: int) -> None:
    choice = choice_of(most)
    for cost, best in [(alone, most), (neighbours, 1), (alone, most), (neighbours, 1)]:
        pieces(choice, cost, 4000)
        assert pieces(choice, cost, 100)[0].count(best) >= 80


def test_one_thread_has_no_choice() -> None:
    assert set(pieces(choice_of(1), neighbours, 500)[0]) == {1}


def test_a_clock_that_stands_still_decides_nothing() -> None:
    """Clocks of virtual machines may be coarse."""
    assert set(pieces(choice_of(4), lambda number: 0.0, 500)[0]) <= {1, 2, 4}
