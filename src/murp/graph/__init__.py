"""Knowledge graphs: reading, numbering, auditing, splitting, and looking up known facts."""

from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split, Triples
from murp.graph.known_facts import Indices, KnownFacts, relations_with_loops, split_names
from murp.graph.names.vocabulary import Vocabulary

__all__ = [
    "SPLITS",
    "Indices",
    "KnowledgeGraph",
    "KnownFacts",
    "Split",
    "Triples",
    "Vocabulary",
    "relations_with_loops",
    "split_names",
]
