"""The means over all entities against plain PyTorch and mpmath, by every path; and that none holds all the scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from examples import at_most
from murp import threads
from murp.geometry import poincare
from murp.kernels import all_entities, numba_all_entities
from murp.kernels.all_entities import blocked_reduction, mean_log_sum_exp, mean_softplus

Parts = tuple[Tensor, Tensor, Tensor | None, Tensor | None]
Mean = Callable[..., Tensor]
MEANS = {"log_sum_exp": mean_log_sum_exp, "softplus": mean_softplus}
kinds = pytest.mark.parametrize("kind", list(MEANS))
CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
# Triton's interpreter computes the padding of a block as well; what comes of it is not stored.
quiet = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def plain(kind: str, q: Tensor, v: Tensor, a: Tensor | None = None, c: Tensor | None = None) -> Tensor:
    return of_scores(kind, scores_of(q, v, a, c))


def scores_of(q: Tensor, v: Tensor, a: Tensor | None = None, c: Tensor | None = None) -> Tensor:
    return q @ v.T + (0 if a is None else a[:, None]) + (0 if c is None else c)


def of_scores(kind: str, scores: Tensor) -> Tensor:
    if kind == "log_sum_exp":
        return scores.logsumexp(1).mean()
    return torch.logaddexp(scores, torch.zeros_like(scores)).mean()


def parts(size: int, number: int, dim: int, *, seed: int = 0, scalars: int = 3, **options: Any) -> Parts:
    """q, v, a and c; bits of ``scalars`` say which of the last two are there."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=draw).to(**options).requires_grad_()

    q, v, a, c = normal(size, dim), normal(number, dim), normal(size), normal(number)
    return q, v, a if scalars & 1 else None, c if scalars & 2 else None


def gradients(value: Tensor, given: Parts) -> list[Tensor]:
    return list(torch.autograd.grad(value, [part for part in given if part is not None]))


