from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import pairwise

import graphs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.graph import KnowledgeGraph, Vocabulary
from murp.graph.auditing.audit import audit, audit_source
from murp.graph.auditing.relation_pairs import relation_pairs

triples = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 4)), max_size=60)


def graph(train, valid=(), test=()) -> KnowledgeGraph:
    return KnowledgeGraph(
        "toy",
        Vocabulary("entity", [f"e{i}" for i in range(300)]),
        Vocabulary("relation", [f"r{i}" for i in range(5)]),
        *(graphs.coded(list(part)) for part in (train, valid, test)),
    )


@given(train=triples, valid=triples, test=triples)
def test_counts_agree_with_sets(train, valid, test):
    found = audit(graph(train, valid, test))
    parts = {"train": train, "valid": valid, "test": test}
    entities = {e for h, _, t in train for e in (h, t)}
    relations = {r for _, r, _ in train}
    for name, rows in parts.items():
        assert found.count("duplicate_rows", name) == len(rows) - len(set(rows))
        assert found.count("self_loops", name) == sum(h == t for h, _, t in rows)
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert found.count("shared_facts", f"{one} and {other}") == len(set(parts[one]) & set(parts[other]))
    for name in ("valid", "test"):
        rows = parts[name]
        assert found.count("unseen_entities", name) == len({e for h, _, t in rows for e in (h, t)} - entities)
        assert found.count("unseen_relations", name) == len({r for _, r, _ in rows} - relations)
        assert found.count("triples_with_unseen_entities", name) == sum(not {h, t} <= entities for h, _, t in rows)
        assert found.count("triples_with_unseen_relations", name) == sum(r not in relations for _, r, _ in rows)


@given(train=triples, test=triples)
def test_relation_pairs_agree_with_sets(train, test):
    pairs = defaultdict(set)
    for h, r, t in train + test:
        if h != t:
            pairs[r].add((h, t))
    expected = set()
    for first in pairs:
        for second in (r for r in pairs if r >= first):
            back = {(t, h) for h, t in pairs[second]}
            smaller = min(len(pairs[first]), len(pairs[second]))
            for kind, other in (("duplicate", pairs[second]), ("inverse", back)):
                shared = len(pairs[first] & other)
                if smaller >= 5 and shared >= 0.8 * smaller and (kind, first) != ("duplicate", second):
                    kind = "symmetric" if first == second else kind
                    expected.add((kind, first, second, shared, len(pairs[first]), len(pairs[second])))
    found = relation_pairs(graph(train, (), test))
    assert {(p.kind, p.first, p.second, p.shared, p.first_size, p.second_size) for p in found} == expected
    assert len(found) == len(expected)


def test_planted_relations_are_told_apart():
    base = [(i, i + 100) for i in range(20)]
    found = audit(
        graph(
            [(h, 0, t) for h, t in base]
            + [(h, 1, t) for h, t in base[:17]]  # 17 of 20: a duplicate both ways
            + [(t, 2, h) for h, t in base[2:]]  # 18 of 20: an inverse both ways, of 1 only one way (15 of 17)
            + [(h, 3, t) for h, t in base[:6]]  # contained in 0 and 1
            + [(i, 4, 250 + i) for i in range(9)]
            + [(250 + i, 4, i) for i in range(9)]
        )
    )
    assert found.count("near_duplicate_relations", "both ways") == 1
    assert found.count("near_duplicate_relations", "one way") == 2
    assert found.count("near_inverse_relations", "both ways") == 2
    assert found.count("symmetric_relations") == 1
    text = "\n".join(found.lines())
    assert "r0 ~ r1: 85% of 20 pairs, 100% of 17" in text
    assert "r0 ~ reverse of r2: 90% of 20 pairs, 100% of 18" in text
    assert "r4: 100% of 18 pairs also reversed" in text


