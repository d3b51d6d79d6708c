"""A run as a service: ``murp.serve``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from murp.runs.run import Checkpoint
from murp.serving.limits import Limits
from murp.serving.server import Service

__all__ = ["serve"]


def serve(
    path: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    keys: str | os.PathLike[str] | Sequence[str] | None = None,
    rate: float = Limits.rate,
    most_questions: int = Limits.questions,
    most_bytes: int = Limits.bytes,
    timeout: float = Limits.seconds,
    types: bool = False,
    approximate: bool = False,
    checkpoint: Checkpoint | None = None,
    device: str = "cpu",
) -> Service:
    """Answer questions about a run folder over HTTP, from this process, until ``close()`` or the end of a ``with``.

    ``port`` 0 takes any free port; ``address`` of the result shows it. ``keys``: a file with one API key per line, or a
    list of keys; None: no key is needed. ``rate``: questions per second for one client, 0: no limit. A request has at
    most ``most_questions`` and ``most_bytes``, and takes at most ``timeout`` seconds. With ``types``, answers that the
    type constraints refuse are left out, unless a question says otherwise. ``approximate`` uses the index of
    :meth:`murp.Run.index`: faster with millions of entities, but may miss answers. If the folder is replaced with
    another run, the server switches to it, and no request fails. :class:`murp.Client` is a client.
    """
    limits = Limits(most_questions, most_bytes, timeout, rate)
    given = keys if keys is None or isinstance(keys, str | os.PathLike) else list(keys)
    return Service(
        path,
        host=host,
        port=port,
        keys=given,
        limits=limits,
        types=types,
        approximate=approximate,
        checkpoint=checkpoint,
        device=device,
    )
