"""Host memory that a GPU reads and writes over the bus: its pages are pinned, and the GPU knows their addresses.

PyTorch's own pinned memory is rounded up to a power of two, so that a table of 70 GB would take 137. Here memory is as
large as the table: it is mapped, filled and then registered with the driver. It belongs to the tensors over it, and is
given back with the last of them.
"""

from __future__ import annotations

import contextlib
import mmap

import torch
from torch import Tensor

MAPPED = 3  # cudaHostRegisterPortable | cudaHostRegisterMapped


class Pages(mmap.mmap):
    """Memory of this process; once registered, a GPU's too."""

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


def pinned(values: Tensor) -> Tensor:
    """A copy of ``values`` in memory that a GPU reads and writes."""
    pages = Pages(-1, max(1, values.nbytes))
    with contextlib.suppress(AttributeError, OSError):  # fewer and larger pages, where the system has them
        pages.madvise(mmap.MADV_HUGEPAGE)
    copy = torch.frombuffer(pages, dtype=values.dtype, count=values.numel()).view(values.shape).copy_(values)
    if pages.register(copy.data_ptr()):
        return copy
    return torch.empty(values.shape, dtype=values.dtype, pin_memory=True).copy_(values)
