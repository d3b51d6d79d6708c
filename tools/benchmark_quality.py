"""The sections of docs/benchmarks.md on what is weighed against quality: hierarchies, new entities, searches."""

from __future__ import annotations

from typing import Any

from benchmark_results import machine, result, results, size, table, time, times


def hierarchies() -> list[str]:
    """Poincaré and Lorentz embeddings of WordNet's nouns: reconstruction, and pairs a second beside gensim's."""
    rows, machines, what = [], [], ""
    # By dimension: by name d=20 would stand before d=5.
    for _, stored in sorted(results("hierarchy_*"), key=lambda one: (len(one[0]), one[0])):
        for case, found in stored["figures"]["reconstruction"].items():
            busy = " on a busy machine" if stored["figures"].get("busy") else ""
            theirs = found["published"] or ("–", "–")
            first = found["untrained"]
            values = [f"{found['map']:.3f}", f"{found['mean_rank']:.2f}", *map(str, reversed(theirs))]
            values += [f"{first['map']:.3f}", f"{first['mean_rank']:.2f}"]
            rows.append([case, *values, time(found["seconds"]) + busy])
        machines.append(machine(stored))
        what = f"{stored['figures']['nodes']:,} nouns, {stored['figures']['pairs']:,} pairs of the closure."
    speed = result("cpu_hierarchy")
    parts = []
    if rows:
        note = (
            f"{what} For each noun, all others are ranked by distance, and its ancestors should come first. Mean rank "
            "and MAP (mean average precision) are as in table 1 of Nickel and Kiela 2017; the table shows their values "
            "beside ours. Training starts with points whose places follow from the hierarchy; the table also shows the "
            "values of these points."
        )
        head = ["", "MAP", "mean rank", "published MAP", "published mean rank", "MAP before training"]
        parts += [note, table([*head, "mean rank before training", "training"], rows), *sorted(set(machines))]
    if speed is not None:
        pairs = [
            [case, f"{one['murp']['median']:,.0f}", f"{one['gensim']['median']:,.0f}", times(one["times gensim"])]
            for case, one in speed["figures"]["pairs a second"].items()
        ]
        negatives = speed["settings"]["negatives of the speed"]
        note = f"Pairs per second with {negatives} negatives; murp and gensim ran in turns."
        parts += [note, table(["", "murp", "gensim's PoincareModel", "times"], pairs), machine(speed)]
    return ["## Embeddings of one hierarchy", *parts] if parts else []


def extensions() -> list[str]:
    """`murp extend` against a whole training."""
    found = [stored for _, stored in results("gpu_extending*")]
    rows = [_extension(one) for stored in found for one in stored["figures"]]
    if not rows:
        return []
    note = (
        "5 % of the entities were held out. One run was trained without them and then extended with their training "
        "facts. The other run was trained on all facts. The table compares their MRR (protocol `standard`) on the test "
        "facts about these entities. The time of an extension is the time to place the new entities. On a CPU, the "
        "time of a whole training is the time of one epoch times the number of epochs."
    )
    head = ["", "extended, MRR", "whole training, MRR", "share", "on other facts: extended, whole", "extension"]
    head += ["whole training", "share of the time", "share of the time on a processor"]
    return ["## New entities in a trained run", note, table(head, rows), *dict.fromkeys(map(machine, found))]


def _extension(one: dict[str, Any]) -> list[str]:
    ours, theirs = (one["mrr"][name]["new entities"]["test"] for name in ("extended", "whole training"))
    seconds = one["seconds"]
    row = [
        f"{one['model']} d={one['settings']['dim']}, {one['data']}, {one['settings']['epochs']} epochs",
        f"{ours:.3f}",
        f"{theirs:.3f}",
        f"{one['share_of_mrr']:.1%}",
    ]
    row.append(", ".join(f"{one['mrr'][name]['other facts']['test']:.3f}" for name in ("extended", "whole training")))
    row += [time(seconds["extension"]), time(seconds["whole training"]), f"{one['share_of_seconds']:.2%}"]
    there = one.get("share_of_seconds_on_the_processor")
    return [*row, "–" if there is None else f"{there:.2%}"]


