"""Find flaws and oddities of a dataset: they are counted and shown, never repaired."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from murp.graph.auditing.relation_pairs import RelationPair, relation_pairs
from murp.graph.auditing.similar_names import reading_findings, similar_names
from murp.graph.findings import EXAMPLES, Finding, number
from murp.graph.keys import Keys, fact_keys
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split, Triples
from murp.graph.names.vocabulary import Vocabulary, counted
from murp.graph.reading.columns import COLUMNS, EACH_BY_TITLE, Columns
from murp.graph.reading.files import find_file, read_names
from murp.graph.reading.streams import open_input, split_endings
from murp.graph.sources import load, locate
from murp.rows import Tabular


@dataclass(frozen=True)
class Audit(Tabular):
    """Every check of a graph, including those that found nothing (count 0)."""

    name: str
    counts: dict[str, int]
    findings: tuple[Finding, ...]

    def count(self, check: str, where: str = "") -> int:
        """What the check found at ``where``."""
        return next(f.count for f in self.findings if (f.check, f.where) == (check, where))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "counts": self.counts,
            "findings": [asdict(finding) | {"examples": list(finding.examples)} for finding in self.findings],
        }

    def columns(self) -> dict[str, list[Any]]:
        """A row for each check at each place."""
        return {name: [getattr(one, name) for one in self.findings] for name in ("check", "where", "count", "text")}

    def lines(self) -> list[str]:
        """For people: what was found with its examples, then what is clean."""
        lines = [f"{self.name}: {counted(self.counts)}"]
        for finding in self.findings:
            if finding.count:
                lines.append(f"- {finding.text}")
                lines += [f"    {example}" for example in finding.examples]
        found = {finding.check for finding in self.findings if finding.count}
        clean = dict.fromkeys(f.check.replace("_", " ") for f in self.findings if f.check not in found)
        return [*lines, f"Nothing found: {', '.join(clean)}"] if clean else lines


def audit(graph: KnowledgeGraph, source: Path | None = None) -> Audit:
    """Look for flaws in ``graph`` and, if given, in the folder or file that it was read from."""
    # Keys of different calls need not agree: those of all facts are made together.
    keys = fact_keys(graph.facts(), graph.num_entities, graph.num_relations)
    ends = np.cumsum([len(graph.split(split)) for split in SPLITS])
    by_split = dict(zip(SPLITS, np.split(keys, ends[:-1]), strict=True))
    findings = [
        *_duplicates(graph, by_split),
        *_shared_facts(graph, by_split),
        *_unseen(graph),
        *_relations(graph),
        *_self_loops(graph),
        *_sorted_rows(graph),
        *_ambiguous_names(graph.entities),
        *_ambiguous_names(graph.relations),
        *reading_findings(graph),
        *similar_names(graph.entities),
        *similar_names(graph.relations),
    ]
    if source is not None:
        findings += [*_merged_ids(graph, source), *_final_newlines(source)]
    return Audit(graph.name, graph.counts(), tuple(findings))


def audit_source(
    source: str | os.PathLike[str], *, data_dir: Path | None = None, seed: int = 0, columns: Columns = EACH_BY_TITLE
) -> Audit:
    """Audit of what :func:`murp.graph.sources.load` would load, its files included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the audit says it
        graph = load(source, data_dir=data_dir, seed=seed, columns=columns)
    return audit(graph, locate(source, data_dir=data_dir))


def _duplicates(graph: KnowledgeGraph, keys: Mapping[Split, Keys]) -> Iterator[Finding]:
    for split in SPLITS:
        triples = graph.split(split)
        facts, first, rows = np.unique(keys[split], return_index=True, return_counts=True)
        extra = len(triples) - len(facts)
        text = number(extra, f"duplicate row{{s}} in {split}")
        yield Finding("duplicate_rows", split, extra, text, _facts(graph, triples[first[rows > 1]]))


def _shared_facts(graph: KnowledgeGraph, keys: Mapping[Split, Keys]) -> Iterator[Finding]:
    for one, other in combinations(SPLITS, 2):
        shared, rows, _ = np.intersect1d(keys[one], keys[other], return_indices=True)
        text = number(len(shared), f"fact{{s}} of {other} also in {one}")
        examples = _facts(graph, graph.split(one)[rows])
        yield Finding("shared_facts", f"{one} and {other}", len(shared), text, examples)


def _unseen(graph: KnowledgeGraph) -> Iterator[Finding]:
    for vocabulary, columns in ((graph.entities, [0, 2]), (graph.relations, [1])):
        many = "entities" if vocabulary is graph.entities else "relations"
        seen = np.zeros(len(vocabulary), dtype=np.bool_)
        seen[graph.train[:, columns]] = True
        for split in SPLITS[1:]:
            triples = graph.split(split)
            new = ~seen[triples[:, columns]]
            things = np.unique(triples[:, columns][new])
            holding = triples[new.any(axis=1)]
            yield Finding(
                f"unseen_{many}",
                split,
                len(things),
                f"{counted({many: len(things)})} of {split} never seen in training",
                tuple(vocabulary.label(i) for i in things[:EXAMPLES]),
            )
            yield Finding(
                f"triples_with_unseen_{many}",
                split,
                len(holding),
                f"{len(holding):,} of {len(triples):,} {split} triples hold such {many}",
                _facts(graph, holding),
            )


