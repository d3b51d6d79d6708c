"""Filtered ranking under named protocols, bounded in memory."""

from murp.evaluation.comparison import Comparison, Difference, compare_ranks
from murp.evaluation.evaluate import evaluate, known_answers
from murp.evaluation.metrics import HITS, Metrics, Report
from murp.evaluation.ranks import PROTOCOLS, Protocol, Ranks, Scorer, rank
from murp.graph import KnownFacts

__all__ = [
    "HITS",
    "PROTOCOLS",
    "Comparison",
    "Difference",
    "KnownFacts",
    "Metrics",
    "Protocol",
    "Ranks",
    "Report",
    "Scorer",
    "compare_ranks",
    "evaluate",
    "known_answers",
    "rank",
]
