"""``subprocess`` with copies of this process in place of new interpreters, for tests of what a program does there.

A new interpreter spends 2 to 4 processor seconds on imports. This is not for tests of what is imported, of variables
that are read at import, or of how an interpreter starts and ends. Where there is a GPU all are new interpreters: CUDA
does not work in a fork of a process that has looked for one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """Of ``python -c CODE …``, ``python -m MODULE …`` and ``python FILE …``; any other command is started as always."""

    def __init__(self, args: Any, *others: Any, env: Mapping[str, str] | None = None, **how: Any) -> None:
        words = [] if isinstance(args, str | bytes) else [os.fspath(word) for word in args]
        if not others and not how.get("shell") and "preexec_fn" not in how and _runs_here(words):
            before = _open_files()
            # The copy is made, its streams and folder are set, and then it calls this, which never returns.
            how["preexec_fn"] = lambda: _become(words[1:], env, before)
        super().__init__(args, *others, env=env, **how)


def _runs_here(words: Sequence[str]) -> bool:
    if not hasattr(os, "fork") or words[:1] != [sys.executable] or torch.cuda.is_available():
        return False
    words = words[3:] if words[1:3] == ["-W", "ignore"] else words[1:]
    return bool(words) and (words[0] in ("-c", "-m") or not words[0].startswith("-"))


def _open_files() -> set[int]:
    """The numbers of this process's open files, where the system tells them."""
    found = set()
    with contextlib.suppress(OSError):
        for number in map(int, os.listdir("/dev/fd")):
            with contextlib.suppress(OSError):  # of the list itself, which is closed by now
                os.fstat(number)
                found.add(number)
    return found


def _become(words: list[str], env: Mapping[str, str] | None, before: set[int]) -> None:
    status = 1
    try:
        # What was opened for this process, which keeps whoever started it waiting. Not what libraries have open: Arrow
        # has a pipe for signals, and fails if it cannot close its copy after a fork.
        for file in range(3, 1024) if not before else _open_files() - before - {0, 1, 2}:
            with contextlib.suppress(OSError):
                os.close(file)
        gc.freeze()  # what is shared stays shared
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
            tempfile.tempdir = None  # looked up when it is first asked for
        sys.stdin, sys.stdout, sys.stderr = (open(i, "rww"[i], closefd=False) for i in range(3))  # noqa: SIM115
        sys.stderr.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
        if words[0] == "-W":
            warnings.simplefilter("ignore")
            del words[:2]
        _run(words)
        status = 0
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(status)


def _run(words: list[str]) -> None:
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), vars(main))
    elif words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")
