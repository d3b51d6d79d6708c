"""The command line: parse arguments, run one command, print errors.

A module has a family of commands. Each command is a function ``add…(commands)``, which declares its arguments, and one
that runs it. Heavy imports are inside those functions, so that ``murp --help`` starts at once.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import murp
from murp import display
from murp.cli import (
    analyze,
    compare,
    data,
    demo,
    embed,
    evaluate,
    extend,
    paper,
    pictures,
    questions,
    recipes,
    run_folders,
    serve,
    sweep,
    train,
    tune,
)
from murp.cli.manual import explain
from murp.cli.parser import Parser
from murp.cli.streams import Output, standard_streams
from murp.cli.text import fast_imports, one_of_many, whole
from murp.errors import ConfigError, MurpError

# In the order of `murp --help`.
COMMANDS: tuple[Callable[[Any], None], ...] = (
    train.add,
    sweep.add,
    extend.add,
    tune.add,
    embed.add_embed,
    embed.add_reconstruct,
    evaluate.add_evaluate,
    compare.add,
    questions.add_predict,
    questions.add_discover,
    evaluate.add_calibrate,
    evaluate.add_classify,
    questions.add_nearest,
    questions.add_index,
    run_folders.add_info,
    pictures.add_plot,
    pictures.add_explore,
    serve.add,
    demo.add,
    analyze.add,
    run_folders.add_export,
    run_folders.add_import,
    data.add,
    recipes.add,
    paper.add,
)
# Those whose options, or the defaults of these, depend on what is chosen.
WITH_SETTINGS = {"train": train.settings, "sweep": sweep.settings, "tune": tune.settings, "embed": embed.settings}
# Commands that compute.
WITH_THREADS = (
    "train", "sweep", "tune", "extend", "embed", "reconstruct", "evaluate", "compare", "predict", "discover",
    "calibrate", "classify", "nearest", "index", "plot", "explore", "serve", "analyze",
)  # fmt: skip
# Those that many processes run together, started by torchrun.
ON_RANKS = ("train", "evaluate", "predict", "discover")
SPEAKING = 30.0  # seconds that a rank has to tell an error which all have, before another tells it
# Those that put their answer into a file where --out says so.
WITH_FILES = (questions.run_predict, questions.run_discover)
# What runs commands whose answer is what they print; all others leave files, or serve.
ANSWERING = (
    *WITH_FILES, questions.run_nearest, evaluate.run_evaluate, evaluate.run_classify, compare.run, analyze.run,
    run_folders.run_info, embed.run_reconstruct, data.run_list, data.run_info, data.run_audit, recipes.run,
    paper.run_list, paper.run_config,
)  # fmt: skip


def parser(words: Sequence[str] = ()) -> Parser:
    """Every command with its options; those of some (``WITH_SETTINGS``) depend on what ``words`` choose."""
    top = Parser(prog="murp")
    top.add_argument("--version", action="version", version=f"murp {murp.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in COMMANDS:
        add(commands)
    # Finding out what is chosen takes a while: only for the command that is given.
    for name in words[:1]:
        if name in WITH_SETTINGS:
            try:
                with fast_imports():
                    WITH_SETTINGS[name](commands.choices[name], words[1:])
            except ConfigError as error:  # a model, an objective, … that there is not
                commands.choices[name].error(str(error))
    for name in WITH_THREADS:
        words = "threads to use; default: as many as this process may use"
        commands.choices[name].add_argument("--threads", type=whole(least=1), metavar="N", help=words)
    explain(top)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

    Wrong usage means a single wrong word: an unknown command or option, or a value that the option does not accept.
    Options that cannot be combined, and errors that appear only when files are read, are failures.

    If standard error cannot be written, its text is dropped: progress and messages are not results. If standard output
    is full, the status is 1, after all other work is done; a training, for example, continues to its end. If the reader
    of a pipe stops (``| head``), commands that write files continue to their end, commands that only print stop, and
    the status is as if everything had been read, so that it does not depend on timing. If standard output was closed
    from the start (``>&-``), the status is 1 for commands that print their result (``ANSWERING``); for commands that
    write files, or serve, it is like ``/dev/null``.
    """
    status = 0
    with standard_streams() as output:
        try:
            try:
                status = _run(arguments, output)
            finally:
                output.check()
        except OSError as error:
            if error is not output.refusal:
                raise
            if not isinstance(error, BrokenPipeError):
                print(f"murp: standard output cannot be written: {error.strerror}.", file=sys.stderr)
                return status or 1
    return status


