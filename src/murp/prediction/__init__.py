"""Predictions of a trained model: likely facts, nearest entities, new facts, probabilities, true or false.

answers.py         the best answers to questions; known facts left out, or marked
search.py          the search behind them; numba_top.py and numba_scores.py: its compiled loops
queries.py         files of questions and of triples
results.py         files of answers
discovery.py       the most probable facts that are not known
nearest.py         the entities nearest to one
classification.py  true or false, by thresholds
calibration.py     probabilities that mean what they say; candidates.py: what they are fitted to; probability.py: how
                   good they are
"""

from murp.prediction.answers import Answers, Prediction, Ranking, predict
from murp.prediction.calibration import Calibration, calibrate
from murp.prediction.classification import Classification, classify
from murp.prediction.discovery import Discoveries, discover
from murp.prediction.nearest import Neighbour, nearest
from murp.prediction.results import count_queries, predict_file
from murp.prediction.search import Best, top_objects

__all__ = [
    "Answers",
    "Best",
    "Calibration",
    "Classification",
    "Discoveries",
    "Neighbour",
    "Prediction",
    "Ranking",
    "calibrate",
    "classify",
    "count_queries",
    "discover",
    "nearest",
    "predict",
    "predict_file",
    "top_objects",
]
