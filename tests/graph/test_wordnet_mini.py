"""The bundled graph: what it holds, that its split leaks nothing, and that the script still makes it."""

from __future__ import annotations

import hashlib
import itertools
import lzma
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src/murp/graph/bundled/wordnet-mini"
SPLITS = ("train", "valid", "test")

Row = tuple[str, ...]


def rows(file: str) -> list[Row]:
    return [tuple(line.split("\t")) for line in lzma.decompress((FOLDER / file).read_bytes()).decode().splitlines()]


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Row]]:
    return {name: rows(f"{name}.tsv.xz") for name in SPLITS}


@pytest.fixture(scope="module")
def facts(splits: dict[str, list[Row]]) -> list[Row]:
    return [row for name in SPLITS for row in splits[name]]


@pytest.fixture(scope="module")
def names() -> list[Row]:
    return rows("entity_names.tsv.xz")


def entities(triples: list[Row]) -> set[str]:
    return {entity for head, _, tail in triples for entity in (head, tail)}


def test_it_has_the_size_and_the_relations_it_should(splits: dict[str, list[Row]], facts: list[Row]) -> None:
    assert 5_000 <= len(entities(facts)) <= 10_000
    assert 15_000 <= len(splits["train"]) <= 25_000
    for name in ("valid", "test"):
        assert abs(len(splits[name]) / len(facts) - 0.05) < 0.002
    relations = Counter(relation for _, relation, _ in facts)
    assert min(relations.values()) >= 100
    assert {
        "hypernym",
        "instance_hypernym",
        "has_part",
        "member_meronym",
        "synset_domain_topic_of",
        "member_of_domain_region",
        "derivationally_related_form",
    } <= relations.keys()
    for name in SPLITS:
        assert {relation for _, relation, _ in splits[name]} == relations.keys()


def test_the_readme_has_the_counts(splits: dict[str, list[Row]], facts: list[Row]) -> None:
    readme = (FOLDER / "README.md").read_text()
    relations = {relation for _, relation, _ in facts}
    assert f"{len(entities(facts)):,} entities, {len(relations)} relations." in readme
    for relation in relations:
        counts = [sum(row[1] == relation for row in splits[name]) for name in SPLITS]
        assert f"| {relation} | {counts[0]:,} | {counts[1]:,} | {counts[2]:,} |" in readme


def test_no_fact_is_there_twice_and_none_of_an_entity_with_itself(facts: list[Row]) -> None:
    assert len(set(facts)) == len(facts)
    assert all(len(row) == 3 and all(row) for row in facts)
    assert all(head != tail for head, _, tail in facts)


def test_two_entities_meet_in_one_split_alone(splits: dict[str, list[Row]]) -> None:
    # Stronger than "no fact in two splits": neither its reverse nor another relation between the two.
    pairs = {name: {frozenset((head, tail)) for head, _, tail in splits[name]} for name in SPLITS}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not pairs[one] & pairs[other]


@pytest.mark.parametrize("relation", ["derivationally_related_form", "verb_group"])
def test_symmetric_relations_hold_both_directions(splits: dict[str, list[Row]], relation: str) -> None:
    for name in SPLITS:
        pairs = {(head, tail) for head, r, tail in splits[name] if r == relation}
        assert pairs
        assert pairs == {(tail, head) for head, tail in pairs}


@pytest.mark.parametrize("relation", ["hypernym", "instance_hypernym", "has_part", "member_meronym"])
def test_hierarchies_have_no_cycles_but_wordnets_own(facts: list[Row], relation: str) -> None:
    tails = defaultdict(set)
    heads = Counter()
    for head, r, tail in facts:
        if r == relation:
            tails[head].add(tail)
            heads[tail] += 1
    tops = [head for head in tails if not heads[head]]
    while tops:
        for tail in tails.pop(tops.pop(), set()):
            heads[tail] -= 1
            if not heads[tail]:
                tops.append(tail)
    # In WordNet 3.0 to restrain is to inhibit and to inhibit is to restrain.
    assert set(tails) == ({"restrain.v.01", "inhibit.v.04"} if relation == "hypernym" else set())


