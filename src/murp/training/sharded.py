"""Start and continue a run whose rows are divided among many ranks.

torchrun --standalone --nproc-per-node 4 -m murp train --data WN18RR --out runs/many
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import murp
from murp import display, models
from murp.config import Config
from murp.distributed.engine import AUTOGRAD, ShardedEngine
from murp.distributed.ranking import Counting
from murp.distributed.ranks import SAME_COMMAND, RankError, Ranks, failed, no_memory, own_gpu, resumable
from murp.distributed.saving import Saver
from murp.distributed.searching import Searching
from murp.distributed.shares import Share
from murp.engines import FUSED, Task
from murp.engines.slices import unknown
from murp.errors import (
    ConfigError,
    DivergedError,
    MurpError,
    NotFiniteError,
    RunError,
    first_line,
    is_of_memory,
    why_not,
)
from murp.evaluation import Protocol, Report, evaluate
from murp.evaluation.evaluate import check_candidates, refuse_broken
from murp.evaluation.ranks import PROTOCOLS
from murp.evaluation.stored_candidates import file_digest
from murp.graph import SPLITS, Indices, KnowledgeGraph, Split
from murp.models import Model
from murp.prediction.search import Floats
from murp.provenance import source_digest
from murp.runs import Run, checkpoint, folder
from murp.runs.lock import locked
from murp.runs.run import Checkpoint, load_model, resolve_device
from murp.runs.settings import checked
from murp.training.job import Job
from murp.training.loop import Interrupted, finished, fit
from murp.training.progress import Silent
from murp.training.start import changed, check_changes, check_usable, new_model, nothing_kept_of_nothing
from murp.training.state import State

# A machine may remember that a file of NFS was not there, usually for at most so many seconds (acdirmax of nfs(5)).
SIGHT, PAUSE = 60.0, 0.5


def begin(path: Path, config: Config, graph: KnowledgeGraph, ranks: Ranks, progress: Silent, why: str | None) -> Run:
    """Train a new run into ``path``."""
    asked, config = config, config.replace(slices=config.slices or ranks.size)
    _agree(ranks, config, graph)
    ranks.same("run folder", {"--out": str(path)}, SAME_COMMAND)
    with ranks.together():
        refuse(asked, ranks.size)
        _use_device(config)
        source = _weights_of(config)
        model = new_model(config, graph, ranks)
        if _weights_of(config) != source:
            raise RunError(f"{config.init_from} has saved while its weights were read. Start the same command again.")
    if (
        ranks.first
        and (parts := getattr(config, "entity_parts", 0))
        and (parts % ranks.size or config.slices % ranks.size)
    ):
        display.aside(
            f"murp: local negatives save messages only if entity_parts ({parts}) and slices ({config.slices}) are "
            f"multiples of the {ranks.size} ranks"
        )
    ranks.same("weights to start from", {"--init-from": source}, "See that every machine reads the same run.")
    saver = Saver(ranks, model)
    with ranks.together():
        job, engine = _job(path, config, graph, model, State(), saver, config.engine)
    _same_engine(ranks, engine)
    _create(job, engine, why)
    with resumable(path):
        with ranks.together():
            if not _appears(path / folder.LAST):
                raise RunError(
                    f"this rank does not see the run folder {path}, which the first rank has made. All machines need "
                    "the same folder, such as one of the network."
                )
        return _trained(job, engine, progress)


def _weights_of(config: Config) -> tuple[str, int] | None:
    """What tells the weights that a run starts from apart from others; None if there are none."""
    source = Path(config.init_from)
    file = source / f"{best_or_last(source)}.safetensors"
    if not config.init_from or not checkpoint.exists(file):
        return None
    weights, state = checkpoint.digest(file)
    return weights, state["epoch"]


def _appears(file: Path) -> bool:
    """Whether this rank sees a checkpoint that was just made: at once, or after a while on a folder of the network."""
    ends = time.monotonic() + SIGHT
    while not (there := checkpoint.exists(file)) and time.monotonic() < ends:
        time.sleep(PAUSE)
    return there


def go_on(path: Path, changes: dict[str, Any], ranks: Ranks, progress: Silent) -> Run:
    """Continue the run ``path`` from its newest whole checkpoint."""
    with resumable(path), contextlib.ExitStack() as held:
        with ranks.together():
            if ranks.first:
                held.enter_context(locked(path))
            stored, graph = folder.read_config(path), folder.read_graph(path)
            config = changed(stored, changes)
            refuse(config, ranks.size)
            _use_device(config)
        _agree(ranks, config, graph)
        state, job, engine = _restored(path, config, graph, ranks)
        with ranks.together():
            check_changes(path, stored, config, state, changes)
            check_usable(graph, config)
            if ranks.first:
                checkpoint.recover_best(path / folder.BEST)
                folder.rewind_metrics(path, state.epoch)
                if config != stored:
                    folder.write_config(path, config)
        if finished(config, state):
            return opened(path, config, graph)
        return _trained(job, engine, progress, new=False)


def _restored(path: Path, config: Config, graph: KnowledgeGraph, ranks: Ranks) -> tuple[State, Job, ShardedEngine]:
    """A model with this rank's rows of the newest checkpoint, and the state of its training."""
    last = path / folder.LAST
    with ranks.together():
        model = _empty(config, graph, ranks)
    saver = Saver(ranks, model)
    with saver.newest(last) as found:
        with ranks.together():
            state = State.from_dict(checked(found.state, config, last, path / folder.CONFIG), last)
            job, engine = _job(path, config, graph, model, state, saver, _engine_of(path, config))
        _same_engine(ranks, engine)
        begun = state.epoch or state.chunk  # before that there are no tables of the optimizer
        tables = model.parameters | (engine.states[0] if begun else {})
        saver.read(found, tables)
    with ranks.together():
        states = engine.states[0].items()
        if broken := model.broken() + [name for name, rows in states if not bool(rows.isfinite().all())]:
            raise NotFiniteError(f"{checkpoint.shards_of(last)} holds NaN or infinity in {', '.join(broken)}.")
    return state, job, engine


