"""The fused engines do what the torch engine does: same loss, same rows, in float64.

The Triton kernels run on the GPU where there is one, and through Triton's interpreter otherwise.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from examples import at_most
from murp import engines, threads
from murp.config import Config
from murp.engines import Chunk, TorchEngine, slices
from murp.engines.task import Task
from murp.errors import ConfigError
from murp.geometry import Euclidean, Hyperboloid, PoincareBall, poincare
from murp.models import BIASES, MODELS, TRANSFORMATIONS, Bias, MultiRelational, Transformation, rounding
from murp.models.rounding import rounded

pytest.importorskip("numba", reason="needs numba: pip install numba")
pytest.importorskip("triton", reason="needs triton: pip install triton")

from murp.engines import triton_engine
from murp.engines.numba_engine import NumbaEngine
from murp.engines.triton_engine import Batch, TritonEngine

pytestmark = pytest.mark.triton
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PUBLISHED = TRANSFORMATIONS["published"]


def scattered(
    name: str,
    entities: int,
    relations: int,
    dim: int,
    reach: float,
    seed: int,
    c: float,
    transformation: Transformation = PUBLISHED,
    bias: Bias = "both",
) -> MultiRelational:
    """A model with its points at about the distance ``reach`` from the origin, biases and stretches of any sign."""
    geometry = PoincareBall(c) if name == "murp" else Euclidean()
    own = {"curvature": c} if name == "murp" else {}
    free = type("Free", (MODELS[name],), {"parts": transformation})  # also choices that have no name
    model = free(entities, relations, dim, bias=bias, dtype=torch.float64, **own)
    model.initialise(seed)
    draw = torch.Generator().manual_seed(seed)
    for table, values in model.parameters.items():
        if table in ("entity", "translation"):
            point = torch.randn(values.shape, dtype=torch.float64, generator=draw)
            length = reach if table == "entity" else 0.3
            model.parameters[table] = geometry.exp0(length / (2 * (c * dim) ** 0.5) * point)
        elif table in ("subject_bias", "object_bias"):
            values.normal_(generator=draw)
    return model


def chunk(entities: int, relations: int, steps: int, size: int, negatives: int, seed: int) -> Chunk:
    draw = torch.Generator().manual_seed(seed)
    columns = [torch.randint(high, (steps, size), generator=draw) for high in (entities, relations, entities)]
    return Chunk(torch.stack(columns, dim=-1), entities, negatives, seed)


def by_numba(model: MultiRelational, work: Chunk, lr: float) -> tuple[torch.Tensor, torch.Tensor]:
    return work.draw(), NumbaEngine(model).run([work], [lr])[0]


def amid_nan(room: torch.Tensor) -> torch.Tensor:
    """Room of the same shape with NaN in it and on both sides: whoever reads what no one wrote will show."""
    return room.new_full((room.numel() + 128,), math.nan)[64:-64].view(room.shape)


def by_triton(model: MultiRelational, work: Chunk, lr: float) -> tuple[torch.Tensor, torch.Tensor]:
    return steps_of_triton(TritonEngine([model.to(DEVICE)]), model, work, lr)


def by_triton_on_host(model: MultiRelational, work: Chunk, lr: float) -> tuple[torch.Tensor, torch.Tensor]:
    """With the entities' points in host memory; the interpreter takes the same way through the kernels."""
    engine = TritonEngine([model.to(DEVICE, host=DEVICE == "cuda")])
    engine.host = True
    return steps_of_triton(engine, model, work, lr)


def steps_of_triton(
    engine: TritonEngine, model: MultiRelational, work: Chunk, lr: float
) -> tuple[torch.Tensor, torch.Tensor]:
    moved = Chunk(work.positives.to(DEVICE), work.num_entities, work.negatives, work.seed)
    shape = (work.positives.shape[1], work.negatives)
    engine.batches[shape] = batch = Batch(engine, *shape)
    batch.space = [amid_nan(room) if room.is_floating_point() else room for room in batch.space]
    drawn, loss = engine.negatives(moved), engine.run([moved], [lr])[0]
    model.to("cpu")
    return drawn.cpu(), loss.cpu()


def stored_in(dtype: torch.dtype, model: MultiRelational) -> MultiRelational:
    """The model with its entities' points stored in ``dtype``."""
    model.point_dtype = dtype
    model.parameters["entity"] = rounded(model.parameters["entity"], dtype, model.geometry)
    return model


