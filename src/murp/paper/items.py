"""The paper's tables and figures, a function each: what has to be trained and measured, and what is stored of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from murp.analysis import relation_edges, relation_profiles, spearman
from murp.analysis.embedding import entity_norms
from murp.evaluation import PROTOCOLS, KnownFacts, Metrics, rank
from murp.graph import KnowledgeGraph
from murp.graph.auditing.audit import Audit, audit_source
from murp.graph.findings import Finding
from murp.graph.keys import fact_keys
from murp.paper.curve import curve
from murp.paper.experiments import Experiments, valid_mrr
from murp.paper.planned_run import MODELS, PlannedRun
from murp.paper.trials import trials
from murp.plots import ask
from murp.runs import Run, folder

WRONG = ("false positive", "false negative")
# The paper's words for what our pictures call new, missed and known.
OURS = {"false positive": "new", "false negative": "missed", "true positive": "known"}


def table1(experiments: Experiments) -> None:
    """Link prediction: the learning rate chosen on valid from the grid, then every cell with several seeds."""
    items = experiments.settings["table1"]
    grid, chosen, cells = [], {}, []
    for data in items["data"]:
        for model in MODELS:
            tried = [PlannedRun(data, model, items["grid_dim"], lr) for lr in items["grid"]]
            scores = [valid_mrr(result) for result in experiments.results(tried)]
            grid.append({"data": data, "model": model, "dim": items["grid_dim"], "runs": [run.name for run in tried]})
            chosen[data, model] = tried[int(np.argmax(scores))].lr
    for data in items["data"]:
        for dim in items["dims"]:
            for model in MODELS:
                runs = experiments.train_seeds(PlannedRun(data, model, dim, chosen[data, model]))
                cells.append({"data": data, "model": model, "dim": dim, "runs": runs})
    experiments.store(
        "table1", {"settings": items, "training": experiments.settings["training"], "grid": grid, "cells": cells}
    )


def figure3a(experiments: Experiments) -> None:
    """MRR by dimension."""
    items = experiments.settings["figure3a"]
    cells = []
    for dim in items["dims"]:
        for model in MODELS:
            runs = experiments.train_seeds(PlannedRun(items["data"], model, dim, items["lr"]))
            cells.append({"model": model, "dim": dim, "runs": runs})
    experiments.store("figure3a", {"settings": items, "cells": cells})


def figure3b(experiments: Experiments) -> None:
    """MRR by epoch on train and valid: a run that stops to be evaluated and goes on."""
    items = experiments.settings["figure3b"]
    curves, cells = {}, []
    for model in MODELS:
        chosen = PlannedRun(items["data"], model, items["dim"], items["lr"])
        curves[model] = curve(experiments, chosen, items["epochs"])
        cells.append({"model": model, "runs": experiments.train_seeds(chosen)})
    experiments.store("figure3b", {"settings": items, "curves": curves, "cells": cells})


def table2(experiments: Experiments) -> None:
    """Ablations: another relational transformation, or another bias."""
    items = experiments.settings["table2"]
    cells = []
    variants = [("transformations", (part, "both")) for part in items["transformations"]]
    variants += [("biases", ("published", part)) for part in items["biases"]]
    for kind, parts in variants:
        for model in MODELS:
            for lr in items["lr"]:
                runs = experiments.seeded(PlannedRun(items["data"], model, items["dim"], lr, parts=parts))
                if not all("failed" in result for result in experiments.results(runs)):
                    break
            name = parts[0] if kind == "transformations" else parts[1]
            cells.append({"kind": kind, "part": name, "model": model, "runs": [run.name for run in runs]})
    experiments.store("table2", {"settings": items, "cells": cells})


def table3(experiments: Experiments) -> None:
    """Hits@10 by relation, with what each relation looks like as a graph; and the flat graph's statistics."""
    items = experiments.settings["table3"]
    cells = []
    for model in MODELS:
        planned = PlannedRun(items["data"], model, items["dim"], items["lr"])
        cells.append({"model": model, "runs": experiments.train_seeds(planned)})
    graph = _hierarchy(experiments.graph(items["data"]))
    flat = {"data": items["flat"], **_flatness(_hierarchy(experiments.graph(items["flat"])))}
    experiments.store("table3", {"settings": items, "cells": cells, "relations": graph, "flat": flat})


def figure4(experiments: Experiments) -> None:
    """Norms against biases; the correlations are over all entities, a sample is stored to be drawn."""
    items = experiments.settings["figure4"]
    models, cells = {}, []
    for model in MODELS:
        planned = experiments.seeded(PlannedRun(items["data"], model, items["dim"], items["lr"]))
        runs = experiments.open(*planned)
        pairs = [(entity_norms(run), run.model.parameters["subject_bias"].double().cpu().numpy()) for run in runs]
        found = {"spearman": [spearman(*pair).rho for pair in pairs]}
        cells.append({"model": model, "runs": [run.name for run in planned], **found})
        norms, biases = pairs[0]
        chosen = np.random.default_rng(0).permutation(len(norms))[: items["points"]]
        models[model] = {
            **_weights(runs[0]),
            "entities": len(norms),
            "norms": [float(f"{value:.4g}") for value in norms[chosen]],
            "biases": [float(f"{value:.4g}") for value in biases[chosen]],
        }
    experiments.store("figure4", {"settings": items, "models": models, "cells": cells})