def opened(path: Path, config: Config, graph: KnowledgeGraph, which: Checkpoint | None = None) -> Run:
    """The run; its weights are read when they are first used."""
    which = which or best_or_last(path)
    name = folder.BEST if which == "best" else folder.LAST
    state = checked(checkpoint.noted_state(path / name), config, path / name, path / folder.CONFIG)

    def model() -> Model:
        return load_model(path / name, config, graph)[0].to(resolve_device(config.device))

    return Run(path, config, graph, model, state, which)


def best_or_last(path: Path) -> Checkpoint:
    """The checkpoint that is used where none is asked for."""
    return "best" if checkpoint.exists(path / folder.BEST) else "last"


def evaluated(
    path: Path,
    ranks: Ranks,
    split: Split,
    protocol: Protocol,
    which: Checkpoint | None,
    device: str,
    candidates: int | None,
    seed: int,
    memory: int | None,
    save: Path | None = None,
    source: Path | None = None,
) -> tuple[Run, Report]:
    """Evaluate a run on many ranks, which all ask the same; each loads only its own rows.

    ``candidates`` and ``seed`` are for protocol ``sampled``: every rank draws all candidates, or reads the file
    ``source``, and scores its own. The first rank writes the file ``save``.
    ``memory`` bounds the bytes of the scores on each rank.
    """
    with ranks.together():
        if protocol == "types":
            raise ConfigError(
                f"protocol types works only in one process. Choose {', '.join(PROTOCOLS)} or sampled, or evaluate "
                "without torchrun."
            )
        check_candidates(protocol, candidates, seed, save if ranks.first else None, source)
        read = {"candidates of the file": None if source is None else file_digest(source)}
    ranks.same("question", read, SAME_COMMAND)
    run, model = _own_rows(path, ranks, which, device)
    counting = Counting(ranks, model, memory)
    with _alone(ranks):
        return run, evaluate(
            model,
            run.graph,
            split,
            protocol,
            candidates=candidates,
            seed=seed,
            save_candidates=save if ranks.first else None,
            candidates_from=source,
            counting=counting,
        )


