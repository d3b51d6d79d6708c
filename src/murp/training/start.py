"""Starting a run and continuing one."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from murp import display, engines, models
from murp.commands import command
from murp.config import Config
from murp.distributed.ranks import LONGEST_WAIT, Ranks, join, launched, restarted, resumable
from murp.distributed.shares import Share, initialise
from murp.errors import ConfigError, MurpError, NotFiniteError, RunError, first_line, is_of_memory
from murp.geometry import MobiusGeometry
from murp.graph import KnowledgeGraph, cache
from murp.graph.names.vocabulary import counted
from murp.graph.shape import shape
from murp.models import Model
from murp.recipes import AUTO, completed, decide
from murp.runs import Run, checkpoint, folder
from murp.runs.default_folder import difference, own_folder, unused_folder
from murp.runs.lock import locked
from murp.runs.run import home, load, load_trained, resolve_device
from murp.runs.settings import checked
from murp.training.job import Job
from murp.training.loop import finished, fit, stopped_early
from murp.training.progress import Silent, usual
from murp.training.state import State
from murp.training.weight_transfer import refuse_other, transfer

SOURCE = ("data_dir", "split_seed", "columns", "no_header")  # settings that say what to load
# Of entities, read in one step: the fused engines number them with 32 bits.
MOST_ROWS = 2**31 - 1


def train(
    graph: KnowledgeGraph | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    reuse: bool = True,
    progress: Silent | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a graph and return the run with its best weights; :func:`murp.train` says it all."""
    ranks = join()
    ranks.started("train")
    with ranks.together():
        if progress is not None and not isinstance(progress, Silent):
            raise ConfigError(f"progress must derive from murp.training.progress.Silent, not be {progress!r}.")
        check_reading(graph, settings)
        if launched() and out is None:
            raise ConfigError(
                "with torchrun give --out, the run folder: ranks that are started again look for it there."
            )
    patient = ranks.aside(LONGEST_WAIT)
    # One rank of each machine reads the data first, and the others find the result in the cache, if there is one.
    at_once = os.environ.get("LOCAL_RANK", "0") == "0" or cache.place() is None
    for turn in (True, False):
        with patient.together():
            if at_once is turn:
                source, given, why = decided(graph, dict(settings))
                loaded, config = configure(source, given)
                path = place_for(out, config, loaded, reuse=reuse)
    # The first rank decides: a folder of the network may look older to the others.
    if (reuse or restarted()) and ranks.gathered(os.path.isfile(path / folder.CONFIG))[0]:
        with resumable(path):
            return _again(path, config, loaded, ranks, progress or usual())
    if ranks.size > 1 or config.slices:
        from murp.training import sharded

        return sharded.begin(path, config, loaded, ranks, progress or usual(), why)
    model = new_model(config, loaded)
    job = Job(path, config, loaded, model, State())
    engine = engines.build(config.engine, [job.task])
    folder.create(job.path, config, loaded, model, job.state.to_dict(), engine.name, recipe=why)
    with locked(job.path), nothing_kept_of_nothing(job):
        fit([job], engine, progress or usual())
    return load(job.path, device=home(config))


@contextlib.contextmanager
def nothing_kept_of_nothing(job: Job) -> Iterator[None]:
    """If a model or an objective fails in its first steps, such as one that a user is writing, no run folder stays."""
    try:
        yield
    except MurpError:
        raise
    except Exception:
        if job.state.epoch == job.state.chunk == 0:
            shutil.rmtree(job.path, ignore_errors=True)
        raise


def place_for(out: str | os.PathLike[str] | None, config: Config, graph: KnowledgeGraph, *, reuse: bool) -> Path:
    """The folder that was given, or one under ``runs/``: the one that holds this run, with ``reuse``, or a free one."""
    if out is not None:
        try:
            return Path(out)
        except TypeError:
            raise ConfigError(f"out must be the path of a folder, not {out!r}.") from None
    return own_folder(config, graph) if reuse else unused_folder(config)


def _again(path: Path, config: Config, graph: KnowledgeGraph, ranks: Ranks, progress: Silent) -> Run:
    """The run that ``path`` holds already, trained to its end, if it is the one that is asked for."""
    with ranks.together():
        if (other := difference(path, config, graph)) is not None:
            raise RunError(
                f"{path} exists already: it holds {other}. Choose another folder, continue that run "
                f"(`{command('train', '--resume', path)}`, murp.resume in Python), or remove it."
            )
        last, config = path / folder.LAST, folder.read_config(path)
        # Not every rank checks every table: before training continues, ranks divide that among them.
        values = checkpoint.state_of(last) if ranks.size == 1 else checkpoint.noted_state(last)
        done = finished(config, State.from_dict(checked(values, config, last, path / folder.CONFIG), last))
    if not ranks.gathered(done)[0]:
        return resume(path, progress=progress)
    with ranks.together():
        if config.slices:
            from murp.training import sharded

            return sharded.opened(path, config, graph)
        return load(path, device=home(config), graph=graph)


