"""Questions with all their answers, as steps of one shape."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import at_most
from murp.training.sampler import Answers


def some_facts(seed: int, number: int = 300) -> np.ndarray:
    """Few subjects and many objects, with repetitions."""
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.integers(0, high, number) for high in (9, 4, 40)]).astype(np.int32)


@settings(max_examples=at_most(30), deadline=None)
@given(seed=st.integers(0, 1000), steps=st.integers(1, 4), size=st.integers(1, 12))
def test_the_labels_of_questions_are_their_answers(seed: int, steps: int, size: int) -> None:
    facts = some_facts(seed)
    answers = Answers(facts, torch.device("cpu"))
    asked = torch.randint(len(answers.questions), (steps, size), generator=torch.Generator().manual_seed(seed))
    labels = answers.labels(asked)
    known = {tuple(fact) for fact in facts.tolist()}
    for step in range(steps):
        real = labels.weight[step] > 0
        pairs = list(zip(labels.rows[step][real].tolist(), labels.objects[step][real].tolist(), strict=True))
        expected = []
        for b, question in enumerate(asked[step].tolist()):
            s, r, _ = answers.questions[question].tolist()
            expected += [(b, o) for o in range(40) if (s, r, o) in known]
        assert sorted(pairs) == expected


def test_steps_have_few_shapes() -> None:
    """Each shape is a CUDA graph of its own, which is captured and kept."""
    answers = Answers(some_facts(0, 3000), torch.device("cpu"))
    draw = torch.Generator().manual_seed(0)
    lengths = [
        (labels.weight.shape[1], int(labels.weight.sum(1).max()))
        for labels in (
            answers.labels(torch.randint(len(answers.questions), (1, 24), generator=draw)) for _ in range(200)
        )
    ]
    assert len({longest for _, longest in lengths}) > 30
    assert len({length for length, _ in lengths}) <= 8
    assert all(longest <= length <= 1.25 * longest for length, longest in lengths)
