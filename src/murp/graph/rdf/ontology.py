"""Facts from RDF with blank nodes and vocabularies: OWL's class expressions, declarations, labels.

The rule. A statement between IRIs is a fact. So is one with a blank node, which is called ``_:b1``, ``_:b2``, … in
order of appearance, unless the node is part of a class expression, a list or an axiom of OWL. Of those, *A is a
subclass of, equivalent to, or of the type (P some B)* becomes the fact (A, P, B), also within an intersection, whose
named classes become superclasses of A; other expressions are left out. Statements that declare what kind of term
something is (of type owl:Class, skos:Concept, …) and those about the ontology itself are left out. Literals are left
out, but for labels, which become names, and definitions and synonyms, which become glosses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.graph.findings import Finding, noticed
from murp.graph.reading.columns import COLUMNS
from murp.graph.reading.facts import triples_of

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
LANGUAGES = (RDF, RDFS, OWL, SKOS)
PREFIXES = {
    "rdf": RDF,
    "rdfs": RDFS,
    "owl": OWL,
    "skos": SKOS,
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "obo": "http://purl.obolibrary.org/obo/",
    "oboInOwl": "http://www.geneontology.org/formats/oboInOwl#",
}
"""Prefixes that everybody knows; those of the file come before them."""

_TYPE, _SUBCLASS = f"{RDF}type", f"{RDFS}subClassOf"
_LEADS = (_SUBCLASS, f"{OWL}equivalentClass", _TYPE)
_ABOUT_ITSELF = (f"{OWL}imports", f"{OWL}versionIRI", f"{OWL}priorVersion", f"{OWL}backwardCompatibleWith")
_PARTS = (
    *(
        "onProperty",
        "someValuesFrom",
        "allValuesFrom",
        "hasValue",
        "intersectionOf",
        "unionOf",
        "complementOf",
        "oneOf",
    ),
    *("annotatedSource", "members", "distinctMembers", "sourceIndividual", "onDatatype", "withRestrictions"),
    *("inverseOf", "onClass", "datatypeComplementOf"),
)
_STRUCTURE = {f"{RDF}first", f"{RDF}rest", *(OWL + word for word in _PARTS)}
_DEEPEST = 50

Node = dict[str, list[str]]


def facts_of(statements: pa.Table, where: str) -> tuple[pa.Table, list[Finding]]:
    """The facts that statements without literals make, in their order, and what was left out."""
    of_node = pc.or_(pc.starts_with(statements["head"], "_:"), pc.starts_with(statements["tail"], "_:"))
    words = pa.array([_TYPE, *_ABOUT_ITSELF], pa.large_string())
    nodes = pc.any(of_node).as_py()
    if not nodes and not pc.any(pc.is_in(pc.unique(statements["relation"]), value_set=words)).as_py():
        return statements, []
    kind = pc.equal(statements["relation"], _TYPE)
    declared = [pc.starts_with(statements["tail"], language) for language in LANGUAGES]
    itself = pc.is_in(statements["relation"], value_set=pa.array(_ABOUT_ITSELF, pa.large_string()))
    declaring = pc.or_(pc.and_(kind, _any(declared)), itself)
    plain = statements.filter(pc.invert(pc.or_(of_node, declaring)))
    count = pc.sum(pc.and_not(declaring, of_node)).as_py() or 0
    findings = noticed("declarations", where, count, "declaration{s} of terms and of the ontology itself left out")
    if not nodes:
        return plain, findings
    places = pc.indices_nonzero(pc.invert(pc.or_(of_node, declaring))).to_numpy()
    rows = pc.indices_nonzero(of_node).to_numpy()
    reader = _Nodes(statements.filter(of_node))
    made = list(reader.facts())
    order = np.argsort(np.concatenate([places, rows[[place for place, _ in made]]]), kind="stable")
    further = triples_of(*([fact[i] for _, fact in made] for i in range(3)))
    facts = pa.concat_tables([plain, further]).take(pa.array(order))
    unread = "class expression{s} or axiom{s} left out (not of the form: P some B)"
    return facts, [*findings, *noticed("class_expressions", where, reader.unread, unread)]


def _any(masks: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    found = masks[0]
    for mask in masks[1:]:
        found = pc.or_(found, mask)
    return found


class _Nodes:
    """The statements that mention blank nodes."""

    def __init__(self, statements: pa.Table) -> None:
        self.rows = list(zip(*(statements[role].to_pylist() for role in COLUMNS), strict=True))
        self.nodes: dict[str, Node] = {}
        for head, relation, tail in self.rows:
            if head.startswith("_:"):
                self.nodes.setdefault(head, defaultdict(list))[relation].append(tail)
        self.unread = 0
        self.numbers: dict[str, str] = {}

    def facts(self) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """(the row it was made of, a fact)."""
        for place, (head, relation, tail) in enumerate(self.rows):
            if self._is_structure(head):
                self.unread += relation == _TYPE and tail in (f"{OWL}Axiom", f"{OWL}AllDisjointClasses")
            elif not self._is_structure(tail):
                if not (relation == _TYPE and tail.startswith(LANGUAGES)):
                    yield place, (self._called(head), relation, self._called(tail))
            elif relation in _LEADS:
                found = list(self._meant(self._called(head), tail, 0))
                self.unread += not found
                for fact in found:
                    yield place, fact
            else:
                self.unread += 1

    def _is_structure(self, term: str) -> bool:
        if term == f"{RDF}nil":
            return True
        node = self.nodes.get(term)
        if node is None:
            return False
        return any(word in _STRUCTURE for word in node) or any(kind.startswith(OWL) for kind in node.get(_TYPE, ()))

    def _called(self, term: str) -> str:
        if not term.startswith("_:"):
            return term
        return self.numbers.setdefault(term, f"_:b{len(self.numbers) + 1}")

    def _meant(self, head: str, expression: str, depth: int) -> Iterator[tuple[str, str, str]]:
        """The facts about ``head`` that follow from its being in a class."""
        node = self.nodes.get(expression, {})
        if depth > _DEEPEST:
            return
        for member in (one for begin in node.get(f"{OWL}intersectionOf", ()) for one in self._list(begin)):
            if member.startswith("_:"):
                yield from self._meant(head, member, depth + 1)
            else:
                yield head, _SUBCLASS, member
        for relation in node.get(f"{OWL}onProperty", ()):
            if not relation.startswith("_:"):
                for filler in [*node.get(f"{OWL}someValuesFrom", ()), *node.get(f"{OWL}hasValue", ())]:
                    yield from ((head, relation, tail) for tail in self._fillers(filler, depth))

    def _fillers(self, filler: str, depth: int) -> Iterator[str]:
        """The named classes that something in a class is in."""
        if not filler.startswith("_:"):
            yield filler
        elif depth <= _DEEPEST:
            for begin in self.nodes.get(filler, {}).get(f"{OWL}intersectionOf", ()):
                for member in self._list(begin):
                    yield from self._fillers(member, depth + 1)

    def _list(self, begin: str) -> Iterator[str]:
        """The members of an RDF list; one that runs in a circle ends where it began."""
        seen: set[str] = set()
        while begin in self.nodes and begin not in seen:
            seen.add(begin)
            yield from self.nodes[begin].get(f"{RDF}first", ())
            begin = next(iter(self.nodes[begin].get(f"{RDF}rest", ())), "")