def resume(
    path: str | os.PathLike[str],
    *,
    epochs: int | None = None,
    patience: int | None = None,
    progress: Silent | None = None,
) -> Run:
    """Continue a run from its newest whole checkpoint, bit for bit as if it had never stopped (on the CPU).

    ``epochs`` extends a run whose learning rate does not depend on its length, ``patience`` one that has stopped
    early; every other setting is the run's own.
    """
    path = Path(path)
    asked = {"epochs": epochs, "patience": patience}
    changes = {name: value for name, value in asked.items() if value is not None}
    ranks = join()
    ranks.started("train --resume")
    with ranks.together():
        stored = folder.read_config(path)
        if ranks.size > 1 and not stored.slices:
            raise RunError(
                f"{path} was started by one process, and its checkpoints cannot be used by several. Continue it "
                "without torchrun, or train a new run with torchrun."
            )
    if stored.slices:
        from murp.training import sharded

        return sharded.go_on(path, changes, ranks, progress or usual())
    with locked(path):
        config = _resume(path, changes, progress or usual())
    return load(path, device=home(config))


def _resume(path: Path, changes: dict[str, Any], progress: Silent) -> Config:
    """Train a locked run to its end; its settings."""
    stored, graph = folder.read_config(path), folder.read_graph(path)
    config = changed(stored, changes)
    checkpoint.recover(path / folder.LAST)
    # Points in host memory are copied once, into their place there.
    host = config.tables == "host"
    model, values, optimizer = load_trained(path / folder.LAST, config, graph, map_large=host)
    state = State.from_dict(values, path / folder.LAST)
    check_changes(path, stored, config, state, changes)
    check_usable(graph, config)
    checkpoint.recover_best(path / folder.BEST)
    model.to(resolve_device(config.device), host=host)
    job = Job(path, config, graph, model, state)
    engine = engines.build(config.engine, [job.task])
    begun = optimizer or state.epoch or state.chunk  # before that there are no tables
    if begun and not finished(config, state):
        _restore(engine.states[0], optimizer, path / folder.LAST)
    folder.rewind_metrics(path, state.epoch)
    if config != stored:
        folder.write_config(path, config)
    if not finished(config, state):
        fit([job], engine, progress)
    return config


def changed(stored: Config, changes: dict[str, Any]) -> Config:
    """The settings of a run with those ``changes`` that are asked for when it is continued."""
    config = stored.replace(**changes)
    if config.epochs != stored.epochs and "epochs" not in config.free():
        raise ConfigError(
            f"the number of epochs cannot change on resuming: the {config.lr_schedule} schedule depends on it."
        )
    return config


def check_changes(path: Path, stored: Config, config: Config, state: State, changes: dict[str, Any]) -> None:
    """Raise if a run that stands at ``state`` cannot be continued with the settings that have changed."""
    if config.epochs != stored.epochs and config.epochs < state.epoch:
        raise ConfigError(
            f"{path} was already trained for {state.epoch} epochs; {config.epochs} would be fewer. "
            f"Choose a number above {state.epoch}, or train a new run."
        )
    if config != stored and stopped_early(config, state):
        raise RunError(f"{path} {ended_early(path, config, state, **changes)} Nothing was trained or changed.")


def _restore(state: dict[str, Tensor], stored: dict[str, Tensor], file: Path) -> None:
    """Put the optimizer's tables of a checkpoint in place of those that begin at 0."""
    older = checkpoint.previous(file)
    begin = command("train", "--data", file.with_name(folder.GRAPH), "--init-from", file.parent)
    advice = (
        "Without these training cannot go on. Put back a checkpoint that has them"
        f"{f' ({older.name} may be one)' if older.exists() else ''}, or train a new run: from the start with the same "
        f"settings (`murp train --config`), or from these weights (`{begin}`, with the same model). To evaluate and "
        "predict they are not needed."
    )
    if state and not stored:
        raise RunError(
            f"{file} has no tables of the optimizer ({', '.join(state)}): only {folder.LAST} of a run that was trained "
            f"here keeps them, {folder.BEST}, exports and imported runs do not. {advice}"
        )
    expected = {name: (values.dtype, tuple(values.shape)) for name, values in state.items()}
    found = {name: (values.dtype, tuple(values.shape)) for name, values in stored.items()}
    wrong = [name for name in expected | found if expected.get(name) != found.get(name)]
    wrong += [name for name in stored if name not in wrong and not bool(stored[name].isfinite().all())]
    if wrong:
        raise RunError(
            f"{file}: the optimizer's tables do not fit the run, or hold NaN or infinity: {', '.join(wrong)}. {advice}"
        )
    for name, values in stored.items():
        state[name] = values.to(state[name].device)


