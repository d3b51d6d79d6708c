"""The sections of docs/benchmarks.md on training: whole runs, steps, many runs at once, and the MRR behind each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark_results import NAMES, Result, machine, result, results, spread, table, time, times
from murp.paper.evidence import decimals

ENGINES = ("triton", "numba", "torch", "torch compiled")
QUALITY = "MRR of a whole run"
OTHERS = {"geoopt dense", "geoopt sparse", "pykeen"}  # libraries that a step on a GPU is compared with

# Steps after which the engine torch compiled when the stored runs were made; today it is seconds.
COMPILED_AFTER = 50_000


@dataclass(frozen=True)
class Trained:
    """A stored whole run on WN18RR: which engine reached which quality."""

    file: str
    model: str
    dim: int
    engine: str
    device: str
    epochs: int
    mrr: float


def trained() -> Iterator[Trained]:
    """Every whole run that is stored, by a benchmark or as a reference."""
    for name, run in results("gpu_*-d*"):
        settings, figures = run["settings"], run["figures"]
        if settings["data"] == "WN18RR":
            how = (engine_of(run), run["machine"]["device"], settings["epochs"])
            yield Trained(name, settings["model"], settings["dim"], *how, figures["test"]["standard"]["mrr"])
    for name, run in reference_runs():
        settings, here = run["config"], run["environment"]
        if settings["data"] == "WN18RR":
            how = (here.get("engine", "torch"), here["device"], settings["epochs"])
            yield Trained(name, settings["model"], settings["dim"], *how, run["metrics"]["test"]["standard"]["mrr"])


def engine_of(run: Result) -> str:
    """Which engine a whole run on a GPU was trained by; that of PyTorch compiles its step in a run that is long."""
    engine = str(run["settings"]["engine"])
    compiled = engine == "torch" and run["figures"]["steps"] > COMPILED_AFTER
    return "torch compiled" if compiled else engine


def reference_runs() -> Iterator[tuple[str, Result]]:
    """What benchmarks/reference_run.py stored."""
    return ((name, run) for name, run in results("*") if "selected_epoch" in run and "metrics" in run)


def quality(model: str, dim: int, engine: str, device: str) -> str:
    """The MRR that a stored run of the same engine, model and dimension reached, linked; or that there is none.

    The run on the same device is taken where there is one, else one on another; of several the longest.
    """
    if engine not in ENGINES:
        return "not trained"
    # A long run of the engine torch is compiled on its way; the mathematics is the same before and after.
    same = {engine, "torch compiled"} if engine == "torch" else {engine}
    found = [run for run in trained() if (run.model, run.dim) == (model, dim) and run.engine in same]
    if not found:
        return "none stored"
    best = max(found, key=lambda run: (run.device == device, run.epochs))
    elsewhere = "" if best.device == device else f" on {best.device}"
    return f"[{decimals(best.mrr)}](../results/{best.file}.json){elsewhere}"


def gpu_runs() -> list[str]:
    """Whole runs with the quality they reached."""
    stored = [run for _, run in results("gpu_*-d*")]
    rows, once = [], []
    for run in stored:
        settings, figures = run["settings"], run["figures"]
        test, validated = figures["test"], settings["epochs"] // settings["validate_every"]
        name = f"{NAMES[settings['model']]} d={settings['dim']}, {Path(settings['data']).name}"
        once += [name] if validated == 1 else []
        rows.append(
            [
                name,
                engine_of(run),
                str(settings["epochs"]),
                time(figures["training_seconds"]),
                time(figures["microseconds_a_step"] / 1e6),
                time(figures["validation_seconds"]),
                f"epoch {figures['selected_epoch']}, of {validated} validated",
                *(f"{decimals(test[p]['mrr'])}, {decimals(test[p]['hits@10'])}" for p in ("standard", "paper")),
            ]
        )
    if not rows:
        return []
    head = ["run", "engine", "epochs", "training", "a step", "validation", "checkpoint", "MRR, H@10 `standard`"]
    note = (
        "One run each: batch 128, 50 negatives, float32, seed 0. The training time starts after a warm-up epoch in the "
        "same process, and does not count validation. The checkpoint with the best MRR on valid is evaluated on test."
    )
    if any(engine_of(run) == "torch compiled" for run in stored):
        note += (
            f" The first {COMPILED_AFTER:,} steps of `torch compiled` are not compiled yet, and its time includes "
            "compiling. The table below has the time of a compiled step."
        )
    if once:
        note += f" Validated only once, at the end: {'; '.join(once)}."
    return ["## Whole runs on a GPU", table([*head, "MRR, H@10 `paper`"], rows), note, machine(stored[0])]


def gpu_steps() -> list[str]:
    """A step by every engine that runs on a GPU."""
    stored = result("gpu_step")
    if stored is None:
        return []
    rows, makers = [], set()
    for key, values in stored["figures"]["seconds_a_step"].items():
        model, dim, maker = _parts(key)
        makers.add(maker)
        reached = quality(model, dim, maker, stored["machine"]["device"])
        rows.append([step_words(key), spread(values), reached])
    note = f"{stored['what'].capitalize()}. {_about_quality()}"
    found = ["## A step on a GPU", note, table(["", "a step", QUALITY], rows), machine(stored)]
    return found if OTHERS & makers else [*found, *_gpu_steps_of_others(stored)]


def _gpu_steps_of_others(stored: Result) -> list[str]:
    """geoopt's and PyKEEN's steps on a GPU, from a run of their own."""
    others = result("gpu_step_others")
    if others is None:
        return ["Not measured on a GPU: geoopt and PyKEEN; nothing here compares with them."]
    steps = others["figures"]["seconds_a_step"]
    rows = []
    for key, values in steps.items():
        model, dim, maker = _parts(key)
        if maker in OTHERS:
            ours = steps[f"triton_{model}_d{dim}"]["median"]
            rows.append([step_words(key), spread(values), time(ours), f"{times(values['median'] / ours)} times"])
    textbook = [one["figures"]["seconds_a_step"]["textbook_murp_d40"]["median"] for one in (others, stored)]
    note = (
        "geoopt and PyKEEN in a run of their own, in turns with `triton`. Other programs used the processor meanwhile, "
        "which slows a step that Python launches piece by piece: the textbook's step took "
        f"{times(textbook[0] / textbook[1])} times as long as in the run above."
    )
    return [note, table(["", "a step", "triton, same run", "ratio"], rows), machine(others)]


def _about_quality() -> str:
    return (
        f"{QUALITY}: on the test set of WN18RR, protocol `standard`; the link leads to the stored run. If no run is "
        "stored, only the tests show that the engine computes the same step as `torch`."
    )


def _parts(key: str) -> tuple[str, int, str]:
    """torch_compiled_murp_d40 → murp, 40, torch compiled"""
    *engine, model, dim = key.split("_")
    return model, int(dim.removeprefix("d")), " ".join(engine)


def step_words(key: str) -> str:
    """triton_murp_d40 → MuRP d=40, triton"""
    model, dim, engine = _parts(key)
    return f"{NAMES[model]} d={dim}, {engine}"


def sweeps() -> list[str]:
    """Many runs side by side on one GPU."""
    stored = result("gpu_sweep")
    if stored is None:
        return []
    figures = stored["figures"]
    rows = []
    for name, label in (("one", "one run alone"), ("all", f"{figures['runs']} runs side by side")):
        walls = figures[f"wall_seconds_{name}_each"]
        wall = {"median": figures[f"wall_seconds_{name}"], "least": min(walls), "most": max(walls)}
        rows.append([label, spread(wall), time(figures[f"microseconds_a_step_{name}"] / 1e6)])
    found = [value for value in figures["valid_mrr_standard"].values() if value is not None]
    text = (
        f"Medians of {len(walls)} repeats. Side by side, the runs take {times(figures['wall_ratio'])} of the time of "
        f"{figures['runs']} runs in sequence; counting only the steps, it is {times(figures['step_ratio'])}. "
        f"Their MRR on valid, protocol `standard`, is {decimals(min(found))} to {decimals(max(found))}."
    )
    return ["## Many runs on one GPU", table(["", "in all", "a step"], rows), text, machine(stored)]


def cpu_steps() -> list[str]:
    """A step by every engine that runs on a CPU, and by others' code."""
    stored = result("cpu_step")
    if stored is None:
        return []
    figures, settings = stored["figures"], stored["settings"]
    rows = []
    for key, values in figures["seconds_a_step"].items():
        model, _, maker = key.partition(", ")
        against: Any = figures["times_faster"].get(f"numba against {maker}")
        rows.append(
            [
                f"{NAMES[model]}, {maker}",
                spread(values),
                time(figures["epoch_seconds"][key]),
                "" if against is None else f"{times(against)} times",
                quality(model, settings["dim"], maker, stored["machine"]["device"]),
            ]
        )
    missing = [f"Left out: {name} ({why})." for name, why in figures["left_out"].items()]
    what = f"{stored['what'].capitalize()}; {settings['data']}, d={settings['dim']}, batch {settings['batch_size']}."
    return [
        "## A step on the CPU",
        f"{what} {_about_quality()}",
        table(["", "a step", "an epoch", "numba is faster", QUALITY], rows),
        *missing,
        machine(stored),
        "![Step times](benchmarks-step.svg)",
    ]


def references() -> list[str]:
    """Stored reference runs: every engine with the quality it reached."""
    rows = []
    for _, stored in reference_runs():
        config, test, here = stored["config"], stored["metrics"]["test"], stored["environment"]
        run = f"{NAMES[config['model']]} d={config['dim']}, {Path(config['data']).name}"
        reached = (f"{decimals(test[p]['mrr'])}, {decimals(test[p]['hits@10'])}" for p in ("standard", "paper"))
        how = [str(config["epochs"]), here.get("engine", "torch"), here["device"], time(stored["wall_seconds"])]
        rows.append([run, *how, *reached])
    if not rows:
        return []
    head = ["run", "epochs", "engine", "device", "in all", "MRR, H@10 `standard`", "MRR, H@10 `paper`"]
    note = "One run each, by `python benchmarks/reference_run.py`. The time includes validation."
    return ["## Reference runs", note, table(head, rows)]
