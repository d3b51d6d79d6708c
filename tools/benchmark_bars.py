"""The bars that the project set itself, and what was measured. The bars are the one thing typed by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark_results import Result, by_processor, machine, table, time, times

GPU = "gpu_"  # how the names of results begin that need one
NOT_MEASURED = "not measured"
ABOUT = (
    "The project set these limits before it measured. A limit is met only if every processor in its row meets it. "
    "Values are medians if a measurement was repeated; the whole runs and the frames were measured once."
)


def bars() -> list[str]:
    """What the project set itself, and what was measured."""
    gpu = [entry for entry in BARS if entry.result.startswith(GPU)]
    cpu = [entry for entry in BARS if not entry.result.startswith(GPU)]
    parts = [*bars_of("On a GPU", gpu), *bars_of("On a CPU", cpu)]
    return ["## The limits", ABOUT, *parts, *reasons()] if parts else []


def headline() -> str:
    """How many bars are met, and which are not; nothing where nothing was measured."""
    rows = [row(entry, list(stored.values())) for entry in BARS if (stored := by_processor(entry.result))]
    rows = [cells for cells in rows if cells[-1] != NOT_MEASURED]
    if not rows:
        return ""
    missed = [cells[0] for cells in rows if cells[-1] == "no"]
    met = f"**{len(rows) - len(missed)} of {len(rows)} limits are met.**"
    return f"{met} Missed: {'; '.join(missed)}." if missed else met


def reasons() -> list[str]:
    """Why each bar has the height it has."""
    return ["### Why these limits", table(["about", "why"], [[about, why] for about, _, why in WHY])]


def bars_of(title: str, entries: Sequence[Bar]) -> list[str]:
    """A table with a column for each processor, and below it what each was, with which code."""
    found = [(entry, stored) for entry in entries if (stored := by_processor(entry.result))]
    if not found:
        return []
    processors = sorted({processor for _, stored in found for processor in stored})
    rows = [row(entry, [stored.get(processor) for processor in processors]) for entry, stored in found]
    lines = sorted({machine(one) for _, stored in found for one in stored.values()})
    return [f"### {title}", table(["what", "limit", *processors, "met"], rows), *lines]


def row(entry: Bar, stored: Sequence[Result | None]) -> list[str]:
    """One bar: what it asks for, the value on each processor, and whether all of them meet it."""
    values = [None if one is None else entry.value(one["figures"]) for one in stored]
    word, met = ("or less" if entry.bound > 0 else "or more"), [entry.is_met(v) for v in values if v is not None]
    yes = "yes" if len(met) == len(values) else "yes, where measured"
    shown = [NOT_MEASURED if value is None else entry.shown(value) for value in values]
    end = (yes if all(met) else "no") if met else NOT_MEASURED  # of a run that was cut off there may be no value
    return [entry.what, f"{entry.shown(abs(entry.bound))} {word}", *shown, end]


@dataclass(frozen=True)
class Bar:
    """What is measured, the stored result, the value in it, and the bar: the most, or if negative the least."""

    what: str
    result: str
    figure: Callable[[Result], float]
    bound: float
    unit: str = ""

    def value(self, figures: Result) -> float | None:
        """None: a result of before this was measured."""
        try:
            return self.figure(figures)
        except KeyError:
            return None

    def is_met(self, value: float) -> bool:
        return value <= self.bound if self.bound > 0 else value >= -self.bound

    def shown(self, number: float) -> str:
        if self.unit in ("MRR", "MAP", "share"):
            return f"{number:.3f}"
        if self.unit == "rank":
            return f"{number:.2f}"
        return time(number) if self.unit == "s" else f"{times(number)} times"


def _of(*path: str) -> Callable[[Result], float]:
    def follow(figures: Any) -> float:
        for key in path:
            figures = figures[key]
        return float(figures)

    return follow


def _extended(data: str, key: str) -> Callable[[Any], float]:
    """A share of the extended run of the model that keeps most of a whole training's MRR."""

    def best(figures: Any) -> float:
        found = [one for one in figures if one["data"] == data]
        if not found:
            raise KeyError(data)
        return float(max(found, key=lambda one: one["share_of_mrr"])[key])

    return best


def _answered(kind: str) -> Callable[[Any], float]:
    """The share of requests without an error."""
    return lambda figures: 1 - figures[kind]["errors"] / figures[kind]["requests"]


