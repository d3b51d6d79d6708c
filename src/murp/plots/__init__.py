"""Pictures: charts of measured values, and pictures of a run."""

from murp.plots.answers import Question, ask, question
from murp.plots.charts import (
    convergence,
    difference_by_share,
    mrr_by_dimension,
    norms_against_biases,
    relation_bars,
    reliability,
)
from murp.plots.style import save

__all__ = [
    "Question",
    "ask",
    "convergence",
    "difference_by_share",
    "mrr_by_dimension",
    "norms_against_biases",
    "question",
    "relation_bars",
    "reliability",
    "save",
]