def searches() -> list[str]:
    """`murp tune` against a grid in the same wall time."""
    rows, machines, cases = [], [], []
    for _, stored in results("tuning_*"):
        figures, settings = stored["figures"], stored["settings"]
        rows.append(
            [
                settings["data"],
                f"{figures['default']['mrr']:.4f}",
                f"{figures['grid']['mrr']:.4f} ({figures['grid']['runs']} runs, {time(figures['seconds']['grid'])})",
                f"{figures['tune']['mrr']:.4f} ({sum(figures['tune']['trials'].values())} trials, "
                f"{time(figures['seconds']['tune'])})",
            ]
        )
        grid = " × ".join(f"{name} {', '.join(f'{v:g}' for v in of)}" for name, of in figures["grid"]["values"].items())
        cases.append(
            f"{settings['data']}: MuRP d={settings['dim']}, {settings['epochs']} epochs, seed {settings['seed']}; the "
            f"grid is {grid}."
        )
        machines.append(machine(stored))
    if not rows:
        return []
    note = (
        "MRR on valid, protocol `standard`, of one run with the default settings, of the best run of a grid (`murp "
        "sweep`), and of the best trial of `murp tune` in the same time as the grid. " + " ".join(cases)
    )
    parts = ["## Tuning against a grid", note, table(["", "defaults", "grid", "murp tune"], rows), *machines]
    return [*parts, *_workers()]


def _workers() -> list[str]:
    """Trials side by side."""
    stored = result("gpu_tune_workers")
    if stored is None:
        return []
    settings, found = stored["settings"], stored["figures"]["by_workers"]
    rows = [
        [workers, time(one["seconds"]), times(one["share_of_the_first"]), str(one["epochs"]), f"{one['mrr']:.4f}"]
        for workers, one in found.items()
    ]
    note = (
        f"Trials side by side on one GPU (`--workers`): {settings['trials']} trials on {settings['data']}, "
        f"d={settings['dim']}, at most {settings['epochs']} epochs each. The time includes the start of every worker "
        "and compiling. Searches with different numbers of workers propose different settings, so they train different "
        "numbers of epochs. MRR is the best on valid, protocol `standard`."
    )
    head = ["workers", "in all", "of the time of the first row", "epochs trained", "MRR"]
    return [note, table(head, rows), machine(stored)]


def local_negatives() -> list[str]:
    """MRR by the entities that negatives are drawn from."""
    parts: list[str] = []
    for name in ("local_negatives_wn18rr", "local_negatives_fb15k-237"):
        if (stored := result(name)) is None:
            continue
        settings, figures = stored["settings"], stored["figures"]
        rows = [
            [case, *(", ".join(f"{mrr:.4f}" for mrr in found[split]) for split in ("valid", "test"))]
            for case, found in figures.items()
        ]
        note = (
            f"{settings['model']} d={settings['dim']} on {settings['data']}, batch {settings['batch_size']:,}, "
            f"{settings['negatives']} negatives for each triple, {settings['epochs']} epochs. Uniform negatives are "
            "drawn from all entities; local ones (`--corruption local`) from one part of them, which ranks need not "
            "send."
        )
        head = ["negatives", "MRR on valid (standard), each seed", "on test"]
        parts += [note, table(head, rows), machine(stored)]
    return ["## Local negatives", *parts] if parts else []


def half_precision() -> list[str]:
    """MRR by the format in which a training stores the entities' points."""
    parts: list[str] = []
    for name in ("half_tables", "half_tables_wn18rr"):
        if (stored := result(name)) is None:
            continue
        settings, figures = stored["settings"], stored["figures"]
        head = ["", "MRR on valid (standard), each seed", "on test", "a checkpoint"]
        rows = [
            [
                case,
                *(", ".join(f"{mrr:.3f}" for mrr in found[split]) for split in ("valid", "test")),
                size(found["checkpoint_bytes"]),
            ]
            for case, found in figures.items()
        ]
        note = (
            f"{settings['data']}, d={settings['dim']}, {settings['epochs']} epochs: the entities' points are stored in "
            "this format (`--table-dtype`), and steps compute in float32. Trained with the engine "
            f"{settings['engine']}."
        )
        parts += [note, table(head, rows), machine(stored)]
    return ["## Tables of half precision", *parts] if parts else []