def test_train_knows_every_entity_and_all_hang_together(splits: dict[str, list[Row]], facts: list[Row]) -> None:
    assert entities(splits["train"]) == entities(facts)
    neighbours = defaultdict(set)
    for head, _, tail in facts:
        neighbours[head].add(tail)
        neighbours[tail].add(head)
    reached, waiting = {"entity.n.01"}, ["entity.n.01"]
    while waiting:
        new = neighbours[waiting.pop()] - reached
        reached |= new
        waiting += new
    assert reached == entities(facts)


def test_every_entity_has_one_name_and_a_gloss_without_examples(facts: list[Row], names: list[Row]) -> None:
    assert Counter(row[0] for row in names) == Counter(entities(facts))
    assert all(len(row) == 3 and all(field == field.strip() != "" for field in row) for row in names)
    assert sum('"' in gloss for _, _, gloss in names) <= 1  # "darkness enclosed him" lacks its first quote
    known = {row[0]: row[1:] for row in names}
    assert known["asia.n.01"][0] == "Asia"
    assert known["chair.n.01"] == ("chair", "a seat for one person, with a support for the back")


def test_it_holds_asia_with_its_parts(splits: dict[str, list[Row]]) -> None:
    parts = {
        name: {tail for head, r, tail in splits[name] if (head, r) == ("asia.n.01", "has_part")} for name in SPLITS
    }
    assert {"japan.n.02", "india.n.01", "china.n.01", "iran.n.01"} <= set().union(*parts.values())
    assert len(parts["train"]) >= 40
    assert parts["valid"]
    assert parts["test"]


def test_it_holds_chair_with_its_kinds_and_parts(facts: list[Row]) -> None:
    kinds = {head for head, r, tail in facts if (r, tail) == ("hypernym", "chair.n.01")}
    assert {"armchair.n.01", "folding_chair.n.01", "rocking_chair.n.01", "wheelchair.n.01"} <= kinds
    assert {tail for head, r, tail in facts if (head, r) == ("chair.n.01", "has_part")} == {
        "back.n.08",
        "leg.n.03",
    }


def test_the_examples_of_its_readme_are_facts(facts: list[Row]) -> None:
    assert {
        ("armchair.n.01", "hypernym", "chair.n.01"),
        ("asia.n.01", "has_part", "japan.n.02"),
        ("canis.n.01", "member_meronym", "wolf.n.01"),
        ("united_kingdom.n.01", "member_of_domain_region", "highroad.n.01"),
        ("kayak.v.01", "synset_domain_topic_of", "sport.n.01"),
    } <= set(facts)


def test_it_is_small_licensed_and_undamaged() -> None:
    files = {file.name: file.read_bytes() for file in FOLDER.iterdir()}
    assert sum(map(len, files.values())) < 500_000
    licence = files["LICENSE"].decode()
    assert licence.startswith("This software and database is being provided to you, the LICENSEE, by\n")
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in licence
    assert licence.endswith("Princeton University and LICENSEE agrees to preserve same.\n")
    sums = dict(reversed(line.split("  ")) for line in files.pop("SHA256SUMS").decode().splitlines())
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def test_the_script_makes_it_to_the_byte(tmp_path: Path) -> None:
    database = os.environ.get("MURP_WORDNET")
    if not database:
        pytest.skip("needs WordNet: set MURP_WORDNET to the folder or tarball of WordNet 3.0's database")
    command = [
        sys.executable,
        str(ROOT / "tools/wordnet.py"),
        "mini",
        "--database",
        database,
        "--out",
        str(tmp_path),
    ]
    subprocess.run(command, check=True)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    bundled = {file.name: file.read_bytes() for file in FOLDER.iterdir()}
    assert made.keys() == bundled.keys()
    for name in made:
        if name.endswith(".xz"):  # contents first: another liblzma may compress the same rows otherwise
            assert lzma.decompress(made[name]) == lzma.decompress(bundled[name])
    assert made == bundled
