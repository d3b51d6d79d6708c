"""The sections of docs/benchmarks.md on everything but training: evaluation, size, start, reading, pictures."""

from __future__ import annotations

import statistics
from typing import Any

from benchmark_results import NAMES, Result, by_processor, machine, result, spread, table, time, times


def evaluations() -> list[str]:
    """Whole test sets ranked, and one query at a time for comparison."""
    rows, machines = [], []
    for where, name in (("CPU", "cpu_evaluation"), ("GPU", "gpu_evaluation")):
        stored = result(name)
        if stored is None:
            continue
        figures = stored["figures"]
        seconds = dict(figures["seconds"])
        if "textbook_seconds_a_query" in figures:
            one, queries = figures["textbook_seconds_a_query"], stored["settings"]["queries"]
            seconds[f"murp, {ONE_BY_ONE}"] = {key: one[key] * queries for key in ("median", "least", "most")}
        for key, values in seconds.items():
            model, _, rest = key.partition(", ")
            label = NAMES.get(model, model) + (f", {rest} (scaled)" if rest == ONE_BY_ONE else "")
            rows.append([f"{where}: {label}", spread(values)])
        machines.append(machine(stored))
    if not rows:
        return []
    note = (
        "Scaled: a few queries of the test set were measured, in turns with the other cases, and the time was "
        "extrapolated to all queries in both directions."
    )
    return ["## Filtered evaluation of the WN18RR test set", table(["d=40", "both directions"], rows), note, *machines]


ONE_BY_ONE = "one query at a time"


def any_model() -> list[str]:
    """Steps beyond the paper's against plain PyTorch, and steps of optimizers with a state by number of entities."""
    rows, curved, states, machines = [], [], [], []
    for where, name in (("CPU", "cpu_any_model"), ("GPU", "gpu_any_model")):
        stored = result(name)
        if stored is None:
            continue
        for step, found in stored["figures"].get("steps", {}).items():
            seconds = found["seconds_a_step"]
            faster = f"{times(found['times_faster'])} times"
            rows.append([f"{where}: {step}", spread(seconds["ours"]), spread(seconds["plain PyTorch"]), faster])
        for model, found in stored["figures"].get("curved", {}).items():
            seconds = found["seconds"]
            blocks = spread(seconds["blocks by autograd"]) if "blocks by autograd" in seconds else "–"
            faster = f"{times(found['times_faster'])} times"
            curved.append(
                [f"{where}: {model}", spread(seconds["ours"]), blocks, spread(seconds["plain PyTorch"]), faster]
            )
        for optimizer, found in stored["figures"].get("state", {}).items():
            for count, one in found["by"].items():
                memory = f"{times(one['memory_over_parameters'])} times ({one['memory_is']})"
                states.append([f"{where}: {optimizer}, {int(count):,}", spread(one["seconds_a_step"]), memory])
        machines.append(machine(stored))
    if not rows:
        return []
    note = (
        "The first table compares a step of the engine torch (on the GPU compiled and replayed from graphs) with a "
        "step of plain PyTorch: the same mathematics, dense gradients, PyTorch's own optimizer. The second table is "
        "MuRE, batch 128, 50 negatives. murp is imported before PyTorch, as on the command line: when PyTorch is "
        "imported, it reads whether to use large pages and how its threads wait, and murp sets both."
    )
    head = ["d=40, float32", "ours", "plain PyTorch", "ours is faster"]
    return [
        "## Steps beyond the paper's",
        table(head, rows),
        *_where_steps_go(),
        *_memory(),
        *_curved(curved),
        table(["optimizer, entities", "a step", "memory against the parameters"], states),
        note,
        *machines,
    ]