def answered(path: Path, ranks: Ranks, which: Checkpoint | None, device: str, answer: Callable[[Run], None]) -> None:
    """Call ``answer`` on the first rank with a run that predicts and discovers; all ranks search, each its own rows."""
    run, model = _own_rows(path, ranks, which, device)
    searching = _Answering(ranks, model)
    if not ranks.first:
        searching.help()
        return
    run.search = searching
    try:
        answer(run)
    finally:
        if searching.waiting:
            searching.end()
        else:
            failed()


class _Answering(Searching):
    """A search that, if it fails on one rank, stops all. What the first rank does with the answers is not part of
    it."""

    def __call__(self, subjects: Indices, relations: Indices, left_out: Indices, k: int) -> Floats:
        with _alone(self.ranks):
            return super().__call__(subjects, relations, left_out, k)

    def help(self) -> None:
        with _alone(self.ranks):
            super().help()


def _own_rows(path: Path, ranks: Ranks, which: Checkpoint | None, device: str) -> tuple[Run, Model]:
    """A run, and its model with this rank's rows."""
    with ranks.together():
        config, graph = folder.read_config(path), folder.read_graph(path)
        config = config.replace(device=device)
        if not config.slices:
            raise RunError(f"{path} was trained by one process: use it without torchrun.")
        _use_device(config)
        model = _empty(config, graph, ranks)
        which = which or best_or_last(path)
    _agree(ranks, config, graph)
    ranks.same("checkpoint", {"--checkpoint": which}, SAME_COMMAND)
    file = path / f"{which}.safetensors"
    saver = Saver(ranks, model)
    with saver.newest(file, repair=False) as found:
        saver.read(found, model.parameters)
    with ranks.together():
        model = model.in_full()
        refuse_broken(model)
        state = checked(found.state, config, file, path / folder.CONFIG)
    return Run(path, config, graph, model, state, which), model


def refuse(config: Config, size: int) -> None:
    """Raise if ``size`` ranks cannot train a run in slices, with all that stands against it.

    Without ``config.slices`` each rank gets one.
    """
    parts, slices = config.parts, config.slices or size
    reasons = []
    if not parts["objective"].sampled:
        reasons.append(
            f"objective {config.objective} has every entity as a candidate; bernoulli, self-adversarial, softmax, "
            "margin and rank draw some"
        )
    if parts["model"].keeps_statistics:
        reasons.append(f"model {config.model} normalises a batch by its own statistics, which no slice has")
    if slices > config.batch_size:
        fewer = "choose fewer --slices" if config.slices else "start fewer ranks"
        reasons.append(
            f"a batch of {config.batch_size} triples cannot be cut into {slices} slices; {fewer}, or choose a larger "
            "--batch-size"
        )
    if config.engine in FUSED:
        reason = unknown(config.engine, Task.of(config, models.from_config(config, 1, 1)))
        reasons += [] if reason is None else [f"engine {config.engine} {reason}; use --engine auto or torch"]
    if config.tables == "host":
        reasons.append("tables = host needs one process; ranks divide the rows, each has its own on its device")
    if reasons:
        raise ConfigError(f"a run on several ranks (or with --slices) does not support this: {'; '.join(reasons)}.")


def _agree(ranks: Ranks, config: Config, graph: KnowledgeGraph) -> None:
    """Raise unless all ranks run the same code with the same settings on the same data."""
    code = {"murp": murp.__version__, "source": source_digest(), "torch": torch.__version__}
    ranks.same("code", code, "Install the same version of murp and of PyTorch on every machine.")
    held = {name: value for name, value in config.to_dict().items() if name not in ("data", "data_dir")}
    ranks.same("settings", held, SAME_COMMAND)
    ranks.same("data", _about(graph), "See that every machine reads the same files.")


def _about(graph: KnowledgeGraph) -> dict[str, Any]:
    """A graph in a few words."""
    digest = hashlib.blake2b(digest_size=8)
    for split in SPLITS:
        digest.update(np.ascontiguousarray(graph.split(split)).data)
    ids = {names.kind: names.digest() for names in (graph.entities, graph.relations)}
    return {**graph.counts(), "digest": digest.hexdigest(), **{f"digest of {kind} ids": of for kind, of in ids.items()}}


def _use_device(config: Config) -> None:
    """Raise unless this rank has the device that a run asks for. The CPU's runs do not touch a GPU."""
    if resolve_device(config.device).type == "cuda":
        own_gpu()