def figure5(experiments: Experiments) -> None:
    """One question before and after the relation's transformation, and the wrong answers by name.

    The names are the first seed's; of the others it is stored how many they were.
    """
    items = experiments.settings["figure5"]
    graph = experiments.graph(items["data"])
    subject, relation = graph.entities.find(items["subject"]), graph.relations.find(items["relation"])
    models, cells = {}, []
    for model in MODELS:
        planned = experiments.seeded(PlannedRun(items["data"], model, items["dim"], items["lr"]))
        runs = experiments.open(*planned)
        every = [ask(run.model, graph, subject, relation, others=items["others"]) for run in runs]
        counts = {kind: [int(one.answers()[OURS[kind]].sum()) for one in every] for kind in WRONG}
        cells.append({"model": model, "runs": [run.name for run in planned], "counts": counts})
        asked = every[0]
        of = asked.answers()
        answers = {kind: [asked.names[i] for i in np.flatnonzero(of[ours])] for kind, ours in OURS.items()}
        models[model] = {
            **_weights(runs[0]),
            "names": list(asked.names),
            "before": np.round(asked.before, 4).tolist(),
            "after": np.round(asked.after, 4).tolist(),
            "subject_before": asked.subject_before,
            "subject_after": asked.subject_after,
            "probabilities": np.round(asked.probabilities, 4).tolist(),
            "known": asked.known.tolist(),
            "disk": asked.disk,
            **answers,
        }
    where = {"subject": graph.entities.name(subject), "relation": graph.relations.name(relation)}
    experiments.store("figure5", {"settings": items, **where, "models": models, "cells": cells})


def nell(experiments: Experiments) -> None:
    """The appendix' table, and by how much the graphs' leaks move it."""
    items = experiments.settings["nell"]
    cells, flaws = [], {}
    for data in items["data"]:
        for dim in items["dims"]:
            for model in MODELS:
                runs = experiments.train_seeds(PlannedRun(data, model, dim, items["lr"]))
                cells.append({"data": data, "model": model, "dim": dim, "runs": runs})
        flaws[data] = _without_leaks(*experiments.open(PlannedRun(data, "murp", items["dims"][0], items["lr"])))
    experiments.store("nell", {"settings": items, "cells": cells, "flaws": flaws})


def hierarchy(experiments: Experiments) -> None:
    """The Krackhardt score and path lengths of every relation."""
    items = experiments.settings["hierarchy"]
    experiments.store(
        "hierarchy", {"settings": items, "graphs": {d: _hierarchy(experiments.graph(d)) for d in items["data"]}}
    )


def flaws(experiments: Experiments) -> None:
    """What is wrong with the data: every finding of `murp data audit`."""
    items = experiments.settings["flaws"]
    audits = {data: audit_source(experiments.graph(data).source or data) for data in items["data"]}
    found = {
        data: [
            {"check": finding.check, "where": finding.where, "text": _finding_text(audit, finding)}
            for finding in audit.findings
            if finding.count
        ]
        for data, audit in audits.items()
    }
    experiments.store("flaws", {"settings": items, "found": found})


ITEMS: dict[str, Callable[[Experiments], None]] = {
    item.__name__: item
    for item in (table1, figure3a, figure3b, table2, trials, table3, figure4, figure5, nell, hierarchy, flaws)
}


def _finding_text(audit: Audit, finding: Finding) -> str:
    """In words that can be read alone: of triples with unseen entities the audit speaks in two lines."""
    if finding.check != "triples_with_unseen_entities":
        return finding.text
    among = f"{finding.count:,} of {audit.counts[finding.where]:,} {finding.where} triples"
    return f"{among} hold entities that training never saw"


def _weights(run: Run) -> dict[str, Any]:
    """The run whose weights were looked at, and where those were trained: not always where its record was."""
    return {"run": run.path.name, "environment": folder.read_environment(run.path)}


def _hierarchy(graph: KnowledgeGraph) -> list[dict[str, Any]]:
    loops = [int((edges[:, 0] == edges[:, 1]).sum()) for edges in relation_edges(graph)]
    return [
        {
            "relation": profile.relation,
            "edges": profile.edges,
            "self_loops": count,
            "krackhardt": profile.krackhardt,
            "longest_path": profile.longest_path,
            "mean_path": profile.mean_path,
        }
        for profile, count in zip(relation_profiles(graph), loops, strict=True)
    ]


def _flatness(relations: list[dict[str, Any]]) -> dict[str, Any]:
    """The statistics the paper's text quotes of FB15k-237, with self-loops ignored and as cycles."""
    acyclic = [row for row in relations if row["krackhardt"] == 1]
    readings = {
        "self-loops ignored": acyclic,
        "self-loops as cycles": [row for row in acyclic if not row["self_loops"]],
    }
    return {
        "relations": len(relations),
        "readings": {
            reading: {
                "score_one": len(rows) / len(relations),
                "mean_longest": float(np.mean([row["longest_path"] for row in rows])) if rows else 0.0,
                "longer_than_two": float(np.mean([row["longest_path"] > 2 for row in rows])) if rows else 0.0,
            }
            for reading, rows in readings.items()
        },
    }


def _without_leaks(run: Run) -> dict[str, Any]:
    """Test MRR over all facts, and over those that are not in train as well."""
    graph = run.graph
    keys = fact_keys(np.concatenate([graph.test, graph.train]), graph.num_entities, graph.num_relations)
    leaked = np.isin(keys[: len(graph.test)], keys[len(graph.test) :])
    figures: dict[str, Any] = {**_weights(run), "test": len(graph.test), "leaked": int(leaked.sum())}
    known = KnownFacts.of(graph)
    for protocol in PROTOCOLS:
        ranks = rank(run.model, graph.test, known, num_relations=graph.num_relations, protocol=protocol)
        both = np.stack([ranks.tail, ranks.head], axis=1)
        figures[protocol] = {
            "mrr": Metrics.of(both.ravel(), protocol).mrr,
            "mrr_without_leaks": Metrics.of(both[~leaked].ravel(), protocol).mrr,
        }
    return figures