def _memory() -> list[str]:
    """What steps beyond the paper's take of a GPU's memory."""
    stored = result("gpu_any_model")
    rows = []
    for step, found in (stored["figures"].get("steps", {}) if stored else {}).items():
        for kind in ("ours", "plain PyTorch"):
            if one := found.get("memory", {}).get(kind):
                beside = f"{one['peak_bytes_beside_tables'] / 1e6:,.0f} MB"
                tensor = found["memory"]["batch_by_entities_bytes_an_entity"]
                rows.append([step, kind, beside, f"{one['peak_bytes_an_entity']:,.0f} bytes", f"{tensor:,} bytes"])
    if not rows:
        return []
    return [
        "Peak memory of a GPU in the first steps, beside the tables and what the optimizer stores; and what each "
        "entity adds, found with four times as many entities, beside what it would add to a tensor of batch × "
        "entities. The rest is the same for any number of entities: libraries need room for products, and PyTorch's "
        "compiler to time its kernels.",
        table(["step", "", "beside the tables", "for each entity", "of batch × entities"], rows),
    ]


def _curved(rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    return [
        "All entities of WN18RR as candidates of 500 queries, d=40: the cross-entropy and its gradients, of models "
        "whose score is not an inner product and two numbers:",
        table(["model", "ours", "blocks by autograd", "plain PyTorch", "ours against plain PyTorch"], rows),
        "The ending of such a model is recorded with its derivatives (`src/murp/kernels/formulas.py`). On a CPU it is "
        "compiled as one loop, on a GPU as part of a kernel that makes the products, too. Without that, autograd "
        "scores a block of entities at a time. Plain PyTorch holds all scores.",
    ]


def _where_steps_go() -> list[str]:
    """What the steps on each processor are spent on, and what bounds the one with all entities as candidates."""
    parts = ("scores and gradients", "scores", "four products at the processor's peak")
    rows = []
    for processor, stored in by_processor("cpu_any_model").items():
        for step, found in stored["figures"].get("steps", {}).items():
            loops, bound = sum(found.get("seconds_of_own_loops", {}).values()), found.get("bounds")
            apart = [time(bound[name]["median"]) for name in parts] if bound else ["–"] * len(parts)
            of_step = [time(found["seconds_a_step"]["ours"]["median"]), time(loops)] if loops else []
            rows += [[processor, step, *of_step, *apart]] if of_step else []
    if not rows:
        return []
    return [
        "Where a step on the CPU goes, on each processor:",
        table(
            ["processor", "step", "a step", "of this murp's loops", "all entities", "scores alone", "products"], rows
        ),
        "What is not in murp's loops are PyTorch's operations, most of them on small tensors, and Python. *All "
        "entities*: the scores of all entities, their softmax and the gradients, measured alone; *scores alone*: one "
        "product and its softmax. Every method needs at least three products (the scores, and a gradient for each "
        "side). Ours computes four: to keep the weights in the cache that the cores share was a little quicker on AMD "
        "with few entities, and slower with more. *Products*: four products if the processor does nothing else and "
        "reads and writes no memory. Exponentials come on top of that, one for each score in each of two passes. These "
        "are virtual machines: the same loop takes longer for seconds at a time if others use the same cores.",
    ]


# A target that is stored with this graph, but is WN18RR's.
OF_ANOTHER_GRAPH = ("FB15k-237", 0.46)


def time_to_quality() -> list[str]:
    """Whole trainings of several recipes: how long they take, and how good they are."""
    rows, machines = [], []
    parts = ("gpu_time_to_quality", "gpu_time_to_quality_short", "gpu_time_to_quality_fb15k-237", "cpu_time_to_quality")
    for where in parts:
        stored = result(where)
        if stored is None:
            continue
        data, target = stored["settings"]["data"], stored["settings"]["target"]
        shown = target is not None and (data, target) != OF_ANOTHER_GRAPH
        for name, runs in stored["figures"].items():
            reached = [run["seconds_to_target"] for run in runs if run["seconds_to_target"] is not None]
            until = time(statistics.mean(reached)) if len(reached) == len(runs) else "–"
            ended = any(run["seconds"] is None for run in runs)  # by --until-target
            rows.append(
                [
                    f"{where[:3].upper()}, {data}: {name}",
                    f"{len(runs)}",
                    "ended at the target" if ended else time(statistics.mean(run["seconds"] for run in runs)),
                    "–" if ended else ", ".join(f"{run['test_mrr_standard']:.3f}" for run in runs),
                    f"{target:g}: {until}" if shown else "–",
                ]
            )
        machines.append(machine(stored))
    if not rows:
        return []
    note = (
        "Training time in seconds without validation and compiling; mean over seeds. The checkpoint with the best MRR "
        "on valid is evaluated. `published` is MuRP with the paper's settings."
    )
    head = [
        "recipe",
        "seeds",
        "whole training",
        "MRR on test (standard), each seed",
        "until MRR on valid (standard) is",
    ]
    return ["## Time to quality", table(head, rows), note, *machines]


def earlier() -> list[str]:
    """The evaluation against that of an earlier commit, by processor."""
    found = by_processor("cpu_earlier")
    if not found:
        return []
    rows = [
        [
            f"{processor}: {NAMES[model]}, {words}",
            *(spread(times_of[code]) for code in ("earlier", "now")),
            f"{times(times_of['now_over_earlier'])} times",
        ]
        for processor, stored in found.items()
        for model, kinds in stored["figures"].items()
        for kind, words in (("seconds", "on the clock"), ("processor_seconds", "processor time"))
        for times_of in (kinds[kind],)
    ]
    settings = [stored["settings"] for stored in found.values()]
    commits = " and ".join(dict.fromkeys(each["earlier"] for each in settings))
    note = (
        f"The test set of {settings[0]['data']}, d={settings[0]['dim']}, both directions, float32: this code and that "
        f"of commit {commits} ran in turns, each in its own process. The earlier code used PyTorch's matrix products. "
        "Processor time is the sum over all threads."
    )
    head = ["", "earlier", "now", "now against earlier, by the median"]
    title = "## The evaluation against an earlier commit's"
    return [title, note, table(head, rows), *(machine(stored) for stored in found.values())]


def neighbours() -> list[str]:
    """Training and evaluation beside busy processes."""
    stored = result("cpu_neighbours")
    if stored is None:
        return []
    rows = [
        [
            case,
            spread(values["default threads"]),
            spread(values["one thread"]),
            f"{times(values['default over one'])} times",
        ]
        for case, values in stored["figures"]["seconds"].items()
    ]
    note = (
        "MuRP d=40 on WN18RR: some training steps with the engine numba, fewer with torch, and the evaluation of the "
        "test set. `beside 2` means that two other processes run busy loops; `under half a core` means with a CPU "
        "quota. Default threads and one thread ran in turns, each in its own process."
    )
    left_out = [f"Left out: {what}: {why}." for what, why in stored["figures"]["left_out"].items()]
    head = ["", "default threads", "one thread", "default against one"]
    return ["## Beside busy neighbours", note, table(head, rows), *left_out, machine(stored)]


def many_entities() -> list[str]:
    rows, machines = [], []
    for where in ("cpu", "gpu"):
        stored = result(f"{where}_many_entities")
        if stored is None:
            continue
        by = stored["figures"]["by"]
        for size in by.values() if isinstance(by, dict) else by:
            key = "peak_over_parameters" if where == "gpu" else "peak_less_constant_over_parameters"
            row = [where.upper(), f"{size['entities']:,}", spread(size["seconds_a_step"])]
            rows.append([*row, f"{size['parameter_bytes'] / 2**20:,.0f} MiB", f"{times(size[key])} times"])
        machines.append(machine(stored))
    if not rows:
        return []
    note = (
        "MuRP d=40, random triples, float32. The last column is the peak memory of training, divided by the bytes of "
        "the parameters. On the CPU, the memory of a process with hardly any entities is subtracted first. With few "
        "entities the value means little."
    )
    head = ["", "entities", "a step", "parameters", "peak"]
    return ["## Many entities", note, table(head, rows), *machines]


def tables_of_a_gpu() -> list[str]:
    stored = result("gpu_scale")
    if stored is None:
        return []
    rows = [
        [
            "in host memory" if case["host"] else "on the GPU",
            case.get("table_dtype", "float32"),
            f"{case['entities']:,}",
            case["dim"],
            spread(case["seconds_a_step"]),
            spread(case["seconds_of_the_gradient_kernel"]),
            f"{case['peak_bytes_on_the_device'] / 2**30:,.2f} GiB",
        ]
        for case in stored["figures"]["cases"].values()
    ]
    settings, bus = stored["settings"], stored["figures"]["bus"]
    moved = max(case["bytes_over_the_bus_a_step"] for case in stored["figures"]["cases"].values())
    note = (
        f"MuRP, batch {settings['batch_size']}, {settings['negatives']} negatives, random triples. A step has two "
        "kernels: the gradient's, which reads all rows, and the update's, which writes them. With `--tables host` both "
        f"go over the bus, which copies large pieces at {bus['from_host'] / 1e9:.0f} GB/s to the GPU and "
        f"{bus['to_host'] / 1e9:.0f} GB/s back. A step moves {moved / 1e6:.1f} MB over it in float32."
    )
    head = ["points", "stored in", "entities", "d", "a step", "its gradient kernel", "peak on the GPU"]
    return ["## Tables that fill a GPU, and tables in host memory", note, table(head, rows), machine(stored)]


def start_up() -> list[str]:
    stored = result("cpu_start_up")
    if stored is None:
        return []
    rows = [[f"`{name}`" if " -" in name else name, spread(v)] for name, v in stored["figures"]["seconds"].items()]
    note = (
        "Measured from the start of the process. `first step` is the first step of a second start on WN18RR, with "
        "imports and without compiling."
    )
    return ["## Start", note, table(["", "seconds"], rows), machine(stored)]


def reading() -> list[str]:
    stored = result("cpu_reading")
    if stored is None:
        return []
    names = ("parsed", "parsed and kept", "from the cache")
    loads = [(name, stored["figures"][name]) for name in names]
    rows = [[name, spread(load["seconds"]), f"{load['peak_bytes'] / 2**30:.2f} GiB"] for name, load in loads]
    settings = stored["settings"]
    note = f"{settings['triples']:,} triples in one file of {settings['file_bytes'] / 2**20:,.0f} MiB, split by murp."
    formats = stored["figures"].get("formats", {})
    for name, load in formats.items():
        what = f"{settings['triples_of_formats']:,} triples as {name}"
        rows.append([what, spread(load["seconds"]), f"{load['peak_bytes'] / 2**30:.2f} GiB"])
        if "seconds_of_pyoxigraph_alone" in load:
            rows.append([f"{what}, pyoxigraph alone", spread(load["seconds_of_pyoxigraph_alone"]), ""])
    return ["## Reading", note, table(["", "seconds", "peak memory"], rows), machine(stored)]


def pictures() -> list[str]:
    stored = result("cpu_plots")
    if stored is None:
        return []
    rows = [[name, spread(values)] for name, values in stored["figures"]["seconds"].items()]
    settings = stored["settings"]
    note = f"The whole command on {settings['data']}, {settings['entities']:,} points; edges: {settings['edges']}."
    return ["## Pictures", note, table(["`murp plot`", "seconds"], rows), machine(stored)]


def _frame(part: dict[str, Any]) -> list[str]:
    """What a frame took, and what it cost where that was measured."""
    processor = part.get("processor_ms") or {}
    taken = [time(part[key] / 1e3) for key in ("median", "p95", "script_median")]
    return taken + [time(processor[where] / 1e3) if processor else "–" for where in ("page", "rest")]


def frames() -> list[str]:
    """The explorer's disk in motion."""
    stored, many = result("explorer_frames"), result("explorer_million")
    if stored is None:
        return []
    settings, figures = stored["settings"], stored["figures"]["frame_ms"]
    rows = [
        [case, motion, str(part["frames"]), *_frame(part)]
        for case, motions in figures.items()
        for motion, part in motions.items()
    ]
    window = " × ".join(str(pixels) for pixels in settings["viewport"])
    note = (
        f"The page of a trained run, {settings['data']}, {settings['points']:,} points, {settings['edges']:,} edges of "
        f"{settings['relation']}, in a window of {window} CSS pixels, at one and two device pixels each; "
        f"{settings['browser']}, so the CPU paints as well. Times are from one frame to the next, with the browser's "
        "clock off; `recentre` includes a request to the server. While the picture moves, a slow machine does not draw "
        "edges far from the centre, and draws at one device pixel. At rest everything is drawn."
    )
    if first := stored["figures"].get("first_view_s"):
        note += f" The first view appears after {min(first.values()):.1f} to {max(first.values()):.1f} s."
    head = ["", "", "frames", "a frame, median", "95 of 100", "of the median, the page's script"]
    head += ["processor time of the page's thread", "of the rest of the browser"]
    parts = ["## The explorer's disk in motion", note, table(head, rows), machine(stored)]
    if many is not None:
        rows = [
            [case, motion, str(part["frames"]), *_frame(part)]
            for case, motions in many["figures"]["frame_ms"].items()
            for motion, part in motions.items()
        ]
        first = many["figures"]["first_view_s"].values()
        parts += [
            f"The same with {many['settings']['points']:,} points; the first view appears after {min(first):.1f} to "
            f"{max(first):.1f} s.",
            table(head, rows),
            machine(many),
        ]
    return parts


def watching() -> list[str]:
    """What it costs a training to be shown in a browser."""
    stored = result("explorer_watched")
    if stored is None:
        return []
    settings, figures = stored["settings"], stored["figures"]
    rows = [[name, spread(values)] for name, values in figures["processor_seconds"].items()]
    begun, ended = figures["memory_mb"]
    note = (
        f"MuRP d={settings['dim']} on {settings['data']}, {settings['epochs']} epochs, with and without `--explore`, "
        "in turns; both give the same weights, bit for bit. A watched training takes "
        f"{times(figures['watched_over_plain'])} times the processor time. The process uses {begun:,.0f} MiB after a "
        f"quarter of the training and {ended:,.0f} MiB at the end."
    )
    return ["## A training that is watched", note, table(["", "processor seconds"], rows), machine(stored)]


def serving() -> list[str]:
    """`murp serve` under load."""
    stored = result("serve_load")
    if stored is None:
        return []
    kinds = {
        "paced": "one question a request",
        "replaced": "the same, while the run is replaced",
        "batches": "a hundred questions a request, as fast as they are answered",
    }
    rows = [
        [
            words,
            f"{(found := stored['figures'][kind])['requests']:,}",
            str(found["errors"]),
            f"{found.get('questions_per_second', found['per_second']):,.0f}",
            *(time(found["wait_ms"][key] / 1e3) for key in ("median", "p99", "most")),
        ]
        for kind, words in kinds.items()
    ]
    memory, settings = stored["figures"]["paced"]["memory_mib"], stored["settings"]
    note = (
        f"`murp serve` with a MuRP run d={settings['dim']} on {settings['data']}. Random questions, no two the same, "
        f"over {settings['connections']} connections, for {settings['seconds']:g} seconds. The client runs on the same "
        "machine as the server. In the first minute the server's memory goes from "
        f"{memory['before']:,.0f} to {memory['after']:,.0f} MiB. Then the run folder was replaced "
        f"{stored['figures']['replaced']['replacements']} times under the same load."
    )
    head = ["", "requests", "errors", "questions a second", "wait, median", "99 of 100", "longest"]
    return ["## Questions over HTTP", note, table(head, rows), machine(stored)]


def ranks() -> list[str]:
    """Many processes on one machine against one, in each of the settings that are stored."""
    settings = ("distributed_cpu", "distributed_local_cpu", "distributed_shared_cpu", "distributed_many_cpu")
    parts = [part for name in settings for part in ranks_of(result(name))]
    parts += fused_ranks()
    return ["## Many processes", *parts] if parts else []


def fused_ranks() -> list[str]:
    """Gradients of slices by the fused kernel against autograd's."""
    stored = result("distributed_fused_cpu")
    if stored is None:
        return []
    settings, figures = stored["settings"], stored["figures"]
    rows = [
        [case, *(spread(found["work_a_step_of_a_rank"][engine]) for engine in ("torch", "numba")), times(ratio)]
        for case, found in figures.items()
        if isinstance(found, dict) and (ratio := found["fused, in times of autograd"])
    ]
    most = max(found["greatest relative difference of a loss"] for found in figures.values() if isinstance(found, dict))
    note = (
        f"Fused gradients on ranks (`--engine numba`): MuRP d={settings['dim']} on {settings['data']}, "
        f"{settings['negatives']} negatives for each triple, 4 slices. The table has the processor time of a step on "
        "one rank, in turns; losses of the two engines differ by a relative "
        f"{most:.0e} at most."
    )
    return [note, table(["", "autograd", "fused", "fused in times of autograd"], rows), machine(stored)]


def ranks_of(stored: Result | None) -> list[str]:
    """One setting."""
    if stored is None:
        return []
    settings, figures = stored["settings"], stored["figures"]
    words = {
        "plain": "one process, two threads",
        "1": "1 rank, 4 slices",
        "2": "2 ranks, 4 slices",
        "4": "4 ranks, 4 slices",
        "2 of 2": "2 ranks, 2 slices",
        "1 beside 1": "1 rank, 4 slices, twice at the same time",
    }
    rows = [
        [
            text,
            spread(figures[case]["seconds_a_step"]),
            spread(figures[case]["work_a_step_of_a_rank"]),
            spread(figures[case]["system_work_a_step_of_a_rank"]),
            f"{figures[case]['bytes_a_step'] / 1e6:,.1f} MB",
            f"{figures[case]['bytes_a_step_computed'] / 1e6:,.1f} MB",
        ]
        for case, text in words.items()
        if case in figures
    ]
    compared = figures["compared"]
    same = compared["losses and MRR of 1, 2 and 4 ranks bit for bit"]
    corruption = settings.get("corruption", "uniform")
    which = {
        "shared": " shared by the batch",
        "local": " for each triple, of the part of the entities that its rank has",
    }
    work, wall = (
        compared[key]
        for key in ("work of a rank at 4, in quarters of one", "two ranks, in times of one process on two threads")
    )
    note = (
        f"{settings['model']} d={settings['dim']} on {settings['data']}, batch {settings['batch_size']:,}, "
        f"{settings['negatives']} negatives{which.get(corruption, '')}, gloo on one machine. Losses and "
        f"MRR of 1, 2 and 4 ranks are {'the same bit for bit' if same else 'NOT the same'}. Work is the processor time "
        "of a rank (user and system), including the kernel's copies between processes. Each of 4 ranks does "
        f"{work:.2f} quarters of the work of one process; 2 ranks with 2 slices take {wall:.2f} of the time of one "
        "process on two threads."
    )
    beside = compared.get("work of a rank at 4, in quarters of one beside another")
    if beside is not None:
        note += (
            " Compared with a process that shares caches and memory with a second, identical process, it is "
            f"{beside:.2f} quarters."
        )
    own, system = (
        {case: figures[case][of]["median"] for case in ("1", "4")}
        for of in ("work_a_step_of_a_rank", "system_work_a_step_of_a_rank")
    )
    alone = figures["4"]["work_a_step_of_a_rank_to_send_alone"]["median"]
    note += (
        f" One of 4 ranks works {time(own['4'])}, and a quarter of one process's work is {time(own['1'] / 4)}. Of the "
        f"{more(own['4'] - own['1'] / 4)} between them the system takes {more(system['4'] - system['1'] / 4)}. Only to "
        f"send as many bytes through plain sockets, a rank works {time(alone)}. The second table shows what all "
        "of this work is for. The same operations take longer while others use the same cores, caches and memory."
    )
    if corruption == "uniform":
        note += (
            " A slice of such a large batch needs nearly every entity of this graph, so each rank fetches nearly the "
            "whole table in every step."
        )
    head = ["", "a step", "work of a rank", "of this the system", "bytes a step", "bytes computed"]
    one, four = (figures[case]["work_a_step_of_a_rank_by_part"] for case in ("1", "4"))
    by_part = [
        [part, more(quarter := one[part]["median"] / 4), more(of := four[part]["median"]), more(of - quarter)]
        for part in one
    ]
    of_parts = ["work for", "a quarter of one process", "one of 4 ranks", "more"]
    return [note, table(head, rows), table(of_parts, by_part), machine(stored)]


def more(seconds: float) -> str:
    """A time, or a difference of times: with a minus sign if it is below 0."""
    return f"−{time(-seconds)}" if seconds < 0 else time(seconds)