def _largest(figures: Result, key: str) -> float:
    """What the run with the most entities took."""
    by = figures["by"]
    return float(max(by.values() if isinstance(by, dict) else by, key=lambda size: size["entities"])[key])


def _slowest(figures: Result, *cases: str) -> float:
    """How default threads compare with one thread in the worst of the cases that end so."""
    found = [values["default over one"] for case, values in figures["seconds"].items() if case.endswith(cases)]
    return float(max(found))


def _against_earlier(kind: str) -> Callable[[Result], float]:
    """How much more this code takes than the earlier commit's, by the model that it is worse for."""
    return lambda figures: max(float(model[kind]["now_over_earlier"]) for model in figures.values())


# The names that benchmarks/any_model.py gives its two steps.
ROTATION, MATRICES = "rotation and stretch, self-adversarial", "matrices, 1-vs-all, DURA"


def _state(optimizer: str, figure: str) -> Callable[[Result], float]:
    """A value of the step with state: its ratio, or what it takes at the most entities."""

    def find(figures: Result) -> float:
        found = figures["state"][optimizer]
        most = max(found["by"], key=int)
        return float(found["ratio"] if figure == "ratio" else found["by"][most]["memory_over_parameters"])

    return find


def _any_model(where: str, steps: tuple[Bar, ...], ratio: float) -> tuple[Bar, ...]:
    """The bars of models and optimizers beyond the paper's."""
    name = f"{where}_any_model"
    return (
        *steps,
        Bar("step with Adam at 10 million entities against 41 thousand", name, _state("adam", "ratio"), ratio),
        Bar(
            "step with row-wise Adagrad at 10 million entities against 41 thousand",
            name,
            _state("row-adagrad", "ratio"),
            ratio,
        ),
        Bar("memory with Adam against the parameters", name, _state("adam", "memory"), 3.1),
        Bar("memory with row-wise Adagrad against the parameters", name, _state("row-adagrad", "memory"), 1.1),
    )


def _quality(recipe: str, figure: str) -> Callable[[Result], float]:
    """The mean of a metric over the seeds of a recipe."""
    return lambda figures: statistics.mean(float(run[figure]) for run in figures[recipe])


def _share_of_published(figures: Result) -> float:
    """Seconds to the target of the quickest other recipe against the published one's."""
    times = {name: runs[0]["seconds_to_target"] for name, runs in figures.items()}
    others = [seconds for name, seconds in times.items() if name != "published" and seconds is not None]
    return float(min(others, default=math.inf) / times["published"]) if times["published"] else math.nan


def _until(data: str, name: str, recipe: str, seconds: float, mrr: float) -> tuple[Bar, ...]:
    what = f"{data}, d=40, a whole training on the GPU, mean of three seeds"
    return (
        Bar(f"{what}: seconds", name, _quality(recipe, "seconds"), seconds, "s"),
        Bar(f"{what}: MRR on test, standard", name, _quality(recipe, "test_mrr_standard"), -mrr, "MRR"),
    )


def _reconstructed(dim: int, mean_rank: float, precision: float) -> tuple[Bar, ...]:
    """What Nickel and Kiela 2017 published of WordNet's nouns, table 1."""
    what, name = f"Poincaré embeddings of WordNet's nouns, d={dim}", f"hierarchy_poincare_d{dim}"
    case = f"poincare d={dim}"
    return (
        Bar(f"{what}: mean rank", name, _of("reconstruction", case, "mean_rank"), mean_rank, "rank"),
        Bar(f"{what}: MAP", name, _of("reconstruction", case, "map"), -precision, "MAP"),
    )


