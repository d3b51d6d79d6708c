"""Knowledge graphs: read, indexed, audited, split."""

from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split, Triples
from murp.graph.vocabulary import Vocabulary

__all__ = ["SPLITS", "KnowledgeGraph", "Split", "Triples", "Vocabulary"]
