"""murp on a GPU: whole runs with their quality, steps, evaluation, many entities.

    MURP_DATA=… python benchmarks/gpu.py --out results

Writes a JSON file for each benchmark into the folder ``--out`` as soon as it has it (gpu_….json). ``--only`` picks
some of them; one that fails is reported, and the others still run.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

import murp
from measure import Work, Works, finish, in_turns, parser, ratio, result, seconds, spread, store, toy_graph
from murp import engines, models, training
from murp.engines import Chunk, TorchEngine
from murp.evaluation import KnownFacts, evaluate
from murp.graph import KnowledgeGraph
from murp.training.grid import grid
from murp.training.progress import Silent
from murp.training.sampler import Sampler
from murp.training.state import State
from textbook import TextbookMuRP


@dataclass(frozen=True)
class Size:
    """How large the benchmarks are: as the paper has it, or toys that run anywhere."""

    device: torch.device = torch.device("cuda")  # noqa: RUF009 - immutable
    fused: str = "triton"
    epochs: int = 500
    repeats: int = 5
    steps: int = 1024
    slow_steps: int = 100
    queries: int = 20
    entities: tuple[int, int] = (40_943, 10_000_000)
    toy: bool = False

    def graph(self, name: str) -> KnowledgeGraph:
        return toy_graph() if self.toy else KnowledgeGraph.load(name)


OTHERS = {"geoopt_dense": "murp", "geoopt_sparse": "murp", "pykeen": "mure"}  # what is compared with, and which model
TOY = Size(torch.device("cpu"), "torch", 2, 2, 3, 2, 2, (500, 1000), toy=True)


class Clock(Silent):
    """Times training alone, epoch by epoch: no validation, no checkpoints, no start."""

    def __init__(self) -> None:
        self.epochs: list[float] = []
        self.steps, self.spent, self.total = 0, 0.0, 0.0

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        self.steps += chunk.steps
        self.spent += seconds
        self.total += seconds

    def epoch(self, record: dict[str, Any]) -> None:
        self.epochs.append(self.spent)
        self.spent = 0.0


def whole_run(size: Size, data: str, **settings: Any) -> dict[str, Any]:
    """A run of the paper's length; the best checkpoint by valid MRR, evaluated on test under both protocols.

    A run of one epoch before it compiles what there is to compile; but for the torch engine, which compiles its step
    when a run has come far enough.
    """
    graph = size.graph(data)
    settings = {"engine": size.fused, "device": size.device.type, "epochs": size.epochs, "seed": 0, **settings}
    with tempfile.TemporaryDirectory() as scratch:
        once = {**settings, "epochs": 1, "validate_every": 1}
        warm_up = seconds(lambda: murp.train(graph, out=Path(scratch) / "warm-up", progress=Silent(), **once))
        clock, began = Clock(), time.perf_counter()
        run = murp.train(graph, out=Path(scratch) / "run", progress=clock, **settings)
        wall = time.perf_counter() - began
        training = sum(clock.epochs)
        figures = {
            "training_seconds": training,
            "microseconds_a_step": training / clock.steps * 1e6,
            "epoch_seconds": spread(clock.epochs),
            "steps": clock.steps,
            "validation_seconds": run.metrics()[-1]["seconds"] - training,
            "wall_seconds": wall,
            "warm_up_seconds": warm_up,
            "selected_epoch": run.state["epoch"],
            "test": {p: _overall(run.evaluate("test", p)) for p in ("standard", "paper")},
            "valid": {"standard": _overall(run.evaluate("valid"))},
            "loss": [record["loss"] for record in run.metrics()][:: max(1, size.epochs // 20)],
        }
        config = run.config.to_dict()
    what = f"a run of {config['model']} d={config['dim']} on {graph.name}; checkpoint chosen by standard MRR on valid"
    return result(what, config, figures, size.device)


def _overall(report: Any) -> dict[str, Any]:
    return {name: value for name, value in report.to_dict().items() if not name.startswith("by_")}


def step(size: Size) -> dict[str, Any]:
    """A training step by the fused engine, by the torch engine, as a textbook has it, by geoopt and by PyKEEN."""
    graph = size.graph("WN18RR")
    sampler = Sampler(
        graph.with_reciprocals(graph.train),
        graph.num_entities,
        batch_size=128,
        negatives=50,
        seed=0,
        device=size.device,
    )
    chunk = sampler.chunk(0, 0)
    long = dataclasses.replace(chunk, positives=chunk.positives[: size.steps])
    short = dataclasses.replace(chunk, positives=chunk.positives[: size.slow_steps])
    negatives = short.draw()

    works: Works = {}
    for name, dim in (("murp", 40), ("mure", 40), ("murp", 200)):
        works[f"{size.fused}_{name}_d{dim}"] = _steps(size, graph, name, dim, size.fused, long), long.steps
        if dim == 40:
            works[f"torch_{name}_d{dim}"] = _steps(size, graph, name, dim, "torch", short), short.steps
        if dim == 40 and size.device.type == "cuda":
            works[f"torch_compiled_{name}_d{dim}"] = _compiled_steps(size, graph, name, dim, short), short.steps
    textbook = TextbookMuRP(graph.num_entities, 2 * graph.num_relations, 40, device=size.device)
    few = range(min(10, short.steps))
    works["textbook_murp_d40"] = (
        lambda: [textbook.step(short.positives[i], negatives[i], 50.0) for i in few],
        len(few),
    )
    missing = _others(works, size, graph, short, negatives)
    figures: dict[str, Any] = {"seconds_a_step": in_turns(works, repeats=size.repeats, device=size.device)}
    times = figures["seconds_a_step"]
    figures["left_out"] = missing
    figures["fused_against_textbook"] = ratio(times, "textbook_murp_d40", f"{size.fused}_murp_d40")
    for other, model in OTHERS.items():
        if f"{other}_{model}_d40" in times:
            figures[f"fused_against_{other}"] = ratio(times, f"{other}_{model}_d40", f"{size.fused}_{model}_d40")
    figures["fused_against_torch"] = ratio(times, "torch_murp_d40", f"{size.fused}_murp_d40")
    settings = {"data": graph.name, "batch_size": 128, "negatives": 50, "steps": long.steps, "lr": 50.0}
    return result(
        "a training step, float32; the textbook's is dense and in float64; PyKEEN has MuRE only",
        settings,
        figures,
        size.device,
    )


def _others(works: Works, size: Size, graph: KnowledgeGraph, chunk: Chunk, negatives: Tensor) -> dict[str, str]:
    """Add what murp is compared with to ``works``; what is not installed: name → why."""
    shape, few, missing = (graph.num_entities, 2 * graph.num_relations, 40), range(min(10, chunk.steps)), {}
    try:
        from geoopt_murp import GeooptMuRP

        for kind in ("dense", "sparse"):
            model = GeooptMuRP(models.murp(*shape).initialise(0).to(size.device), 50.0, sparse=kind == "sparse")
            works[f"geoopt_{kind}_murp_d40"] = (
                lambda m=model: [m.step(chunk.positives[i], negatives[i]) for i in few],
                len(few),
            )
    except ImportError as error:
        missing["geoopt"] = str(error)
    try:
        from pykeen_mure import PykeenMuRE

        pykeen = PykeenMuRE(*shape, chunk.positives[: len(few)].reshape(-1, 3), negatives=50, device=size.device)
        works["pykeen_mure_d40"] = (lambda: pykeen.epoch(128), len(few))
    except ImportError as error:
        missing["pykeen"] = str(error)
    return missing


def _steps(size: Size, graph: KnowledgeGraph, name: str, dim: int, engine_name: str, chunk: Chunk) -> Work:
    model = models.MODELS[name](graph.num_entities, 2 * graph.num_relations, dim).initialise(0).to(size.device)
    engine = engines.build(engine_name, [model])
    return lambda: engine.run([chunk], [50.0])


def _compiled_steps(size: Size, graph: KnowledgeGraph, name: str, dim: int, chunk: Chunk) -> Work:
    """The torch engine as it is after many steps."""
    model = models.MODELS[name](graph.num_entities, 2 * graph.num_relations, dim).initialise(0).to(size.device)
    engine = TorchEngine(model, compile_after=0)
    engine.run([chunk], [50.0])
    return lambda: engine.run([chunk], [50.0])


def evaluation(size: Size) -> dict[str, Any]:
    """Filtered evaluation of the whole test set, and as a textbook has it: one query at a time."""
    graph = size.graph("WN18RR")
    shape = (graph.num_entities, 2 * graph.num_relations, 40)
    works: Works = {}
    known = KnownFacts.of(graph)
    for name, build in models.MODELS.items():
        model = build(*shape).initialise(0).to(size.device)
        # Spread out as a trained model is, so that scores differ.
        model.parameters["entity"].mul_(50)
        works[name] = (lambda m=model: evaluate(m, graph, "test", known=known)), 1
    textbook = TextbookMuRP(*shape, device=size.device)
    queries = graph.test[: size.queries].tolist()
    answers = [known.objects_of([s], [r])[1] for s, r, _ in queries]
    works["textbook_murp_a_query"] = (
        lambda: [textbook.rank(*query, known=found) for query, found in zip(queries, answers, strict=True)],
        len(queries),
    )
    times = in_turns(works, repeats=size.repeats, device=size.device)
    a_query = times.pop("textbook_murp_a_query")
    figures = {
        "seconds": times,
        "textbook_seconds_a_query": a_query,
        "against_textbook": a_query["median"] * 2 * len(graph.test) / times["murp"]["median"],
    }
    settings = {"data": graph.name, "split": "test", "queries": 2 * len(graph.test), "dim": 40, "protocol": "standard"}
    return result("filtered evaluation of a test set, both directions, float32", settings, figures, size.device)


def many_entities(size: Size) -> dict[str, Any]:
    """A step with few and with ten million entities, on random triples; peak memory against the parameters'."""
    relations, dim, figures = 22, 40, {}
    for count in size.entities:
        draw = torch.Generator(size.device).manual_seed(0)
        heads, tails = torch.randint(count, (2, size.steps, 128), generator=draw, device=size.device)
        kinds = torch.randint(relations, heads.shape, generator=draw, device=size.device)
        chunk = Chunk(torch.stack([heads, kinds, tails], dim=-1), count, 50, seed=0)
        finish(size.device)
        before = 0
        if size.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        model = models.murp(count, relations, dim).initialise(0).to(size.device)
        engine = engines.build(size.fused, [model])
        work = {"step": (lambda e=engine, c=chunk: e.run([c], [50.0]), float(chunk.steps))}
        times = in_turns(work, repeats=size.repeats, device=size.device)
        parameters = sum(table.numel() * table.element_size() for table in model.parameters.values())
        peak = torch.cuda.max_memory_allocated() - before if size.device.type == "cuda" else None
        figures[f"{count}"] = {
            "entities": count,
            "seconds_a_step": times["step"],
            "parameter_bytes": parameters,
            "peak_bytes": peak,
            "peak_over_parameters": peak and peak / parameters,
        }
        del model, engine, work, chunk
    few, many = (figures[f"{count}"]["seconds_a_step"]["median"] for count in size.entities)
    settings = {"model": "murp", "dim": dim, "batch_size": 128, "negatives": 50, "engine": size.fused}
    return result("a step by number of entities, float32", settings, {"by": figures, "ratio": many / few}, size.device)