BARS = (
    *_until("WN18RR", "gpu_time_to_quality", "rotation and stretch", 3, 0.464),
    *_until("FB15k-237", "gpu_time_to_quality_fb15k-237", "matrices", 10, 0.340),
    Bar(
        "WN18RR, two cores, until MRR .46 on valid (standard), against the published recipe",
        "cpu_time_to_quality",
        _share_of_published,
        0.25,
    ),
    *_any_model(
        "gpu",
        (
            Bar(
                "step with rotations, stretch and learned curvature, self-adversarial, batch 500, 250 negatives, d=40",
                "gpu_any_model",
                _of("steps", ROTATION, "seconds_a_step", "ours", "median"),
                150e-6,
                "s",
            ),
            Bar(
                "step with a matrix a relation, 1-vs-all, FB15k-237, batch 1,024, d=40, Adagrad, DURA",
                "gpu_any_model",
                _of("steps", MATRICES, "seconds_a_step", "ours", "median"),
                200e-6,
                "s",
            ),
            Bar(
                "step with a matrix a relation: peak memory an entity against a tensor of batch × entities",
                "gpu_any_model",
                lambda figures: (
                    figures["steps"][MATRICES]["memory"]["ours"]["peak_bytes_an_entity"]
                    / figures["steps"][MATRICES]["memory"]["batch_by_entities_bytes_an_entity"]
                ),
                1.0,
            ),
        ),
        1.3,
    ),
    *_any_model(
        "cpu",
        (
            Bar(
                "step with rotations and stretch against plain PyTorch's",
                "cpu_any_model",
                _of("steps", ROTATION, "times_faster"),
                -3,
            ),
            Bar(
                "step with a matrix a relation, 1-vs-all, against plain PyTorch's",
                "cpu_any_model",
                _of("steps", MATRICES, "times_faster"),
                -3,
            ),
        ),
        2,
    ),
    Bar("MuRP d=40, WN18RR, 500 epochs, training", "gpu_wn18rr-murp-d40", _of("training_seconds"), 8, "s"),
    Bar("MuRE d=40, WN18RR, 500 epochs, training", "gpu_wn18rr-mure-d40", _of("training_seconds"), 8, "s"),
    Bar("MuRP d=200, WN18RR, 500 epochs, training", "gpu_wn18rr-murp-d200", _of("training_seconds"), 18, "s"),
    Bar("MuRP d=40, FB15k-237, 500 epochs, training", "gpu_fb15k-237-murp-d40", _of("training_seconds"), 26, "s"),
    Bar("WN18RR test evaluation, d=40", "gpu_evaluation", _of("seconds", "murp", "median"), 0.03, "s"),
    Bar("sixteen runs side by side against sixteen times one run, total time", "gpu_sweep", _of("wall_ratio"), 0.25),
    Bar("step at 10 million entities against 41 thousand", "gpu_many_entities", _of("ratio"), 1.3),
    Bar(
        "peak memory at 10 million entities against the parameters",
        "gpu_many_entities",
        lambda figures: _largest(figures, "peak_over_parameters"),
        2.2,
    ),
    Bar(
        "step at 100 million entities, d=100, on the GPU, against 41 thousand",
        "gpu_scale",
        _of("100 million on the device against 41 thousand"),
        1.5,
    ),
    Bar(
        "step at 200 million entities, d=40, in host memory, batch 128, 50 negatives",
        "gpu_scale",
        _of("cases", "host-200000000-d40", "seconds_a_step", "median"),
        60e-6,
        "s",
    ),
    Bar(
        "a whole run on 10 million entities and 100 million facts, one epoch, reading apart",
        "gpu_scale_whole",
        _of("seconds_without_reading"),
        600,
        "s",
    ),
    *(
        Bar(f"new entities, {data}, {words} a whole training's, best model", file, value, bound, "share")
        for data, file in (("WN18RR", "gpu_extending_d200"), ("FB15k-237", "gpu_extending"))
        for words, value, bound in (
            ("MRR against", _extended(data, "share_of_mrr"), -0.9),
            ("seconds against", _extended(data, "share_of_seconds"), 0.01),
        )
    ),
    Bar("MuRP d=40 epoch against the textbook's", "cpu_step", _of("times_faster", "numba against textbook"), -40),
    Bar("WN18RR test evaluation against one query at a time", "cpu_evaluation", _of("times_faster"), -300),
    Bar(
        "WN18RR test evaluation against that of commit 535de4f, on the clock, slower model",
        "cpu_earlier",
        _against_earlier("seconds"),
        1.3,
    ),
    Bar(
        "WN18RR test evaluation against that of commit 535de4f, processor time, slower model",
        "cpu_earlier",
        _against_earlier("processor_seconds"),
        1.3,
    ),
    Bar(
        "default threads against one thread beside 1, 2 and 4 busy loops, slowest case",
        "cpu_neighbours",
        lambda figures: _slowest(figures, "beside 1", "beside 2", "beside 4"),
        1.2,
    ),
    Bar(
        "default threads against one thread under half a core, slowest case",
        "cpu_neighbours",
        lambda figures: _slowest(figures, "under half a core"),
        1.2,
    ),
    Bar("step at 10 million entities against 41 thousand", "cpu_many_entities", _of("ratio"), 2),
    Bar(
        "peak memory (without a constant part) at 10 million entities against the parameters",
        "cpu_many_entities",
        lambda figures: _largest(figures, "peak_less_constant_over_parameters"),
        1.3,
    ),
    Bar(
        "second start of `murp train` to the first step",
        "cpu_start_up",
        _of("seconds", "first step, numba", "median"),
        3,
        "s",
    ),
    Bar("`make test`, all tests on two cores", "suite", _of("seconds"), 600, "s"),
    Bar("`murp --help`", "cpu_start_up", _of("seconds", "murp --help", "median"), 0.4, "s"),
    Bar(
        "`murp plot`, the disk of about ten thousand points, slowest kind",
        "cpu_plots",
        lambda figures: max(float(spread["median"]) for spread in figures["seconds"].values()),
        5,
        "s",
    ),
    Bar(
        "the explorer's disk, a frame while dragging or zooming, 95th percentile in the slowest case",
        "explorer_frames",
        lambda figures: (
            max(
                part["p95"]
                for case in figures["frame_ms"].values()
                for name, part in case.items()
                if name != "recentre"
            )
            / 1e3
        ),
        0.016,
        "s",
    ),
    Bar("ten million triples read, numbered, split", "cpu_reading", _of("parsed", "seconds", "median"), 30, "s"),
    Bar("a million triples of N-Triples", "cpu_reading", _of("formats", ".nt", "seconds", "median"), 3, "s"),
    Bar("a million triples of Turtle", "cpu_reading", _of("formats", ".ttl", "seconds", "median"), 3, "s"),
    Bar("a million triples of TriG", "cpu_reading", _of("formats", ".trig", "seconds", "median"), 3, "s"),
    Bar(
        "embeddings of WordNet's nouns, pairs a second against gensim's, slowest dimension",
        "cpu_hierarchy",
        lambda figures: min(float(one["times gensim"]) for one in figures["pairs a second"].values()),
        -20,
    ),
    *_reconstructed(5, 4.9, 0.823),
    *_reconstructed(10, 4.02, 0.851),
    *_reconstructed(20, 3.84, 0.855),
    Bar("a hundred million facts read, numbered, split", "scale_reading", _of("coding", "seconds"), 300, "s"),
    Bar(
        "ten best of ten million entities, exact, for each question of a batch",
        "scale_finding",
        lambda figures: float(figures["exact"]["ms"]) / 1e3,
        0.15,
        "s",
    ),
    Bar(
        "ten best of ten million entities, with the index, for each question",
        "scale_finding",
        lambda figures: float(figures["approximate"]["ms"]) / 1e3,
        0.005,
        "s",
    ),
    Bar(
        "the best ten of ten million entities, recall of the index",
        "scale_finding",
        _of("approximate", "recall"),
        -0.95,
        "share",
    ),
    Bar(
        "a training while it is watched in the browser, against one that is not",
        "explorer_watched",
        _of("watched_over_plain"),
        1.03,
    ),
    Bar(
        "wait for an answer over HTTP at 1,000 questions a second, 99th percentile",
        "serve_load",
        lambda figures: float(figures["paced"]["wait_ms"]["p99"]) / 1e3,
        0.05,
        "s",
    ),
    *(
        Bar(
            f"questions over HTTP, 1,000 a second, {words}: share answered",
            "serve_load",
            _answered(kind),
            -1.0,
            "share",
        )
        for kind, words in (("paced", "for a minute"), ("replaced", "while the run is replaced"))
    ),
    Bar(
        "memory of the server after a minute of 1,000 questions a second, against before",
        "serve_load",
        lambda figures: figures["paced"]["memory_mib"]["after"] / figures["paced"]["memory_mib"]["before"],
        1.05,
    ),
    *(
        Bar(f"tuning, {data}, {words} the grid's", file, value, bound)
        for data, file in (("NELL-995-h100", "tuning_nell"), ("wordnet-mini", "tuning_wordnet-mini"))
        for words, value, bound in (
            ("best MRR on valid against", lambda figures: figures["tune"]["mrr"] / figures["grid"]["mrr"], -1.0),
            ("time against", lambda figures: figures["seconds"]["tune"] / figures["seconds"]["grid"], 1.0),
        )
    ),
    *(
        Bar(f"{what}{words}", file, _of("compared", compared), bound)
        for file, words in (
            ("distributed_cpu", ""),
            ("distributed_local_cpu", ", local negatives"),
            ("distributed_shared_cpu", ", negatives shared by the batch"),
            ("distributed_many_cpu", ", 4,000 negatives shared by the batch, d=200"),
        )
        for what, compared, bound in (
            (
                "work of each of 4 ranks, in quarters of the work of one process",
                "work of a rank at 4, in quarters of one",
                1.15,
            ),
            (
                "2 ranks on 2 cores against one process on 2 threads",
                "two ranks, in times of one process on two threads",
                1.0,
            ),
        )
    ),
)