def _relations(graph: KnowledgeGraph) -> Iterator[Finding]:
    pairs = relation_pairs(graph)
    for kind, both_ways, check, where, words in (
        ("duplicate", True, "near_duplicate_relations", "both ways", "pair{s} of near-duplicate relations"),
        ("duplicate", False, "near_duplicate_relations", "one way", "relation{s} nearly contained in another"),
        ("inverse", True, "near_inverse_relations", "both ways", "pair{s} of near-inverse relations"),
        ("inverse", False, "near_inverse_relations", "one way", "relation{s} nearly in another's reverse"),
        ("symmetric", True, "symmetric_relations", "", "symmetric relation{s}"),
    ):
        found = [pair for pair in pairs if pair.kind == kind and pair.both_ways == both_ways]
        examples = tuple(_describe(graph, pair) for pair in found[:EXAMPLES])
        yield Finding(check, where, len(found), number(len(found), words), examples)


def _describe(graph: KnowledgeGraph, pair: RelationPair) -> str:
    first, second = graph.relations.label(pair.first), graph.relations.label(pair.second)
    share = f"{pair.shared / pair.first_size:.0%} of {pair.first_size:,} pairs"
    if pair.kind == "symmetric":
        return f"{first}: {share} also reversed"
    sign = "~ reverse of" if pair.kind == "inverse" else "~"
    return f"{first} {sign} {second}: {share}, {pair.shared / pair.second_size:.0%} of {pair.second_size:,}"


def _self_loops(graph: KnowledgeGraph) -> Iterator[Finding]:
    for split in SPLITS:
        triples = graph.split(split)
        loops = triples[triples[:, 0] == triples[:, 2]]
        text = number(len(loops), f"self-loop{{s}} (head = tail) in {split}")
        yield Finding("self_loops", split, len(loops), text, _facts(graph, loops))


def _sorted_rows(graph: KnowledgeGraph) -> Iterator[Finding]:
    """Whether all or nearly all rows with the same head (relation, tail) are adjacent.

    With n rows, n_v of them with value v, a random order has Σ n_v (n_v - 1) / n neighbours that agree, a
    sorted one has Σ (n_v - 1). Sorted means at least 80 % of the way from the one to the other.
    """
    for column, role in enumerate(COLUMNS):
        values = graph.train[:, column]
        rows = np.unique(values, return_counts=True)[1].astype(np.float64)
        agree = np.count_nonzero(values[1:] == values[:-1])
        by_chance, at_most = (rows * (rows - 1)).sum() / max(len(values), 1), (rows - 1).sum()
        # With fewer than ten neighbours between the two, a random order could look sorted.
        ordered = at_most - by_chance >= 10 and agree - by_chance >= 0.8 * (at_most - by_chance)
        advice = "shuffle before batching (murp does; other tools may not)"
        text = f"train rows are sorted by {role}, all or nearly all: {advice}"
        yield Finding("sorted_rows", role, len(values) if ordered else 0, text)


def _ambiguous_names(vocabulary: Vocabulary) -> Iterator[Finding]:
    counted = pc.value_counts(vocabulary.ids if vocabulary.names is None else vocabulary.names.drop_null())
    shared = counted.filter(pc.greater(counted.field("counts"), 1))
    ids = pc.sum(shared.field("counts")).as_py() or 0
    text = f"{len(shared):,} {vocabulary.kind} names are shared by {ids:,} ids: show names with ids"
    examples = tuple(f"{row['values']}: {row['counts']} ids" for row in shared[:EXAMPLES].to_pylist())
    yield Finding(f"ambiguous_{vocabulary.kind}_names", "", len(shared), text, examples)


def _merged_ids(graph: KnowledgeGraph, source: Path) -> Iterator[Finding]:
    """Ids that stand for several things, which ``entity_names_conflated.tsv`` lists (id, the things)."""
    file = find_file(source if source.is_dir() else source.parent, "entity_names_conflated", (".tsv",))
    if file is None:
        return
    table = read_names(file)
    table = table.filter(pc.is_in(table["id"], value_set=graph.entities.ids))
    text = f"{len(table):,} entity ids each merge several things ({file.name})"
    examples = tuple(f"{row['id']}: {row['name']}" for row in table.slice(0, EXAMPLES).to_pylist())
    yield Finding("merged_ids", "", len(table), text, examples)


def _final_newlines(source: Path) -> Iterator[Finding]:
    texts = (".txt", ".tsv", ".csv")
    files = [find_file(source, split, texts) for split in SPLITS] if source.is_dir() else [source]
    written = [file for file in files if file is not None and split_endings(file)[0] in texts]
    if written:
        names = tuple(file.name for file in written if _last_byte(file) not in b"\r\n")
        text = f"{len(names)} files have no final newline: line counts are one too low"
        yield Finding("no_final_newline", "", len(names), text, names)


def _last_byte(path: Path) -> bytes:
    with open_input(path) as stream:
        if not split_endings(path)[1]:
            stream.seek(stream.size() - 1)
        last = b""
        while block := stream.read(1 << 20):
            last = block[-1:]
        return last


def _facts(graph: KnowledgeGraph, triples: Triples) -> tuple[str, ...]:
    entity, relation = graph.entities.label, graph.relations.label
    return tuple(f"({entity(h)}, {relation(r)}, {entity(t)})" for h, r, t in triples[:EXAMPLES])
