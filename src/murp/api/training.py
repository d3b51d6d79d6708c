"""Make, open, evaluate and compare runs.

``murp.train``, ``resume``, ``load``, ``sweep``, ``evaluate``, ``compare`` and ``import_run``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

from murp import training
from murp.api.run import Run
from murp.api.settings import EXPLAINED, Grid, Settings
from murp.config import Config, naming
from murp.evaluation import Comparison, Protocol, Report
from murp.evaluation.comparison import SAMPLES
from murp.graph import KnowledgeGraph, Split
from murp.recipes import checked_settings
from murp.runs import Run as Folder
from murp.runs import load as open_folder
from murp.runs.run import Checkpoint
from murp.training.grid import grid, try_all
from murp.training.progress import Silent
from murp.training.trials import Sweep, Trial

Path_ = str | os.PathLike[str]


def train(
    graph: KnowledgeGraph | Path_,
    *,
    out: Path_ | None = None,
    reuse: bool = True,
    config: Path_ | None = None,
    progress: Silent | None = None,
    **settings: Unpack[Settings],
) -> Run:
    """Train a model on a graph and return the run with its best weights.

    ``graph`` is a loaded graph, or what :meth:`KnowledgeGraph.load` takes. ``out`` is the run folder; by default one
    under ``runs/``, named by data, model, dimension and seed. If that folder has a run with the same settings on the
    same graph, this run is opened, and trained to its end if it was interrupted: so you can run a notebook cell again.
    ``reuse=False`` always trains a new run, into a folder that must not exist. ``config`` is a file of settings, such
    as the ``config.toml`` of a run; the keyword arguments override it. ``progress`` shows the progress; by default a
    bar on a terminal or in a notebook.

    Other models and recipes have other defaults: ``murp.recipes.completed({"model": "rotate"})`` returns RotatE's. The
    settings are those of :class:`murp.Config`, here with the defaults of MuRP:
    """
    given: dict[str, Any] = dict(settings)
    if config is not None:
        stored = Config.read(Path(config))
        stored.pop("data", None)  # the graph is given
        with naming("train", Path(config), given):
            checked_settings({**stored, **given})
        given = {**stored, **given}
    return Run.of(training.train(graph, out=out, reuse=reuse, progress=progress, **given))


def resume(
    path: Path_, *, epochs: int | None = None, patience: int | None = None, progress: Silent | None = None
) -> Run:
    """Continue a run from its newest complete checkpoint. On the CPU the result is the same, bit for bit, as without a
    stop.

    ``epochs`` extends a run, if its learning rate schedule does not depend on the number of epochs. ``patience``
    continues a run that stopped early. All other settings are those of the run.
    """
    return Run.of(training.resume(path, epochs=epochs, patience=patience, progress=progress))


def load(
    path: Path_, *, checkpoint: Checkpoint | None = None, device: str = "auto", graph: KnowledgeGraph | None = None
) -> Run:
    """Open a run folder.

    ``checkpoint``: the weights of the best validation ("best") or the newest ("last"); by default the best, if the run
    was validated. ``graph``: the graph of the run, if it is already in memory.
    """
    return Run.of(open_folder(path, checkpoint=checkpoint, device=device, graph=graph))


def evaluate(
    run: Folder | Path_,
    split: Split = "test",
    protocol: Protocol = "standard",
    *,
    candidates: int | None = None,
    seed: int = 0,
    save_candidates: Path_ | None = None,
    candidates_from: Path_ | None = None,
    memory: int | None = None,
    checkpoint: Checkpoint | None = None,
    device: str = "auto",
) -> Report:
    """Filtered ranking in both directions on one split, for a run or a run folder.

    ``protocol`` "paper" removes the entity of the question from the ranking, as in the authors' code; "types" ranks
    answers that :attr:`Run.types` refuse after all others; "sampled" ranks each answer among ``candidates`` entities
    drawn with ``seed``, and its metrics cannot be compared with "standard". ``save_candidates`` writes these into a
    Parquet file, and ``candidates_from`` takes those of such a file. ``memory`` limits the bytes of the scores.
    """
    opened = run if isinstance(run, Folder) else load(run, checkpoint=checkpoint, device=device)
    return opened.evaluate(
        split,
        protocol,
        candidates=candidates,
        seed=seed,
        save_candidates=save_candidates,
        candidates_from=candidates_from,
        memory=memory,
    )


def compare(
    a: Folder | Path_,
    b: Folder | Path_,
    split: Split = "test",
    protocol: Protocol = "standard",
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    memory: int | None = None,
    checkpoint: Checkpoint | None = None,
    device: str = "auto",
) -> Comparison:
    """Test whether the MRR of two runs, or run folders, on the same facts differ: a paired bootstrap, also by relation.

    ``samples`` is the number of bootstrap samples, ``seed`` their seed. Both runs must rank the same facts among the
    same entities, filtered by the same known facts.
    """
    first, second = (
        run if isinstance(run, Folder) else load(run, checkpoint=checkpoint, device=device) for run in (a, b)
    )
    return first.compare(second, split, protocol, samples=samples, seed=seed, memory=memory)


def sweep(
    graph: KnowledgeGraph | Path_,
    *,
    out: Path_ | None = None,
    progress: Silent | None = None,
    side_by_side: int = 16,
    **settings: Unpack[Grid],
) -> Sweep[Run]:
    """Train every combination of the given values: ``murp.sweep(graph, lr=[10, 20], seed=[0, 1])``.

    Returns the runs, the best first, and failed runs last with the reason. ``out`` is the folder for the runs, by
    default one under ``runs/``; finished runs are kept, interrupted runs continue. On one GPU up to ``side_by_side``
    runs of the same shape train together.

    The settings, each with one value or several:
    """
    given: dict[str, Any] = dict(settings)
    several = {name: value if _many(value) else [value] for name, value in given.items()}
    found = try_all(graph, grid(several), out=out, progress=progress, side_by_side=side_by_side)
    opened = [
        Trial(one.name, one.settings, one.mrr, one.epoch, None if one.run is None else Run.of(one.run), one.error)
        for one in found.asked
    ]
    return Sweep(found.out, opened)


def import_run(path: Path_, out: Path_, *, data: str | None = None) -> Run:
    """Make the run folder ``out`` from what :meth:`Run.export` wrote.

    ``data`` is the graph that the run was trained on; not needed for a hub-folder.
    """
    from murp.exchange import import_run

    return Run.of(import_run(Path(path), Path(out), data))


def _many(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def with_settings(function: Callable[..., Any], types: type) -> None:
    """Put every setting into the signature and into the text that ``help()`` shows."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    rest = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types.__annotations__[name])
        for name, (default, _) in EXPLAINED.items()
    ]
    open_end = [p.replace(annotation=Any) for p in rest]  # settings of a part of your own
    function.__signature__ = signature.replace(parameters=[*own, *named, *open_end])  # type: ignore[attr-defined]
    words = "\n".join(f"    {name}: {explained}" for name, (_, explained) in EXPLAINED.items())
    function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{words}\n"


with_settings(train, Settings)
with_settings(sweep, Grid)
