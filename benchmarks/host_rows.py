"""Reading random rows for different table sizes: what a step with its table in host memory waits for.

A kernel only reads rows of 160 bytes, as many as a step reads, at random places in the first part of a table. It always
reads the same number of bytes. Only the size of that part changes, and with it the number of different addresses that
the GPU and the bus must translate. The table lies on the GPU, in host memory with pages of 2 MB, or in host memory with
pages of 4 KB. Part of benchmarks/gpu_scale.py (``--rows``).
"""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from measure import finish, seconds, spread
from murp.models.host_memory import Pages, room

EACH = 16  # rows that a program of the kernel reads
LAUNCHES = 128  # each with rows of its own, timed as one graph


@triton.jit
def gather(table, rows, out, dim: tl.constexpr, width: tl.constexpr, each: tl.constexpr):
    """Copy ``each`` rows to ``out``; ``width``: ``dim``, rounded up to a power of two."""
    place = tl.program_id(0) * each + tl.arange(0, each)
    row = tl.load(rows + place)
    column = tl.arange(0, width)[None, :]
    values = tl.load(table + row[:, None] * dim + column, mask=column < dim, other=0.0)
    tl.store(out + place[:, None] * dim + column, values, mask=column < dim)


def by_place(
    spans: Sequence[int], dim: int, count: int, repeats: int, device: torch.device, keep: Callable[[Any], None]
) -> dict[str, Any]:
    """Seconds to read ``count`` rows, by where the table lies and by how many of its first rows they come from.

    Of small pages the largest span is left out: to pin so many of them takes long. ``keep`` is handed what there is
    after each place.
    """
    count = -(-count // EACH) * EACH
    places: dict[str, tuple[Callable[[tuple[int, int]], Tensor], int]] = {
        "on the GPU": (lambda shape: torch.zeros(shape, device=device), spans[-1]),
        "in host memory, pages of 2 MB": (_large_pages, spans[-1]),
        "in host memory, pages of 4 KB": (_small_pages, spans[-2]),
    }
    found: dict[str, Any] = {"row_bytes": 4 * dim, "rows": count, "by_place": {}}
    for place, (make, most) in places.items():
        before, began = huge(), time.perf_counter()
        table = make((most, dim)) if device.type == "cuda" else torch.zeros(most, dim)
        finish(device)
        made, large = time.perf_counter() - began, huge() - before
        print(f"{place}: {table.nbytes / 1e9:.1f} GB made in {made:.1f} s", file=sys.stderr, flush=True)
        times = {str(span): read(table, span, count, repeats, device) for span in spans if span <= most}
        found["by_place"][place] = {
            "table_bytes": table.nbytes,
            "seconds_to_make": made,
            "bytes_in_large_pages": max(0, large) if device.type == "cuda" else None,
            "seconds_by_rows": times,
        }
        for span, taken in times.items():
            print(f"  of {span} rows: {taken['median'] * 1e6:.1f} µs", file=sys.stderr, flush=True)
        keep(found)
        del table
    return found


def read(table: Tensor, span: int, count: int, repeats: int, device: torch.device) -> dict[str, float]:
    """Seconds to read ``count`` random ones of the first ``span`` rows."""
    cuda = device.type == "cuda"
    draw, dim = torch.Generator(device).manual_seed(0), table.shape[1]
    launches = LAUNCHES if cuda else 1
    rows = torch.randint(span, (launches, count), generator=draw, device=device)
    out = torch.empty(count, dim, device=device)

    def launch() -> None:
        for some in rows:
            gather[(count // EACH,)](table, some, out, dim, triton.next_power_of_2(dim), EACH)

    launch()  # compiled before it is captured
    torch.testing.assert_close(out[-1].cpu(), table[rows[-1][-1].to(table.device)].cpu())
    work: Callable[[], object] = launch
    if cuda:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        work = graph.replay
        seconds(work, device)
    return spread([seconds(work, device) / launches for _ in range(repeats)])


def huge() -> int:
    """Bytes of this process in pages of 2 MB; 0 where the system does not say."""
    try:
        with open("/proc/self/smaps_rollup", encoding="ascii") as lines:
            return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages"))
    except OSError:
        return 0


def _large_pages(shape: tuple[int, int]) -> Tensor:
    return room(shape, torch.float32)


def _small_pages(shape: tuple[int, int]) -> Tensor:
    count = shape[0] * shape[1]
    pages = Pages(-1, 4 * count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    values = torch.frombuffer(pages, dtype=torch.float32, count=count).view(shape)
    if not pages.register(values.data_ptr()):
        raise MemoryError(f"the driver does not pin {4 * count:,} bytes of small pages")
    return values