def sweep(size: Size) -> dict[str, Any]:
    """Sixteen runs side by side against one alone, whole runs with validation and checkpoints."""
    graph = size.graph("WN18RR")
    shared = {"engine": [size.fused], "device": [size.device.type], "epochs": [size.epochs], "validate_every": [50]}
    settings = grid({**shared, "lr": [20.0, 35.0, 50.0, 70.0], "seed": list(range(1 if size.toy else 4))})
    runs = len(settings)
    figures: dict[str, Any] = {"runs": runs}
    walls: dict[str, list[float]] = {"one": [], "all": []}
    steps: dict[str, list[float]] = {"one": [], "all": []}
    with tempfile.TemporaryDirectory() as scratch:
        for repeat in range(-1, 2):  # the first to warm up
            for name, chosen in (("one", settings[:1]), ("all", settings)):
                once = {"epochs": 1, "validate_every": 1} if repeat < 0 else {}
                clock, out = Clock(), Path(scratch) / f"{name} {repeat}"
                wall = seconds(
                    lambda c=chosen, o=out, k=clock, x=once: training.sweep(
                        graph, [{**each, **x} for each in c], out=o, progress=k
                    ),
                    size.device,
                )
                if repeat >= 0:
                    walls[name].append(wall)
                    steps[name].append(clock.total / clock.steps * 1e6)
        rows = json.loads((out / "sweep.json").read_text())
        figures["valid_mrr_standard"] = {row["run"]: row.get("valid_mrr_standard") for row in rows}
    for name in walls:
        figures |= {f"wall_seconds_{name}": median(walls[name]), f"wall_seconds_{name}_each": walls[name]}
        figures |= {f"microseconds_a_step_{name}": median(steps[name])}
    figures["wall_ratio"] = figures["wall_seconds_all"] / (runs * figures["wall_seconds_one"])
    figures["step_ratio"] = figures["microseconds_a_step_all"] / (runs * figures["microseconds_a_step_one"])
    what = f"{runs} runs of murp d=40 side by side against one alone times {runs}"
    return result(what, {**settings[0], "lr": "grid", "seed": "grid", "data": graph.name}, figures, size.device)