@pytest.fixture(params=["cpu", "triton", CUDA])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where tensors lie; "triton" is the interpreter on the CPU."""
    if request.param == "triton":
        if torch.cuda.is_available():
            pytest.skip("where there is a GPU the kernels run on it")
        triton_all_entities = pytest.importorskip("murp.kernels.triton_all_entities")
        monkeypatch.setattr(numba_all_entities, "reduced", triton_all_entities.reduced)
        return "cpu"
    return str(request.param)


@quiet
@kinds
@pytest.mark.parametrize(
    ("shape", "scalars"), [((1, 1, 1), 3), ((3, 100, 5), 0), ((34, 70, 40), 3), ((9, 17, 129), 1), ((9, 17, 20), 2)]
)
def test_value_and_gradients_are_those_of_the_definition(
    kind: str, shape: tuple[int, int, int], scalars: int, path: str
) -> None:
    given = parts(*shape, scalars=scalars, device=path)
    expected = plain(kind, *given)
    value = MEANS[kind](*given)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    for found, wanted in zip(gradients(3 * value, given), gradients(3 * expected, given), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        # Without gradients it is another kernel, and a compiler for GPUs may fuse other products into sums.
        torch.testing.assert_close(MEANS[kind](*given), value, rtol=1e-14 if path == "cuda" else 0, atol=0)


@quiet
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("shape", "scalars"), [((1, 1, 1), 3), ((34, 70, 40), 3), ((9, 17, 20), 0)])
def test_a_weighted_mean_and_its_gradients_are_those_of_the_definition(
    shape: tuple[int, int, int], scalars: int, dtype: torch.dtype, path: str
) -> None:
    """Shares that differ by four orders of magnitude, as those of hubs do."""
    given = parts(*shape, scalars=scalars, dtype=dtype, device=path)
    shares = (10.0 ** torch.linspace(-4, 0, shape[0], dtype=torch.float64)).to(path)
    shares = shares / shares.sum()
    exact: Any = tuple(None if part is None else part.detach().double().requires_grad_() for part in given)
    expected = scores_of(*exact).logsumexp(1) @ shares
    value = mean_log_sum_exp(*given, shares.to(dtype))
    near = 1e-12 if dtype == torch.float64 else 2e-4
    torch.testing.assert_close(value.double(), expected, rtol=near, atol=near)
    for found, wanted in zip(gradients(3 * value, given), gradients(3 * expected, exact), strict=True):
        assert float((found.double() - wanted).norm()) <= 5 * near * float(wanted.norm())


@kinds
@settings(max_examples=at_most(40), deadline=None)
@given(size=st.integers(1, 80), number=st.integers(1, 600), dim=st.integers(1, 40), seed=st.integers(0, 2**31))
def test_any_shape(kind: str, size: int, number: int, dim: int, seed: int) -> None:
    given = parts(size, number, dim, seed=seed, scalars=seed % 4)
    expected = plain(kind, *given)
    value = MEANS[kind](*given)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    for found, wanted in zip(gradients(value, given), gradients(expected, given), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@settings(max_examples=at_most(40), deadline=None)
@given(
    chosen=st.lists(st.integers(0, 9), min_size=1, max_size=60),
    scalars=st.integers(0, 3),
    weighted=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_queries_that_are_there_several_times(chosen: list[int], scalars: int, weighted: bool, seed: int) -> None:
    """Some of equal queries have the share 0, and some all of them."""
    q, v, a, c = parts(10, 70, 12, seed=seed, scalars=scalars)
    places = torch.tensor(chosen)
    with torch.no_grad():
        q[9], q[8] = q[0], -q[0]
    given: Parts = (q.detach()[places].requires_grad_(), v, None if a is None else a.detach()[places], c)
    if given[2] is not None:
        given[2].requires_grad_()
    shares = None
    each = torch.full((len(places),), 1 / len(places), dtype=torch.float64)
    if weighted:
        shares = each = torch.rand(len(places), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        each[::3], each[places == 1] = 0, 0
    expected = scores_of(*given).logsumexp(1) @ each
    value = mean_log_sum_exp(*given, shares)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    for found, wanted in zip(gradients(value, given), gradients(expected, given), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


def test_equal_queries_are_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query with another number of its own is another one: its weights may have another shift."""
    scored = []
    fill = numba_all_entities._Found.fill

    def counted(self: Any, kind: int, columns: Any, scale: Any) -> None:
        scored.append((len(self.side.vectors), len(columns.vectors)))
        fill(self, kind, columns, scale)

    monkeypatch.setattr(numba_all_entities._Found, "fill", counted)
    q, v, _, _ = parts(3, 50, 4)
    again = q.detach()[[0, 1, 0, 2, 0, 1]]
    numba_all_entities.reduced(True, again, v.detach(), None, None, None, True)
    assert scored == [(3, 50), (50, 3)]
    scored.clear()
    own = torch.tensor([0.0, 1.0, 0.0, 2.0, 3.0, 1.0], dtype=torch.float64)
    numba_all_entities.reduced(True, again, v.detach(), own, None, None, True)
    assert scored == [(4, 50), (50, 4)]


@quiet
@kinds
@pytest.mark.parametrize("scale", [1e-6, 1.0, 3e3])
def test_float32_is_as_near_as_its_products_are(kind: str, scale: float, path: str) -> None:
    """11 bits a factor on CUDA and 24 on the CPU; numbers of any size are brought to the same one."""
    q, v, a, c = parts(40, 140, 20, dtype=torch.float32, device=path)
    with torch.no_grad():
        q *= scale
        v /= 3 * scale
    given = q, v, a, c
    exact: Any = tuple(part.detach().double().requires_grad_() for part in given if part is not None)
    value, expected = MEANS[kind](*given), plain(kind, *exact)
    torch.testing.assert_close(value.double(), expected, rtol=2e-4, atol=0.0)
    for found, wanted in zip(gradients(value, given), gradients(expected, exact), strict=True):
        assert float((found.double() - wanted).norm() / wanted.norm()) < 5e-4


