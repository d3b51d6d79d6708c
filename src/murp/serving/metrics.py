"""Counters of a server, as text that Prometheus reads (text format 0.0.4)."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from pathlib import Path

from murp.serving.current import Current

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """What has been asked since the start.

    All paths but those of ``paths``, which the application fills in, count as one: a client cannot make new counters.
    """

    def __init__(self) -> None:
        self.paths: frozenset[str] = frozenset()
        self.began = time.time()
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.questions = self.triples = self.open = 0
        self._slower: dict[str, list[int]] = {}  # by path: how many took at most each bound, and how many more
        self._seconds: Counter[str] = Counter()

    def done(self, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        name = path if path in self.paths else "other"
        self.requests[name, status] += 1
        self._slower.setdefault(name, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[name] += seconds  # type: ignore[assignment]

    def text(self, current: Current) -> str:
        """Every counter."""
        lines: list[str] = []

        def add(name: str, kind: str, help: str, *values: tuple[str, float]) -> None:
            lines.append(f"# HELP {name} {help}\n# TYPE {name} {kind}")
            lines.extend(f"{name}{labels} {value!r}" for labels, value in values)

        found = sorted(self.requests.items())
        add(
            "murp_requests_total",
            "counter",
            "Requests by path and HTTP status.",
            *((f'{{path="{path}",status="{status}"}}', count) for (path, status), count in found),
        )
        add("murp_questions_total", "counter", "Questions that were answered.", ("", self.questions))
        add("murp_triples_total", "counter", "Triples that were scored.", ("", self.triples))
        add("murp_requests_open", "gauge", "Requests that are being answered.", ("", self.open))
        lines.append("# HELP murp_request_seconds How long requests took.\n# TYPE murp_request_seconds histogram")
        for path, counts in sorted(self._slower.items()):
            below = 0
            for bound, count in zip([*map(str, BOUNDS), "+Inf"], counts, strict=True):
                below += count
                lines.append(f'murp_request_seconds_bucket{{path="{path}",le="{bound}"}} {below}')
            lines.append(f'murp_request_seconds_sum{{path="{path}"}} {float(self._seconds[path])!r}')
            lines.append(f'murp_request_seconds_count{{path="{path}"}} {below}')
        run = current.loaded.run
        about = f'{{model="{_escaped(run.config.model)}",run="{_escaped(run.path.resolve().name)}"}}'
        add("murp_run_info", "gauge", "The run that is served.", (about, 1))
        add("murp_run_epoch", "gauge", "The epoch of its weights.", ("", run.state["epoch"]))
        add("murp_reloads_total", "counter", "Runs that took the place of another.", ("", current.reloads))
        add("murp_reload_failures_total", "counter", "Runs that could not be loaded.", ("", current.failures))
        add("process_cpu_seconds_total", "counter", "Time of the processor, in seconds.", ("", time.process_time()))
        add("process_start_time_seconds", "gauge", "When the server began, since 1970.", ("", self.began))
        if (memory := _memory()) is not None:
            add("process_resident_memory_bytes", "gauge", "Memory that the process holds.", ("", memory))
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _memory() -> int | None:
    """Bytes that this process holds; None if the system does not tell (it is no Linux)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
    except (OSError, StopIteration, ValueError):
        return None