BENCHMARKS: dict[str, Callable[[Size], dict[str, Any]]] = {
    "wn18rr-murp-d40": lambda size: whole_run(size, "WN18RR", model="murp", dim=40, lr=50.0, validate_every=50),
    "wn18rr-mure-d40": lambda size: whole_run(size, "WN18RR", model="mure", dim=40, lr=50.0, validate_every=50),
    **{
        f"wn18rr-{model}-d40-torch": lambda size, model=model: whole_run(
            size, "WN18RR", model=model, dim=40, lr=50.0, validate_every=50, engine="torch"
        )
        for model in ("murp", "mure")
    },
    "step": step,
    "evaluation": evaluation,
    "many_entities": many_entities,
    "sweep": sweep,
    "wn18rr-murp-d200": lambda size: whole_run(size, "WN18RR", model="murp", dim=200, lr=50.0, validate_every=50),
    "fb15k-237-murp-d40": lambda size: whole_run(
        size, "FB15k-237", model="murp", dim=40, lr=10.0, validate_every=size.epochs
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), metavar="NAME")
    chosen = options.parse_args(arguments)
    if not chosen.quick and not torch.cuda.is_available():
        print("PyTorch sees no CUDA device here: nothing to measure (--quick runs toys on the CPU).", file=sys.stderr)
        return 1
    failed, size = [], TOY if chosen.quick else Size()
    for name in chosen.only:
        began = time.perf_counter()
        try:
            store(BENCHMARKS[name](size), chosen.out and chosen.out / f"gpu_{name}.json")
        except Exception:
            traceback.print_exc()
            failed.append(name)
        if size.device.type == "cuda":
            torch.cuda.empty_cache()
        print(f"{name}: {time.perf_counter() - began:.1f} s in all", file=sys.stderr, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