def inside(model: MultiRelational) -> bool:
    """Whether 1 - c|x|² is at least 10⁻³ for every point of the ball: distances up to about 8."""
    c = getattr(model.geometry, "c", 0.0)
    points = [model.parameters[t] for t in ("entity", "translation") if t in model.parameters]
    return all(float((c * values.square().sum(-1)).max()) < 0.999 for values in points)


FUSED = {"numba": by_numba, "triton": by_triton}


def assert_agrees(
    run: Callable[[MultiRelational, Chunk, float], tuple[torch.Tensor, torch.Tensor]],
    make: Callable[[], MultiRelational],
    work: Chunk,
    lr: float,
    tolerance: float = 1e-8,
    near_boundary: Callable[[MultiRelational], object] = lambda model: None,
) -> None:
    """One chunk by the fused engine and, with the same negatives, by the torch engine.

    Near the boundary a rounding of x moves distances by eps / (1 - c|x|²)²: there the two need not agree, and
    ``near_boundary``, called before every step and at the end, may give the case up.
    """
    ours, theirs = make(), make()
    drawn, loss = run(ours, work, lr)
    assert drawn.min() >= 0
    assert drawn.max() < work.num_entities
    expected, engine = torch.zeros((), dtype=torch.float64), TorchEngine(theirs)
    for step in range(work.steps):
        near_boundary(theirs)
        expected += engine.steps(work.positives[step : step + 1], drawn[step : step + 1], lr)
    near_boundary(theirs)
    assert float(loss) == pytest.approx(float(expected), rel=tolerance)
    for name, values in ours.parameters.items():
        torch.testing.assert_close(values, theirs.parameters[name], rtol=tolerance, atol=tolerance, msg=name)


def small_shapes(steps: int, size: int, negatives: int) -> dict[str, st.SearchStrategy[Any]]:
    """Batches up to a size, of models that are small in every way."""
    return {
        "name": st.sampled_from(list(MODELS)),
        "entities": st.integers(1, 9),  # few: rows repeat, chains are long, subjects are their own objects
        "relations": st.integers(1, 3),
        "dim": st.integers(1, 9),
        "steps": st.integers(1, steps),
        "size": st.integers(1, size),
        "negatives": st.integers(1, negatives),
        "reach": st.sampled_from([0.01, 1.0, 2.5]),
        "c": st.sampled_from([1.0, 0.3, 2.0]),
        "lr": st.sampled_from([0.05, 1.0]),
        "seed": st.integers(0, 2**16),
    }


SMALLEST = {
    "name": "murp", "entities": 1, "relations": 1, "dim": 1, "steps": 2, "size": 1, "negatives": 1, "reach": 1.0,
    "c": 1.0, "lr": 1.0, "seed": 0,
}  # fmt: skip


def assert_small_steps_agree(
    engine: str, name: str, entities: int, relations: int, dim: int, steps: int, size: int, negatives: int,
    reach: float, c: float, lr: float, seed: int, transformation: Transformation = PUBLISHED, bias: Bias = "both",
) -> None:  # fmt: skip
    assert_agrees(
        FUSED[engine],
        lambda: scattered(name, entities, relations, dim, reach, seed, c, transformation, bias),
        chunk(entities, relations, steps, size, negatives, seed),
        lr,
        near_boundary=lambda model: assume(inside(model)),
    )


@settings(max_examples=at_most(30), suppress_health_check=[HealthCheck.filter_too_much])
@given(**small_shapes(steps=2, size=5, negatives=9))
@example(**SMALLEST)
def test_numba_steps_are_the_torch_steps(**shape: Any) -> None:
    assert_small_steps_agree("numba", **shape)


# The interpreter's time goes with the candidates of a batch: fewer there, and every choice of parts is tried below.
@settings(max_examples=30 if DEVICE == "cuda" else 12, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    **small_shapes(*(2, 5, 9) if DEVICE == "cuda" else (2, 3, 4)),
    transformation=st.builds(Transformation, *[st.booleans()] * 4),
    bias=st.sampled_from(BIASES),
)
@example(**SMALLEST, transformation=PUBLISHED, bias="both")
def test_triton_steps_are_the_torch_steps(**shape: Any) -> None:
    assert_small_steps_agree("triton", **shape)


