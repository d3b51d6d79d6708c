"""What must hold of a training, on every processor and with any number of threads."""

from __future__ import annotations

import numpy as np
import torch

from murp.runs import Run


def assert_learned(run: Run) -> None:
    """Every relation is known in both directions, and the loss falls below what can be had without looking.

    An MRR of a half: in the middle the true object comes second. Ranks at random have .075 here; ranks by how often an
    entity is an object are hardly better, since nearly all are equally often. A model that has learned one direction or
    one relation alone fails in the other's figure. (Over eight seeds of either model the least figure is .71.) One that
    knows no more than how many candidates are true, one of 1 + k, has their entropy for its loss: .097 here, a fifth of
    what the first epoch has, so that a falling loss alone says little.
    """
    report, graph = run.evaluate("train"), run.graph
    figures = {**report.by_direction, **report.by_relation}
    assert len(figures) == 2 + graph.num_relations
    assert all(figure.mrr > 0.5 for figure in figures.values()), figures
    losses = np.array([m["loss"] for m in run.metrics()])
    parts = losses.reshape(3, -1).mean(1)
    assert (np.diff(parts) < 0).all(), parts
    share = 1 / (1 + run.config.negatives)
    assert losses[-1] < 0.75 * -(share * np.log(share) + (1 - share) * np.log1p(-share))


def assert_same_up_to_rounding(a: Run, b: Run) -> None:
    """Two runs in float64 with the same batches and negatives.

    A step adds at most B(1 + k) terms into a row, each rounded by half of eps of the largest number around, and the
    bound is all roundings of all steps, as if each went the same way. They do not: the engines differ by 10⁻¹⁵ after
    200 steps. Another seed or rate is off by 10⁻¹ and more.
    """
    config = a.config
    steps = config.epochs * -(-2 * len(a.graph.train) // config.batch_size)
    roundings = steps * config.batch_size * (1 + config.negatives) * torch.finfo(torch.float64).eps / 2
    for name, values in a.model.parameters.items():
        bound = roundings * float(values.abs().max())
        torch.testing.assert_close(b.model.parameters[name], values, rtol=0, atol=bound)
