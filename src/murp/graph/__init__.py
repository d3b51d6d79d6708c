"""Knowledge graphs: reading, numbering, auditing, splitting, and looking up known facts.

knowledge_graph.py  numbered facts with names, in three splits
known_facts.py      which facts are known, and in which split
types.py            which entities may answer a question
shape.py            the shape of a graph in four numbers
keys.py             rows of numbers as single numbers, to sort and compare them

sources.py          from a dataset's name, a folder or a file to a graph
datasets.py         the named datasets; download.py fetches them
building.py         graphs from Python objects
assembly.py         one graph from the facts of several files
indexing.py         from names to numbers
splitting.py        train, valid and test out of one set of facts
adding_facts.py     more facts for a graph
convert.py          a graph as files for other tools
storage.py          a graph in coded form on disk; arrays.py writes its arrays
cache.py            parsed graphs, kept for the next start
findings.py         findings about data, from readers and from the audit

formats/, folders/  one file for each format that is read
reading/            what the readers of all formats share
rdf/                RDF, OWL and SKOS
names/              names of entities and relations
auditing/           flaws of a dataset
large/              graphs larger than memory, with the same result
bundled/            the graph that comes with murp
"""

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
