"""A trained run: open, evaluate, predict."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp import models
from murp.config import Config
from murp.errors import ConfigError, MurpError, NotFiniteError, RunError, why_not
from murp.evaluation import Comparison, Protocol, Report, evaluate
from murp.evaluation.comparison import SAMPLES
from murp.files import write_text
from murp.graph import KnowledgeGraph, Split
from murp.graph.names.vocabulary import counted
from murp.graph.types import Types
from murp.models import Model
from murp.optimizers.optimizer import TABLES
from murp.prediction import (
    Calibration,
    Classification,
    Neighbour,
    Prediction,
    calibrate,
    classify,
    nearest,
    predict,
    predict_file,
)
from murp.prediction.approximate import RECALL, Index, build
from murp.prediction.calibration import Method
from murp.prediction.classification import Verdict, verdicts
from murp.prediction.discovery import Heads, NewFacts, discover_all
from murp.prediction.search import Search, score
from murp.prediction.triples import given_triples
from murp.rows import Records, Rows, html_table
from murp.runs import checkpoint, folder
from murp.runs import index as kept_index
from murp.runs.comparing import compare
from murp.runs.settings import checked

Checkpoint = Literal["best", "last"]


class Run:
    """A run folder with its graph and weights; it evaluates and predicts."""

    def __init__(
        self,
        path: Path,
        config: Config,
        graph: KnowledgeGraph,
        model: Model | Callable[[], Model],
        state: dict[str, Any],
        checkpoint: Checkpoint | None = None,
        search: Search | None = None,
    ) -> None:
        """``model`` may be a function that loads it; it is called when the model is first used.

        ``search`` finds answers if the model has only the rows of one of many ranks.
        """
        self.path = path
        self.checkpoint = checkpoint  # which of them the weights are, where they come from one
        self.config = config
        self.graph = graph
        self.given_model = model
        self.state = state
        self.search = search

    @property
    def model(self) -> Any:
        """The model with its weights."""
        if not isinstance(self.given_model, Model) and callable(self.given_model):
            self.given_model = self.given_model()
        return self.given_model

    @model.setter
    def model(self, model: Any) -> None:
        self.given_model = model

    def _repr_html_(self) -> str:
        state = self.state
        best = "–" if state.get("best_mrr") is None else f"{state['best_mrr']:.3f} in epoch {state['best_epoch']}"
        rows = {
            "run": str(self.path),
            "model": f"{self.config.model} d={self.config.dim}",
            "graph": f"{self.graph.name}: {counted(self.graph.counts())}",
            "epoch": str(state["epoch"]),
            f"best MRR on valid, {self.config.validated_by}": best,
        }
        return html_table(["", ""], rows.items())

    def __repr__(self) -> str:
        what = f"{self.config.model} d={self.config.dim} on {self.graph.name}"
        return f"Run({str(self.path)!r}, {what}, epoch {self.state['epoch']})"

    def evaluate(
        self,
        split: Split = "test",
        protocol: Protocol = "standard",
        *,
        candidates: int | None = None,
        seed: int = 0,
        save_candidates: str | os.PathLike[str] | None = None,
        candidates_from: str | os.PathLike[str] | None = None,
        memory: int | None = None,
    ) -> Report:
        """Filtered ranking of both directions on one split.

        Protocol "sampled" ranks each answer among ``candidates`` drawn by ``seed``, and not among all entities.
        ``save_candidates`` writes them into a Parquet file, ``candidates_from`` takes those of such a file.
        """
        return evaluate(
            self.model,
            self.graph,
            split,
            protocol,
            candidates=candidates,
            seed=seed,
            save_candidates=None if save_candidates is None else Path(save_candidates),
            candidates_from=None if candidates_from is None else Path(candidates_from),
            memory=memory,
        )

    def compare(
        self,
        other: Run | str | os.PathLike[str],
        split: Split = "test",
        protocol: Protocol = "standard",
        *,
        samples: int = SAMPLES,
        seed: int = 0,
        memory: int | None = None,
    ) -> Comparison:
        """Test whether the MRR of this run and of another run on the same facts differ, overall and by relation.

        ``other`` may be a run folder; then the weights of the best validation are used, if there was one.
        """
        other = other if isinstance(other, Run) else load(other, device=self.model.device.type)
        return compare(self, other, split, protocol, samples=samples, seed=seed, memory=memory)

    def index(
        self,
        *,
        recall: float = RECALL,
        cells: int | None = None,
        seed: int = 0,
        say: Callable[[str], None] = lambda line: None,
    ) -> Index:
        """Make an index for approximate answers and keep it in the run folder; see :mod:`murp.prediction.approximate`.

        ``recall``: the share of the ten best answers that must be found. ``cells``: number of groups of near entities;
        None: four times the square root of the number of entities. ``seed`` draws the first centres and the questions
        that measure recall. ``say`` is called with progress messages.
        """
        weights, epoch = self._weights()
        found = build(self.model, self.graph, recall=recall, cells=cells, seed=seed, say=say)
        kept_index.write(self.path, found, weights, epoch)
        self.__dict__.pop("opened_index", None)
        return found

    @cached_property
    def opened_index(self) -> Index:
        """The index that :meth:`index` has kept for these weights; an error if there is none."""
        if self.model.device.type != "cpu":
            raise ConfigError("approximate answers are found on the CPU: open the run with device cpu (--device cpu).")
        return kept_index.read(self.path, self.model, self._weights()[0])

    def _weights(self) -> tuple[str, int]:
        """Checksum and epoch of the checkpoint that this run was opened from."""
        name = self.checkpoint or ("best" if _was_validated(self.path) else "last")
        weights, state = checkpoint.digest(self.path / f"{name}.safetensors")
        # A training also saves within an epoch.
        now, opened = ((of["epoch"], of.get("chunk", 0)) for of in (state, self.state))
        if now != opened:
            raise RunError(
                f"{self.path} has other weights now (epoch {now[0]}{_within(now[1])}) than those that were opened "
                f"(epoch {opened[0]}{_within(opened[1])}). Open it again."
            )
        return weights, now[0]

    def predict(
        self,
        *,
        relation: str,
        head: str | None = None,
        tail: str | None = None,
        k: int = 10,
        new_only: bool = False,
        types: bool = False,
        approximate: bool = False,
    ) -> Rows[Prediction]:
        """The ``k`` most probable tails of (head, relation, ?) or heads of (?, relation, tail).

        ``new_only`` leaves out facts that are in the graph, ``types`` leaves out answers that the :attr:`types` of the
        relation refuse. ``approximate`` uses the index of :meth:`index`: faster with millions of entities, but may miss
        answers.
        """
        return predict(
            self.model,
            self.graph,
            relation=relation,
            head=head,
            tail=tail,
            k=k,
            new_only=new_only,
            types=self.types if types else None,
            calibration=self.calibration,
            index=self.opened_index if approximate else None,
            search=self.search,
        )

    @cached_property
    def types(self) -> Types:
        """Which entities may be head or tail of each relation, learned from train (:mod:`murp.graph.types`), as a
        table."""
        return Types(self.graph)

    @cached_property
    def calibration(self) -> Calibration | None:
        """The result of :meth:`calibrate` for these weights, if it was called."""
        path = self.path / folder.CALIBRATION
        found = Calibration.read(path) if path.exists() else None
        return found if found is not None and found.epoch == self.state["epoch"] else None

    def calibrate(self, *, method: Method = "platt", seed: int = 0) -> Calibration:
        """Calibrate probabilities on valid, check them on test, and store them in the run folder."""
        found = calibrate(self.model, self.graph, method=method, epoch=self.state["epoch"], seed=seed)
        try:
            write_text(self.path / folder.CALIBRATION, found.to_json())
        except OSError as error:
            raise RunError(f"could not write {self.path / folder.CALIBRATION}: {why_not(error)}.") from error
        self.calibration = found
        return found

    def nearest(self, entity: str, k: int = 10, *, approximate: bool = False) -> Rows[Neighbour]:
        """The ``k`` entities nearest to ``entity`` by the distance of the model's geometry.

        ``approximate``: by the index that :meth:`index` made.
        """
        return nearest(self.model, self.graph, entity, k, index=self.opened_index if approximate else None)

    def predict_file(
        self,
        queries: str | os.PathLike[str] | Sequence[tuple[str | None, str, str | None]],
        out: str | os.PathLike[str],
        *,
        k: int = 10,
        new_only: bool = False,
        types: bool = False,
        force: bool = False,
        memory: int | None = None,
        approximate: bool = False,
        advance: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Answer a file of questions (.tsv, .csv, .jsonl or .parquet) and write the answers. Returns the number of
        rows.

        ``queries`` may also be a list of questions, (head, relation, tail) with None for the missing one. ``out`` ends
        in .parquet, .csv or .jsonl; ``force`` overwrites it. ``memory`` limits the bytes of the scores. ``approximate``
        uses the index of :meth:`index`. ``advance`` is called with the number of newly answered questions.
        """
        return predict_file(
            self.model,
            self.graph,
            Path(queries) if isinstance(queries, str | os.PathLike) else queries,
            Path(out),
            k=k,
            new_only=new_only,
            types=self.types if types else None,
            calibration=self.calibration,
            force=force,
            memory=memory,
            index=self.opened_index if approximate else None,
            search=self.search,
            advance=advance,
        )

    def discover(
        self,
        relation: str | None = None,
        k: int = 100,
        *,
        heads: Heads = "seen",
        types: bool = False,
        memory: int | None = None,
        advance: Callable[[int], None] = lambda done: None,
    ) -> NewFacts:
        """The ``k`` most probable new facts of a relation, or of every relation.

        ``heads``: only heads that a fact of the relation has ("seen"), or every entity ("all"). ``types`` leaves out
        answers that the :attr:`types` of the relation refuse. ``advance`` is called with the number of newly answered
        questions.
        """
        return discover_all(
            self.model,
            self.graph,
            relation,
            k,
            heads=heads,
            types=self.types if types else None,
            calibration=self.calibration,
            memory=memory,
            search=self.search,
            advance=advance,
        )

    def score(self, triples: Any) -> NDArray[np.float64]:
        """φ of each triple, (n).

        ``triples``: a list of (head, relation, tail) by id or name, an array of such rows, a data frame with these
        columns, or a file of them.
        """
        return score(self.model, given_triples(triples, self.graph))

    @overload
    def classify(self, triples: None = None, *, seed: int = 0) -> Classification: ...

    @overload
    def classify(self, triples: Any, *, seed: int = 0) -> Rows[Verdict]: ...

    def classify(self, triples: Any = None, *, seed: int = 0) -> Classification | Rows[Verdict]:
        """Classify facts as true or false with a threshold for each relation, chosen on valid: the accuracy on test.

        If ``triples`` are given (as for :meth:`score`), the verdict on each. ``seed`` draws the corruptions.
        """
        found = classify(self.model, self.graph, seed=seed)
        if triples is None:
            return found
        judged = verdicts(self.model, self.graph, given_triples(triples, self.graph), found.thresholds)
        return Rows(Verdict, (Verdict(**row) for row in judged.to_pylist()))

    def metrics(self) -> Records:
        """Loss and validation metrics, a record for every epoch."""
        return Records(folder.read_metrics(self.path))


