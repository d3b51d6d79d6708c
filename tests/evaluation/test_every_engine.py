"""Every way to rank against the definition: few entities, many ties, loops, repeated facts, one of everything.

The scores are those of the textbook formulas, in NumPy, one triple at a time; the ranks are counted in plain Python.
Ranks are compared exactly: equal entities tie to the bit, and others are drawn apart by more than rounding.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from brute_force import Fact, brute_force_ranks, graph_of, tuples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp.errors import NotFiniteError
from murp.evaluation import PROTOCOLS, KnownFacts, Protocol, evaluate, fused, rank
from murp.evaluation.ranks import BYTES_PER_CELL
from murp.graph import KnowledgeGraph
from murp.models import MODELS, MultiRelational

numba_ranks: Any = pytest.importorskip("murp.evaluation.numba_ranks", reason="needs numba: pip install numba")
triton_ranks: Any = pytest.importorskip("murp.evaluation.triton_ranks", reason="needs triton: pip install triton")
ENGINES = {"generic": None, "numba": numba_ranks, "triton": triton_ranks}
engines = pytest.mark.parametrize("engine", [e for e in ENGINES if e != "triton" or not torch.cuda.is_available()])


def model_of(name: str, kinds: list[int], relations: int, dim: int, seed: int, c: float) -> MultiRelational:
    """A model whose entities of one kind are equal in everything, so that they tie."""
    parts = {"curvature": c} if name == "murp" else {}
    model: Any = MODELS[name](len(kinds), 2 * relations, dim, dtype=torch.float64, **parts).initialise(seed)
    draw = torch.Generator().manual_seed(seed)
    pool = torch.randn(6, dim, dtype=torch.float64, generator=draw) / (c * dim) ** 0.5
    biases = torch.randn(6, dtype=torch.float64, generator=draw)
    model.parameters["entity"] = model.geometry.exp0(pool)[kinds]
    model.parameters["object_bias"] = biases[kinds]
    model.parameters["subject_bias"] = torch.randn(len(kinds), dtype=torch.float64, generator=draw)
    shift = torch.randn(2 * relations, dim, dtype=torch.float64, generator=draw) / (4 * c * dim) ** 0.5
    model.parameters["translation"] = model.geometry.exp0(shift)
    return model


def textbook_score(model: MultiRelational, s: int, r: int, o: int) -> float:
    """Equations 4 and 5 as they are printed."""
    row = {name: values.numpy() for name, values in model.parameters.items()}
    e_s, e_o, stretch, shift = row["entity"][s], row["entity"][o], row["subject_stretch"][r], row["translation"][r]
    biases = float(row["subject_bias"][s] + row["object_bias"][o])
    if model.geometry.name == "euclidean":
        return -float(((stretch * e_s - (e_o + shift)) ** 2).sum()) + biases
    c = model.geometry.c  # type: ignore[attr-defined]

    def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        xy, xx, yy = x @ y, x @ x, y @ y
        return ((1 + 2 * c * xy + c * yy) * x + (1 - c * xx) * y) / (1 + 2 * c * xy + c * c * xx * yy)

    length = math.sqrt(c * (e_s @ e_s))
    tangent = stretch * (math.atanh(length) / length * e_s)
    reach = math.sqrt(c * (tangent @ tangent))
    moved = math.tanh(reach) / reach * tangent
    apart = add(-moved, add(e_o, shift))
    return -((2 / math.sqrt(c) * math.atanh(math.sqrt(c * (apart @ apart)))) ** 2) + biases


def textbook_table(model: MultiRelational, kinds: list[int]) -> np.ndarray:
    """(N, 2R, N): every score once for each kind of object; scores of two kinds are apart by more than rounding."""
    entities, relations = model.num_entities, model.num_relations
    table = np.empty((entities, relations, entities))
    first = [kinds.index(kind) for kind in kinds]
    for s, r, o in np.ndindex(table.shape):
        table[s, r, o] = textbook_score(model, s, r, o) if first[o] == o else table[s, r, first[o]]
        others = [table[s, r, p] for p in range(o) if kinds[p] != kinds[o]]
        assume(all(abs(other - table[s, r, o]) > 1e-9 for other in others))
    return table


@st.composite
def graphs(draw: st.DrawFn) -> tuple[KnowledgeGraph, list[int]]:
    """A graph and the kind of each of its entities."""
    kinds = draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    relations = draw(st.integers(1, 2))
    entity = st.integers(0, len(kinds) - 1)
    facts = st.lists(st.tuples(entity, st.integers(0, relations - 1), entity), max_size=6)
    splits = {"train": draw(facts), "valid": draw(facts), "test": draw(facts.filter(len))}
    return graph_of(len(kinds), relations, **splits), kinds


def one_of_everything() -> tuple[KnowledgeGraph, list[int]]:
    return graph_of(1, 1, test=[(0, 0, 0)]), [0]


def a_loop_among_repeated_facts() -> tuple[KnowledgeGraph, list[int]]:
    facts: list[Fact] = [(1, 0, 1), (1, 0, 2), (1, 0, 2), (2, 0, 1)]
    return graph_of(4, 1, train=facts, valid=[(1, 0, 2), (3, 0, 1)], test=[(1, 0, 1)]), [0, 1, 1, 2]


@engines
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=at_most(25))
@given(
    case=graphs(),
    dim=st.integers(1, 4),
    c=st.sampled_from([1.0, 0.3, 2.0]),
    protocol=st.sampled_from(PROTOCOLS),
    seed=st.integers(0, 2**16),
)
@example(case=one_of_everything(), dim=1, c=1.0, protocol="standard", seed=0)
@example(case=one_of_everything(), dim=1, c=1.0, protocol="paper", seed=0)
@example(case=a_loop_among_repeated_facts(), dim=2, c=2.0, protocol="standard", seed=1)
@example(case=a_loop_among_repeated_facts(), dim=2, c=2.0, protocol="paper", seed=1)
def test_ranks_are_those_of_the_definition(
    engine: str,
    name: str,
    case: tuple[KnowledgeGraph, list[int]],
    dim: int,
    c: float,
    protocol: Protocol,
    seed: int,
) -> None:
    graph, kinds = case
    model = model_of(name, kinds, graph.num_relations, dim, seed, c)
    table = textbook_table(model, kinds)
    tail, head = brute_force_ranks(table, tuples(graph.test), tuples(graph.facts()), protocol)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "kernel_for", lambda _: ENGINES[engine])
        known = KnownFacts.of(graph)
        ranks = rank(model, graph.test, known, num_relations=graph.num_relations, protocol=protocol)
    assert ranks.tail.tolist() == tail
    assert ranks.head.tolist() == head


@engines
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("table", "row"), [("entity", 5), ("object_bias", 0), ("translation", 1)])
def test_nan_is_refused(engine: str, name: str, table: str, row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(6, 2, test=[(1, 0, 2), (3, 1, 4)])
    model = model_of(name, [0, 1, 2, 3, 4, 5], 2, 2, 0, 1.0)
    model.parameters[table][row] = math.nan
    monkeypatch.setattr(fused, "kernel_for", lambda _: ENGINES[engine])
    asked = "entity 3, relation 1" if table == "translation" else "entity 1, relation 0"
    with pytest.raises(NotFiniteError, match=asked):
        rank(model, graph.test, KnownFacts.of(graph), num_relations=2)


@engines
@pytest.mark.parametrize("name", MODELS)
def test_more_entities_than_a_tile_and_more_queries_than_a_batch(
    engine: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1030 entities of six kinds, one of them alone at the end; memory for one query at a time."""
    kinds = [*[0, 1, 2, 3, 4] * 205, 0, 0, 0, 0, 5]
    graph = graph_of(1030, 1, train=[(0, 0, 1), (0, 0, 1029)], test=[(0, 0, 1025), (0, 0, 1029)])
    model = model_of(name, kinds, 1, 3, 4, 1.0)
    table = {
        (s, r): [textbook_score(model, s, r, o) for o in (*range(5), 1029)] for s, r in ((0, 0), (1025, 1), (1029, 1))
    }
    scores = np.zeros((1030, 2, 1030))
    for (s, r), of_kinds in table.items():
        scores[s, r] = np.array(of_kinds)[kinds]
    monkeypatch.setattr(fused, "kernel_for", lambda _: ENGINES[engine])
    ranks = rank(model, graph.test, KnownFacts.of(graph), num_relations=1, memory=1030 * BYTES_PER_CELL)
    expected = brute_force_ranks(scores, tuples(graph.test), tuples(graph.facts()), "standard")
    assert (ranks.tail.tolist(), ranks.head.tolist()) == expected