@kinds
def test_float32_on_the_cpu_has_all_its_bits(kind: str) -> None:
    given = parts(40, 300, 20, dtype=torch.float32)
    exact: Any = tuple(part.detach().double().requires_grad_() for part in given if part is not None)
    value, expected = MEANS[kind](*given), plain(kind, *exact)
    torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=0.0)
    for found, wanted in zip(gradients(value, given), gradients(expected, exact), strict=True):
        assert float((found.double() - wanted).norm() / wanted.norm()) < 1e-6


def test_a_small_case_is_that_of_exact_arithmetic() -> None:
    q, v, a, c = parts(2, 5, 3, seed=4)
    assert a is not None
    assert c is not None
    with mpmath.workdps(40):
        scores = [
            [mpmath.fdot(q[b].tolist(), v[n].tolist()) + a[b].item() + c[n].item() for n in range(5)] for b in range(2)
        ]
        log_sum_exp = sum(mpmath.log(sum(mpmath.exp(s) for s in row)) for row in scores) / 2
        softplus = sum(mpmath.log(1 + mpmath.exp(s)) for row in scores for s in row) / 10
        assert abs(mean_log_sum_exp(q, v, a, c).item() - log_sum_exp) < 1e-15 * abs(log_sum_exp) * 4
        assert abs(mean_softplus(q, v, a, c).item() - softplus) < 1e-15 * abs(softplus) * 4


@kinds
def test_gradients_pass_gradcheck(kind: str) -> None:
    assert torch.autograd.gradcheck(MEANS[kind], parts(3, 20, 4))