def ended_early(path: Path, config: Config, state: State, **changes: int) -> str:
    """That the run at ``path`` stopped early, why, and how it goes on, there with the ``changes`` asked for."""
    wanted = [word for name, value in (changes | {"patience": 0}).items() for word in (f"--{name}", str(value))]
    return (
        f"stopped early, in epoch {state.epoch}: the last {state.stale} validations brought no better MRR, and its "
        f"patience is {config.patience}. To go on and not stop early: `{command('train', '--resume', path, *wanted)}` "
        f"(or any --patience above {state.stale})."
    )


def decided(
    graph: KnowledgeGraph | str | os.PathLike[str], settings: dict[str, Any]
) -> tuple[KnowledgeGraph | str | os.PathLike[str], dict[str, Any], str | None]:
    """What to train on and with, recipe ``auto`` replaced by what it decides, and why; None if there is no such.

    A graph that had to be loaded for that is handed on.
    """
    if settings.get("recipe") != AUTO:
        return graph, settings, None
    if not isinstance(graph, KnowledgeGraph):
        source = {name: Config.checked(name, settings.get(name, getattr(Config, name))) for name in SOURCE}
        graph = KnowledgeGraph.load(
            graph,
            data_dir=source["data_dir"] or None,
            seed=source["split_seed"],
            columns=source["columns"],
            header=not source["no_header"],
        )
        # As an absolute path, so that the run can be repeated from anywhere.
        settings = {**settings, "data_dir": str(Path(source["data_dir"]).resolve()) if source["data_dir"] else ""}
    choice = decide(shape(graph))
    display.aside(f"murp: {choice.why}")
    return graph, {**choice.settings, **settings, "recipe": choice.recipe}, choice.why


