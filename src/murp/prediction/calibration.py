"""Probabilities that mean what they say: scores calibrated on valid, judged on test.

σ(φ) is what training maximises, against 50 random corruptions a fact; nothing makes it the share of such answers
that are true. Two monotone maps from φ to a probability are fitted to the facts of valid and as many random
corruptions of theirs: Platt's σ(aφ + b), and isotonic regression. The probability is therefore that of a fact
against one random corruption, each as likely before the score is seen; among the best of thousands of candidates
fewer are true.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from murp.errors import NotFiniteError, RunError
from murp.files import fields, parse_json
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.prediction.corruptions import Judged, judge_both_sides
from murp.prediction.isotonic import Steps, isotonic
from murp.prediction.probability import Floats, brier, log_loss, reliability, sigmoid

Method = Literal["platt", "isotonic"]
METHODS: tuple[Method, ...] = ("platt", "isotonic")

FORMAT = 1
_FIELDS = {
    "format": int,
    "method": str,
    "slope": int | float,
    "intercept": int | float,
    "steps": dict,
    "epoch": int,
    "seed": int,
    "fitted_on": dict,
    "test": dict,
}


@dataclass(frozen=True)
class Calibration:
    """Both maps, which of them to use, and what they are worth on test."""

    method: Method
    slope: float
    intercept: float
    steps: Steps
    epoch: int  # of the weights it was fitted to
    seed: int
    fitted_on: dict[str, Any]
    test: dict[str, Any]

    def probability(self, scores: Floats, method: Method | None = None) -> Floats:
        """The calibrated probabilities of scores of any shape."""
        if (method or self.method) == "platt":
            return sigmoid(self.slope * scores + self.intercept)
        return self.steps.at(scores)

    def words(self) -> str:
        """How it came about, in a line."""
        pairs = f"{self.fitted_on['answers']:,} answers of valid and as many corruptions"
        return f"{self.method}, fitted on {pairs}, seed {self.seed}, epoch {self.epoch}"

    def to_json(self) -> str:
        """As ``calibration.json`` keeps it."""
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Calibration:
        """Inverse of :meth:`to_json`."""
        try:
            values = fields(parse_json(path.read_text(encoding="utf-8")), _FIELDS)
            if values.pop("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            if values["method"] not in METHODS:
                raise ValueError(f"its method is none of {', '.join(METHODS)}")
            fields(values["fitted_on"], {"answers": int})
            steps = Steps.from_lists(**fields(values["steps"], {"places": list, "values": list}))
            return cls(**{**values, "steps": steps})
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"{path} cannot be read: {error}. Run `murp calibrate {path.parent}` again.") from None


def calibrate(
    model: Model, graph: KnowledgeGraph, *, method: Method = "platt", epoch: int, seed: int = 0
) -> Calibration:
    """Fit both maps on valid and judge them on test; ``epoch`` says of which weights."""
    valid, test = judge_both_sides(model, graph, "valid", seed), judge_both_sides(model, graph, "test", seed + 1)
    for judged in (valid, test):
        if not np.isfinite(judged.scores).all():
            raise NotFiniteError("the model gives scores that are not finite. Train again with a lower learning rate.")
    slope, intercept = platt(valid.scores, valid.true)
    fitted = Calibration(
        method,
        slope,
        intercept,
        isotonic(valid.scores, valid.true),
        epoch,
        seed,
        fitted_on={"split": "valid", "answers": int(valid.true.sum()), "corruptions": int((~valid.true).sum())},
        test={},
    )
    return dataclasses.replace(fitted, test=_worth(fitted, test))


def _worth(fitted: Calibration, judged: Judged) -> dict[str, Any]:
    maps: dict[str, Floats] = {"uncalibrated": sigmoid(judged.scores)}
    maps |= {method: fitted.probability(judged.scores, method) for method in METHODS}
    report: dict[str, Any] = {
        "split": "test",
        "answers": int(judged.true.sum()),
        "corruptions": int((~judged.true).sum()),
    }
    for name, probabilities in maps.items():
        report[name] = {
            "brier": brier(probabilities, judged.true),
            "log_loss": log_loss(probabilities, judged.true),
            "reliability": [dataclasses.asdict(b) for b in reliability(probabilities, judged.true)],
        }
    return report


def platt(scores: Floats, true: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope a ≥ 0 and intercept b that minimise the log loss of σ(aφ + b), by Newton's method.

    As Platt does, the targets are (n₊ + 1)/(n₊ + 2) for facts and 1/(n₋ + 2) for the others, so that the minimum exists
    where the scores part the two completely. Scores are standardised on the way: the Hessian is then well conditioned.
    """
    positives, negatives = true.sum(), (~true).sum()
    targets = np.where(true, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    mean, spread = scores.mean(), scores.std() or 1.0
    features = np.column_stack([(scores - mean) / spread, np.ones_like(scores)])

    def loss(of: Floats) -> float:
        z = features @ of
        return float(np.mean(np.logaddexp(0, z) - targets * z))

    weights = np.array([0.0, 0.0])
    for _ in range(100):
        p = sigmoid(features @ weights)
        gradient = features.T @ (p - targets) / len(p)
        hessian = (features * (p * (1 - p))[:, None]).T @ features / len(p) + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        before, size = loss(weights), 1.0
        while loss(weights - size * step) > before and size > 1e-10:
            size /= 2
        weights = weights - size * step
        if np.abs(size * step).max() < 1e-10:
            break
    if weights[0] < 0:
        # Better scores for what is false: the loss is convex, so that the best of what is left has the slope 0.
        share = targets.mean()
        return 0.0, float(np.log(share / (1 - share)))
    return float(weights[0] / spread), float(weights[1] - weights[0] * mean / spread)