def home(config: Config) -> str:
    """The device on which a run is opened after its training; for a run with tables in host memory see :func:`load`."""
    return "auto" if config.tables == "host" else str(config.device)


def load(
    path: str | os.PathLike[str],
    *,
    checkpoint: Checkpoint | None = None,
    device: str = "auto",
    graph: KnowledgeGraph | None = None,
) -> Run:
    """Open a run folder.

    ``checkpoint``: the weights of the best validation ("best") or the newest ("last"); by default the best, if the run
    was validated. ``device`` "auto": the GPU, if there is one; the CPU for a run with tables in host memory. ``graph``:
    the graph of the run, if it is already in memory.
    """
    path = Path(path)
    config = folder.read_config(path)
    if graph is None:
        graph = folder.read_graph(path)
    if checkpoint is None:
        checkpoint = "best" if _was_validated(path) else "last"
    model, state, _ = load_trained(path / f"{checkpoint}.safetensors", config, graph, map_large=True)
    place = resolve_device("cpu" if device == "auto" and config.tables == "host" else device)
    if model.point_dtype == model.dtype:
        return Run(path, config, graph, model.to(place), state, checkpoint)
    # Rounded points are converted when they are first used: a training ends with this, and there may be no room.
    return Run(path, config, graph, lambda: model.in_full().to(place), state, checkpoint)


