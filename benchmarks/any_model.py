"""Steps of models and objectives beyond the paper's, compared with the same mathematics in plain PyTorch.

    MURP_DATA=… python benchmarks/any_model.py --out results/cpu_any_model.json
    MURP_DATA=… python benchmarks/any_model.py --device cuda --out results/gpu_any_model.json

Two steps: rotation, stretch and translation on a ball of learned curvature with self-adversarial negatives and Adam
(WN18RR), and a matrix for each relation, all entities as candidates, Adagrad and DURA (FB15k-237). On a CPU it also
measures what limits the second step: the scores of all entities alone (one product of the queries with all entities),
and the scores with their gradients (at least three products); and how much of each step is spent in murp's own loops.
The rest are PyTorch's operations, some hundred on small tensors. It also measures a step with Adam and with row-wise
Adagrad for few and for ten million entities, and its memory. All cases run in turns.

And all entities as candidates of models whose score is not ⟨q,v⟩ + a + c (WN18RR, 500 queries): the cross-entropy with
its gradients as training computes it, in blocks by autograd, and in plain PyTorch.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import murp  # noqa: F401 - before torch, as in the command line: see murp/__init__.py

# isort: split
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from measure import Works, finish, in_turns, parser, ratio, result, store, toy_graph
from murp import threads
from murp.config import Config
from murp.engines import Chunk, Task, TorchEngine
from murp.graph import KnowledgeGraph
from murp.kernels import matrices, tangent_distances
from murp.models import Model, from_config
from murp.models.model import Candidate, Query
from murp.objectives.every_score import EveryScore
from murp.recipes import completed
from murp.regularizers import Batch
from murp.training.sampler import Sampler

STEPS = {
    "rotation and stretch, self-adversarial": {"data": "WN18RR", "model": "roth-stretch", "regularizer": "none"},
    "matrices, 1-vs-all, DURA": {"data": "FB15k-237", "model": "rescal", "regularizer_weight": 0.05},
}
CURVED = ("murp", "roth", "riemannian-transe", "mixed-curvature")
STATES = {"adam": 1e-3, "row-adagrad": 0.1}
RELATIONS = 22
PARTS = ("steps", "curved", "state")


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--entities", type=int, nargs="+", default=[40_943, 10_000_000])
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    chosen = options.parse_args(arguments)
    device = torch.device(chosen.device)
    figures: dict[str, Any] = {}
    if "steps" in chosen.only:
        figures["steps"] = {name: compared(name, settings, device, chosen.quick) for name, settings in STEPS.items()}
    if "curved" in chosen.only:
        figures["curved"] = {name: of_all_entities(name, device, chosen.quick) for name in CURVED}
    if "state" in chosen.only:
        sizes = [60, 120] if chosen.quick else chosen.entities
        figures["state"] = {name: by_entities(name, lr, sizes, device, chosen.quick) for name, lr in STATES.items()}
    what = "a training step by the engine torch and by plain PyTorch, float32; a step by number of entities"
    settings = {"steps": STEPS, "curved": {"models": CURVED, "data": "WN18RR", "batch_size": 500, "seed": 0}}
    store(result(what, {**settings, "state": STATES, "dim": 40}, figures, device), chosen.out)


def compared(name: str, settings: dict[str, Any], device: torch.device, quick: bool) -> dict[str, Any]:
    """Seconds of a step of ours and of plain PyTorch, and of a GPU the memory that each takes."""
    own = {key: value for key, value in settings.items() if key != "data"}
    graph = toy_graph() if quick else KnowledgeGraph.load(settings["data"])
    config = Config(**completed({**own, "dim": 40}))
    size = 16 if quick else config.batch_size
    triples = graph.with_reciprocals(graph.train)
    negatives = getattr(config, "negatives", 0)
    sampler = Sampler(triples, graph.num_entities, batch_size=size, negatives=negatives, seed=0, device=device)
    chunk = sampler.chunk(0, 0)
    # As many of each on a CPU, for the same chance. The first steps after a turn of the other have nothing
    # of their own in the caches; and plain PyTorch, whose scores take 60 MB, has no memory that the system kept for it.
    many, some = (2, 2) if quick else (32, 32) if device.type == "cpu" else (256, 16)
    chunk = dataclasses.replace(chunk, positives=chunk.positives[:many])
    few = dataclasses.replace(chunk, positives=chunk.positives[:some])

    def model(times: int) -> Model:
        return from_config(config, times * graph.num_entities, graph.num_relations).initialise(0).to(device)

    def ours(times: int = 1) -> Callable[[], object]:
        engine = TorchEngine(Task.of(config, model(times)), compile_after=0)
        return lambda: engine.run([chunk], [config.lr])

    def plain(times: int = 1) -> Callable[[], object]:
        step = plain_step(Task.of(config, model(times)), config)
        return lambda: [step(batch) for batch in few.positives]

    begun = {"ours": (ours, float(chunk.steps)), "plain PyTorch": (plain, float(few.steps))}
    works: Works = {kind: (begin(), steps) for kind, (begin, steps) in begun.items()}
    times = in_turns(works, repeats=2 if quick else 7, device=device)
    figures: dict[str, Any] = {"seconds_a_step": times, "times_faster": ratio(times, "plain PyTorch", "ours")}
    figures["settings"] = {**config.to_dict(), "data": graph.name}
    if device.type == "cpu":
        figures["seconds_of_own_loops"] = own_loops(*works["ours"])
    if device.type == "cpu" and config.objective == "one-vs-all":
        figures["bounds"] = bounds(size, graph.num_entities, config.dim, 2 if quick else 7)
    if device.type == "cuda":
        figures["memory"] = {kind: peaks(begin, graph.num_entities) for kind, (begin, _) in begun.items()}
        figures["memory"]["batch_by_entities_bytes_an_entity"] = 4 * size
    return figures


def of_all_entities(name: str, device: torch.device, quick: bool) -> dict[str, Any]:
    """Seconds of the cross-entropy over all entities and its gradients by all tables, by three ways."""
    graph = toy_graph() if quick else KnowledgeGraph.load("WN18RR")
    positives = torch.from_numpy(graph.with_reciprocals(graph.train)[: 16 if quick else 500]).to(device)
    model = from_config(Config(**completed({"model": name, "dim": 40})), graph.num_entities, graph.num_relations)
    model.initialise(0).to(device)
    tables = {name: values.requires_grad_() for name, values in model.parameters.items()}

    def sides() -> tuple[Query, Candidate]:
        subject, relation, _ = positives.unbind(1)
        query = model.query(model.rows("subject", subject), model.rows("relation", relation), model.rows("shared"))
        return query, model.candidate(model.rows("object"), model.rows("shared"))

    def ours(compiled: bool) -> None:
        every = EveryScore(model, *sides())
        every.formula = every.formula if compiled else None
        torch.autograd.grad(every.log_sum_exp(), list(tables.values()), allow_unused=True)

    @mock.patch.object(tangent_distances, "fits", never)
    def plain() -> None:
        loss = model.meet(*sides()).logsumexp(1).mean()
        torch.autograd.grad(loss, list(tables.values()), allow_unused=True)

    works: Works = {
        "ours": (lambda: ours(compiled=True), 1.0),
        "plain PyTorch": (plain, 1.0),
        "blocks by autograd": (lambda: ours(compiled=False), 1.0),
    }
    times = in_turns(works, repeats=2 if quick else 7, device=device)
    return {"seconds": times, "times_faster": ratio(times, "plain PyTorch", "ours")}


def bounds(size: int, entities: int, dim: int, repeats: int) -> dict[str, Any]:
    """Seconds of the scores of all entities and their softmax, which is one product, and of these with gradients.

    And of the products alone at the processor's peak: gradients take four, as scores are computed twice.
    """
    from murp.kernels import numba_all_entities
    from peak import multiply_and_add

    draw = torch.Generator().manual_seed(0)
    q, v = (torch.randn(rows, dim, generator=draw) / dim**0.5 for rows in (size, entities))
    works: Works = {
        "scores and gradients": (lambda: numba_all_entities.reduced(True, q, v, None, None, None, True), 1.0),
        "scores": (lambda: numba_all_entities.reduced(True, q, v, None, None, None, False), 1.0),
        "four products at the processor's peak": (lambda: multiply_and_add(4 * size * entities * dim), 1.0),
    }
    return dict(in_turns(works, repeats=repeats))


def own_loops(work: Callable[[], object], steps: float) -> dict[str, float]:
    """Seconds of a step in each of murp's own loops."""
    spent: Counter[str] = Counter()
    share = threads.share

    def timed(loop: Any, *given: Any, **options: Any) -> None:
        began = time.perf_counter()
        share(loop, *given, **options)
        spent[loop.__name__] += time.perf_counter() - began

    with mock.patch.object(threads, "share", timed):
        work()
    return {name: seconds / steps for name, seconds in spent.most_common()}


