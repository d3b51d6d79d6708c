"""If a step does not fit into memory, the error names the settings to change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from murp.commands import command
from murp.config import Config
from murp.errors import MurpError, first_line, is_of_memory


@contextlib.contextmanager
def memory_of_a_step(path: Path, config: Config) -> Iterator[None]:
    """While steps of the run at ``path`` are computed: turn an out-of-memory error into one that names the settings."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_of_memory(error):
            raise
        negatives = getattr(config, "negatives", 0)
        raise MurpError(
            f"no memory for a step on {config.batch_size:,} triples with {negatives:,} negatives each "
            f"({first_line(error)}). Train into another folder "
            "with a smaller --batch-size or --negatives, or free some memory and continue with "
            f"`{command('train', '--resume', path)}`."
        ) from error
