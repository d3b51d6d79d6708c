"""RDF: N-Triples, N-Quads, Turtle, TriG, RDF/XML and JSON-LD, with OWL and SKOS in any of them.

What becomes a fact, a name, and what is left out: :mod:`murp.graph.rdf.ontology` and :mod:`murp.graph.rdf.labels`.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.findings import noticed
from murp.graph.rdf.labels import TELLING, names_of_literals
from murp.graph.rdf.ontology import PREFIXES, facts_of
from murp.graph.rdf.statements import FORMATS, Source
from murp.graph.reading.columns import COLUMNS, Columns
from murp.graph.reading.facts import Facts
from murp.graph.reading.streams import open_input, split_endings
from murp.graph.reading.tables import row_of

_NOTHING = pa.table({role: pa.array([], pa.large_string()) for role in COLUMNS})


def read(path: Path, columns: Columns) -> Facts:
    """The facts of a file; .owl may be RDF/XML or Turtle, which its first characters tell."""
    del columns
    form, _ = split_endings(path)
    if form == ".owl":
        form = _kind_of_owl(path)
    with open_input(path) as stream:
        return _facts(Source(stream, form, str(path)), path.name)


def read_text(data: bytes, form: str, where: str) -> Facts:
    """The same of text that is no file."""
    if form not in FORMATS:
        raise DataError(f"{where}: {form[1:]!r} is not an RDF format. Known: {', '.join(f[1:] for f in FORMATS)}.")
    facts = _facts(Source(io.BytesIO(data), form, where), where)
    if not len(facts.triples):
        raise DataError(f"{where}: holds no triples.")
    return facts


def _facts(source: Source, name: str) -> Facts:
    statements, labels = [_NOTHING], [_NOTHING]
    others: dict[str, int] = {}
    for table in source.blocks():
        literal = pc.starts_with(table["tail"], '"')
        if pc.any(literal).as_py():
            texts = table.filter(literal)
            telling = pc.is_in(texts["relation"], value_set=TELLING)
            labels.append(texts.filter(telling))
            for one in texts.filter(pc.invert(telling))["relation"].value_counts().to_pylist():
                others[one["values"]] = others.get(one["values"], 0) + one["counts"]
            table = table.filter(pc.invert(literal))
        statements.append(table)
    facts, findings = facts_of(pa.concat_tables(statements), name)
    names = names_of_literals(pa.concat_tables(labels))
    findings += noticed("literals", name, sum(others.values()), "statement{s} with a literal left out", others)
    findings += noticed("named_graphs", name, source.graphs, "statement{s} in named graphs, whose names are left out")
    findings += noticed("quoted_statements", name, source.left_out, "statement{s} about statements left out")
    known: dict[str, Any] = {prefix: iri for prefix, iri in source.prefixes.items() if iri}
    prefixes = known | {p: iri for p, iri in PREFIXES.items() if p not in known and iri not in known.values()}
    return Facts(facts, row_of(source.where), names, names, findings, prefixes=prefixes)


def _kind_of_owl(path: Path) -> str:
    with open_input(path) as stream:
        begin = bytes(stream.read(4000)).lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin.startswith((b"Prefix(", b"Ontology(")) or b"<Ontology" in begin:
        raise DataError(
            f"{path}: is OWL in functional or XML syntax. Save it as RDF/XML or Turtle (Protégé and ROBOT do that)."
        )
    return ".rdf" if begin.startswith(b"<") and not begin.startswith(b"<http") else ".ttl"
