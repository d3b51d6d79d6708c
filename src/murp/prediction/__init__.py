"""Asking a trained model: likely facts, near entities, what is new, how probable, true or false."""

from murp.prediction.batch import count_queries, predict_file
from murp.prediction.calibration import Calibration, calibrate
from murp.prediction.classification import Classification, classify
from murp.prediction.discovery import Discoveries, discover
from murp.prediction.nearest import Neighbour, nearest
from murp.prediction.predict import Prediction, predict
from murp.prediction.top import Best, top_objects

__all__ = [
    "Best",
    "Calibration",
    "Classification",
    "Discoveries",
    "Neighbour",
    "Prediction",
    "calibrate",
    "classify",
    "count_queries",
    "discover",
    "nearest",
    "predict",
    "predict_file",
    "top_objects",
]
