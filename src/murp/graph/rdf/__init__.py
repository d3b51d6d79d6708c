"""RDF: statements as columns, OWL and SKOS as facts, labels as names. :mod:`murp.graph.formats.rdf` puts them together.

statements.py  N-Triples in blocks, and every other syntax by pyoxigraph
turtle.py      plain Turtle, cut at its blanks
ontology.py    facts from blank nodes, OWL's class expressions and declarations
labels.py      names and glosses from literals
"""
