"""How hierarchical a graph is, and how an embedding represents it.

The second part needs PyTorch and is imported from its modules, :mod:`murp.analysis.embedding` and
:mod:`murp.analysis.higher`; this module does not import PyTorch.
"""

from murp.analysis.advice import Advice, advise, advise_on_relation
from murp.analysis.correlation import Correlation, spearman
from murp.analysis.depth import Levels, find_levels, shortest_path
from murp.analysis.directed import Directed, Edges
from murp.analysis.hierarchy import ShortestPaths, krackhardt_score, shortest_paths
from murp.analysis.hyperbolicity import Hyperbolicity, hyperbolicity
from murp.analysis.relations import RelationProfile, profile, relation_edges, relation_profiles

__all__ = [
    "Advice",
    "Correlation",
    "Directed",
    "Edges",
    "Hyperbolicity",
    "Levels",
    "RelationProfile",
    "ShortestPaths",
    "advise",
    "advise_on_relation",
    "find_levels",
    "hyperbolicity",
    "krackhardt_score",
    "profile",
    "relation_edges",
    "relation_profiles",
    "shortest_path",
    "shortest_paths",
    "spearman",
]
