"""How long ``murp plot`` takes: the whole command, for all entities of a graph of about ten thousand.

    python benchmarks/plots.py --out results/cpu_plots.json

Every measurement is a new process. Weights are random, spread over the ball like trained ones: they do not change the
cost of a picture.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Works, in_turns, parser, result, store, toy_graph
from murp import models
from murp.config import Config
from murp.graph import KnowledgeGraph
from murp.runs import folder

# name: arguments and the file's ending; R and E stand for a relation and an entity of the graph
PICTURES = {
    "the disk, PNG": ("disk", "png"),
    "the disk, SVG": ("disk", "svg"),
    "the disk, PDF": ("disk", "pdf"),
    "the disk with the edges of a relation, PNG": ("disk --edges R", "png"),
    "the disk with the edges of a relation, SVG": ("disk --edges R", "svg"),
    "the disk with the edges of a relation, PDF": ("disk --edges R", "pdf"),
    "the disk around an entity with edges and depths, PNG": ("disk --edges R --colour depth --centre E", "png"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="wordnet-mini")
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    relation = "r0" if chosen.quick else "hypernym"
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        config = Config(dim=40)
        model = models.from_config(config, graph.num_entities, graph.num_relations)
        model.initialise(0)
        model.parameters["entity"].mul_(100)  # radii about .6, as of a trained run
        folder.create(run, config, graph, model, {"epoch": 0, "best_mrr": None, "best_epoch": None}, "torch")

        def draw(arguments: str, ending: str) -> None:
            names = {"R": relation, "E": graph.entities.id(0)}
            words = [names.get(word, word) for word in arguments.split()]
            words += ["--force", "--out", f"{scratch}/a.{ending}"]
            command = [sys.executable, "-m", "murp", "plot", str(run), *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

        pictures = dict(list(PICTURES.items())[-1:]) if chosen.quick else PICTURES
        works: Works = {name: ((lambda how=how: draw(*how)), 1) for name, how in pictures.items()}
        figures = in_turns(works, repeats=1 if chosen.quick else 5, warm_up=not chosen.quick)
    settings = {
        "seed": 0,
        "data": graph.name,
        "entities": graph.num_entities,
        "edges": relation,
        "model": "murp",
        "dim": 40,
    }
    store(result("seconds of a whole `murp plot`", settings, {"seconds": figures}), chosen.out)


if __name__ == "__main__":
    main()
