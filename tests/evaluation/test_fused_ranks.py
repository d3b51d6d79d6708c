"""The fused kernels find the ranks of the generic path.

The Triton kernel runs on the GPU where there is one, and through Triton's interpreter otherwise.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from typing import Any, cast

import numpy as np
import pytest
import torch
from brute_force import TableScorer
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from murp.errors import NotFiniteError
from murp.evaluation import PROTOCOLS, KnownFacts, Protocol, fused, rank
from murp.evaluation.ranks import BYTES_PER_CELL
from murp.geometry import Hyperboloid
from murp.graph import Triples
from murp.kernels.elementary import FORMATS, exp_minus, log1p
from murp.kernels.products import inner_products
from murp.models import BIASES, MODELS, TRANSFORMATIONS, MultiRelational

numba_ranks: Any = pytest.importorskip("murp.evaluation.numba_ranks", reason="needs numba: pip install numba")
triton_ranks: Any = pytest.importorskip("murp.evaluation.triton_ranks", reason="needs triton: pip install triton")

RELATIONS = 3
KERNELS = {"numba": (numba_ranks, "cpu"), "triton": (triton_ranks, "cuda" if torch.cuda.is_available() else "cpu")}
TRITON = pytest.param("triton", marks=pytest.mark.triton)
kernels = pytest.mark.parametrize("kernel", ["numba", TRITON])
names = pytest.mark.parametrize("name", MODELS)


def scattered(
    name: str, entities: int, seed: int, dim: int = 5, reach: float = 1.0, c: float = 1.0, dtype: str = "float64"
) -> MultiRelational:
    """A model with its points at about the distance ``reach`` from the origin, and biases of any sign."""
    parts = {"curvature": c} if name == "murp" else {}
    model = MODELS[name](entities, 2 * RELATIONS, dim, dtype=torch.float64, **parts).initialise(seed)
    draw = torch.Generator().manual_seed(seed)
    for table in ("entity", "translation"):
        point = torch.randn(model.parameters[table].shape, dtype=torch.float64, generator=draw)
        model.parameters[table] = model.geometry.exp0(reach / (2 * (c * dim) ** 0.5) * point)
    model.parameters["object_bias"].normal_(generator=draw)
    model.dtype = getattr(torch, dtype)
    model.parameters = {table: values.to(model.dtype) for table, values in model.parameters.items()}
    return model


def facts(entities: int, number: int, seed: int) -> Triples:
    """Few subjects and relations, so that queries have many known answers; repeated facts and loops among them."""
    draw = np.random.default_rng(seed)
    columns = [draw.integers(0, high, number) for high in (min(entities, 4), RELATIONS, entities)]
    triples = np.stack(columns, axis=1).astype(np.int32)
    triples[::5, 2] = triples[::5, 0]
    return np.concatenate([triples, triples[:3]])


def known_facts(triples: Triples) -> KnownFacts:
    swapped = triples[:, ::-1] + np.array([0, RELATIONS, 0], dtype=np.int32)
    return KnownFacts(np.concatenate([triples, swapped]), RELATIONS)


NOTHING_KNOWN = KnownFacts(np.empty((0, 3), dtype=np.int32), RELATIONS)


def ranks_by(
    kernel: str | None,
    model: MultiRelational,
    triples: Triples,
    known: KnownFacts,
    protocol: Protocol = "standard",
    memory: int | None = None,
) -> list[float]:
    """Tail and head ranks through a kernel, or through the generic path if that is None."""
    module, device = KERNELS[kernel] if kernel else (None, "cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "kernel_for", lambda _: module)
        model.to(device)
        ranks = rank(model, triples, known, num_relations=RELATIONS, protocol=protocol, memory=memory)
        model.to("cpu")
    return [*ranks.tail.tolist(), *ranks.head.tolist()]


@kernels
@names
@settings(max_examples=12, deadline=None)
@given(
    entities=st.sampled_from([1, 2, 3, 17, 300, 1023, 1024, 1025, 2500]),
    dim=st.integers(2, 40),
    reach=st.sampled_from([0.01, 1.0, 8.0, 30.0]),
    c=st.sampled_from([1.0, 0.3, 4.0]),
    protocol=st.sampled_from(PROTOCOLS),
    least_memory=st.booleans(),
    seed=st.integers(0, 2**31),
)
@example(entities=2500, dim=10, reach=8.0, c=4.0, protocol="paper", least_memory=True, seed=1)
@example(entities=2500, dim=10, reach=60.0, c=0.3, protocol="standard", least_memory=False, seed=2)
def test_same_as_the_generic_path(
    kernel: str,
    name: str,
    entities: int,
    dim: int,
    reach: float,
    c: float,
    protocol: Protocol,
    least_memory: bool,
    seed: int,
) -> None:
    if KERNELS[kernel][1] == "cuda":
        assume(reach <= 30)  # beyond, points are at the boundary, where a rounding of a GPU's own changes ranks
    model = scattered(name, entities, seed, dim, reach, c)
    triples = facts(entities, 20, seed)
    known = known_facts(triples)
    memory = entities * BYTES_PER_CELL if least_memory else None
    asked = triples[:5]
    expected = ranks_by(None, model, asked, known, protocol)
    # Equal although the paths round differently: ranks change only where two scores are nearer than rounding, 10⁻¹³.
    # Some thousand scores on the scale of 1 are hardly ever that near, and the examples are the same every time.
    assert ranks_by(kernel, model, asked, known, protocol, memory) == expected


@kernels
@names
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@settings(max_examples=5, deadline=None)
@given(
    entities=st.integers(1, 700),
    copies=st.integers(2, 5),
    queries=st.sampled_from([3, 6]),
    dim=st.integers(1, 130),
    seed=st.integers(0, 2**31),
)
def test_equal_objects_tie_wherever_they_stand(
    kernel: str, name: str, dtype: str, entities: int, copies: int, queries: int, dim: int, seed: int
) -> None:
    """Every entity repeated k times: k - 1 objects equal to the target, and k in the place of each better one."""
    model = scattered(name, entities, seed, dim, dtype=dtype)
    crowd = scattered(name, copies * entities, seed, dim, dtype=dtype)
    for table, values in model.parameters.items():
        tall = table in ("entity", "object_bias", "subject_bias")
        crowd.parameters[table] = values.repeat(copies, *[1] * (values.dim() - 1)) if tall else values
    asked = facts(entities, 20, seed)[:queries]
    asked[:, 0] = entities - 1  # its last copy is the last of all, where loops and products end differently
    memory = copies * entities * BYTES_PER_CELL  # several batches
    ranks = np.array(ranks_by(kernel, crowd, asked, NOTHING_KNOWN, memory=memory))
    # Whole steps of k and half a block of ties: nothing else can come out if all copies tie.
    better = (ranks - 1 - (copies - 1) / 2) / copies
    # A rank is half a whole number, so the division is exact where copies tie.
    assert better.tolist() == better.round().tolist()
    alone = np.array(ranks_by(kernel, model, asked, NOTHING_KNOWN))
    assert np.abs(alone - 1 - better).max() <= (0 if dtype == "float64" else 2)


@settings(deadline=None)
@given(
    points=st.integers(1, 3),
    entities=st.integers(2, 3000),
    dim=st.integers(1, 130),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 2**31),
)
def test_equal_entities_have_equal_products(
    points: int, entities: int, dim: int, dtype: torch.dtype, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    one = torch.randn(1, dim, dtype=dtype, generator=draw)
    room = one.new_empty(max(2, points), entities)
    products = inner_products(torch.randn(points, dim, dtype=dtype, generator=draw), one.repeat(entities, 1), room)
    # To the bit: the order of additions is that of the row alone (murp.kernels.products).
    assert torch.equal(products, products[:, :1].expand(points, entities))


@kernels
@names
def test_float32_gives_nearly_the_ranks_of_float64(kernel: str, name: str) -> None:
    single = scattered(name, 3000, 0, 20, dtype="float32")
    double = scattered(name, 3000, 0, 20)
    double.parameters = {table: values.double() for table, values in single.parameters.items()}
    triples = facts(3000, 20, 0)
    known = known_facts(triples)
    expected = np.array(ranks_by(None, double, triples, known))
    found = np.array(ranks_by(kernel, single, triples, known))
    assert np.abs(found - expected).max() <= 2
    assert np.abs(found - expected).mean() <= 0.1


@kernels
@names
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_infinite_scores_are_ordered(kernel: str, name: str, protocol: Protocol) -> None:
    model = scattered(name, 40, 0)
    bias = model.parameters["object_bias"]
    bias[::4], bias[1::4] = math.inf, -math.inf
    triples = facts(40, 30, 0)
    known = known_facts(triples)
    triples = triples[:10]
    expected = ranks_by(None, model, triples, known, protocol)
    # Infinite scores tie exactly; the finite ones are apart by far more than rounding.
    assert ranks_by(kernel, model, triples, known, protocol) == expected


@pytest.mark.filterwarnings("ignore:All-NaN slice")  # numpy's, through the interpreter
@kernels
@names
@pytest.mark.parametrize("table", ["entity", "object_bias", "translation", "subject_stretch"])
def test_nan_is_an_error_that_names_the_query(kernel: str, name: str, table: str) -> None:
    model = scattered(name, 1500, 0)
    asked = np.array([[5, 0, 6], [7, 1, 8], [9, 2, 10]], dtype=np.int32)
    by_relation = table in ("translation", "subject_stretch")
    model.parameters[table][2 if by_relation else 1400] = math.nan
    first = r"entity 9, relation 2\)" if by_relation else r"entity 5, relation 0\)"
    with pytest.raises(NotFiniteError, match=first):
        ranks_by(kernel, model, asked, NOTHING_KNOWN)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(y=st.lists(st.floats(0, 2.0**126, width=32), min_size=1, max_size=40))
def test_the_logarithm_is_good_to_rounding(dtype: type, y: list[float]) -> None:
    form = FORMATS[np.dtype(dtype)]
    values = np.array([*y, 0.0, 0.41, 0.42, 1e-7, math.inf, math.nan], dtype=dtype)
    found, u = np.empty_like(values), np.empty_like(values)
    log1p(values, u, u.view(form.dtype), form, found)
    expected = np.log1p(values.astype(np.longdouble))
    info = np.finfo(dtype)
    np.testing.assert_allclose(found.astype(np.longdouble), expected, rtol=4 * info.eps, atol=info.tiny)


@given(a=st.lists(st.floats(0, 708), min_size=1, max_size=40))
def test_the_exponential_is_good_to_rounding(a: list[float]) -> None:
    values = np.array([*a, 0.0, 0.34, 0.35, 1e-17, 708.0, 1e300, math.inf, math.nan])
    found, u = np.empty_like(values), np.empty_like(values)
    exp_minus(values, u, u.view(np.int64), found)
    expected = np.exp(-np.minimum(values, 708.0).astype(np.longdouble))
    np.testing.assert_allclose(found.astype(np.longdouble), expected, rtol=2 * np.finfo(float).eps)
    assert found[len(a)] == 1.0, "exp(0) is no rounded number"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_logarithm_of_far_objects_keeps_its_digits(dtype: type) -> None:
    """b - (2 asinh √z)²/c for the z of near and far objects: exp(-√c d) would do as well but for its rounding."""
    z = np.logspace(-7, 12, 100).astype(dtype)
    nothing, first = np.zeros_like(z), np.array([1, 0, 0, 0, 0], dtype=dtype)
    scores = nothing.copy()
    form = FORMATS[z.dtype]
    numba_ranks.ball_scores(scores, nothing, first, np.stack([nothing, z, nothing]), 0.5, form)
    expected = -0.5 * (2 * np.arcsinh(np.sqrt(z.astype(np.longdouble)))) ** 2
    np.testing.assert_allclose(scores.astype(np.longdouble), expected, rtol=16 * np.finfo(dtype).eps)


@given(entities=st.integers(1, 10**7), queries=st.integers(1, 10**4), dtype=st.sampled_from(["float32", "float64"]))
def test_a_batch_fits_its_memory(entities: int, queries: int, dtype: str) -> None:
    model = scattered("mure", 1, 0, dtype=dtype)
    model.num_entities = entities
    memory = queries * entities * BYTES_PER_CELL
    size = fused.batch_size(model, memory)
    assert size >= 1
    assert (size + 1) * fused.MATRICES * entities * model.dtype.itemsize <= memory


def test_only_the_published_models_have_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, make in MODELS.items():
        for transformation in TRANSFORMATIONS:
            for bias in BIASES:
                model = make(3, 2, 2, transformation=transformation, bias=bias).initialise(0)
                published = (transformation, bias) == ("published", "both")
                assert fused.kernel_for(model) is (numba_ranks if published else None), name
    assert fused.kernel_for(TableScorer(np.zeros((3, 2, 3)))) is None
    published_model = cast(MultiRelational, MODELS["murp"](3, 2, 2).initialise(0))
    with monkeypatch.context() as patch:
        patch.setattr(type(published_model), "space", lambda _: Hyperboloid())
        assert fused.kernel_for(published_model) is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert fused.kernel_for(published_model) is None


def test_compilers_are_not_imported_before_they_are_needed() -> None:
    code = "import sys, murp.evaluation; sys.exit(' '.join({'numba', 'triton'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@names
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cuda_gives_the_ranks_of_the_cpu(name: str, protocol: Protocol) -> None:
    model = scattered(name, 5000, 0, 40)
    triples = facts(5000, 500, 0)
    known = known_facts(triples)
    assert fused.kernel_for(cast(MultiRelational, model.to("cuda"))) is triton_ranks
    assert ranks_by("triton", model, triples, known, protocol) == ranks_by("numba", model, triples, known, protocol)