def _empty(config: Config, graph: KnowledgeGraph, ranks: Ranks) -> Model:
    """A model with room for this rank's rows."""
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    share = Share(graph.num_entities, ranks.rank, ranks.size)
    device = resolve_device(config.device)
    model.first_row = share.start
    try:
        model.parameters = {
            table.name: torch.zeros(
                len(share) if table.of == "entity" else model.rows_of(table), *table.shape, dtype=model.dtype_of(table)
            ).to(device)
            for table in model.tables
        }
    except (MemoryError, RuntimeError) as error:
        if not is_of_memory(error):
            raise
        raise MurpError(
            f"no memory for the {len(share):,} rows of this rank: use more ranks ({first_line(error)})."
        ) from error
    return model


def _job(
    path: Path, config: Config, graph: KnowledgeGraph, model: Model, state: State, saver: Saver, engine: str
) -> tuple[Job, ShardedEngine]:
    job = Job(path, config, graph, model, state, saver.ranks, saver)
    job.optimizer = {}
    return job, ShardedEngine(job.task, saver.ranks, config.slices, engine)


def _engine_of(path: Path, config: Config) -> str:
    """The engine to continue a run with: ``auto`` stays torch for a run that began with autograd's gradients.

    Until fused kernels could compute slices, ``auto`` was torch. Such a run continues with the same arithmetic.
    """
    try:
        begun_with = folder.read_environment(path).get("engine")
    except RunError:  # lost; training does not need it
        begun_with = AUTOGRAD
    return "torch" if config.engine == "auto" and begun_with == AUTOGRAD else config.engine


def _same_engine(ranks: Ranks, engine: ShardedEngine) -> None:
    """Raise unless all ranks compute gradients with the same code, which ``auto`` chooses by what a machine has."""
    advice = "Install the same packages on every machine, or choose --engine torch."
    ranks.same("engine", {"engine": engine.name}, advice)


def _create(job: Job, engine: ShardedEngine, why: str | None) -> None:
    """Make the run folder: the first rank makes it, and every rank writes its rows into it."""
    ranks, saver = job.ranks, job.saver
    assert saver is not None
    told = False

    def write(path: Path, tables: dict[str, Any], state: dict[str, Any]) -> None:
        nonlocal told
        told = True
        place, known = ranks.gathered((str(path), state))[0]
        saver.write(Path(place), tables, known)

    with ranks.together():
        if not ranks.first:
            place, known = ranks.gathered(None)[0]
            if place is not None:
                _plainly(saver, Path(place), job.model.parameters, known)
            return
        try:
            folder.create(
                job.path, job.config, job.graph, job.model, job.state.to_dict(), engine.name, recipe=why, write=write
            )
        except MurpError:
            if not told:
                ranks.gathered((None, None))
            raise


def _plainly(saver: Saver, path: Path, tables: dict[str, Any], state: dict[str, Any]) -> None:
    try:
        saver.write(path, tables, state)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {why_not(error)}. Nothing was kept.") from error


def _trained(job: Job, engine: ShardedEngine, progress: Silent, *, new: bool = True) -> Run:
    """Train to the end. The folder of a run that is not ``new`` is locked already."""
    ranks = job.ranks
    with _alone(ranks), contextlib.ExitStack() as held:
        with ranks.together():
            if ranks.first and new:
                held.enter_context(locked(job.path))
                held.enter_context(nothing_kept_of_nothing(job))
        fit([job], engine, progress if ranks.first else Silent())
    return opened(job.path, job.config, job.graph)


@contextlib.contextmanager
def _alone(ranks: Ranks) -> Iterator[None]:
    """What stops one rank stops all: the others notice that it is gone, and one of them says why."""
    try:
        yield
    except (DivergedError, Interrupted) as error:  # which every rank notices alike
        error.silent = not ranks.first
        raise
    except RankError:
        raise
    except (MurpError, MemoryError, RuntimeError) as error:
        if ranks.size == 1 or not (isinstance(error, MurpError) or is_of_memory(error)):
            raise
        failed()
        what = error if isinstance(error, MurpError) else no_memory(error)
        raise RankError(f"rank {ranks.rank} of {ranks.size}: {what}", silent=None) from error