def check_reading(graph: KnowledgeGraph | str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """Raise if ``settings`` say that a graph that is there already be read otherwise: a run would record that."""
    if not isinstance(graph, KnowledgeGraph):
        return
    own = {"split_seed": graph.split_seed, "columns": str(graph.columns), "no_header": not graph.columns.header}
    for name, value in own.items():
        if settings.get(name, value) not in (value, getattr(Config, name)):
            raise ConfigError(
                f"{name} sets how data is read, but the graph was already read: leave it out, or give the name or path "
                "of the data instead of a graph."
            )


def configure(
    graph: KnowledgeGraph | str | os.PathLike[str], settings: dict[str, Any], where: str = "train"
) -> tuple[KnowledgeGraph, Config]:
    """The loaded graph and the complete configuration, with what is needed to load the graph again.

    ``where``: what was asked to do this, for errors.
    """
    if isinstance(graph, KnowledgeGraph):
        origin = {"data": graph.source or graph.name, "split_seed": graph.split_seed}
        origin |= {"columns": str(graph.columns), "no_header": not graph.columns.header}
        config = Config.from_mapping(completed({**origin, **settings}), where)
    else:
        try:
            data = os.fspath(graph)
        except TypeError:
            raise ConfigError(
                f"{where}: the graph must be a KnowledgeGraph, or the name or the path of data, not a "
                f"{type(graph).__name__}. KnowledgeGraph.from_triples makes one of a list of triples."
            ) from None
        config = Config.from_mapping(completed({"data": data, **settings}), where)
        graph = KnowledgeGraph.load(
            config.data,
            data_dir=config.data_dir or None,
            seed=config.split_seed,
            columns=config.columns,
            header=not config.no_header,
        )
        # As absolute paths, so that the run can be repeated from anywhere.
        data_dir = str(Path(config.data_dir).resolve()) if config.data_dir else ""
        config = config.replace(data=graph.source, data_dir=data_dir)
    if config.init_from:
        config = config.replace(init_from=str(Path(config.init_from).resolve()))
    check_usable(graph, config)
    return graph, config


def check_usable(graph: KnowledgeGraph, config: Config) -> None:
    """Raise if training would fail later for a reason that can be told now."""
    if len(graph.train) == 0:
        raise MurpError(f"{graph.name} has no training triples.")
    if config.validate_every and len(graph.valid) == 0:
        raise MurpError(
            f"{graph.name} has no facts in valid (if it is one file, nearly every fact is the only one with its head, "
            "relation or tail, and none can be held out). Add facts, or train on all of them with validate_every=0 "
            "(--validate-every 0)."
        )
    size = min(config.batch_size, 2 * len(graph.train))
    if (parts := getattr(config, "entity_parts", 0)) > size:
        raise ConfigError(
            f"{graph.name} has batches of {size:,} triples, which cannot be cut into {parts:,} parts: choose a smaller "
            "--entity-parts."
        )
    negatives = getattr(config, "negatives", 0)
    if size * (2 + negatives) > MOST_ROWS:
        raise ConfigError(
            f"a step on {size:,} triples with {negatives:,} negatives each reads more rows than can be numbered "
            f"({MOST_ROWS:,}): choose a smaller --batch-size or --negatives."
        )
    if config.tables == "host":
        if resolve_device(config.device).type == "cpu":
            raise ConfigError(
                "tables = host is for training on a GPU with the entity table in host memory. On the CPU every table "
                "is in host memory already: leave tables at device."
            )
        engines.refuse_host_tables(config)
    engines.refuse_table_dtype(config)
    if config.tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise ConfigError("tensorboard is not installed: pip install 'murp[tensorboard]'.")


def new_model(config: Config, graph: KnowledgeGraph, ranks: Ranks | None = None) -> Model:
    """A model with its initial values, on its device; where there are ``ranks``, with the rows of this one."""
    device = resolve_device(config.device)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    try:
        if ranks is None:
            model.initialise(config.seed, config.initial_scale, host=config.tables == "host")
        else:
            share = Share(graph.num_entities, ranks.rank, ranks.size)
            initialise(model, share, config.seed, config.initial_scale)
        model.to(device, host=config.tables == "host")
    except (MemoryError, RuntimeError, OverflowError, OSError) as error:
        if "CUDA error" in str(error) and not is_of_memory(error):
            raise  # such as an illegal access by another program: a smaller model would not help
        more = ", or --tables host for murp and mure" if device.type == "cuda" and config.tables == "device" else ""
        numbers = sum(model.rows_of(table) * math.prod(table.shape) for table in model.tables)
        raise MurpError(
            f"no memory for the {numbers:,} parameters of {config.model} d={config.dim} on {graph.name}: choose a "
            f"smaller --dim{more} ({first_line(error)})."
        ) from error
    if broken := model.broken():
        raise ConfigError(_outside(config, model, broken))
    if config.init_from:
        start_from(config, model, graph)
    return model


def _outside(config: Config, model: Model, broken: list[str]) -> str:
    """What to tell the user if initial values are not points of their space."""
    balls = {
        table.name: table.geometry
        for table in model.tables
        if table.initial == "normal" and isinstance(table.geometry, MobiusGeometry) and not table.geometry.is_flat
    }
    lengths = {
        name: ball.c**0.5 * float(torch.linalg.vector_norm(model.parameters[name].double(), dim=-1).max())
        for name, ball in balls.items()
    }
    farthest = max(lengths, key=lambda name: lengths[name], default=None)
    if farthest is None or not lengths[farthest] >= 1:
        return (
            f"initial values of {config.model} are not points of their space, in {', '.join(broken)}: choose a smaller "
            "--initial-scale, or declare these tables with other initial values."
        )
    return (
        f"initial_scale = {config.initial_scale:g} draws points outside the ball of radius "
        f"{balls[farthest].c ** -0.5:.3g}: choose {0.9 * config.initial_scale / lengths[farthest]:.1e} or less."
    )


def start_from(config: Config, model: Model, graph: KnowledgeGraph) -> None:
    """Give a new model the weights of the run that ``init_from`` names, for what both graphs have."""
    source = load(config.init_from, device="cpu")
    refuse_other(source, config)
    transferred = transfer(source, model, graph)
    entities, relations = int(transferred.entities.sum()), int(transferred.relations.sum()) // 2
    if not entities:
        raise ConfigError(
            f"{config.init_from} has no entity of {graph.name}: there is nothing to start from. Ids are compared, not "
            "names."
        )
    if broken := model.broken():  # large weights are not looked through when they are opened
        raise NotFiniteError(
            f"{config.init_from} holds NaN, infinity or points outside their space in {', '.join(broken)}. Start from "
            "another run."
        )
    rest = {"entities": graph.num_entities - entities, "relations": graph.num_relations - relations}
    new = f"; new initial values for {counted(rest)}" if any(rest.values()) else ""
    display.aside(
        f"murp: starts from the weights of {config.init_from}: {entities:,} of {graph.num_entities:,} entities and "
        f"{relations:,} of {graph.num_relations:,} relations{new}"
    )