@pytest.mark.parametrize("engine", FUSED)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("dim", "size", "negatives"), [(40, 7, 50), (100, 2, 3), (200, 3, 70), (512, 2, 5), (3, 130, 1)]
)
def test_fused_steps_of_other_shapes(engine: str, name: str, dim: int, size: int, negatives: int) -> None:
    """Dimensions that are no power of two, and batches larger than a program."""
    if engine == "triton" and DEVICE == "cpu":  # the interpreter's time goes with size × negatives
        # Of dimension 3 a program updates 64 rows, and 25 triples have 75.
        size, negatives = {40: (1, 50), 200: (2, 4), 512: (1, 3), 3: (25, 1)}.get(dim, (size, negatives))
    assert_agrees(
        FUSED[engine], lambda: scattered(name, 300, 5, dim, 2.0, 0, 1.0), chunk(300, 5, 1, size, negatives, 1), 2.0
    )


# Only the norms of what was transformed depend on the transformation: the other biases are tried with one.
CHOICES = [(part, bias) for part in TRANSFORMATIONS for bias in ("both", "transformed-norm")]
CHOICES += [("published", bias) for bias in BIASES if ("published", bias) not in CHOICES]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("transformation", "bias"), CHOICES)
def test_triton_knows_every_transformation_and_bias(name: str, transformation: str, bias: Bias) -> None:
    """Two triples of one relation over three entities, the first with its subject as its object."""
    turn = list(TRANSFORMATIONS).index(transformation) + BIASES.index(bias)
    dim, negatives = (1, 3, 40)[turn % 3], (1, 2, 3, 4, 6)[turn % 5]
    work = chunk(3, 1, 1, 2, negatives, turn)
    work.positives[0, 0, 2] = work.positives[0, 0, 0]
    parts = TRANSFORMATIONS[transformation]
    assert_agrees(by_triton, lambda: scattered(name, 3, 1, dim, 2.0, turn, 0.7, parts, bias), work, 0.5)


@pytest.mark.parametrize(
    ("name", "transformation", "bias", "tile"),
    [("murp", "published", "both", 2), ("mure", "stretch-both", "norm", 8), ("murp", "swapped", "transformed-norm", 8)],
)
def test_points_in_host_memory_move_as_those_on_the_device(
    name: str, transformation: str, bias: Bias, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit in the interpreter, which runs programs one after another. Few entities: chains are long."""
    build = Batch.__init__

    def narrow(batch: Batch, engine: TritonEngine, size: int, negatives: int) -> None:
        build(batch, engine, size, negatives)
        batch.gradient_options["KT"] = tile

    monkeypatch.setattr(Batch, "__init__", narrow)
    start = scattered(name, 3, 1, 3, 2.0, 3, 1.0, TRANSFORMATIONS[transformation], bias)
    work = chunk(3, 1, 1, 2, 3, 2)
    there, here = deepcopy(start), deepcopy(start)
    (_, loss), (_, expected) = by_triton_on_host(there, work, 0.5), by_triton(here, work, 0.5)
    bound = {"rtol": 0.0, "atol": 0.0} if DEVICE == "cpu" else {"rtol": 1e-8, "atol": 1e-8}
    torch.testing.assert_close(loss, expected, **bound)
    assert not torch.equal(there.parameters["entity"], start.parameters["entity"])
    for table, values in here.parameters.items():
        torch.testing.assert_close(there.parameters[table], values, **bound, msg=table)


@pytest.fixture
def rounding_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter cuts the digits off that bfloat16 does not have; a GPU rounds to the nearest."""
    interpreter = importlib.import_module("triton.runtime.interpreter")
    if DEVICE == "cuda":
        return
    if not hasattr(interpreter, "_convert_float"):
        pytest.skip("this version of Triton turns numbers into bfloat16 in another place")
    convert = interpreter._convert_float

    def nearest(values: Any, given: Any, wanted: Any, mode: Any) -> Any:
        if str(given) != "fp32" or str(wanted) != "bf16":
            return convert(values, given, wanted, mode)
        return torch.from_numpy(np.array(values)).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)

    monkeypatch.setattr(interpreter, "_convert_float", nearest)