@quiet
@kinds
@pytest.mark.parametrize("level", [1e4, -1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_scores_overflow_nothing(kind: str, level: float, dtype: torch.dtype, path: str) -> None:
    """All scores but one are ``level`` exactly, powers of two times it, so that every product is exact."""
    q, v = torch.full((3, 2), 1.0), torch.full((70, 2), level / 2)
    v[7] *= 2
    given: Any = tuple(table.to(path, dtype).requires_grad_() for table in (q, v))
    value, expected = MEANS[kind](*given), plain(kind, *given)
    torch.testing.assert_close(value, expected, rtol=2e-7, atol=0.0)
    for found, wanted in zip(gradients(value, given), gradients(expected, given), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-7)


@quiet
@kinds
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_entity_at_minus_infinity_is_no_candidate(kind: str, dtype: torch.dtype, path: str) -> None:
    q, v, a, c = parts(5, 140, 6, dtype=dtype, device=path)
    assert c is not None
    with torch.no_grad():
        c[3:] = -torch.inf
    value = MEANS[kind](q, v, a, c)
    few = MEANS[kind](q, v[:3], a, c[:3])
    torch.testing.assert_close(value, few if kind == "log_sum_exp" else few * 3 / 140, rtol=1e-4, atol=0.0)
    dq, dv, da, dc = gradients(value, (q, v, a, c))
    assert not dv[3:].any()
    assert not dc[3:].any()
    assert bool(dq.isfinite().all())
    assert bool(da.isfinite().all())


@quiet
@kinds
@pytest.mark.parametrize("place", range(4))
def test_nan_gives_nan(kind: str, place: int, path: str) -> None:
    given = parts(5, 40, 6, device=path)
    with torch.no_grad():
        given[place].view(-1)[1] = torch.nan  # type: ignore[union-attr]
    value = MEANS[kind](*given)
    assert bool(value.isnan())
    assert bool(gradients(value, given)[place].isnan().any())


@quiet
@kinds
def test_numbers_of_very_different_size_keep_their_bits(kind: str, path: str) -> None:
    """The largest entity is a million times the others; float16 alone would make zeros of those."""
    q, v, _, _ = parts(5, 140, 6, dtype=torch.float32, device=path)
    with torch.no_grad():
        q *= 1e-6
        v[0] = 1e3
        v[1:] *= 1e-3
    given: Any = (q, v)
    exact: Any = tuple(part.detach().double().requires_grad_() for part in given)
    found = gradients(MEANS[kind](*given), given)
    wanted = gradients(plain(kind, *exact), exact)
    torch.testing.assert_close(found[0].double(), wanted[0], rtol=1e-3, atol=0.0)
    torch.testing.assert_close(found[1].double(), wanted[1], rtol=2e-3, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_both_passes_have_the_same_scores(scale: float) -> None:
    """The second one knows only the sums of the first: a large score must have the same bits in both."""
    q, v, _, _ = parts(64, 300, 40, dtype=torch.float32)
    given: Any = ((scale * q).detach().requires_grad_(), v)
    exact: Any = tuple(part.detach().double().requires_grad_() for part in given)
    found = gradients(MEANS["log_sum_exp"](*given), given)[1]
    wanted = gradients(plain("log_sum_exp", *exact), exact)[1]
    assert float((found.double() - wanted).norm() / wanted.norm()) < 3e-6 * scale


def test_a_gradient_is_a_tensor_of_its_own() -> None:
    """It has no graph, and to change it changes nothing of a second pass backward."""
    q, v, _, _ = parts(5, 40, 6)
    value = mean_log_sum_exp(q, v)
    first = torch.autograd.grad(value, (q, v), retain_graph=True)
    assert not any(gradient.requires_grad for gradient in first)
    kept = [gradient.clone() for gradient in first]
    for gradient in first:
        gradient.zero_()
    for again, before in zip(torch.autograd.grad(value, (q, v)), kept, strict=True):
        assert torch.equal(again, before)


@settings(max_examples=at_most(20), deadline=None)
@given(
    levels=st.lists(st.sampled_from([0.0, 20.0, 35.0, 90.0, 1e3, -50.0, -1e3, -math.inf]), min_size=2, max_size=5),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 2**31),
)
def test_scores_that_rise_and_fall_from_tile_to_tile(levels: list[float], dtype: torch.dtype, seed: int) -> None:
    """The shift of a softmax follows them; each level lasts for a tile of the CPU's kernel."""
    assume(max(levels) > -math.inf)
    tile = numba_all_entities._TILE
    q, v, a, _ = parts(9, tile * len(levels) - 50, 7, dtype=dtype, seed=seed)
    c = torch.tensor(levels, dtype=dtype).repeat_interleave(tile)[: len(v)].requires_grad_()
    given: Any = (q, v, a, c)
    exact: Any = tuple(part.detach().double().requires_grad_() for part in given)
    value, expected = MEANS["log_sum_exp"](*given), plain("log_sum_exp", *exact)
    rtol = 1e-6 if dtype == torch.float32 else 1e-13
    torch.testing.assert_close(value.double(), expected, rtol=rtol, atol=rtol)
    for found, wanted in zip(gradients(value, given), gradients(expected, exact), strict=True):
        # A score of float32 near 1,000 has an error of 6e-5.
        assert float((found.double() - wanted).norm() / wanted.norm()) < (5e-4 if dtype == torch.float32 else 1e-9)


@kinds
@settings(max_examples=at_most(10), deadline=None)
@given(size=st.integers(1, 300), number=st.integers(1, 600), many=st.integers(2, 5), seed=st.integers(0, 2**31))
def test_threads_change_no_bit(kind: str, size: int, number: int, many: int, seed: int) -> None:
    """A row's sums are one thread's, in an order that the shapes decide: see the kernel."""
    given = parts(size, number, 7, seed=seed, dtype=torch.float32)
    alone = MEANS[kind](*given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "count", lambda: many)
        patch.setattr(threads, "_WORTH_A_THREAD", 1)
        together = MEANS[kind](*given)
    assert torch.equal(alone, together)
    for one, several in zip(gradients(alone, given), gradients(together, given), strict=True):
        assert torch.equal(one, several)


@kinds
def test_a_compiled_step_contains_the_means(kind: str) -> None:
    given = parts(5, 30, 6)
    compiled = torch.compile(lambda q, v, a, c: MEANS[kind](2 * q, v, a, c), backend="aot_eager", fullgraph=True)
    value, expected = compiled(*given), plain(kind, 2 * given[0], *given[1:])
    torch.testing.assert_close(value, expected)
    for found, wanted in zip(gradients(value, given), gradients(expected, given), strict=True):
        torch.testing.assert_close(found, wanted)
    torch.library.opcheck(
        all_entities._registered,
        (kind == "softplus", *given, None, True),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )


@pytest.mark.gpu
@kinds
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [1, 40, 100, 200, 512])
def test_a_captured_graph_computes_the_same(kind: str, dtype: torch.dtype, dim: int) -> None:
    given = parts(130, 1000, dim, dtype=dtype, device="cuda")
    with torch.no_grad():
        given[0].div_(dim**0.5)
    expected = gradients(MEANS[kind](*given), given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = gradients(MEANS[kind](*given), given)
    for part in found:
        part.fill_(torch.nan)
    graph.replay()
    exact: Any = tuple(part.detach().double().requires_grad_() for part in given if part is not None)
    for mine, again, wanted in zip(expected, found, gradients(plain(kind, *exact), exact), strict=True):
        assert torch.equal(mine, again)
        assert float((mine.double() - wanted).norm() / wanted.norm()) < (1e-3 if dtype == torch.float32 else 1e-12)


class Sizes(TorchDispatchMode):
    """The number of elements of the largest tensor that an operator of PyTorch's makes."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else [made]:
            if isinstance(one, Tensor):
                self.largest = max(self.largest, one.numel())
        return made


@kinds
def test_no_tensor_has_a_cell_for_each_score(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size, number, dim = 300, 5000, 8
    given = parts(size, number, dim)
    arrays: list[int] = []
    for name in ("empty", "zeros", "full"):
        make = getattr(numba_all_entities.np, name)

        def counted(shape: Any, *arguments: Any, make: Any = make) -> Any:
            made = make(shape, *arguments)
            arrays.append(made.size)
            return made

        monkeypatch.setattr(numba_all_entities.np, name, counted)
    with Sizes() as sizes:
        gradients(MEANS[kind](*given), given)
    assert sizes.largest == number * dim
    assert arrays
    assert max(arrays) <= size * number / 10
    with Sizes() as sizes:
        plain(kind, *given)
    assert sizes.largest == size * number


def ball_scores(queries: Any, entities: Any) -> Tensor:
    (x, scale), (v, bias) = queries, entities
    return bias - scale * poincare.distance(x[:, None], v[None], c=1.0) ** 2


def ball_parts(size: int, number: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(1)
    x, v = (0.2 * torch.randn(n, 3, dtype=torch.float64, generator=draw) for n in (size, number))
    bias = torch.randn(number, dtype=torch.float64, generator=draw)
    return [part.requires_grad_() for part in (x, torch.tensor(1.5, dtype=torch.float64), v, bias)]


@kinds
@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("many", [1, 3])
def test_blocks_of_any_score_are_those_of_the_definition(
    kind: Any, device: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "count", lambda: many)
    monkeypatch.setitem(all_entities._CELLS, device, 6 * 11)
    x, scale, v, bias = (part.detach().to(device).requires_grad_() for part in ball_parts(6, 250))
    value = blocked_reduction(ball_scores, (x, scale), (v, bias), kind)
    expected = of_scores(kind, ball_scores((x, scale), (v, bias)))
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    wanted = torch.autograd.grad(2 * expected, (x, scale, v, bias))
    for found, exact in zip(torch.autograd.grad(2 * value, (x, scale, v, bias)), wanted, strict=True):
        torch.testing.assert_close(found, exact, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        assert torch.equal(blocked_reduction(ball_scores, (x, scale), (v, bias), kind), value)
    with Sizes() as sizes:
        blocked_reduction(ball_scores, (x, scale), (v, bias), kind)
    assert sizes.largest < 6 * 250 * 3


def test_blocks_of_a_weighted_mean_are_those_of_the_definition() -> None:
    given = ball_parts(6, 250)
    shares = torch.tensor([0.5, 0.2, 0.1, 0.1, 0.09, 0.01], dtype=torch.float64)
    value = blocked_reduction(ball_scores, given[:2], given[2:], "log_sum_exp", shares)
    expected = ball_scores(given[:2], given[2:]).logsumexp(1) @ shares
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    for found, exact in zip(torch.autograd.grad(value, given), torch.autograd.grad(expected, given), strict=True):
        torch.testing.assert_close(found, exact, rtol=1e-10, atol=1e-10)


@kinds
def test_threads_change_no_bit_of_blocks(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of blocks, and the order in which they are added, are those of the shapes."""
    monkeypatch.setitem(all_entities._CELLS, "cpu", 40 * 20)
    given = ball_parts(40, 900)
    found = []
    for many in (1, 4):
        monkeypatch.setattr(threads, "count", lambda many=many: many)
        found.append(torch.autograd.grad(blocked_reduction(ball_scores, given[:2], given[2:], kind), given))
    for one, several in zip(*found, strict=True):
        assert torch.equal(one, several)


def test_a_part_without_gradients_is_left_alone() -> None:
    x, scale, v, bias = ball_parts(4, 30)
    value = blocked_reduction(ball_scores, (x, scale.detach()), (v.detach(), bias), "softplus")
    assert all(part.isfinite().all() for part in torch.autograd.grad(value, (x, bias)))
    unused = torch.ones(30, 1, requires_grad=True)
    value = blocked_reduction(lambda q, e: ball_scores(q, e[:2]), (x, scale), (v, bias, unused), "softplus")
    assert not torch.autograd.grad(value, unused)[0].any()


def test_what_cannot_be_computed_is_refused() -> None:
    q, v, a, c = parts(3, 5, 2)
    with pytest.raises(ValueError, match=r"not \[\(3, 2\), \(5, 2\), \(5,\)\]"):
        mean_softplus(q, v, c)
    with pytest.raises(ValueError, match="are wanted"):
        mean_softplus(q, v[:0])
    with pytest.raises(TypeError, match="float32"):
        mean_log_sum_exp(q, v.float())
    with pytest.raises(ValueError, match="queries"):
        mean_log_sum_exp(q, v, shares=torch.ones(len(q) + 1, dtype=q.dtype))
    with pytest.raises(ValueError, match="kind must be"):
        blocked_reduction(ball_scores, (q,), (v,), "max")  # type: ignore[arg-type]
    (dq,) = torch.autograd.grad(mean_log_sum_exp(q, v, a), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once, not twice"):
        dq.sum().backward()


@kinds
@pytest.mark.parametrize("scalars", range(4))
def test_rows_that_are_too_wide_for_a_gpu_are_left_to_pytorch(kind: all_entities.Kind, scalars: int) -> None:
    given = parts(9, 17, 20, scalars=scalars)
    expected, value = plain(kind, *given), all_entities._in_blocks(kind, *given, None)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    for found, wanted in zip(gradients(value, given), gradients(expected, given), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@kinds
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_kernel_is_launched_for_rows_that_are_too_wide(
    kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors that have only a form: nothing could be launched on them."""
    monkeypatch.setitem(all_entities._CELLS, "meta", 2**22)
    q, v = (
        torch.empty(rows, all_entities.WIDEST[dtype] + 1, dtype=dtype, device="meta", requires_grad=True)
        for rows in (9, 17)
    )
    of_q, of_v = torch.autograd.grad(MEANS[kind](q, v), [q, v])
    assert (of_q.shape, of_v.shape) == (q.shape, v.shape)


@kinds
@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-4), (torch.float64, 1e-12)])
@pytest.mark.parametrize("further", [0, 1])
def test_the_widest_rows_of_a_kernel_and_wider_ones(kind: str, dtype: torch.dtype, near: float, further: int) -> None:
    given = parts(9, 17, all_entities.WIDEST[dtype] + further, dtype=dtype, device="cuda")
    small: Any = tuple(None if part is None else (part / 30).detach().requires_grad_() for part in given)
    exact: Any = tuple(None if part is None else part.detach().double().requires_grad_() for part in small)
    value, expected = MEANS[kind](*small), plain(kind, *exact)
    torch.testing.assert_close(value.double(), expected, rtol=near, atol=near)
    for found, wanted in zip(gradients(value, small), gradients(expected, exact), strict=True):
        assert float((found.double() - wanted).norm()) <= 10 * near * float(wanted.norm())