@pytest.mark.parametrize("column", [0, 1, 2])
def test_sorted_rows_are_told_from_shuffled_ones(column):
    random = np.random.default_rng(0)
    rows = random.integers(0, [40, 5, 40], size=(400, 3))
    ordered = rows[np.argsort(rows[:, column], kind="stable")]
    nearly = np.concatenate([ordered[20:], random.permutation(ordered[:20])])
    role = ("head", "relation", "tail")[column]
    assert audit(graph(rows.tolist())).count("sorted_rows", role) == 0
    assert audit(graph(ordered.tolist())).count("sorted_rows", role) == 400
    assert audit(graph(nearly.tolist())).count("sorted_rows", role) == 400


def test_names_files_and_examples(tmp_path):
    folder = graphs.write_dataset(tmp_path / "mine", train="a r b; a r b; b r c; c r c", valid="a r x")
    (folder / "valid.txt").write_text("a\tr\tx")
    (folder / "test.txt.gz").write_bytes(gzip.compress(b"b\tr\tc"))
    (folder / "entity_names.tsv").write_text("a\tsame\nb\tsame\nc\tother\n")
    (folder / "entity_names_conflated.tsv").write_text("a\tone; two\nnot here\tthree; four\n")
    found = audit_source(folder)
    assert found.count("ambiguous_entity_names") == 1
    assert found.count("merged_ids") == 1
    assert found.count("no_final_newline") == 2
    text = "\n".join(found.lines())
    for words in (
        "1 duplicate row in train\n    (same [a], r, same [b])",
        "1 fact of test also in train\n    (same [b], r, other [c])",
        "1 entity of valid never seen in training\n    x",
        "(other [c], r, other [c])",
        "same: 2 ids",
        "a: one; two",
        "valid.txt\n    test.txt.gz",
    ):
        assert words in text
    listed = json.loads(json.dumps(found.to_dict()))
    assert listed["counts"] == {"entities": 4, "relations": 1, "train": 4, "valid": 1, "test": 1}
    assert all(len(finding["examples"]) <= 5 for finding in listed["findings"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "NELL-995-h75",
            {
                ("duplicate_rows", "train"): 58,
                ("shared_facts", "train and valid"): 9,
                ("shared_facts", "train and test"): 9,
            },
        ),
        (
            "NELL-995-h50",
            {
                ("duplicate_rows", "train"): 216,
                ("shared_facts", "train and valid"): 30,
                ("shared_facts", "train and test"): 33,
            },
        ),
        (
            "NELL-995-h25",
            {
                ("duplicate_rows", "train"): 329,
                ("shared_facts", "train and valid"): 50,
                ("shared_facts", "train and test"): 52,
            },
        ),
    ],
)
def test_the_known_flaws_of_the_nell_subsets_are_found(name, expected, benchmark_data):
    found = audit_source(name, data_dir=benchmark_data)
    for (check, where), count in expected.items():
        assert found.count(check, where) == count
    assert found.count("shared_facts", "valid and test") == 1
    assert found.count("no_final_newline") == 3
    # Train files rebuilt from other sources are sorted; a copy of the published ones need not be.
    rows = [line.split("\t")[0] for line in (benchmark_data / name / "train.txt").read_text().split("\n")]
    in_order = np.mean([a <= b for a, b in pairwise(rows)]) > 0.95
    assert (found.count("sorted_rows", "head") > 0) == in_order


@pytest.mark.data
def test_h100_is_clean_but_for_unseen_entities(benchmark_data):
    found = audit_source("NELL-995-h100", data_dir=benchmark_data)
    assert found.count("triples_with_unseen_entities", "test") == 738
    assert found.count("no_final_newline") == 3
    for check in ("duplicate_rows", "shared_facts", "sorted_rows"):
        assert sum(finding.count for finding in found.findings if finding.check == check) == 0


@pytest.mark.data
def test_the_known_flaws_of_wn18rr_are_found(benchmark_data):
    found = audit_source("WN18RR", data_dir=benchmark_data)
    assert found.count("triples_with_unseen_entities", "test") == 210
    if not (benchmark_data / "WN18RR" / "entity_names_conflated.tsv").exists():
        pytest.skip("needs benchmark data: entity_names_conflated.tsv beside WN18RR under MURP_DATA")
    assert found.count("merged_ids") == 161
    text = "\n".join(found.lines())
    assert "00001740: breathe.v.01(24); able.a.01(4); entity.n.01(3)" in text