@pytest.mark.usefixtures("rounding_interpreter")
@pytest.mark.parametrize("run", [by_triton, by_triton_on_host])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("name", "dim", "reach"), [("murp", 5, 1.0), ("murp", 4, 9.0), ("mure", 5, 1.0), ("murp", 40, 2.0)]
)
def test_triton_rounds_stored_points_as_torch_does(
    name: str, dim: int, reach: float, dtype: torch.dtype, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps in float64, which leave no doubt where to round; some points so far out that rounding takes them
    beyond the limit, which is drawn in for this."""
    if reach > 2:
        for module in (poincare, triton_engine, rounding):
            monkeypatch.setattr(module, "limit_radius", lambda dtype: 0.99)
            monkeypatch.setattr(module, "set_back_radius", lambda dtype: 0.98999, raising=False)
    work = chunk(4, 1, 2, 2, 3, 2)

    def make() -> MultiRelational:
        return stored_in(dtype, scattered(name, 4, 1, dim, reach, 3, 1.0))

    assert_agrees(run, make, work, 0.5 if reach < 9 else 30.0)
    assert make().parameters["entity"].dtype == dtype


def test_points_that_are_rounded_train_side_by_side() -> None:
    rates, works = [0.5, 1.0], [chunk(6, 2, 1, 1, 3, seed) for seed in range(2)]
    moved = [Chunk(w.positives.to(DEVICE), w.num_entities, w.negatives, w.seed) for w in works]

    def make(seed: int) -> MultiRelational:
        model = stored_in(torch.bfloat16, scattered("murp", 6, 2, 4, 1.0, seed, 1.0))
        model.to(DEVICE)
        return model

    together = [make(0), make(1)]
    TritonEngine(together).run(moved, rates)
    for i in range(2):
        alone = make(i)
        TritonEngine([alone]).run([moved[i]], [rates[i]])
        found = together[i].parameters["entity"]
        assert found.dtype == torch.bfloat16
        assert torch.equal(found, alone.parameters["entity"])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("transformation", "bias"),
    [("published", "norm"), ("stretch-both", "transformed-norm"), ("swapped", "both"), ("stretch-only", "head")],
)
def test_candidates_in_several_tiles(
    name: str, transformation: str, bias: Bias, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five candidates in tiles of two: one is left over."""
    build = Batch.__init__

    def narrow(batch: Batch, engine: TritonEngine, size: int, negatives: int) -> None:
        build(batch, engine, size, negatives)
        batch.gradient_options["KT"] = 2

    monkeypatch.setattr(Batch, "__init__", narrow)
    parts = TRANSFORMATIONS[transformation]
    assert_agrees(by_triton, lambda: scattered(name, 4, 1, 3, 1.0, 0, 1.0, parts, bias), chunk(4, 1, 1, 1, 4, 1), 0.5)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_what_is_set_back_agrees(transformation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limits drawn in to where rounding is small: points stretched, added and moved beyond them.

    The bias takes the norms of such points, beside the distance that every bias has.
    """
    start = scattered("murp", 4, 1, 4, 3.0, 3, 1.0, TRANSFORMATIONS[transformation], "transformed-norm")
    points = start.parameters["entity"]
    points *= 0.49 / points.norm(dim=-1, keepdim=True)  # within the limit, as all points of a model are
    for name in {"translation"} & start.parameters.keys():
        start.parameters[name] *= 3
    work = chunk(4, 1, 1, 2, 3, 2)
    _, free = by_triton(deepcopy(start), work, 1.0)
    for module in (poincare, triton_engine):
        monkeypatch.setattr(module, "set_back_radius", lambda dtype: 0.375)
        monkeypatch.setattr(module, "limit_radius", lambda dtype: 0.5)
    _, bound = by_triton(deepcopy(start), work, 1.0)
    assert bound != free or transformation == "translation-only"  # of which the loss has no point that is set back
    assert_agrees(by_triton, lambda: deepcopy(start), work, 1.0)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_every_transformation_near_the_boundary(transformation: str) -> None:
    """Distance 12 from the origin: 1 - |x|² is about 10⁻⁵."""
    parts = TRANSFORMATIONS[transformation]
    work = chunk(4, 1, 1, 2, 3, 2)
    assert_agrees(
        by_triton,
        lambda: scattered("murp", 4, 1, 4, 12.0, 3, 1.0, parts, "transformed-norm"),
        work,
        1e-3,
        tolerance=1e-6,
    )


@pytest.mark.parametrize("engine", FUSED)
def test_points_at_the_boundary_stay_inside_and_agree(engine: str) -> None:
    """Distance 20 from the origin: 1 - |x|² is about 10⁻⁸. What the inputs' conditioning allows is 10⁻⁸/10⁻¹⁶ of it."""

    def make() -> MultiRelational:
        return scattered("murp", 8, 2, 4, 20.0, 3, 1.0)

    work = chunk(8, 2, 1, 4, 6, 2)
    assert_agrees(FUSED[engine], make, work, 1e-3, tolerance=1e-5)
    wild = make()
    FUSED[engine](wild, work, 1e6)
    for table in ("entity", "translation"):
        assert wild.parameters[table].isfinite().all()
        assert wild.parameters[table].square().sum(-1).max() < 1


@pytest.mark.parametrize("engine", FUSED)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("table", ["entity", "subject_stretch", "translation"])
def test_rows_of_zeros_agree(engine: str, name: str, table: str) -> None:
    """Entities at the origin, subjects stretched to it, relations that move nothing: a length of 0 divides nothing."""

    def make() -> MultiRelational:
        model = scattered(name, 3, 1, 4, 1.0, 0, 1.0)
        model.parameters[table].zero_()
        return model

    assert_agrees(FUSED[engine], make, chunk(3, 1, 2, 2, 3, 1), 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MODELS)
def test_numba_repeats_bit_for_bit_whatever_the_number_of_threads(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every sum is in an order that the batch alone fixes: see :mod:`murp.engines.numba_steps`."""
    monkeypatch.setattr(threads, "count", lambda: 5)
    found = []
    for number in (1, 2, 3, 5, 2):
        monkeypatch.setattr(threads.Choice, "next", lambda _, number=number: number)
        model: Any = MODELS[name](200, 4, 43, dtype=dtype).initialise(0)
        draw = torch.Generator().manual_seed(1)
        positives = torch.stack([torch.randint(n, (3, 64), generator=draw) for n in (200, 4, 200)], dim=-1)
        loss = NumbaEngine(model).run([Chunk(positives, 200, 30, 7)], [5.0])
        found.append([loss, *model.parameters.values()])
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))


@pytest.mark.parametrize(
    ("name", "transformation", "bias", "rates"),
    [
        ("murp", "published", "both", [0.5, 1.0, 2.0]),
        ("murp", "stretch-both", "tail", [0.5, 1.0]),
        ("murp", "swapped", "transformed-norm", [0.5, 1.0]),
        ("mure", "stretch-both", "norm", [0.5, 1.0]),
    ],
)
def test_several_models_side_by_side_are_each_as_if_alone(
    name: str, transformation: str, bias: Bias, rates: list[float]
) -> None:
    """Runs with their own seeds, triples and learning rates in one launch."""

    def make(seed: int) -> MultiRelational:
        model = scattered(name, 12, 3, 6, 1.0, seed, 1.0, TRANSFORMATIONS[transformation], bias)
        model.to(DEVICE)
        return model

    works = [chunk(12, 3, 2, 1, 3, seed) for seed in range(len(rates))]
    moved = [Chunk(w.positives.to(DEVICE), w.num_entities, w.negatives, w.seed) for w in works]
    together = [make(seed) for seed in range(len(rates))]
    losses = TritonEngine(together).run(moved, rates)
    for i, (work, lr) in enumerate(zip(moved, rates, strict=True)):
        alone = make(i)
        loss = TritonEngine([alone]).run([work], [lr])[0]
        assert float(losses[i]) == pytest.approx(float(loss), rel=1e-12)
        for table, values in alone.parameters.items():
            torch.testing.assert_close(together[i].parameters[table], values, rtol=1e-10, atol=1e-12, msg=table)


def test_triton_draws_uniformly() -> None:
    """χ² over 20 entities: 19 degrees of freedom, far below its 1 - 10⁻⁶ quantile (about 66)."""
    model = scattered("mure", 20, 1, 1, 1.0, 0, 1.0)
    model.to(DEVICE)
    work = chunk(20, 1, 4, 64, 20, 5)
    drawn = TritonEngine([model]).negatives(Chunk(work.positives.to(DEVICE), 20, 20, 5)).flatten().cpu()
    counts = torch.bincount(drawn, minlength=20).double()
    assert len(counts) == 20
    expected = len(drawn) / 20
    assert float(((counts - expected) ** 2 / expected).sum()) < 66


@pytest.mark.skipif(DEVICE == "cuda", reason="benchmarks/gpu_scale.py has tables of this size on a GPU")
@pytest.mark.parametrize("run", [by_triton, by_triton_on_host])
def test_rows_beyond_two_billion_numbers(run: Callable[..., Any], tmp_path: Path) -> None:
    """A table of more than 2³¹ numbers, in a file with holes, of which a step touches the first and the last rows."""
    dim = 2048
    entities = 2**31 // dim + 3
    rows = torch.tensor([0, 1, entities - 2, entities - 1])
    work = Chunk(torch.tensor([[[entities - 2, 0, entities - 1]]]), entities, 1, 0)

    def make(name: str) -> MultiRelational:
        model = MODELS["mure"](entities, 1, dim)
        small = MODELS["mure"](len(rows), 1, dim).initialise(0).parameters
        whole = np.memmap(tmp_path / name, np.float32, "w+", shape=(entities, dim))
        biases = {bias: torch.zeros(entities) for bias in ("subject_bias", "object_bias")}
        model.parameters = {**small, **biases, "entity": torch.from_numpy(whole)}
        model.parameters["entity"][rows] = small["entity"]
        return model

    ours, theirs = make("ours"), make("theirs")
    drawn, _ = run(ours, work, 0.5)
    TorchEngine(theirs).steps(work.positives, drawn, 0.5)
    touched = torch.cat([rows, drawn.flatten()])
    moved = ours.parameters["entity"][touched]
    assert not torch.equal(moved[3], make("before").parameters["entity"][entities - 1])
    torch.testing.assert_close(moved, theirs.parameters["entity"][touched], rtol=1e-4, atol=1e-7)


class TestChoice:
    """Which engine is built, and what is said of one that cannot."""

    def test_every_fused_engine_can_be_chosen_and_is_held_against_torch(self) -> None:
        assert {"auto", "torch", *engines.FUSED} == set(Config.settings["engine"].choices)
        assert set(engines.FUSED) == set(FUSED)

    def test_a_line_of_the_table_is_all_that_a_new_engine_needs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = engines.Fused("cpu", "torch", lambda task: None, lambda tasks: TorchEngine(tasks[0]))
        monkeypatch.setattr(engines, "FUSED", {"new": made})
        assert engines.build("new", [self.model(bias="norm")]).name == "torch"
        missing = replace(made, package="no_such_package")
        monkeypatch.setattr(engines, "FUSED", {"new": missing})
        with pytest.raises(ConfigError, match="engine new needs the package no_such_package, which is not installed"):
            engines.build("new", [self.model()])
        assert engines.build("auto", [self.model()]).name == "torch"

    def model(self, **parts: str) -> MultiRelational:
        model = MODELS["murp"](5, 2, 3, **parts)
        model.initialise(0)
        return model

    def test_auto_takes_the_fastest_that_can(self) -> None:
        assert engines.build("auto", [self.model()]).name == "numba"
        assert engines.build("auto", [self.model(bias="head")]).name == "torch"
        assert engines.build("auto", [self.model(transformation="swapped")]).name == "torch"
        assert engines.build("auto", [stored_in(torch.float16, self.model())]).name == "torch"

    def test_a_space_of_ones_own_is_for_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = self.model()
        monkeypatch.setattr(type(model), "space", lambda _: Hyperboloid())
        for name in engines.FUSED:
            assert engines.FUSED[name].unknown(Task(model)) == engines.OTHER_MODEL
            assert slices.unknown(name, Task(model)) == engines.OTHER_MODEL
        assert engines.build("auto", [model]).name == "torch"

    def test_torch_takes_everything(self) -> None:
        assert engines.build("torch", [self.model(bias="norm")]).name == "torch"

    def test_a_fused_engine_says_what_it_does_not_do_and_who_does(self) -> None:
        with pytest.raises(
            ConfigError, match=r"numba knows MuRP and MuRE as published.*triton, on cuda, does.* Engine torch can"
        ):
            engines.build("numba", [self.model(bias="head")])
        with pytest.raises(ConfigError, match=r"numba stores the entities' points as it computes.* Engine torch can"):
            engines.build("numba", [stored_in(torch.bfloat16, self.model())])
        with pytest.raises(ConfigError, match=r"triton runs on cuda, and the model is on cpu.*torch can"):
            engines.build("triton", [self.model()])
