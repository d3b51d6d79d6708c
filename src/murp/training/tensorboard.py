"""The curves of a run as TensorBoard reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def writer(path: Path) -> SummaryWriter:
    """Of the run folder ``path``."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(path / "tensorboard"))


def write(board: SummaryWriter, record: dict[str, Any]) -> None:
    """A line of metrics.jsonl as curves."""
    board.add_scalar("loss", record["loss"], record["epoch"])
    board.add_scalar("lr", record["lr"], record["epoch"])
    if "valid" in record:
        for name in ("mrr", "hits@1", "hits@3", "hits@10"):
            board.add_scalar(f"valid ({record['valid']['protocol']})/{name}", record["valid"][name], record["epoch"])
