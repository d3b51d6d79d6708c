"""What ``--help`` says of every command beside its options: a sentence, and examples to copy."""

from __future__ import annotations

import argparse

from murp.cli.parser import Parser

# The name of a command, with its verb where it has verbs: (sentence, examples).
MANUAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "": (
        "Embed multi-relational knowledge graphs in hyperbolic space. `murp COMMAND --help` explains a command.",
        (
            "murp train --data wordnet-mini --dim 40 --epochs 60 --out runs/first",
            "murp evaluate runs/first",
            "murp predict runs/first --head asia.n.01 --relation has_part",
            "murp explore runs/first",
        ),
    ),
    "train": (
        "Train a model on a graph into a new run folder, or continue a run. Ctrl-C writes a checkpoint. Which settings "
        "there are depends on what is chosen: `murp train --model rotate --help` shows those of RotatE.",
        (
            "murp train --data wordnet-mini --dim 40 --epochs 60 --out runs/first",
            "murp train --data my-facts.tsv --lr 10 --out runs/mine",
            "murp train --data wordnet-mini --model complex --epochs 30 --out runs/complex",
            "murp train --data my-facts.tsv --recipe auto --out runs/auto",
            "murp train --resume runs/first --epochs 100",
            "murp train --data more-facts.tsv --init-from runs/mine --out runs/more",
        ),
    ),
    "sweep": (
        "Train every combination of the values given, each into a run folder of its own, and rank them by their MRR on "
        "valid. A run that fails does not stop the others. The same command again keeps the finished runs and goes on "
        "with the others. Exit status: 0 if every run is trained, 1 if any of them failed.",
        ("murp sweep --data wordnet-mini --model murp mure --dim 5 10 40 --epochs 30 --out runs/dimensions",),
    ),
    "extend": (
        "Place new entities and relations in a trained run by facts about them, without training it again: every old "
        "row stays as it is, bit for bit. The result is a run folder of its own.",
        (
            "murp extend runs/first --facts new-facts.tsv --out runs/second",
            "murp extend runs/first --facts new-facts.tsv --new entities --out runs/second",
        ),
    ),
    "tune": (
        "Search for settings with a better MRR on valid. The first trial has the defaults, TPE proposes the others, "
        "and ASHA stops those that fall behind. What is searched comes from the settings themselves; --space narrows "
        "it or adds to it, and an option gives a setting one value. Every trial is kept in --storage: the same command "
        "goes on where it was stopped. Test is never looked at.",
        (
            "murp tune --data wordnet-mini --epochs 30 --trials 40 --storage runs/tune.db",
            "murp tune --data wordnet-mini --space lr=1..50 negatives=10,50,250 --storage runs/lr.db",
            "murp tune --data my-facts.tsv --space model=murp,mure,rotate --timeout 3600 --workers 2",
            "murp tune --storage runs/tune.db --report",
        ),
    ),
    "embed": (
        "Embed one hierarchy: every node is to be nearer to all nodes above it than to any other (Poincaré and Lorentz "
        "embeddings), or its tree is laid out in the disk. The result is a run folder, for plot, explore, nearest and "
        "export.",
        (
            "murp embed --data wordnet-mini --relation has_part --above head --dim 5 --out runs/parts",
            "murp embed --data taxonomy.tsv --relation kind_of --dim 10 --out runs/kinds",
            "murp embed --data tree.tsv --model layout --out runs/layout",
        ),
    ),
    "reconstruct": (
        "For every node of an embedded hierarchy, how the nodes above it rank among all others by distance: the mean "
        "rank, and the mean average precision (MAP), as in the papers.",
        ("murp reconstruct runs/parts", "murp reconstruct runs/parts --json"),
    ),
    "recipes": (
        "Settings that go together, by name, with the stored results they reached. `murp train --recipe NAME` trains "
        "with them; options override them. `--recipe auto` decides by the graph which one, and says why.",
        ("murp recipes", "murp recipes --json"),
    ),
    "evaluate": (
        "Rank the true answer of every fact of a split among all entities, facts that are true as well left out, in "
        "both directions. Several runs are printed side by side. Where ranking among all entities takes too long, "
        "--protocol sampled ranks among candidates that are drawn; its metrics are higher, and have intervals.",
        (
            "murp evaluate runs/first --by-relation",
            "murp evaluate runs/first --protocol paper --json",
            "murp evaluate runs/first --protocol types",
            "murp evaluate runs/first --protocol sampled --candidates 1000",
            "murp evaluate runs/first runs/second --format latex",
        ),
    ),
    "compare": (
        "Say whether two runs on the same facts differ: the difference of their MRR, A less B, with a 95 % interval "
        "and a p, by a paired bootstrap. Drawn are facts, each with its two queries, which are not independent of each "
        "other.",
        ("murp compare runs/first runs/second --by-relation", "murp compare runs/first runs/second --json"),
    ),
    "predict": (
        "Ask a run which tails a head has under a relation, or which heads a tail has; one question, or a file of "
        "them.",
        (
            "murp predict runs/first --head asia.n.01 --relation has_part",
            "murp predict runs/first --tail chair.n.01 --relation hypernym --new-only",
            "murp predict runs/first --head asia.n.01 --relation has_part --new-only --types --out asia.csv",
            "murp predict runs/mine --queries questions.tsv -k 3 --out answers.csv",
            "murp predict runs/first --head asia.n.01 --relation has_part --approximate",
        ),
    ),
    "discover": (
        "Score every pair of entities under a relation, or under each of them, and keep the most probable facts that "
        "the graph does not state.",
        (
            "murp discover runs/first --relation has_part -k 20",
            "murp discover runs/first --out new-facts.csv",
        ),
    ),
    "calibrate": (
        "Fit probabilities of answers, by score and place, to what valid states of them, judge them on test, and keep "
        "them in the run folder, where predict and discover find them.",
        ("murp calibrate runs/first", "murp calibrate runs/first --method isotonic"),
    ),
    "classify": (
        "Call triples true or false by a threshold for each relation, chosen on valid; without a file of triples, say "
        "how often that is right on test.",
        ("murp classify runs/first", "murp classify runs/mine --triples doubtful.tsv"),
    ),
    "nearest": (
        "List the entities at the smallest distance from one, in the geometry of the model.",
        ("murp nearest runs/first chair.n.01 -k 5",),
    ),
    "index": (
        "Put near entities into cells, so that `predict --approximate` and `nearest --approximate` look into a few of "
        "them and not at every entity, which pays among millions. Scores stay exact; how often an answer is missed is "
        "measured. Needs faiss-cpu (pip install 'murp[index]').",
        ("murp index runs/first", "murp index runs/first --recall 0.95"),
    ),
    "info": (
        "Say what a run folder holds: settings, graph, progress, and the machine it was trained on.",
        ("murp info runs/first",),
    ),
    "plot": (
        "Draw a run, or several side by side, as PNG, SVG or PDF.",
        (
            "murp plot runs/first disk --head asia.n.01 --relation has_part --out asia.png",
            "murp plot runs/first disk --centre furniture.n.01 --edges hypernym --colour depth",
            "murp plot runs/first runs/second convergence --out convergence.pdf",
        ),
    ),
    "demo": (
        "Make something to show and serve it until Ctrl-C: a tree that grows in the disk, or a training to watch.",
        ("murp demo tree", "murp demo wordnet --beside"),
    ),
    "serve": (
        "Answer questions about a run over HTTP: POST /predict and /score, GET /health, /metrics and /docs. When the "
        "folder is replaced by another run, that one is served, and no request fails.",
        (
            "murp serve runs/first",
            "murp serve runs/first --host 0.0.0.0 --keys keys.txt --rate 200",
        ),
    ),
    "explore": (
        "Serve a run, or two on the same graph, to the browser on this machine, or write a page that can be sent.",
        (
            "murp explore runs/first",
            "murp explore runs/first --export first.html",
            "murp explore runs/first --film a.gif",
        ),
    ),
    "analyze": (
        "Measure how hierarchical the relations of a dataset are and advise on the geometry; or measure what a run "
        "made of them.",
        (
            "murp analyze wordnet-mini --dim 10",
            "murp analyze --run runs/first",
            "murp analyze --run runs/first --relation hypernym --higher furniture.n.01 rocking_chair.n.01",
        ),
    ),
    "export": (
        "Write the vectors of a run, with names, geometry, relations and biases, for other programs.",
        (
            "murp export runs/first --to npz --out first.npz",
            "murp export runs/first --to parquet --out first-vectors --coordinates tangent",
        ),
    ),
    "import": (
        "Make a run folder of what `murp export` wrote.",
        ("murp import first.npz --data wordnet-mini --out runs/again",),
    ),
    "data": (
        "List the datasets known by name, and describe, check, convert or divide a dataset.",
        ("murp data list", "murp data audit my-facts.tsv"),
    ),
    "data list": ("List the datasets known by name.", ("murp data list",)),
    "data info": ("Say where a dataset comes from and how large it is.", ("murp data info WN18RR",)),
    "data audit": (
        "Look for flaws in a dataset that distort training or evaluation, with examples of each.",
        ("murp data audit my-facts.tsv", "murp data audit wordnet-mini --json"),
    ),
    "data convert": (
        "Write a dataset as train, valid and test in another format; a single file is split, and so are many files "
        "that a pattern names. With --format graph files may be larger than memory, and what was stopped goes on.",
        (
            "murp data convert my-facts.tsv my-split --format parquet",
            "murp data convert 'facts/*.parquet' my-graph --format graph",
        ),
    ),
    "data hierarchy-split": (
        "Draw subsets of a dataset with given shares of hierarchical relations, as the paper's of NELL-995.",
        ("murp data hierarchy-split wordnet-mini --valid 500 --test 500 --shares 50 25 --out mini-shares",),
    ),
    "paper": (
        "Run the experiments behind the paper's tables and figures, and report them beside the printed ones.",
        ("murp paper list", "murp paper run table2 --quick --out quick", "murp paper report"),
    ),
    "paper list": ("List the paper's tables and figures with what is stored of them.", ("murp paper list",)),
    "paper run": (
        "Run the experiments of the items named and store their results.",
        (
            "murp paper run table2 --quick --out quick",
            "murp paper run table1 --only WN18RR/murp/40 --seeds 1 --out mine",
        ),
    ),
    "paper config": (
        "Print every setting of a stored run as a file that `murp train --config` takes, to repeat it.",
        ("murp paper config WN18RR-murp-d40-lr50-seed0",),
    ),
    "paper report": ("Write the report from what is stored.", ("murp paper report --to docs",)),
}


def explain(parser: Parser, name: str = "") -> None:
    """Give a parser and all its commands their places in the manual."""
    sentence, examples = MANUAL[name]
    parser.explain(sentence, examples)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, below in action.choices.items():
                explain(below, f"{name} {command}".strip())
