"""The sections of docs/benchmarks.md on large graphs: rows in host memory, reading, finding, a whole run on a GPU."""

from __future__ import annotations

from typing import Any

from benchmark_results import Result, machine, result, size, spread, table, time


def rows_by_table_size() -> list[str]:
    """Why a step is slow where its table is large and lies in host memory: a part of the section before it."""
    stored = result("gpu_scale_rows")
    if stored is None:
        return []
    figures = stored["figures"]
    places, each = figures["by_place"], figures["row_bytes"]
    spans = dict.fromkeys(span for place in places.values() for span in place["seconds_by_rows"])
    rows = [[size(int(span) * each), *(_taken(place, span) for place in places.values())] for span in spans]
    note = (
        "**Why the large table in host memory misses its limit.** A test kernel only reads rows: as many as a step "
        f"reads, {figures['rows']:,} of {each} bytes ({size(figures['rows'] * each)}), at random places in the first "
        "part of a table. It always reads the same number of bytes. Only the size of that part changes, and with it "
        "the number of different addresses that must be translated for the bus."
    )
    pages = [
        f"{place['bytes_in_large_pages'] / place['table_bytes']:.0%} ({name})"
        for name, place in places.items()
        if place["bytes_in_large_pages"] is not None and name.startswith("in host")
    ]
    told = [f"The share of a table that the system really kept in pages of 2 MB: {'; '.join(pages)}."] if pages else []
    return [note, table(["rows are spread over", *places], rows), *told, machine(stored)]


def _taken(place: Result, span: str) -> str:
    return spread(place["seconds_by_rows"][span]) if span in place["seconds_by_rows"] else "–"


def whole_run_at_scale() -> list[str]:
    """A generated graph: read, trained for an epoch, evaluated; as far as the run has come."""
    stored = result("gpu_scale_whole")
    if stored is None:
        return []
    figures, settings = stored["figures"], stored["settings"]
    graph, reading = figures["graph"], figures["reading"]
    rows = [[f"{name} (apart)", time(reading[name])] for name in ("generating", "reading") if name in reading]
    rows += [[name, time(taken)] for name, taken in figures["seconds"].items()]
    if "epoch_seconds" in figures:
        steps = f"{figures['steps']:,} steps of {time(figures['microseconds_a_step'] * 1e-6)}"
        rows.append(["of training, the epoch alone", f"{time(figures['epoch_seconds'])}, {steps}"])
    rows.append(["all but generating and reading", time(sum(figures["seconds"].values()))])
    facts = sum(graph[split] for split in ("train", "valid", "test"))
    note = (
        f"A generated graph of {graph['entities']:,} entities and {facts:,} facts with a known hierarchy, of which "
        f"{graph['train']:,} are for training. {settings['model']} d={settings['dim']}, {settings['objective']}, "
        f"{settings['optimizer']}, batch {settings['batch_size']}, {settings['negatives']} negatives, one epoch. The "
        "paper's recipe, plain SGD, ranked like chance after one epoch, in trials on smaller graphs."
    )
    cut = [] if figures["finished"] else ["**This run was cut off:** the missing parts were not reached."]
    return ["## A whole run at scale", note, *cut, table(["part", "time"], rows), *_learned(figures), machine(stored)]


def _learned(figures: dict[str, Any]) -> list[str]:
    """How the model ranks, and what it knows of the hierarchy."""
    found, kin = [], figures.get("hierarchy")
    if "test" in figures:
        test = figures["test"]
        low, high = test["intervals"]["mrr"]
        found.append(
            f"Protocol `sampled`, {test['candidates']} candidates, {test['queries']:,} questions of test: MRR "
            f"{test['mrr']:.4f} (95 % interval {low:.4f} to {high:.4f}), hits@10 {test['hits@10']:.3f}."
        )
    if kin:
        levels = kin["distance_by_levels_to_the_common_ancestor"]
        medians = ", ".join(f"{level['median']:.2f}" for level in levels.values())
        found.append(
            f"Distance between relatives whose nearest common ancestor is 1 to {len(levels)} levels up, median: "
            f"{medians}. A sibling is nearer than the farthest kin in "
            f"{kin['share_with_a_sibling_nearer_than_the_farthest_kin']:.1%} of the cases (by chance in half of them), "
            f"a parent nearer to the origin than its child in {kin['share_of_parents_nearer_to_the_origin']:.1%}."
        )
    if kin and "part_of" in kin:
        asked = kin["part_of"]
        found.append(
            f"In {asked['hits@10']:.1%} of the held-out facts `part_of`, the parent is among the ten best answers (by "
            f"chance in {asked['chance']['hits@10']:.1%}). Was the hierarchy learned? "
            f"**{'Yes' if kin['learned'] else 'No'}**, by the rule of `benchmarks/known_hierarchy.py`."
        )
    return found


def large_graphs() -> list[str]:
    """A hundred million facts: read and searched."""
    parts = []
    if stored := result("scale_reading"):
        coding, settings = stored["figures"]["coding"], stored["settings"]
        parts.append(
            f"{settings['facts']:,} facts about {settings['entities']:,} entities are read, numbered and split in "
            f"{time(coding['seconds'])}, with {coding['peak_bytes'] / 2**30:.2f} GiB of memory at most. The graph "
            f"opens in {time(stored['figures']['opening']['seconds'])} afterwards. {machine(stored)}"
        )
    if stored := result("scale_finding"):
        exact, quick = stored["figures"]["exact"], stored["figures"]["approximate"]
        parts.append(
            f"The best ten of {stored['settings']['entities']:,} entities, d={stored['settings']['d']}: "
            f"{time(exact['ms'] / 1e3)} a question in batches of {exact['questions']}, exactly; "
            f"{time(quick['ms'] / 1e3)} by the index, with a recall of {quick['recall']:.3f}. {machine(stored)}"
        )
    return ["## A hundred million facts", *parts] if parts else []
