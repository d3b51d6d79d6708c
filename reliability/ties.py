"""Equal entities have equal scores in every path: 10,000 random shapes, both precisions, both models.

    python reliability/ties.py --out results/reliability_ties.json
    python reliability/ties.py --only triton --out results/reliability_ties_gpu.json     # where there is a GPU

A model is drawn and each of its entities repeated some times at random places. By every path (PyTorch's scores, ranks
by Numba and by Triton, the best answers, the explorer's answers, the nearest entities) copies must have one score to
the bit, and the score of a question must not depend on what else is asked with it. Triton's kernel runs on a GPU where
there is one, and through its interpreter otherwise, on fewer shapes. The fused ranks of Numba and Triton are of the
paper's published models, so they are given shapes of those alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from measure import result, store
from murp.evaluation import KnownFacts, fused, rank
from murp.models import BIASES, MODELS, TRANSFORMATIONS, MultiRelational
from murp.prediction.nearest import distances_from
from murp.prediction.search import Scores, top_objects

RELATIONS = 3


@dataclass(frozen=True)
class Shape:
    """A model of ``entities`` distinct entities, each ``copies`` times, and how many questions are asked at once."""

    model: str
    entities: int
    copies: int
    dim: int
    queries: int
    dtype: str
    seed: int
    transformation: str = "published"
    bias: str = "both"


FUSED = ("numba", "triton")  # paths that know the published models alone


def drawn_shapes(path: str, seed: int, count: int) -> Iterator[Shape]:
    """Shapes of all sizes up to some thousand entities; every third is another model of the paper, if the path can."""
    draw = np.random.default_rng(seed)
    for i in range(count):
        other = i % 3 == 2 and path not in FUSED
        yield Shape(
            model=str(draw.choice(list(MODELS))),
            entities=int(draw.integers(1, [4, 40, 700][i % 3])),
            copies=int(draw.integers(2, 6)),
            dim=int(draw.integers(1, [9, 60, 130][i % 3])),
            queries=int(draw.integers(1, 8)),
            dtype=str(draw.choice(["float32", "float64"])),
            seed=int(draw.integers(2**31)),
            transformation=str(draw.choice(list(TRANSFORMATIONS))) if other else "published",
            bias=str(draw.choice(list(BIASES))) if other else "both",
        )


def crowd(shape: Shape) -> tuple[MultiRelational, np.ndarray]:
    """The model, and which distinct entity each of its entities is a copy of."""
    dtype = getattr(torch, shape.dtype)
    parts: Any = {"transformation": shape.transformation, "bias": shape.bias}
    model: Any = MODELS[shape.model](shape.entities * shape.copies, 2 * RELATIONS, shape.dim, dtype=dtype, **parts)
    model.initialise(shape.seed)
    draw = torch.Generator().manual_seed(shape.seed)
    kinds = torch.arange(shape.entities).repeat(shape.copies)[
        torch.randperm(shape.entities * shape.copies, generator=draw)
    ]
    for table in model.tables:
        values = model.parameters[table.name]
        drawn = torch.randn(values.shape, dtype=dtype, generator=draw) / max(1, 2 * shape.dim**0.5)
        drawn = table.geometry.project(drawn) if table.shape else drawn
        model.parameters[table.name] = drawn[kinds] if table.of == "entity" else drawn
    return model, kinds.numpy()


def questions(shape: Shape, model: MultiRelational) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(shape.seed)
    return draw.integers(model.num_entities, size=shape.queries), draw.integers(2 * RELATIONS, size=shape.queries)


def equal_within_kinds(values: np.ndarray, kinds: np.ndarray) -> bool:
    """Whether entities of one kind have one value, row by row."""
    first = np.unique(kinds, return_index=True)[1]
    return bool(np.array_equal(values, values[..., first[kinds]], equal_nan=False))


def by_torch(shape: Shape) -> None:
    model, kinds = crowd(shape)
    subjects, relations = questions(shape, model)
    asked = torch.from_numpy(subjects), torch.from_numpy(relations)
    scores = model.score_objects(*asked).numpy()
    assert equal_within_kinds(scores, kinds), shape
    alone = model.score_objects(asked[0][-1:], asked[1][-1:]).numpy()
    assert np.array_equal(alone[0], scores[-1]), shape


def ranks_by(kernel: str | None, shape: Shape) -> None:
    """Copies tie if each rank is a number of whole crowds and half of the target's own.

    Where two kinds of entities have one score by chance, which happens in float32, half a crowd more is right.
    """
    model, _ = crowd(shape)
    heads, relations = questions(shape, model)
    tails = np.random.default_rng(shape.seed + 1).integers(model.num_entities, size=shape.queries)
    triples = np.stack([heads, relations % RELATIONS, tails], 1).astype(np.int32)
    nothing = KnownFacts(np.empty((0, 3), np.int32), RELATIONS)
    before = fused.kernel_for
    try:
        if kernel == "triton":
            from murp.evaluation import triton_ranks

            fused.kernel_for = lambda _: triton_ranks  # type: ignore[assignment]
            if torch.cuda.is_available():
                model.to("cuda")
        elif kernel is None:
            fused.kernel_for = lambda _: None  # type: ignore[assignment]
        found = rank(model, triples, nothing, num_relations=RELATIONS)
        one = rank(model, triples[-1:], nothing, num_relations=RELATIONS)
    finally:
        fused.kernel_for = before
    ranks = np.append(found.tail, found.head)
    halves = (ranks - 1 - (shape.copies - 1) / 2) * 2 / shape.copies
    assert np.array_equal(halves, halves.round()), (shape, ranks)
    assert (one.tail[0], one.head[0]) == (found.tail[-1], found.head[-1]), shape


def by_best(shape: Shape) -> None:
    model, kinds = crowd(shape)
    subjects, relations = questions(shape, model)
    best = top_objects(model, subjects, relations, model.num_entities)
    scores = np.empty_like(best.scores)
    np.put_along_axis(scores, best.entities, best.scores, 1)
    assert equal_within_kinds(scores, kinds), shape


def by_explorer(shape: Shape) -> None:
    model, kinds = crowd(shape)
    scores = Scores(model, ready=True)
    for subject, relation in zip(*questions(shape, model), strict=True):
        assert equal_within_kinds(scores(int(subject), int(relation)), kinds), shape


def by_nearest(shape: Shape) -> None:
    model, kinds = crowd(shape)
    for subject in questions(shape, model)[0]:
        assert equal_within_kinds(distances_from(model, int(subject)).numpy(), kinds), shape


PATHS: dict[str, Callable[[Shape], None]] = {
    "torch": by_torch,
    "numba": lambda shape: ranks_by("numba", shape),
    "triton": lambda shape: ranks_by("triton", shape),
    "generic ranks": lambda shape: ranks_by(None, shape),
    "best answers": by_best,
    "explorer": by_explorer,
    "nearest": by_nearest,
}


def check_shape(path: str, shape: Shape) -> None:
    """Raise AssertionError where copies of an entity do not tie."""
    PATHS[path](shape)


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shapes", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", nargs="+", choices=PATHS, default=list(PATHS), help="of the paths")
    options.add_argument("--quick", action="store_true", help="few shapes: does it run at all?")
    options.add_argument("--out", type=Path, help="write the result here")
    chosen = options.parse_args(arguments)
    shapes = 6 if chosen.quick else chosen.shapes
    figures: dict[str, Any] = {}
    for path in chosen.only:
        interpreted = path == "triton" and not torch.cuda.is_available()
        count = shapes // 50 + 1 if interpreted else shapes
        failed: list[Shape] = []
        for shape in drawn_shapes(path, chosen.seed, count):
            try:
                check_shape(path, shape)
            except AssertionError:
                failed.append(shape)
        figures[path] = {
            "shapes": count,
            "untied": len(failed),
            "untied shapes named": [asdict(shape) for shape in failed[:3]],
        }
    settings = {"shapes": shapes, "seed": chosen.seed}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    store(result("copies of entities that do not tie", settings, figures, device), chosen.out)
    return int(any(part["untied"] for part in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
