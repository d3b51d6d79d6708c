"""Answers to a question as JSON has them."""

from __future__ import annotations

from typing import Any

import torch

from murp.graph import split_names
from murp.prediction import Calibration, Ranking
from murp.web.names import Index


def listed(ranking: Ranking, entities: Index, calibration: Calibration | None) -> list[dict[str, Any]]:
    """The answers to one question, best first; ``calibrated`` where there is a calibration."""
    ids, names = entities.ids, entities.names
    probabilities = torch.sigmoid(torch.from_numpy(ranking.scores))
    columns = ranking.entities.tolist(), ranking.scores.tolist(), probabilities.tolist(), split_names(ranking.splits)
    predictions: list[dict[str, Any]] = [
        {"rank": rank, "id": ids[i], "name": names[i], "score": score, "probability": p, "known": split}
        for rank, (i, score, p, split) in enumerate(zip(*columns, strict=True), start=1)
    ]
    if calibration is not None:
        calibrated = calibration.probability(ranking.scores, ranking.places).tolist()
        for prediction, probability in zip(predictions, calibrated, strict=True):
            prediction["calibrated"] = probability
    return predictions
