"""Errors that are part of the interface.

A :class:`MurpError` says what was wrong, where (file, line, field), and what to do. The command line prints its message
without a traceback and exits with status 1; in Python it is an ordinary exception. Any other exception is a bug of
ours.
"""

from __future__ import annotations

MOST_CHARACTERS = 2000  # of a message


class MurpError(Exception):
    """Base of every error that a user can cause or see. Its message is safe to print on a terminal."""

    silent = False  # whether another process tells it

    def __init__(self, message: str) -> None:
        shown = message if len(message) <= MOST_CHARACTERS else message[: MOST_CHARACTERS - 1] + "…"
        super().__init__(printable(shown))


def printable(text: str) -> str:
    """``text`` with escaped control characters, which a terminal would obey, and escaped characters that UTF-8 cannot
    encode. Line ends stay."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, for a message of ours; its class if the text is empty, as for MemoryError."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def why_not(refusal: OSError) -> str:
    """Why the system refuses a file, in its words: without its number, and the temporary file that we were writing."""
    return refusal.strerror or first_line(refusal)


# PyTorch has no class of its own for the CPU's; a RuntimeError about anything else is a bug of ours.
# A thread needs memory, too: the system's word for that (EAGAIN) is all that gloo says.
OF_MEMORY = ("can't allocate memory", "out of memory", "can't start new thread", "Resource temporarily unavailable")


def is_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was refused."""
    return isinstance(error, MemoryError) or any(saying in str(error) for saying in OF_MEMORY)


class DataError(MurpError):
    """A dataset that cannot be found, read or used."""


class ConfigError(MurpError):
    """A setting that is unknown, of the wrong type or out of range: ``setting``, if it is one alone."""

    def __init__(self, message: str, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting

    def __reduce__(self) -> tuple[type, tuple[str, str | None]]:
        return type(self), (str(self), self.setting)


class RunError(MurpError):
    """A run folder that cannot be created, written, read or continued."""


class NotFiniteError(MurpError):
    """A loss, parameter or score became NaN or infinite."""


class DivergedError(NotFiniteError):
    """Training stopped: ``what`` became NaN or infinite in ``epoch`` at the learning rate ``lr``.

    ``reason`` says this; the message adds ``advice`` for the folder of the run.
    """

    def __init__(self, what: str, epoch: int, lr: float, advice: str) -> None:
        self.what, self.epoch, self.lr, self.advice = what, epoch, lr, advice
        self.reason = f"{what} became NaN or infinite in epoch {epoch} (learning rate {lr:g})."
        super().__init__(f"{self.reason} {advice}")

    def __reduce__(self) -> tuple[type[DivergedError], tuple[str, int, float, str]]:
        return type(self), (self.what, self.epoch, self.lr, self.advice)  # a copy is made of these, not of the message


class UnknownNameError(MurpError):
    """A name that matches no entity or relation, or more than one."""
