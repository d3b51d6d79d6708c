"""Add entities and relations to a trained run: a new run folder in which old rows keep their values, bit for bit."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from murp import display, models
from murp.commands import command
from murp.errors import DataError
from murp.graph.adding_facts import New, add_facts, given_facts
from murp.graph.names.vocabulary import Vocabulary, counted
from murp.runs import Run, folder
from murp.runs.run import load
from murp.settings import whole_number
from murp.training.new_entities import train_new_entities
from murp.training.weight_transfer import transfer, transfer_optimizer

SHOWN = 5  # new entities and relations that are named


def extend(
    run: Run,
    facts: Any,
    out: str | os.PathLike[str] | None,
    *,
    new: New,
    epochs: int | None,
    seed: int,
    advance: Callable[[int], None],
) -> Run:
    """Place the new entities and relations of ``facts`` and write the run folder ``out``; :meth:`murp.Run.extend` has
    the defaults."""
    epochs = None if epochs is None else whole_number("epochs", epochs)
    seed = whole_number("seed", seed, least=0)
    path = Path(f"{run.path}-extended" if out is None else out)
    folder.refuse_existing(path)
    growth = add_facts(run.graph, given_facts(facts), new=new)
    graph = growth.graph
    if not growth.entities and not growth.relations:
        again = command("train", "--data", "FOLDER", "--init-from", run.path)
        raise DataError(
            f"{run.path} has every entity and relation of these facts, so there is nothing to place. To train it on "
            f"more facts, add them to the old ones and run `{again}`."
        )
    _say(run, growth)
    # New rows are placed in full precision, and rounded with the checkpoint.
    model = models.from_config(run.config.replace(table_dtype="auto"), graph.num_entities, graph.num_relations)
    model.initialise(run.config.seed, run.config.initial_scale).to(run.model.device)
    transfer(run, model, graph)
    began = time.monotonic()
    train_new_entities(model, growth, run.config, epochs=epochs, seed=seed, advance=advance)
    added = {"entities": growth.entities, "relations": growth.relations, "facts": len(growth.facts)}
    about = {"from": str(run.path.resolve()), **added, "seconds": round(time.monotonic() - began, 3)}
    # What repeats the run with `murp train --config` is the graph that it has now. One process goes on with it.
    source = {"data": str((path / folder.GRAPH).resolve()), "data_dir": "", "columns": "", "no_header": False}
    config = run.config.replace(**source, slices=0)
    # The facts are others: it goes on with a whole epoch, and what is best on valid is decided anew.
    anew = {"chunk": 0, "loss": 0.0, "best_mrr": None, "best_epoch": None, "stale": 0, "reduced_at": 0}
    state = {**run.state, **anew}
    optimizer = transfer_optimizer(run, model, graph)
    folder.create(path, config, graph, model, state, folder.EXTENDED, optimizer=optimizer, extended=about)
    if (run.path / folder.METRICS).is_file():
        shutil.copyfile(run.path / folder.METRICS, path / folder.METRICS)
    return load(path, device=run.model.device.type)


def _last(vocabulary: Vocabulary, count: int) -> str:
    """The first of the last ``count`` ids."""
    ids = [vocabulary.id(i) for i in range(len(vocabulary) - count, len(vocabulary))[:SHOWN]]
    return ", ".join(ids) + (", …" if count > SHOWN else "")


def _say(run: Run, growth: Any) -> None:
    """Print what is new, and what is left out."""
    graph = growth.graph
    named = {"entities": _last(graph.entities, growth.entities), "relations": _last(graph.relations, growth.relations)}
    shown = "; ".join(f"{kind}: {names}" for kind, names in named.items() if names)
    added = {"entities": growth.entities, "relations": growth.relations, "facts": len(growth.facts)}
    display.aside(f"murp: new to {run.path}: {counted(added)} ({shown})")
    for split, count in growth.left_out.items():
        if count:
            why = "" if split == "train" else ", where they are to be predicted"
            facts = "1 fact is" if count == 1 else f"{count:,} facts are"
            display.aside(f"murp: {facts} left out: {split} states {'it' if count == 1 else 'them'} already{why}.")