def peaks(begin: Callable[[int], Callable[[], object]], entities: int) -> dict[str, float]:
    """Bytes of GPU memory that a model's first steps take beside its tables and their state.

    ``an_entity``: what each further entity adds, found with four times as many. Libraries take the same for any number
    of entities: for products of matrices 34 MB for each stream, and while a step is compiled 63 MB to time kernels.
    """
    few, many = (_peak(lambda times=times: begin(times)) for times in (1, 4))  # type: ignore[misc]
    return {"peak_bytes_beside_tables": few, "peak_bytes_an_entity": (many - few) / (3 * entities)}


def _peak(begin: Callable[[], Callable[[], object]]) -> int:
    """Compiling and capturing graphs are among the first steps: a graph that is replayed asks for no memory."""
    work = begin()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def by_pytorch(matrix: Tensor, where: None, order: None, x: Tensor, transposed: bool) -> Tensor:
    """In place of murp's own kernel for M x and Mᵀ x on a CPU."""
    turned = matrix.transpose(-1, -2) if transposed else matrix
    return (turned @ x.unsqueeze(-1)).squeeze(-1)


def never(*given: Tensor) -> bool:
    """In place of what chooses murp's own loop for distances."""
    return False


def plain_step(task: Task, config: Config) -> Callable[[Tensor], Tensor]:
    """The same mathematics as anyone would write it in PyTorch: gradients by autograd, dense; its own optimizer and
    losses."""
    model = task.model
    tables = {name: values.clone().requires_grad_() for name, values in model.parameters.items()}
    kind = {"adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}[config.optimizer]
    optimizer = kind(tables.values(), lr=config.lr)

    def rows(role: str, where: Tensor | None = None) -> dict[str, Tensor]:
        names = [table.name for table in model.tables if role in table.roles]
        return {name: tables[name] if where is None else tables[name][where] for name in names}

    @mock.patch.object(tangent_distances, "fits", never)
    @mock.patch.object(matrices, "_multiply", by_pytorch)
    def step(positives: Tensor) -> Tensor:
        subject, relation, objects = positives.unbind(1)
        s, r = rows("subject", subject), rows("relation", relation)
        query = model.query(s, r, {})
        if config.objective == "one-vs-all":
            scores = model.meet(query, model.candidate(rows("object"), {}))
            loss = cross_entropy(scores, objects)
        else:
            false = torch.randint(model.num_entities, (len(positives), config.negatives), device=positives.device)
            candidates = rows("object", torch.cat([objects[:, None], false], 1))
            scores = model.meet(query, model.candidate(candidates, {}))
            weight = torch.softmax(config.temperature * scores[:, 1:].detach(), -1)
            loss = (softplus(-scores[:, 0]) + (weight * softplus(scores[:, 1:])).sum(-1)).mean() / 2
        batch = Batch(s, r, rows("object", objects), {}, query, None, None, relation)
        term = task.regularizer.term(model, batch)
        loss = loss if term is None else loss + term
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def by_entities(optimizer: str, lr: float, sizes: Sequence[int], device: torch.device, quick: bool) -> dict[str, Any]:
    """A step of MuRE at few and at many entities, and of a GPU what it takes against the parameters."""
    figures: dict[str, Any] = {}
    steps = 2 if quick else 32 if device.type == "cpu" else 1024
    for count in sizes:
        draw = torch.Generator(device).manual_seed(0)
        heads, tails = torch.randint(count, (2, steps, 128), generator=draw, device=device)
        kinds = torch.randint(RELATIONS, heads.shape, generator=draw, device=device)
        chunk = Chunk(torch.stack([heads, kinds, tails], -1), count, 50, seed=0)
        finish(device)
        before = 0
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        config = Config(model="mure", optimizer=optimizer, dim=40)
        model = from_config(config, count, RELATIONS // 2).initialise(0).to(device)
        engine = TorchEngine(Task.of(config, model), compile_after=0)
        work: Works = {"step": (lambda e=engine, c=chunk: e.run([c], [lr]), float(steps))}
        times = in_turns(work, repeats=2 if quick else 5, device=device)
        parameters = sum(table.numel() * table.element_size() for table in model.parameters.values())
        kept = sum(table.numel() * table.element_size() for table in engine.updater.state.values())
        claims = sum(claim.numel() * claim.element_size() for claim in engine.updater.claim.values())
        peak = torch.cuda.max_memory_allocated() - before if device.type == "cuda" else parameters + kept + claims
        figures[f"{count}"] = {
            "seconds_a_step": times["step"],
            "parameter_bytes": parameters,
            "memory_over_parameters": peak / parameters,
            "memory_is": "peak allocated" if device.type == "cuda" else "parameters, state and claims",
        }
        del model, engine, work, chunk
    few, *_, most = (figures[f"{count}"]["seconds_a_step"]["median"] for count in sizes)
    return {"by": figures, "ratio": most / few}


if __name__ == "__main__":
    main()
