"""Calibrated probabilities of answers: fitted on valid, checked on test.

Training maximises σ(φ) of facts against 50 random corruptions each, so σ(φ) is not the share of such answers that are
true. Here the ranked candidates of the questions of valid are used; a candidate is true if valid has it
(:mod:`murp.prediction.candidates`). Both score and rank matter: among thousands of candidates, the first one is true
far more often than another one with the same score. Two maps are fitted.

- ``platt``: σ(z) with z = aφ - c ln(place) + b, a logistic regression on the ``SHOWN`` best answers of each question.
  Fitted on all candidates it would suit the millions with low scores, which nobody reads.
- ``isotonic``: the non-decreasing function of z that is nearest to the truth over all candidates.

The probability is for questions that still have an unknown answer, and counts only held-out facts as true: it is
cautious if the graph is incomplete, and too high for a question whose answers are all known.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from murp.commands import command
from murp.errors import ConfigError, RunError
from murp.files import fields, parse_json
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.prediction import platt
from murp.prediction.candidates import Candidates, candidates
from murp.prediction.isotonic import Steps, isotonic
from murp.prediction.platt import Platt
from murp.prediction.probability import Floats, brier, log_loss, reliability, sigmoid
from murp.rows import Tabular
from murp.settings import whole_number

Method = Literal["platt", "isotonic"]
METHODS: tuple[Method, ...] = ("platt", "isotonic")

SHOWN = 10  # answers of a question: what `murp predict` shows unless told otherwise
CONDITION = """for questions with an answer still to be found, counting as true only what held-out facts state:
cautious where the graph is incomplete, too high where nothing is left to find"""

FORMAT = 2
_NUMBER = int | float
_FIELDS = {"method": str, "platt": dict, "steps": dict, "epoch": int, "seed": int, "fitted_on": dict, "test": dict}


@dataclass(frozen=True, repr=False)
class Calibration(Tabular):
    """Both maps, which of them to use, and their quality on test.

    As a table: the quality of the maps, with a row for each part of test and each map.
    """

    method: Method
    platt: Platt
    steps: Steps
    epoch: int  # of the weights it was fitted to
    seed: int
    fitted_on: dict[str, Any]
    test: dict[str, Any]

    def probability(self, scores: ArrayLike, places: ArrayLike, method: Method | None = None) -> Floats:
        """The calibrated probabilities of answers with these scores and these ranks (from 1) among new answers."""
        evidence = self.platt.log_odds(scores, places)
        return sigmoid(evidence) if (method or self.method) == "platt" else self.steps.at(evidence)

    def columns(self) -> dict[str, list[Any]]:
        """Part of test, map, how many candidates and answers, mean probability, Brier score, log loss."""
        cells = [(part, kind) for part in ("shown", "all") for kind in ("uncalibrated", *METHODS)]
        counts = {name: [self.test[part][name] for part, _ in cells] for name in ("candidates", "answers")}
        worth = {name: [self.test[part][kind][name] for part, kind in cells] for name in ("mean", "brier", "log_loss")}
        return {"answers_of": [part for part, _ in cells], "map": [kind for _, kind in cells], **counts, **worth}

    def words(self) -> str:
        """How it was made, in one line."""
        answers, questions = (self.fitted_on[name] for name in ("answers", "questions"))
        pairs = f"{answers:,} answers to {questions:,} questions of valid"
        return f"{self.method}, fitted on {pairs}, seed {self.seed}, epoch {self.epoch}"

    def __repr__(self) -> str:
        return f"Calibration({self.words()})"

    def to_json(self) -> str:
        """As ``calibration.json`` keeps it."""
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Calibration:
        """Inverse of :meth:`to_json`."""
        try:
            values = fields(parse_json(path.read_text(encoding="utf-8")), {"format": int})
            if (found := values.pop("format")) != FORMAT:
                raise ValueError(f"its format is {found}, and this version of murp reads {FORMAT}")
            fields(values, _FIELDS)
            if values["method"] not in METHODS:
                raise ValueError(f"its method is none of {', '.join(METHODS)}")
            fields(values["fitted_on"], {"questions": int, "answers": int})
            odds = Platt(**fields(values["platt"], {"slope": _NUMBER, "fall": _NUMBER, "intercept": _NUMBER}))
            steps = Steps.from_lists(**fields(values["steps"], {"places": list, "values": list}))
            return cls(**{**values, "platt": odds, "steps": steps})
        except (OSError, ValueError, TypeError) as error:
            raise RunError(
                f"{path} cannot be read: {error}. Run `{command('calibrate', path.parent)}` again."
            ) from None


def calibrate(
    model: Model, graph: KnowledgeGraph, *, method: Method = "platt", epoch: int, seed: int = 0
) -> Calibration:
    """Fit both maps on valid and check them on test; ``epoch`` is the epoch of the weights."""
    if method not in METHODS:
        raise ConfigError(f"method must be one of {', '.join(METHODS)}, not {method!r}.")
    seed = whole_number("seed", seed, least=0)
    valid, test = candidates(model, graph, "valid", seed), candidates(model, graph, "test", seed + 1)
    shown = valid.best(SHOWN)
    odds = platt.fit(shown.scores, shown.places, shown.true)
    steps = isotonic(odds.log_odds(valid.scores, valid.places), valid.true, valid.weights)
    fitted = Calibration(method, odds, steps, epoch, seed, fitted_on={"split": "valid", **_counts(valid)}, test={})
    parts = {"shown": test.best(SHOWN), "all": test}
    worth = {name: {**_counts(part), **_worth(fitted, part)} for name, part in parts.items()}
    return dataclasses.replace(fitted, test={"split": "test", **worth})


def _counts(of: Candidates) -> dict[str, int]:
    """How many questions, candidates, and true answers among them."""
    return {"questions": of.questions, "candidates": round(of.weights.sum()), "answers": int(of.true.sum())}


def _worth(fitted: Calibration, of: Candidates) -> dict[str, Any]:
    maps = {"uncalibrated": sigmoid(of.scores)}
    maps |= {method: fitted.probability(of.scores, of.places, method) for method in METHODS}
    return {
        name: {
            "mean": float(np.average(p, weights=of.weights)),
            "brier": brier(p, of.true, of.weights),
            "log_loss": log_loss(p, of.true, of.weights),
            "reliability": [dataclasses.asdict(b) for b in reliability(p, of.true, of.weights)],
        }
        for name, p in maps.items()
    }