class Scores:
    """A kernel that gives the scores themselves, by the words of :class:`murp.evaluation.fused.Kernel`."""

    def ball(self, terms: fused.BallTerms, *_: Tensor) -> Tensor:
        xv, vr, q, (vv, g, bias) = terms.xv.matrix(), terms.vr[terms.group], terms.of_query, terms.entities
        z = g * (q[:, :1] + q[:, 1:2] * vv + q[:, 2:3] * xv + vr * (q[:, 3:4] + q[:, 4:] * xv))
        return bias - 4 / terms.c * torch.asinh(z.clamp(min=0).sqrt()).square()

    def flat(self, terms: fused.FlatTerms, *_: Tensor) -> Tensor:
        yv, (vv, bias) = terms.yv.matrix(), terms.entities
        return bias - (terms.yy[:, None] + vv - 2 * yv).clamp(min=0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("c", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("asked", [[0], [3, 0, 0], [1, 3, 2, 0]])
@pytest.mark.filterwarnings("error")  # PyTorch warns where the room for a product has another shape
def test_a_kernel_is_given_what_makes_the_scores(name: str, c: float, asked: list[int]) -> None:
    model = model_of(name, [0, 1, 2, 3, 4], 2, 3, 1, c)
    subjects, relations = torch.arange(len(asked)), np.array(asked)
    queries = torch.stack([subjects, torch.tensor(asked), *[torch.zeros_like(subjects)] * 4])
    rows = fused.Rows(cast(fused.Kernel, Scores()), model, len(asked))
    found = rows.through_kernel(queries, relations, torch.zeros(0))
    expected = model.score_objects(subjects, torch.tensor(asked)) - model.parameters["subject_bias"][subjects, None]
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("rows", "size"), [(0, 1), (1, 1), (2, 1), (11, 10), (11.5, 10), (101, 100)])
def test_memory_holds_two_products_and_a_row_more(rows: float, size: int) -> None:
    model = model_of("murp", [0] * 100, 1, 2, 0, 1.0)
    assert fused.batch_size(model, int(rows * 2 * 100 * 8)) == size


@pytest.mark.parametrize("entities", [1, 1000, 10**6, 10**9])
def test_a_cpu_makes_no_larger_products_than_it_gains_from(entities: int) -> None:
    model = model_of("murp", [0], 1, 2, 0, 1.0)
    model.num_entities = entities
    size = fused.batch_size(model, 2**80)
    assert size >= fused.CPU_ROWS
    assert size * entities <= max(fused.CPU_CELLS, fused.CPU_ROWS * entities)


@pytest.mark.parametrize(("size", "rows"), [(3, 3), (10, 10), (500, 10)])
def test_there_is_room_for_a_batch_and_for_no_more_queries_than_are_asked(
    size: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[fused.Rows] = []
    through_kernel = fused.Rows.through_kernel

    def noting(self: fused.Rows, *asked: Any) -> Tensor:
        made.append(self)
        return through_kernel(self, *asked)

    monkeypatch.setattr(fused.Rows, "through_kernel", noting)
    graph, queries = graph_of(4, 1, test=[(0, 0, 1)]), np.zeros(10, dtype=np.int64)
    model = model_of("murp", [0, 1, 2, 3], 1, 2, 0, 1.0)
    fused.fused_ranks(triton_ranks, model, KnownFacts.of(graph), queries, queries, queries + 1, queries - 1, size)
    assert {made_rows.room.shape for made_rows in made if made_rows.room is not None} == {(rows, 4)}
    assert len(made) == math.ceil(10 / size)


@pytest.mark.parametrize(
    ("table", "place", "value"),
    [
        ("entity", (2, 0), math.nan),
        ("entity", (2, 0), 1.5),  # outside the ball: distances to it would come out as 0
        ("translation", (1, 1), math.inf),
        ("object_bias", (3,), math.inf),
        ("subject_bias", (3,), -math.inf),
    ],
)
def test_a_model_that_left_its_space_is_not_evaluated(table: str, place: tuple[int, ...], value: float) -> None:
    graph, kinds = a_loop_among_repeated_facts()
    model = model_of("murp", kinds, 1, 2, 0, 1.0)
    evaluate(model, graph)
    model.parameters[table][place] = value
    with pytest.raises(NotFiniteError, match=rf"{table} \(row {place[0]}\).*lower learning rate"):
        evaluate(model, graph)
