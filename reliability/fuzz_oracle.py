"""What is asked of a reader under damaged input, and a small run to damage.

A target is made in a scratch folder and then called with a random generator, once for each input: it damages, reads,
and says whether what it read was accepted. A refusal must name the file and be fit to print.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from murp import models
from murp.config import Config
from murp.errors import MurpError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.prediction.calibration import calibrate
from murp.runs import folder
from murp.training.state import State

Attempt = Callable[[Random], bool]
Make = Callable[[Path], Attempt]

KNOWN = [(f"e{i % 12}", f"r{i % 3}", f"e{(i * 5 + 1 + i // 12) % 12}") for i in range(40)]
FACTS = [*KNOWN, ('ü "木"', "r,0", "e1 ")]


class WrongRefusal(Exception):
    """An error that does not say where, or cannot be printed."""


def told(read: Callable[[], object], where: str) -> bool:
    """Whether ``read`` accepts; its refusal names ``where`` and can be printed on a terminal."""
    try:
        read()
    except MurpError as error:
        text = str(error)
        if where not in text:
            raise WrongRefusal(f"does not name {where}: {text[:200]!r}") from error
        if len(text) > 3000 or any(not c.isprintable() and c != "\n" for c in text):
            raise WrongRefusal(f"not fit to print: {text[:200]!r}") from error
        return False
    return True


def small_graph() -> KnowledgeGraph:
    """12 entities with names, 3 relations, 40 facts."""
    ids = [f"e{i}" for i in range(12)]
    facts = np.array([[int(h[1:]), int(r[1:]), int(t[1:])] for h, r, t in KNOWN], np.int32)
    entities = Vocabulary("entity", ids, [f"name {i // 2}" for i in range(12)], ["gloss"] * 12)
    relations = Vocabulary("relation", ["r0", "r1", "r2"])
    return KnowledgeGraph("small", entities, relations, facts[:30], facts[30:35], facts[35:])


def made_run(path: Path) -> Path:
    """A run folder of the small graph with a calibration and two epochs of metrics."""
    graph, config = small_graph(), Config(dim=2)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(0)
    folder.create(path, config, graph, model, State(epoch=2, best_mrr=0.5, best_epoch=2).to_dict(), "torch")
    valid = {"split": "valid", "protocol": "standard", "mrr": 0.5, "queries": 10}
    valid |= {"hits@1": 0.1, "hits@3": 0.5, "hits@10": 0.9}
    records = [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25, "valid": valid}]
    (path / folder.METRICS).write_text("".join(json.dumps(record) + "\n" for record in records))
    (path / folder.CALIBRATION).write_text(calibrate(model, graph, epoch=2).to_json())
    return path
