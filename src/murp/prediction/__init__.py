"""Asking a trained model: likely facts, near entities."""

from murp.prediction.nearest import Neighbour, nearest
from murp.prediction.predict import Prediction, predict

__all__ = ["Neighbour", "Prediction", "nearest", "predict"]
