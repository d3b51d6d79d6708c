"""A run in training."""

from __future__ import annotations

import reprlib
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from murp.config import Config
from murp.distributed.ranks import Ranks
from murp.engines import Task
from murp.errors import NotFiniteError, RunError
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.negatives.shared import Shared
from murp.runs import folder
from murp.training.distributed_sampler import DistributedSampler
from murp.training.sampler import Sampler, fewer_steps
from murp.training.state import State

if TYPE_CHECKING:
    from murp.distributed.saving import Saver


class Job:
    """One run in training: its folder, settings, model, optimizer and progress."""

    def __init__(
        self,
        path: Path,
        config: Config,
        graph: KnowledgeGraph,
        model: Model,
        state: State,
        ranks: Ranks | None = None,
        saver: Saver | None = None,
    ) -> None:
        """``ranks`` train it together; ``saver`` writes its checkpoints if each rank has its own rows."""
        self.ranks = ranks or Ranks()
        self.saver = saver
        self.path = path
        self.config = config
        self.graph = graph
        self.model = model
        self.state = state
        self.task = Task.of(config, model)
        self.optimizer: dict[str, Tensor] = {}  # its tables, once there is an engine
        negatives = getattr(config, "negatives", 0)
        if state.epoch == state.chunk == 0:  # a run that has begun keeps its chunks: see State
            # Where every entity is a candidate a step takes its time, and Ctrl-C waits for the end of a chunk.
            false = negatives if self.task.objective.sampled else graph.num_entities
            shared = isinstance(self.task.negatives, Shared)
            state.steps_a_chunk = fewer_steps(config.batch_size, false, config.dim, model.device, shared=shared)
        options: dict[str, Any] = {
            "batch_size": config.batch_size, "negatives": negatives, "seed": config.seed, "device": model.device,
            "steps_a_chunk": state.steps_a_chunk, "grouped": self.task.objective.grouped,
        }  # fmt: skip
        # Nothing below sees a fact of valid or test.
        divided = self.ranks.size > 1
        known = graph.train if self.task.reads_facts or not divided else graph.train[:0]
        triples = graph.with_reciprocals(known) if model.reciprocals else known
        facts = torch.from_numpy(triples).to(model.device)
        self.task.negatives.prepare(facts, model.num_entities, model.num_relations)
        self.task.objective.prepare(facts, graph.num_entities)
        self.sampler = (
            DistributedSampler(graph, self.ranks, config.slices, reciprocals=model.reciprocals, **options)
            if divided
            else Sampler(triples, graph.num_entities, **options)
        )
        if state.chunk > self.sampler.chunks:
            raise RunError(
                f"{path / folder.LAST}: the checkpoint's state is not one of this run: its field 'chunk' cannot be "
                f"{reprlib.repr(state.chunk)}, since an epoch has {self.sampler.chunks:,} chunks on "
                f"{model.device.type}. Continue a run on the device on which it was interrupted."
            )
        self.failure: NotFiniteError | None = None
        self.written: Future[None] | None = None
        self.records: list[dict[str, Any]] = []
