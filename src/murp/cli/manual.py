"""What ``--help`` prints for every command beside its options: a sentence, and examples to copy."""

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
        "Train a model on a graph into a new run folder, or continue a run. Ctrl-C writes a checkpoint. The settings "
        "depend on the model, the objective and other choices: `murp train --model rotate --help` shows the settings "
        "of RotatE, and `murp train --resume RUN --help` those of a run.",
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
        "Train every combination of the given values, each into its own run folder, and rank them by their MRR on "
        "valid. A run that fails does not stop the others. Run the same command again to keep the finished runs and "
        "continue with the others. Exit status: 0 if every run is trained, 1 if any of them failed.",
        ("murp sweep --data wordnet-mini --model murp mure --dim 5 10 40 --epochs 30 --out runs/dimensions",),
    ),
    "extend": (
        "Add new entities and relations to a trained run, from facts about them, without training it again: every "
        "old row keeps its value, bit for bit. The result is a new run folder.",
        (
            "murp extend runs/first --facts new-facts.tsv --out runs/second",
            "murp extend runs/first --facts new-facts.tsv --new entities --out runs/second",
        ),
    ),
    "tune": (
        "Search for settings with a better MRR on valid. The first trial has the default settings, TPE proposes the "
        "others, and ASHA stops trials that fall behind. Each setting declares its search range. --space narrows the "
        "search or adds settings to it, and an option gives a setting one fixed value. Every trial is stored in "
        "--storage: the same command continues a search that was stopped. Test is never used.",
        (
            "murp tune --data wordnet-mini --epochs 30 --trials 40 --storage runs/tune.db",
            "murp tune --data wordnet-mini --space lr=1..50 negatives=10,50,250 --storage runs/lr.db",
            "murp tune --data my-facts.tsv --space model=murp,mure,rotate --timeout 3600 --workers 2",
            "murp tune --storage runs/tune.db --report",
        ),
    ),
    "embed": (
        "Embed one hierarchy, so that every node is nearer to all nodes above it than to any other (Poincaré and "
        "Lorentz embeddings), or lay out its tree in the disk. The result is a run folder for plot, explore, nearest "
        "and export. The defaults depend on the model and the objective: `murp embed --objective rank --help` shows "
        "those of the objective rank.",
        (
            "murp embed --data wordnet-mini --relation has_part --above head --dim 5 --out runs/parts",
            "murp embed --data taxonomy.tsv --relation kind_of --dim 10 --out runs/kinds",
            "murp embed --data tree.tsv --model layout --out runs/layout",
        ),
    ),
    "reconstruct": (
        "Measure how well an embedded hierarchy can be reconstructed: for every node, rank the nodes above it among "
        "all others by distance. Prints the mean rank and the mean average precision (MAP), as in the papers.",
        ("murp reconstruct runs/parts", "murp reconstruct runs/parts --json"),
    ),
    "recipes": (
        "List named sets of settings with the stored results they reached. `murp train --recipe NAME` trains with "
        "one of them; options override its settings. `--recipe auto` chooses one for the graph and prints the reason.",
        ("murp recipes", "murp recipes --json"),
    ),
    "evaluate": (
        "Rank the true answer of every fact of a split among all entities, in both directions, without other true "
        "answers (filtered). Several runs are printed side by side. If ranking among all entities takes too long, "
        "--protocol sampled ranks among sampled candidates; its metrics are higher, and have confidence intervals. The "
        "candidates can be written into a file and used again.",
        (
            "murp evaluate runs/first --by-relation",
            "murp evaluate runs/first --protocol paper --json",
            "murp evaluate runs/first --protocol types",
            "murp evaluate runs/first --protocol sampled --candidates 1000 --save-candidates drawn.parquet",
            "murp evaluate runs/first --protocol sampled --candidates-from drawn.parquet",
            "murp evaluate runs/first runs/second --format latex",
        ),
    ),
    "compare": (
        "Test whether two runs on the same facts differ: prints the difference of their MRR, A minus B, with a 95 % "
        "interval and a p-value from a paired bootstrap. The bootstrap samples facts, each with its two queries, "
        "since these are not independent.",
        ("murp compare runs/first runs/second --by-relation", "murp compare runs/first runs/second --json"),
    ),
    "predict": (
        "Predict the tails of a head under a relation, or the heads of a tail; for one question, or for a file of "
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
        "Score every pair of entities under one relation, or under each relation, and list the most probable facts "
        "that are not in the graph.",
        (
            "murp discover runs/first --relation has_part -k 20",
            "murp discover runs/first --out new-facts.csv",
        ),
    ),
    "calibrate": (
        "Fit probabilities of answers, by score and rank, to the facts of valid, and check them on test. The result "
        "is stored in the run folder, and predict and discover use it.",
        ("murp calibrate runs/first", "murp calibrate runs/first --method isotonic"),
    ),
    "classify": (
        "Classify triples as true or false with a threshold for each relation, chosen on valid. Without a file of "
        "triples, print the accuracy on test.",
        ("murp classify runs/first", "murp classify runs/mine --triples doubtful.tsv"),
    ),
    "nearest": (
        "List the entities nearest to one entity, in the geometry of the model.",
        ("murp nearest runs/first chair.n.01 -k 5",),
    ),
    "index": (
        "Group near entities into cells, so that `predict`, `nearest` and `serve` with --approximate search only a "
        "few cells. This helps with millions of entities. Scores stay exact; the share of answers that are found is "
        "measured. Needs faiss-cpu (pip install 'murp[index]').",
        ("murp index runs/first", "murp index runs/first --recall 0.95"),
    ),
    "info": (
        "Show what a run folder contains: settings, graph, progress, and the machine it was trained on.",
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
        "Show a demonstration in the browser until Ctrl-C: a tree that grows in the disk, or a training that you "
        "watch.",
        ("murp demo tree", "murp demo wordnet --beside"),
    ),
    "serve": (
        "Answer questions about a run over HTTP: POST /predict and /score, GET /health, /metrics and /docs. If the "
        "folder is replaced with another run, the server switches to it, and no request fails.",
        (
            "murp serve runs/first",
            "murp serve runs/first --host 0.0.0.0 --keys keys.txt --rate 200",
        ),
    ),
    "explore": (
        "Show a run, or several on the same graph, in the browser on this machine, or write a page that you can send.",
        (
            "murp explore runs/first",
            "murp explore runs/first --export first.html",
            "murp explore runs/first --film a.gif",
        ),
    ),
    "analyze": (
        "Measure how hierarchical the relations of a dataset are and advise on the geometry; or measure how a run "
        "represents them.",
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
        "Make a run folder from what `murp export` wrote.",
        ("murp import first.npz --data wordnet-mini --out runs/again",),
    ),
    "data": (
        "List the named datasets; describe, check, convert or split a dataset.",
        ("murp data list", "murp data audit my-facts.tsv"),
    ),
    "data list": ("List the named datasets.", ("murp data list",)),
    "data info": ("Show where a dataset comes from and how large it is.", ("murp data info WN18RR",)),
    "data audit": (
        "Look for flaws in a dataset that distort training or evaluation, with examples of each.",
        ("murp data audit my-facts.tsv", "murp data audit wordnet-mini --json"),
    ),
    "data convert": (
        "Write a dataset as train, valid and test in another format. A single file, or many files that a pattern "
        "names, are split. With --format graph, files may be larger than memory, and the same command continues "
        "after a stop.",
        (
            "murp data convert my-facts.tsv my-split --format parquet",
            "murp data convert 'facts/*.parquet' my-graph --format graph",
        ),
    ),
    "data hierarchy-split": (
        "Draw subsets of a dataset with given shares of hierarchical relations, like the paper's subsets of NELL-995.",
        ("murp data hierarchy-split wordnet-mini --valid 500 --test 500 --shares 50 25 --out mini-shares",),
    ),
    "paper": (
        "Run the experiments behind the paper's tables and figures, and report them beside the printed ones.",
        ("murp paper list", "murp paper run table2 --quick --out quick", "murp paper report"),
    ),
    "paper list": ("List the paper's tables and figures, and which of them are stored.", ("murp paper list",)),
    "paper run": (
        "Run the experiments of the given items and store their results.",
        (
            "murp paper run table2 --quick --out quick",
            "murp paper run table1 --only WN18RR/murp/40 --seeds 1 --out mine",
        ),
    ),
    "paper config": (
        "Print every setting of a stored run as a file that `murp train --config` takes, to repeat it.",
        ("murp paper config WN18RR-murp-d40-lr50-seed0",),
    ),
    "paper report": ("Write the report from the stored results.", ("murp paper report --to docs",)),
}


def explain(parser: Parser, name: str = "") -> None:
    """Add the texts of the manual to a parser and all its commands."""
    sentence, examples = MANUAL[name]
    parser.explain(sentence, examples)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, below in action.choices.items():
                explain(below, f"{name} {command}".strip())
