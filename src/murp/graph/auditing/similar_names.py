"""Names that may be one thing in two spellings, and what reading changed: for the audit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from murp.graph.findings import EXAMPLES, Finding, number
from murp.graph.knowledge_graph import KnowledgeGraph
from murp.graph.names.vocabulary import PLURALS, Vocabulary

_CHANGES = ("blanks_round_names", "other_unicode_forms", "comment_lines", "further_columns")


def reading_findings(graph: KnowledgeGraph) -> Iterator[Finding]:
    """What was changed or left out when the graph was read; the usual kinds are named where there was nothing."""
    yield from graph.findings
    there = {finding.check for finding in graph.findings}
    yield from (Finding(check, "", 0, "") for check in _CHANGES if check not in there)


def similar_names(vocabulary: Vocabulary) -> Iterator[Finding]:
    """Ids that differ only in upper and lower case, in how a number is written, or in quotation marks round them."""
    many = PLURALS[vocabulary.kind]
    digits = pc.match_substring_regex(vocabulary.ids, r"^[+-]?[0-9]+(\.0*)?$")
    numbers = vocabulary.ids.filter(digits)
    plain = pc.replace_substring_regex(numbers, r"^([+-]?)0*([0-9]+?)(\.0*)?$", r"\1\2")
    quoted = pc.match_substring_regex(vocabulary.ids, "^(\".+\"|'.+')$")
    for check, ids, keys, words in (
        ("case_twins", vocabulary.ids, pc.utf8_lower(vocabulary.ids), "differ from another only in case"),
        (
            "number_twins",
            numbers,
            pc.replace_substring_regex(plain, r"^\+", ""),
            "are another's number, otherwise written",
        ),
    ):
        groups = _groups(ids, keys)
        count = sum(len(group) - 1 for group in groups)
        examples = tuple(" ~ ".join(group[:4]) for group in groups[:EXAMPLES])
        yield Finding(check, many, count, number(count, f"{many} {words}: one thing or two?"), examples)
    names = tuple(vocabulary.ids.filter(quoted)[:EXAMPLES].to_pylist())
    count = pc.sum(quoted).as_py() or 0
    yield Finding("quoted_names", many, count, number(count, f"{many} have quotation marks as part of the name"), names)


def _groups(ids: pa.Array, keys: pa.Array) -> list[list[str]]:
    """The ids of every key that several have."""
    counted = keys.value_counts()
    several = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    if not len(several):
        return []
    chosen = pc.is_in(keys, value_set=several)
    groups: dict[str, list[str]] = {}
    for key, id in zip(keys.filter(chosen).to_pylist(), ids.filter(chosen).to_pylist(), strict=True):
        groups.setdefault(key, []).append(id)
    return list(groups.values())