def _was_validated(path: Path) -> bool:
    return checkpoint.exists(path / folder.BEST)


def _within(chunk: int) -> str:
    """How far training was after an epoch, in words."""
    return f" and {chunk} chunk{'s' if chunk != 1 else ''}" if chunk else ""


def load_model(
    path: Path, config: Config, graph: KnowledgeGraph, *, map_large: bool = False
) -> tuple[Model, dict[str, Any]]:
    """The model of a checkpoint on the CPU, with all tables in its ``dtype``, and the state of its training.

    ``map_large``: map large tables into memory without checking them; NaN is then found when they are used.
    """
    model, state, _ = load_trained(path, config, graph, map_large=map_large)
    return model.in_full(), state


def load_trained(
    path: Path, config: Config, graph: KnowledgeGraph, *, map_large: bool = False
) -> tuple[Model, dict[str, Any], dict[str, Tensor]]:
    """The same with the optimizer's tables, and the points as training stores them."""
    stored, state = checkpoint.load(path, map_large=map_large)
    optimizer = {name: values for name, values in stored.items() if name.startswith(TABLES)}
    tables = {name: values for name, values in stored.items() if name not in optimizer}
    state = checked(state, config, path, path.with_name(folder.CONFIG))
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    expected = {t.name: (model.rows_of(t), *t.shape) for t in model.tables}
    found = {name: tuple(values.shape) for name, values in tables.items()}
    if expected != found:
        raise RunError(f"{path} does not fit its run: expected tables {expected}, found {found}.")
    for table in model.tables:
        values, kind = tables[table.name], model.dtype_of(table)
        if values.dtype != kind:
            raise RunError(f"{path}: table {table.name} is {values.dtype}, the run's settings say {kind}.")
    model.parameters = {table.name: tables[table.name] for table in model.tables}
    if map_large and checkpoint.is_large(path):
        return model, state, optimizer
    if broken := model.broken():
        raise NotFiniteError(
            f"{path} holds NaN, infinity or points outside the ball in {', '.join(broken)}. Use the other checkpoint, "
            "or train again with a lower learning rate."
        )
    return model, state, optimizer


def resolve_device(name: str) -> torch.device:
    """auto → the GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"device must be one of auto, cpu, cuda, not {name!r}.")
    if name == "cuda" and not torch.cuda.is_available():
        raise MurpError("device is cuda, but PyTorch sees no CUDA device here. Use --device cpu.")
    return torch.device(name)