# What bars are about, the results that they judge, and why the limit is where it is.
WHY = (
    (
        "whole trainings to a good model",
        ("gpu_time_to_quality", "gpu_time_to_quality_fb15k-237", "cpu_time_to_quality"),
        "If a training takes seconds, you can try ten ideas instead of one. The limit for MRR makes sure that speed "
        "does not cost quality: the paper's recipe reaches .464 on WN18RR under this protocol, and less than .340 on "
        "FB15k-237.",
    ),
    (
        "steps of other models",
        ("gpu_any_model", "cpu_any_model"),
        "Our code is only worth having if a step is much faster than in plain PyTorch. Adam keeps two numbers for "
        "each parameter, so it needs at least three times the memory of the parameters. Row-wise Adagrad keeps one "
        "number for each row. A step reads only the rows of its batch, so the number of entities should hardly "
        "matter.",
    ),
    (
        "500 epochs as the paper trains",
        ("gpu_wn18rr-murp-d40", "gpu_wn18rr-mure-d40", "gpu_wn18rr-murp-d200", "gpu_fb15k-237-murp-d40"),
        "The paper's tables need about 200 trainings. At this pace all of them take an hour.",
    ),
    (
        "evaluation",
        ("gpu_evaluation", "cpu_evaluation", "cpu_earlier"),
        "Training often stops to validate. An evaluation should take less time than the epoch before it. The "
        "comparison with an earlier commit makes sure that exact ties did not make evaluation slow.",
    ),
    (
        "many runs at once",
        ("gpu_sweep",),
        "One small run leaves most of a GPU idle. Sixteen runs together may take at most as long as four in sequence.",
    ),
    (
        "many entities",
        ("gpu_many_entities", "cpu_many_entities", "gpu_scale", "gpu_scale_whole", "scale_reading", "scale_finding"),
        "A step reads only the rows of its batch. Ten million entities may cost cache misses, but not more work. On a "
        "GPU, training may need twice the memory of the parameters; on a CPU hardly more than the parameters. Rows in "
        "host memory cross the bus once in each direction, which takes 40 µs at full speed. A whole run at scale "
        "should take minutes, so that one can try settings on it.",
    ),
    (
        "a step on the CPU",
        ("cpu_step",),
        "The textbook step updates every entity in float64. An update of only the batch's rows, in float32, should be "
        "tens of times faster.",
    ),
    (
        "busy machines",
        ("cpu_neighbours",),
        "Threads that wait for each other can make a program slower than one thread, on a busy machine or under a "
        "quota. We allow one fifth more time.",
    ),
    (
        "one hierarchy",
        ("cpu_hierarchy", "hierarchy_poincare_d5", "hierarchy_poincare_d10", "hierarchy_poincare_d20"),
        "gensim is the usual library for these embeddings. It uses one core; murp uses two. Mean rank and MAP are "
        "those that Nickel and Kiela published (2017, table 1).",
    ),
    (
        "new entities",
        ("gpu_extending_d200", "gpu_extending"),
        "Users who add an entity do not want to train again. They may accept a loss of one tenth of the MRR.",
    ),
    (
        "tuning",
        ("tuning_nell", "tuning_wordnet-mini"),
        "A search is only worth having if it finds better settings than a grid that takes as long.",
    ),
    (
        "many processes",
        ("distributed_cpu", "distributed_local_cpu", "distributed_shared_cpu", "distributed_many_cpu"),
        "Ranks are useful if they divide the work and add little to it.",
    ),
    (
        "what a user waits for",
        ("cpu_start_up", "cpu_plots", "explorer_frames", "explorer_watched", "serve_load", "cpu_reading"),
        "Below 0.4 seconds an answer feels immediate, and beyond a few seconds people do something else. A picture "
        "moves smoothly at 60 frames a second, one every 16 ms. People accept half a minute for a large file. "
        "Watching a training should not make it slower. A team relies on a service: no question may fail, not even "
        "while the run is replaced, and memory must not grow.",
    ),
    (
        "all tests",
        ("suite",),
        "Whoever changes the code runs all tests, and people do so only if they can wait for them.",
    ),
)
