"""What an engine trains: a model with its objective, negatives, optimizer and regularizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from murp.config import Config
from murp.models import Model
from murp.negatives import Negatives
from murp.negatives.uniform import Uniform
from murp.objectives import Objective
from murp.objectives.bernoulli import Bernoulli
from murp.optimizers import Optimizer
from murp.optimizers.sgd import SGD
from murp.regularizers import Regularizer
from murp.regularizers.none import Nothing


@dataclass
class Task:
    """A model and how it is trained; by default as in the paper. ``negatives`` count where the objective draws some."""

    model: Model
    objective: Objective = field(default_factory=Bernoulli)
    negatives: Negatives = field(default_factory=Uniform)
    optimizer: Optimizer = field(default_factory=SGD)
    regularizer: Regularizer = field(default_factory=Nothing)
    compile_after: float = Config.compile_after

    def __post_init__(self) -> None:
        self.negatives.num_entities = self.negatives.num_entities or self.model.num_entities

    @classmethod
    def of(cls, config: Config, model: Model) -> Task:
        """As a configuration has it."""
        parts: dict[str, Any] = {kind: config.part(kind) for kind in ("objective", "optimizer", "regularizer")}
        if parts["objective"].sampled:
            parts["negatives"] = config.part("corruption")
        return cls(model, **parts, compile_after=config.compile_after)

    @property
    def reads_facts(self) -> bool:
        """Whether negatives or objective read all training triples before training."""
        return self.negatives.reads_facts or type(self.objective).prepare is not Objective.prepare

    @property
    def as_published(self) -> bool:
        """Whether all but the model's score is the paper's: what the fused engines know."""
        if self.model.uses_chance:
            return False
        parts = (self.objective, self.negatives, self.optimizer, self.regularizer)
        return [type(part) for part in parts] == [Bernoulli, Uniform, SGD, Nothing] and not self.optimizer.clip
