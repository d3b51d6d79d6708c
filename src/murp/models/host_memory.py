"""Host memory that a GPU reads and writes over the bus: its pages are pinned, and the GPU knows their addresses.

PyTorch's own pinned memory is rounded up to a power of two, so a table of 70 GB would need 137 GB. Here memory is as
large as the table: it is mapped and then registered with the driver. It is freed with the last tensor that uses it.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Sequence

import torch
from torch import Tensor

MAPPED = 3  # cudaHostRegisterPortable | cudaHostRegisterMapped


class Pages(mmap.mmap):
    """Memory of this process; after registration a GPU can access it too."""

    address = 0  # where it is registered

    def register(self, address: int) -> bool:
        """Whether the driver has pinned it."""
        if int(torch.cuda.cudart().cudaHostRegister(address, len(self), MAPPED)) == 0:  # type: ignore[no-untyped-call]
            self.address = address
            return True
        # The error stays with the thread, and would be told of the next kernel.
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device="cuda")
        return False

    def __del__(self) -> None:
        if self.address:
            with contextlib.suppress(Exception):  # the driver may be gone when Python ends
                torch.cuda.cudart().cudaHostUnregister(self.address)  # type: ignore[no-untyped-call]


def room(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Zeros in memory that a GPU reads and writes."""
    count = math.prod(shape)
    pages = Pages(-1, max(1, count * dtype.itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(AttributeError, OSError):  # fewer and larger pages, where the system has them
        pages.madvise(mmap.MADV_HUGEPAGE)
    values = torch.frombuffer(pages, dtype=dtype, count=count).view(*shape)
    if pages.register(values.data_ptr()):
        return values
    return torch.zeros(*shape, dtype=dtype, pin_memory=True)


def pinned(values: Tensor) -> Tensor:
    """``values`` in memory that a GPU reads and writes; copied if they are not there already."""
    return values if values.is_pinned() else room(values.shape, values.dtype).copy_(values)
