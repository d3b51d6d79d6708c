from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.analysis.hierarchy_split import hierarchical_relations, hierarchy_split, write
from murp.errors import ConfigError, DataError
from murp.graph import SPLITS, KnowledgeGraph, Vocabulary


def graph(relations: int = 12, facts: int = 600) -> KnowledgeGraph:
    """Random facts, some of them several times and in several splits; names for the entities."""
    generator = np.random.default_rng(0)
    sizes = [40, relations, 40]
    parts = [generator.integers(0, sizes, size=(n, 3)).astype(np.int32) for n in (facts, 30, 30)]
    parts[1][:5] = parts[0][:5]
    parts[0][-5:] = parts[0][:5]
    ids = [f"e{i}" for i in range(40)]
    return KnowledgeGraph(
        "toy",
        Vocabulary("entity", ids, [f"name {i}" for i in ids]),
        Vocabulary("relation", [f"r{i}" for i in range(relations)]),
        *parts,
    )


def facts_of(one: KnowledgeGraph, triples: np.ndarray) -> list[tuple[str, str, str]]:
    return [(one.entities.id(h), one.relations.id(r), one.entities.id(t)) for h, r, t in triples]


@given(st.sets(st.integers(0, 11), min_size=1, max_size=5), st.integers(0, 99))
def test_subsets_are_the_pool_without_other_relations(hierarchical, seed):
    toy = graph()
    chosen = sorted(hierarchical)
    subsets = hierarchy_split(toy, chosen, shares=(100, 60, 50), valid=100, test=120, seed=seed)
    pool = set(facts_of(toy, toy.facts()))
    kept = set()
    for subset, others in zip(subsets, (0, round(len(chosen) * 2 / 3), len(chosen)), strict=True):
        assert subset.graph.name == f"toy-h{subset.share}"
        assert subset.hierarchical == tuple(f"r{r}" for r in chosen)
        assert len(subset.others) == others
        assert not set(subset.others) & set(subset.hierarchical)
        assert kept <= set(subset.others)  # a smaller share holds the larger ones
        kept = set(subset.others)
        splits = [facts_of(subset.graph, subset.graph.split(split)) for split in SPLITS]
        together = [fact for split in splits for fact in split]
        assert len(together) == len(set(together))
        wanted = {*subset.hierarchical, *subset.others}
        assert set(together) == {fact for fact in pool if fact[1] in wanted}
        assert subset.graph.entities.name(0) == f"name {subset.graph.entities.id(0)}"


def test_valid_and_test_are_drawn_from_the_pool_before_relations_are_left_out():
    toy = graph()
    everything = hierarchy_split(toy, range(12), shares=(100,), valid=100, test=120)[0].graph
    assert (len(everything.valid), len(everything.test)) == (100, 120)
    part = hierarchy_split(toy, [3, 4], shares=(100,), valid=100, test=120)[0].graph
    for split in SPLITS:
        expected = [fact for fact in facts_of(everything, everything.split(split)) if fact[1] in ("r3", "r4")]
        assert facts_of(part, part.split(split)) == expected


def test_a_seed_repeats_and_another_differs():
    def drawn(seed):
        subset = hierarchy_split(graph(), [0, 1], shares=(50,), valid=50, test=50, seed=seed)[0]
        return subset.others, facts_of(subset.graph, subset.graph.test)

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


@pytest.mark.parametrize(
    ("error", "text", "hierarchical", "settings"),
    [
        (DataError, "no relation is hierarchical", [], {}),
        (ConfigError, "--shares of 50 or more", range(6), {"shares": (25,)}),
        (ConfigError, "from 1 to 100, not 0", [0], {"shares": (0,)}),
        (ConfigError, "--valid, --test", [0], {"valid": 400, "test": 400}),
        (ConfigError, "--valid, --test", [0], {"valid": 0}),
        (DataError, "valid would be empty", [0], {"valid": 1, "seed": 2}),
    ],
)
def test_what_cannot_be_split_is_refused(error, text, hierarchical, settings):
    with pytest.raises(error, match=text):
        hierarchy_split(graph(), hierarchical, **({"valid": 50, "test": 50, "shares": (100,)} | settings))


def test_what_was_written_loads_and_says_how_it_was_made(tmp_path):
    subsets = hierarchy_split(graph(), [0, 1, 2], shares=(100, 50), valid=100, test=100, seed=7)
    write(subsets, tmp_path / "out", origin="toy", seed=7, rule="named")
    for subset in subsets:
        folder = tmp_path / "out" / f"toy-h{subset.share}"
        loaded = KnowledgeGraph.load(folder)
        assert loaded.entities.names is not None
        for split in SPLITS:
            assert facts_of(loaded, loaded.split(split)) == facts_of(subset.graph, subset.graph.split(split))
        made = json.loads((folder / "split.json").read_text())
        assert (made["seed"], made["share"], made["rule"], made["origin"]) == (7, subset.share, "named", "toy")
        assert (tuple(made["hierarchical"]), tuple(made["others"])) == (subset.hierarchical, subset.others)
    with pytest.raises(DataError, match="exists already"):
        write(subsets, tmp_path / "out", origin="toy", seed=7, rule="named")


def test_auto_takes_the_tree_and_leaves_the_ring(small_tree):
    assert hierarchical_relations(small_tree) == [small_tree.relations.find("parent")]


@pytest.mark.data
def test_the_published_subsets_of_nell_995_are_of_this_kind(benchmark_data):
    nell = KnowledgeGraph.load("NELL-995", data_dir=benchmark_data)
    published = {n: KnowledgeGraph.load(f"NELL-995-h{n}", data_dir=benchmark_data) for n in (100, 75, 50, 25)}
    chosen = [nell.relations.find(i) for i in published[100].relations.ids.to_pylist()]
    subsets = hierarchy_split(nell, chosen)
    assert [len(subset.others) for subset in subsets] == [0, 14, 43, 129]
    ours, theirs = (sorted(facts_of(one, one.facts())) for one in (subsets[0].graph, published[100]))
    assert ours == theirs
    for subset in subsets:
        assert published[subset.share].num_relations == subset.graph.num_relations


@pytest.mark.data
def test_auto_comes_close_to_the_43_relations_of_the_paper(benchmark_data):
    nell = KnowledgeGraph.load("NELL-995", data_dir=benchmark_data)
    paper = set(KnowledgeGraph.load("NELL-995-h100", data_dir=benchmark_data).relations.ids.to_pylist())
    found = {nell.relations.id(r) for r in hierarchical_relations(nell)}
    precision, recall = len(found & paper) / len(found), len(found & paper) / len(paper)
    assert precision > 0.95
    assert recall > 0.9
