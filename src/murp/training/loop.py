"""The training loop: the paper's recipe, validation, early stopping, checkpoints.

murp train --data wordnet-mini --model murp --dim 40 --out runs/first
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murp import engines
from murp.config import Config
from murp.errors import ConfigError, NotFiniteError
from murp.evaluation import KnownFacts, evaluate
from murp.graph import KnowledgeGraph
from murp.models import MultiRelational
from murp.runs import checkpoint, folder
from murp.training.interrupt import Interrupt
from murp.training.progress import Silent
from murp.training.sampler import Sampler
from murp.training.schedule import learning_rate
from murp.training.state import State

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and has written a checkpoint; the message says how to go on."""


def fit(
    path: Path, config: Config, graph: KnowledgeGraph, model: MultiRelational, state: State, progress: Silent
) -> None:
    """Train ``model`` in place from ``state`` to the last epoch, writing into the run folder ``path``."""
    sampler = Sampler(
        graph.with_reciprocals(graph.train),
        graph.num_entities,
        batch_size=config.batch_size,
        negatives=config.negatives,
        seed=config.seed,
        device=model.device,
    )
    engine = engines.build(config.engine, model)
    known = KnownFacts.of(graph)
    board = _tensorboard(path) if config.tensorboard else None
    saved = time.monotonic()
    progress.start(state, sampler.steps, config.epochs)
    try:
        with Interrupt() as interrupt:
            while state.epoch < config.epochs and not stopped_early(config, state):
                lr = learning_rate(config, state.epoch)
                for index in range(state.chunk, sampler.chunks):
                    began = time.monotonic()
                    chunk = sampler.chunk(state.epoch, index)
                    loss = float(engine.run(chunk, lr))
                    if not math.isfinite(loss):
                        raise _diverged(model, config, state)
                    spent = time.monotonic() - began
                    state.chunk, state.loss, state.seconds = (
                        index + 1,
                        state.loss + loss,
                        state.seconds + spent,
                    )
                    progress.advance(state, chunk, spent, loss / chunk.steps)
                    if interrupt.requested:
                        _save_last(path, config, model, state)
                        raise Interrupted(
                            f"stopped in epoch {state.epoch + 1}; go on with `murp train --resume {path}`"
                        )

                record = _finish_epoch(state, sampler.steps, lr)
                last = state.epoch == config.epochs
                if config.validate_every and (state.epoch % config.validate_every == 0 or last):
                    record["valid"] = _validate(path, config, graph, model, state, known)
                record["seconds"] = round(state.seconds, 3)
                folder.append_metrics(path, record)
                progress.epoch(record)
                if board is not None:
                    _write_board(board, record)
                if last or stopped_early(config, state) or time.monotonic() - saved >= config.save_every:
                    _save_last(path, config, model, state)
                    saved = time.monotonic()
    finally:
        progress.stop()
        if board is not None:
            board.close()


def stopped_early(config: Config, state: State) -> bool:
    """Whether ``patience`` validations have passed without a better one."""
    return config.patience > 0 and state.stale >= config.patience


def _finish_epoch(state: State, steps: int, lr: float) -> dict[str, Any]:
    mean = state.loss / steps
    state.epoch, state.chunk, state.loss = state.epoch + 1, 0, 0.0
    return {"epoch": state.epoch, "loss": mean, "lr": lr}


def _validate(
    path: Path, config: Config, graph: KnowledgeGraph, model: MultiRelational, state: State, known: KnownFacts
) -> dict[str, Any]:
    """Evaluate on valid (never test) and keep the weights if they are the best so far."""
    began = time.monotonic()
    report = evaluate(model, graph, "valid", known=known)
    state.seconds += time.monotonic() - began
    if state.best_mrr is None or report.mrr > state.best_mrr:
        state.best_mrr, state.best_epoch, state.stale = report.mrr, state.epoch, 0
        _check_finite(model, config, state)
        checkpoint.save(path / folder.BEST, model.parameters, state.to_dict())
    else:
        state.stale += 1
    return report.to_dict()


def _save_last(path: Path, config: Config, model: MultiRelational, state: State) -> None:
    _check_finite(model, config, state)
    checkpoint.save(path / folder.LAST, model.parameters, state.to_dict())


def _check_finite(model: MultiRelational, config: Config, state: State) -> None:
    if not all(bool(values.isfinite().all()) for values in model.parameters.values()):
        raise _diverged(model, config, state)


def _diverged(model: MultiRelational, config: Config, state: State) -> NotFiniteError:
    broken = [name for name, values in model.parameters.items() if not bool(values.isfinite().all())]
    what = f"parameter {', '.join(broken)}" if broken else "the loss"
    return NotFiniteError(
        f"{what} became NaN or infinite in epoch {state.epoch + 1} (learning rate {config.lr:g}). "
        f"Try a learning rate of {config.lr / 5:g}, or --dtype float64. The last good checkpoint is kept."
    )


def _tensorboard(path: Path) -> SummaryWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError("tensorboard is not installed: pip install 'murp[tensorboard]'.") from None
    return SummaryWriter(str(path / "tensorboard"))


def _write_board(board: SummaryWriter, record: dict[str, Any]) -> None:
    board.add_scalar("loss", record["loss"], record["epoch"])
    board.add_scalar("lr", record["lr"], record["epoch"])
    if "valid" in record:
        for name in ("mrr", "hits@1", "hits@3", "hits@10"):
            board.add_scalar(f"valid ({record['valid']['protocol']})/{name}", record["valid"][name], record["epoch"])