def _run(arguments: Sequence[str] | None, output: Output) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    with contextlib.ExitStack() as quiet:
        if one_of_many():
            if words[:1] not in ([name] for name in ON_RANKS):
                known = ", ".join(ON_RANKS)
                _let_the_first_speak()
                print(f"murp: torchrun is for {known}. Start other commands without it.", file=sys.stderr)
                return 1
            if os.environ["RANK"] != "0":  # the first rank says what all have to say
                nothing = quiet.enter_context(open(os.devnull, "w", encoding="utf-8"))
                quiet.enter_context(contextlib.redirect_stdout(nothing))
                display.be_quiet()
        return _command(words, output)


def _parsed(words: list[str]) -> Any:
    """The arguments of a command; wrong usage is told by the first rank."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return parser(words).parse_args(words)
    except SystemExit as stop:
        if stop.code:
            _let_the_first_speak()
        raise
    finally:
        sys.stderr.write(said.getvalue())


def _command(words: list[str], output: Output) -> int:
    options = _parsed(words) if one_of_many() else parser(words).parse_args(words)
    in_a_file = options.run in WITH_FILES and options.out is not None
    output.needed = options.run in ANSWERING and not in_a_file
    # A warning is for the user, who has no use for the line of code it came from.
    warnings.formatwarning = lambda message, *_: f"murp: warning: {message}\n"
    try:
        _check_working_folder()
        if getattr(options, "threads", None) is not None:
            from murp import threads

            threads.use(options.threads)
        options.run(options)
    except MurpError as error:
        if _alone():
            _let_the_first_speak()
        if not error.silent:
            print(f"murp: {error}", file=sys.stderr)
        _do_not_wait(1)
        return 1
    except KeyboardInterrupt as stop:
        silent = getattr(stop, "silent", None)
        if silent is None and _alone():
            silent = _follows()
        if silent is None:  # in the middle of something: the other ranks may wait for this one
            silent = not _do_not_wait(130)
        if not silent:
            print(f"murp: {stop}" if str(stop) else "murp: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if error is not output.refusal:
            _do_not_wait(1)
        raise
    return 0


def _alone() -> bool:
    """Whether this process is a rank that has not met the others yet."""
    ranks = sys.modules.get("murp.distributed.ranks")
    return one_of_many() and (ranks is None or not ranks.joined())


def _follows() -> bool:
    """Whether another rank of this machine is the first."""
    return os.environ.get("LOCAL_RANK", "0") != "0"


def _let_the_first_speak() -> None:
    """An error that every rank finds before it meets the others is told by the first rank of each machine.

    Return at once on that rank. The others wait until torchrun stops them: a rank that ends earlier may have torchrun
    stop the first one before that has told it. If nobody stops them, the first rank had no error, and they tell it.
    """
    if _follows():
        time.sleep(SPEAKING)


def _do_not_wait(status: int) -> bool:
    """This process ends with ``status``, and does not wait for other ranks. Returns whether it prints why."""
    ranks = sys.modules.get("murp.distributed.ranks")
    if ranks is None:  # it has not met others
        return True
    ranks.failed(status)
    return bool(ranks.speaks())


def _check_working_folder() -> None:
    """Raise if it was removed: otherwise PyTorch's libraries would end the process with an unclear message."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise MurpError("the folder you are in was removed. Change to one that exists, and try again.") from None
