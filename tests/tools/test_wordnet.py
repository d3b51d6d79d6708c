"""tools/wordnet.py on a WordNet of a dozen synsets, and its split and rule as laws."""

from __future__ import annotations

import hashlib
import itertools
import lzma
import os
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordnet
import wordnet_database
import wordnet_dataset
import wordnet_mini
import wordnet_names
from wordnet_database import Database, DatabaseError, Synset

NOTICE = "  1 This database is provided under a licence.  \n  2   \n  3 Copyright 2006.  \n"

# 00000100 is a noun, a verb and an adjective. "bank" has its senses out of file order, "run" is a
# noun of sense 1 in a synset that begins with another word, "galore" carries its position.
DATA = {
    "noun": """\
00000100 03 n 01 entity 0 003 ~ 00000200 n 0000 ~i 00000300 n 0000 -c 00000100 a 0000 \
| that which is; "an entity"
00000200 15 n 02 bank 0 run 0 005 @ 00000100 n 0000 %p 00000300 n 0000 \
#m 00000400 n 0000 + 00000200 v 0101 + 00000200 n 0102 \
| sloping land
00000300 15 n 01 New_York 0 004 @i 00000100 n 0000 #p 00000200 n 0000 ;r 00000400 n 0000 %s 00000400 n 0000 \
| a city
00000400 14 n 0a bank 1 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 \
003 %m 00000200 n 0000 -r 00000300 n 0000 -u 00000100 r 0101 \
| an institution, "he cashed a check"
""",
    "verb": """\
00000100 29 v 01 breathe 0 002 $ 00000200 v 0000 * 00000200 v 0000 01 + 02 00 | draw air
00000200 30 v 01 bank 0 005 @ 00000100 v 0000 $ 00000100 v 0000 \
+ 00000200 n 0101 > 00000100 v 0000 ^ 00000100 v 0102 02 + 08 00 + 11 00 \
| tip laterally
""",
    "adj": """\
00000100 00 a 01 able 0 004 & 00000200 s 0000 = 00000100 n 0000 ;c 00000100 n 0000 ! 00000200 s 0101 \
| having means
00000200 00 s 01 galore(ip) 0 003 & 00000100 a 0000 \\ 00000100 n 0101 < 00000100 v 0101 \
| in great numbers; "daffodils galore"
""",
    "adv": """\
00000100 02 r 01 aback 0 001 ;u 00000400 n 0101 | having the wind against the forward side
""",
}
INDEX = {
    "noun": """\
bank n 2 3 @ %p #m 2 1 00000400 00000200
entity n 1 1 ~ 1 1 00000100
new_york n 1 1 @i 1 0 00000300
run n 1 1 @ 1 0 00000200
""",
    "verb": "bank v 1 1 @ 1 0 00000200  \nbreathe v 1 1 $ 1 0 00000100  \n",
    "adj": "able a 1 1 & 1 0 00000100  \ngalore a 1 1 & 1 0 00000200  \n",
    "adv": "aback r 1 0 1 0 00000100  \n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "dict"
    path.mkdir()
    for name, text in DATA.items():
        (path / f"data.{name}").write_text(NOTICE + text)
    for name, text in INDEX.items():
        (path / f"index.{name}").write_text(NOTICE + text)
    return path


def named(database: Database) -> set[tuple[str, str, str]]:
    ids = {key: synset.id for key, synset in database.synsets.items()}
    return {(ids[head], relation, ids[tail]) for head, relation, tail in database.facts}


def test_synsets_have_the_id_name_and_gloss_of_their_first_word(folder: Path) -> None:
    database = wordnet_database.read(folder)
    ids = [synset.id for synset in database.synsets.values()]
    assert ids == [
        "entity.n.01",
        "bank.n.02",
        "new_york.n.01",
        "bank.n.01",
        "breathe.v.01",
        "bank.v.01",
        "able.a.01",
        "galore.s.01",
        "aback.r.01",
    ]
    assert database.synsets["n", "00000300"].name == "New York"
    assert database.synsets["n", "00000400"].gloss == 'an institution, "he cashed a check"'
    assert database.synsets["n", "00000400"].definition == "an institution"
    assert database.synsets["n", "00000100"].definition == "that which is"
    assert database.licence == "This database is provided under a licence.\n\nCopyright 2006.\n"


def test_a_relation_and_its_inverse_become_one_fact_and_loops_are_dropped(folder: Path) -> None:
    assert named(wordnet_database.read(folder)) == {
        ("bank.n.02", "hypernym", "entity.n.01"),
        ("new_york.n.01", "instance_hypernym", "entity.n.01"),
        ("bank.n.02", "has_part", "new_york.n.01"),
        ("bank.n.01", "member_meronym", "bank.n.02"),
        ("new_york.n.01", "has_substance", "bank.n.01"),
        ("able.a.01", "synset_domain_topic_of", "entity.n.01"),
        ("bank.n.01", "member_of_domain_region", "new_york.n.01"),
        ("bank.n.01", "member_of_domain_usage", "aback.r.01"),
        ("bank.n.02", "derivationally_related_form", "bank.v.01"),
        ("bank.v.01", "derivationally_related_form", "bank.n.02"),
        ("breathe.v.01", "verb_group", "bank.v.01"),
        ("bank.v.01", "verb_group", "breathe.v.01"),
        ("breathe.v.01", "entails", "bank.v.01"),
        ("bank.v.01", "hypernym", "breathe.v.01"),
        ("bank.v.01", "causes", "breathe.v.01"),
        ("bank.v.01", "also_see", "breathe.v.01"),
        ("able.a.01", "similar_to", "galore.s.01"),
        ("galore.s.01", "similar_to", "able.a.01"),
        ("able.a.01", "attribute", "entity.n.01"),
        ("able.a.01", "antonym", "galore.s.01"),
        ("galore.s.01", "pertains_to", "entity.n.01"),
        ("galore.s.01", "participle_of", "breathe.v.01"),
    }


def test_every_relation_was_tried() -> None:
    used = {field for text in DATA.values() for field in text.split()}
    assert {relation for symbol, (relation, _) in wordnet_database.POINTERS.items() if symbol in used} == {
        relation for relation, _ in wordnet_database.POINTERS.values()
    }


@pytest.mark.parametrize("pair", ["@ ~", "@i ~i", "%p #p", "%m #m", "%s #s", ";c -c", "-r ;r", "-u ;u"])
def test_either_of_two_inverse_pointers_gives_the_fact(folder: Path, pair: str) -> None:
    forward, backward = pair.split()
    (folder / "index.adv").write_text("up r 1 0 1 0 00000100\ndown r 1 0 1 0 00000200\n")
    found = []
    for of_up, of_down in (
        (f"001 {forward} 00000200 r 0000", "000"),
        ("000", f"001 {backward} 00000100 r 0000"),
    ):
        (folder / "data.adv").write_text(
            f"00000100 02 r 01 up 0 {of_up} | up\n00000200 02 r 01 down 0 {of_down} | down\n"
        )
        found.append(named(wordnet_database.read(folder)))
    relation = wordnet_database.POINTERS[forward][0]
    assert found[0] == found[1]
    assert ("up.r.01", relation, "down.r.01") in found[0]


def test_folder_and_both_tarballs_give_the_same(folder: Path, tmp_path: Path) -> None:
    inner, outer = tmp_path / "WNdb-3.0.tar.gz", tmp_path / "WNdb-3.0.1.tgz"
    with tarfile.open(inner, "w:gz") as tar:
        tar.add(folder, "dict")
    with tarfile.open(outer, "w:gz") as tar:
        tar.add(inner, "package/WNdb-3.0.tar.gz")
    expected = wordnet_database.read(folder)
    assert wordnet_database.read(folder.parent) == expected
    assert wordnet_database.read(inner) == expected
    assert wordnet_database.read(outer) == expected


def test_a_missing_or_damaged_database_is_named(folder: Path, tmp_path: Path) -> None:
    tarball = tmp_path / "WNdb-3.0.tar.gz"
    with tarfile.open(tarball, "w:gz") as tar:
        tar.add(folder, "dict")
    tarball.write_bytes(tarball.read_bytes()[:-200])
    with pytest.raises(DatabaseError, match=r"WNdb-3\.0\.tar\.gz"):
        wordnet_database.read(tarball)
    with pytest.raises(DatabaseError, match="nowhere"):
        wordnet_database.read(tmp_path / "nowhere")

    verbs = folder / "data.verb"
    verbs.write_text(verbs.read_text().replace("002 $", "099 $"))
    with pytest.raises(DatabaseError, match=r"data\.verb, line 4"):
        wordnet_database.read(folder)
    verbs.unlink()
    with pytest.raises(DatabaseError, match=r"data\.verb"):
        wordnet_database.read(folder)


def test_a_pointer_to_nowhere_is_refused(folder: Path) -> None:
    adverbs = folder / "data.adv"
    adverbs.write_text(adverbs.read_text().replace("00000400 n 0101", "00000999 n 0101"))
    with pytest.raises(DatabaseError, match="00000999"):
        wordnet_database.read(folder)


def test_names_follow_the_reading_the_facts_use_most(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "set"
    data.mkdir()
    (data / "train.txt").write_text(
        "00000100\t_similar_to\t00000200\n00000300\t_instance_hypernym\t00000100\n00000400\t_member_meronym\t00000200\n"
    )
    (data / "valid.txt").write_text("00000200\t_unheard_of\t00000100\n")
    (data / "test.tsv").write_text("00000200\t_hypernym\t00000100\n00000300\t_instance_hypernym\t00000100")
    out = tmp_path / "entity_names.tsv"
    wordnet.main(["names", "--database", str(folder), "--ids", str(data), "--out", str(out)])
    assert out.read_text().splitlines() == [
        '00000100\tentity.n.01\tthat which is; "an entity"',
        "00000200\tbank.n.02\tsloping land",
        "00000300\tnew_york.n.01\ta city",
        '00000400\tbank.n.01\tan institution, "he cashed a check"',
    ]
    # (00000200, hypernym, 00000100) holds of nouns and of verbs: both readings are used by it.
    assert (tmp_path / "entity_names_conflated.tsv").read_text().splitlines() == [
        "00000100\tentity.n.01(3); able.a.01(1); breathe.v.01(1)",
        "00000200\tbank.n.02(2); galore.s.01(1); bank.v.01(1)",
    ]


def test_among_equals_the_reading_met_first_names_the_id(folder: Path) -> None:
    database = wordnet_database.read(folder)
    noun, adjective = ("00000300", "instance_hypernym", "00000100"), ("00000100", "similar_to", "00000200")
    for triples, first in (([noun, adjective], "n"), ([adjective, noun], "a")):
        assert wordnet_names.readings(database, ["00000100"], triples)["00000100"][0][0][0] == first


def test_a_list_of_ids_marks_every_shared_offset(folder: Path, tmp_path: Path) -> None:
    ids, out = tmp_path / "ids", tmp_path / "names.tsv"
    ids.write_text("00000300\n00000100\n")
    wordnet.main(["names", "--database", str(folder), "--ids", str(ids), "--out", str(out)])
    assert [line.split("\t")[0] for line in out.read_text().splitlines()] == ["00000100", "00000300"]
    conflated = (tmp_path / "names_conflated.tsv").read_text()
    assert conflated == "00000100\tentity.n.01(0); breathe.v.01(0); able.a.01(0); aback.r.01(0)\n"


def test_ids_that_are_no_offsets_end_the_command(folder: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    ids.write_text("/m/0b1t1\n")
    with pytest.raises(SystemExit, match="/m/0b1t1"):
        wordnet.main(["names", "--database", str(folder), "--ids", str(ids), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_full_writes_every_fact_once_and_every_synset(folder: Path, tmp_path: Path) -> None:
    written = []
    for out in (tmp_path / "a", tmp_path / "b"):
        wordnet.main(["full", "--database", str(folder), "--out", str(out)])
        written.append({file.name: file.read_bytes() for file in out.iterdir()})
    files = written[0]
    assert files == written[1]
    rows = [
        tuple(line.split("\t"))
        for split in ("train", "valid", "test")
        for line in lzma.decompress(files[f"{split}.tsv.xz"]).decode().splitlines()
    ]
    database = wordnet_database.read(folder)
    assert Counter(rows) == Counter(named(database))
    names = lzma.decompress(files["entity_names.tsv.xz"]).decode().splitlines()
    assert [name.split("\t")[0] for name in names] == [synset.id for synset in database.synsets.values()]
    assert files["LICENSE"].decode() == database.licence
    sums = dict(reversed(line.split("  ")) for line in files.pop("SHA256SUMS").decode().splitlines())
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def graph(facts: list[tuple[str, str, str]]) -> Database:
    """A database of these facts, the seeds of wordnet-mini among its synsets."""
    seeds = wordnet_mini.KINDS_OF + wordnet_mini.PARTS_OF
    ids = sorted({*seeds, *(id for head, _, tail in facts for id in (head, tail))})
    keys = {id: (id.split(".")[1], id) for id in ids}
    coded = sorted((keys[head], relation, keys[tail]) for head, relation, tail in facts)
    return Database({keys[id]: Synset(id, id, id) for id in ids}, coded, "")


def test_the_rule_of_wordnet_mini_step_by_step() -> None:
    inside = [
        ("chair.n.01", "hypernym", "furniture.n.01"),  # 1: kinds, to any depth, and instances
        ("armchair.n.01", "hypernym", "chair.n.01"),
        ("stone_of_scone.n.01", "instance_hypernym", "chair.n.01"),
        ("asia.n.01", "has_part", "japan.n.01"),  # 2: parts and members of places, to any depth
        ("japan.n.01", "has_part", "tokyo.n.01"),
        ("asia.n.01", "member_meronym", "asian.n.01"),
        ("chair.n.01", "has_part", "leg.n.03"),  # 3: parts, and the groups above
        ("leg.n.03", "has_part", "castor.n.01"),
        ("canis.n.01", "member_meronym", "carnivore.n.01"),
        ("canidae.n.01", "member_meronym", "canis.n.01"),
        ("furniture.n.01", "hypernym", "artifact.n.01"),  # 4: hypernyms up to the root
        ("artifact.n.01", "hypernym", "entity.n.01"),
        ("canidae.n.01", "hypernym", "group.n.01"),
        ("sit.v.01", "derivationally_related_form", "chair.n.01"),  # 5: joined to two, and then to those
        ("sit.v.01", "synset_domain_topic_of", "furniture.n.01"),
        ("sit.v.01", "hypernym", "be.v.01"),
        ("seated.a.01", "derivationally_related_form", "sit.v.01"),
        ("seated.a.01", "derivationally_related_form", "armchair.n.01"),
    ]
    outside = [
        ("leg_kind.n.01", "hypernym", "leg.n.03"),  # the kinds of a part are not taken
        ("house.n.01", "has_part", "chair.n.01"),  # nor what a chosen one is a part of
        ("dog.n.01", "derivationally_related_form", "chair.n.01"),  # joined to one alone, if twice
        ("chair.n.01", "derivationally_related_form", "dog.n.01"),
        ("chair.n.01", "antonym", "armchair.n.01"),  # not a relation of wordnet-mini
        ("a.n.01", "hypernym", "b.n.01"),
    ]
    keys, facts = wordnet_mini.select(graph(inside + outside))
    assert {(head[1], relation, tail[1]) for head, relation, tail in facts} == set(inside)
    seeds = wordnet_mini.KINDS_OF + wordnet_mini.PARTS_OF
    assert {key[1] for key in keys} == {*seeds, *(id for head, _, tail in inside for id in (head, tail))}
    assert len(keys) == len(set(keys))


def test_a_database_without_the_seeds_is_refused(folder: Path) -> None:
    with pytest.raises(DatabaseError, match=r"furniture\.n\.01"):
        wordnet_mini.select(wordnet_database.read(folder))


entities = st.sampled_from("abcdefghij")
facts_of = st.lists(
    st.tuples(entities, st.sampled_from(["r", "s", "t"]), entities), unique=True, min_size=1, max_size=60
)


@given(facts_of, st.integers(0, 3), st.sampled_from([0.05, 0.2, 0.5]), st.randoms())
def test_a_split_leaks_nothing(facts: list[tuple[str, str, str]], seed: int, share: float, random) -> None:
    splits = wordnet_dataset.split(facts, seed, share)
    assert Counter(row for rows in splits.values() for row in rows) == Counter(facts)
    pairs = {name: {frozenset((head, tail)) for head, _, tail in rows} for name, rows in splits.items()}
    for one, other in itertools.combinations(pairs.values(), 2):
        assert not one & other
    assert {entity for pair in pairs["train"] for entity in pair} == {e for h, _, t in facts for e in (h, t)}
    assert {relation for _, relation, _ in splits["train"]} == {relation for _, relation, _ in facts}
    assert max(len(splits["valid"]), len(splits["test"])) <= round(share * len(facts))

    shuffled = list(facts)
    random.shuffle(shuffled)
    assert wordnet_dataset.split(shuffled, seed, share) == splits


def test_a_dense_graph_is_split_in_full_shares_and_by_the_seed() -> None:
    facts = [(str(head), "r", str(tail)) for head in range(40) for tail in range(head)]
    one, other = wordnet_dataset.split(facts, seed=0), wordnet_dataset.split(facts, seed=1)
    assert {name: len(rows) for name, rows in one.items()} == {"train": 702, "valid": 39, "test": 39}
    assert set(one["test"]) != set(other["test"])
    assert one["train"] != sorted(one["train"])


@pytest.mark.data
def test_wn18rr_names_agree_with_the_published_ones(tmp_path: Path) -> None:
    data, database = os.environ.get("MURP_DATA"), os.environ.get("MURP_WORDNET")
    folder = Path(data or ".") / "WN18RR"
    if not data or not (folder / "entity_names.tsv").exists():
        pytest.skip("needs benchmark data: set MURP_DATA to a folder with WN18RR and its entity_names.tsv")
    if not database:
        pytest.skip("needs WordNet: set MURP_WORDNET to the folder or tarball of WordNet 3.0's database")
    out = tmp_path / "entity_names.tsv"
    wordnet.main(["names", "--database", database, "--ids", str(folder), "--out", str(out)])
    for name in ("entity_names.tsv", "entity_names_conflated.tsv"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
