"""Names and glosses from RDF literals.

If there are several labels, one without a language or in English is used, then skos:prefLabel before rdfs:label and
others, then the first. The same holds for definitions; synonyms follow the definition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.graph.rdf.ontology import PREFIXES, RDFS, SKOS

_SCHEMA = ("http://schema.org/", "https://schema.org/")
_DC = ("http://purl.org/dc/terms/", "http://purl.org/dc/elements/1.1/")
_FOAF, _OBO, _OBO_IN_OWL = PREFIXES["foaf"], PREFIXES["obo"], PREFIXES["oboInOwl"]
NAMES = (
    *(f"{SKOS}prefLabel", f"{RDFS}label"),
    *(*(f"{one}name" for one in _SCHEMA), f"{_FOAF}name", *(f"{one}title" for one in _DC)),
)
GLOSSES = (
    *(f"{SKOS}definition", f"{_OBO}IAO_0000115", f"{RDFS}comment"),
    *(f"{one}description" for one in (*_DC, *_SCHEMA)),
)
SYNONYMS = (
    *(f"{SKOS}altLabel", *(f"{one}alternateName" for one in _SCHEMA)),
    *(f"{_OBO_IN_OWL}has{kind}Synonym" for kind in ("Exact", "Related", "Narrow", "Broad")),
)
TELLING = pa.array([*NAMES, *GLOSSES, *SYNONYMS], pa.large_string())

_PARTS = r'^"(?P<text>(?s:.*))"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^<(?P<kind>.*)>)?$'
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def names_of_literals(statements: pa.Table) -> pa.Table | None:
    """A table of id, name and gloss out of statements whose objects are literals and whose predicates are telling."""
    if not len(statements):
        return None
    parts = pc.extract_regex(statements["tail"].combine_chunks(), pattern=_PARTS)
    texts = _unescaped(parts.field("text"))
    foreign = pc.invert(pc.match_substring_regex(parts.field("language"), "^(?i:en)?(-|$)")).to_numpy(False)
    subjects = statements["head"].combine_chunks().dictionary_encode()
    codes, relations = subjects.indices.to_numpy(), statements["relation"].combine_chunks()
    columns = {"id": subjects.dictionary}
    for column, words in (("name", NAMES), ("gloss", GLOSSES)):
        rank = pc.fill_null(pc.index_in(relations, value_set=pa.array(words, pa.large_string())), -1).to_numpy(False)
        chosen = np.flatnonzero(rank >= 0)
        best = chosen[np.lexsort((rank[chosen], foreign[chosen], codes[chosen]))]
        things, firsts = np.unique(codes[best], return_index=True)
        rows = np.full(len(subjects.dictionary), -1)
        rows[things] = best[firsts]
        columns[column] = texts.take(pa.array(rows, mask=rows < 0))
    columns["gloss"] = _with_synonyms(columns["gloss"], relations, codes, texts)
    return pa.table(columns)


def joined_gloss(gloss: str | None, synonyms: Sequence[str]) -> str | None:
    """A definition and what else a thing is called."""
    also = f"also: {'; '.join(dict.fromkeys(synonyms))}" if synonyms else None
    return f"{gloss} ({also})" if gloss and also else gloss or also


def _with_synonyms(glosses: pa.Array, relations: pa.Array, codes: np.ndarray, texts: pa.Array) -> pa.Array:
    rows = pc.indices_nonzero(pc.is_in(relations, value_set=pa.array(SYNONYMS, pa.large_string()))).to_numpy()
    if not len(rows):
        return glosses
    others: dict[int, list[str]] = {}
    for code, text in zip(codes[rows].tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True):
        others.setdefault(code, []).append(text)
    joined = [joined_gloss(gloss, others.get(code, ())) for code, gloss in enumerate(glosses.to_pylist())]
    return pa.array(joined, pa.large_string())


def _unescaped(texts: pa.Array) -> pa.Array:
    escaped = pc.match_substring(texts, "\\")
    if not pc.any(escaped).as_py():
        return texts
    values = [_plain(text) for text in texts.filter(escaped).to_pylist()]
    return pc.replace_with_mask(texts, escaped, pa.array(values, texts.type))


def _plain(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] not in "uU":
            return _ESCAPES.get(code, code)
        value = int(code[1:], 16)
        return "\ufffd" if value > 0x10FFFF or 0xD800 <= value < 0xE000 else chr(value)

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", one, text, flags=re.DOTALL)
