"""Asking a trained model: likely facts, near entities, what is new, how probable, true or false."""

from murp.prediction.answers import Answers, Prediction, Ranking, predict
from murp.prediction.batch import count_queries, predict_file
from murp.prediction.calibration import Calibration, calibrate
from murp.prediction.classification import Classification, classify
from murp.prediction.discovery import Discoveries, discover
from murp.prediction.nearest import Neighbour, nearest
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
