from __future__ import annotations

import gzip
import hashlib
import os
import urllib.request
import warnings
from dataclasses import replace
from http.client import HTTPMessage
from pathlib import Path

import graphs
import numpy as np
import pytest

from murp.errors import DataError
from murp.graph import SPLITS, KnowledgeGraph, datasets, download
from murp.graph.datasets import REGISTRY, Dataset, dataset

TRAIN, VALID, TEST = "a r b; b r c; c q a; a q c", "a r c", "b q a"
FILES = {
    "train.txt": b"a\tr\tb\r\nb\tr\tc\r\nc\tq\ta\r\na\tq\tc",
    "valid.txt": b"a\tr\tc\r\n",
    "test.txt": b"b\tq\ta\r\n",
}
TOY = Dataset(
    *("Toy", "three things", 3, 2, 4, 1, 1),
    *("https://example.org", "none", "nobody"),
    base_url="https://example.org/data",
    sha256={name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()},
)


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No data of the user's, no network, and one more dataset in the registry."""
    monkeypatch.delenv("MURP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "REGISTRY", (*REGISTRY, TOY))
    monkeypatch.setattr(download, "fetch", offline)
    monkeypatch.chdir(tmp_path)


def offline(url: str) -> bytes:
    raise OSError("the network is unreachable")


def serve(files):
    return lambda url: files[url.removeprefix("https://example.org/data/")]


def test_a_folder_with_names(tmp_path):
    folder = graphs.write_dataset(tmp_path / "mine", train=TRAIN, valid=VALID, test=TEST)
    (folder / "entity_names.tsv.gz").write_bytes(gzip.compress(b"b\tBee\tan insect\n"))
    (folder / "relation_names.tsv").write_text("q\tquestions\n")
    graph = KnowledgeGraph.load(str(folder))
    assert graph.name == "mine"
    assert graph.entities.ids.to_pylist() == ["a", "b", "c"]
    assert graph.entities.label(1) == "Bee [b]"
    assert graph.relations.label(1) == "questions [q]"
    assert graph.test.tolist() == [[1, 1, 0]]


@pytest.mark.parametrize("single", [False, True])
def test_names_of_what_the_graph_does_not_have_are_left_out_with_a_warning(tmp_path, single):
    folder = graphs.write_dataset(tmp_path / "mine", train=TRAIN, valid=VALID, test=TEST)
    (folder / "entity_names.tsv").write_text("\nb\tBee\n\nx\x1b\tGhost\na\tAnt\ny\tSpirit\n")
    (folder / "relation_names.tsv").write_text("q\tquestions\n")
    with pytest.warns(UserWarning, match="entity_names") as told:
        graph = KnowledgeGraph.load(folder / "train.txt" if single else folder)
    assert [str(word.message) for word in told] == [
        f"{folder}/entity_names.tsv: 2 of 4 rows name no entity of the graph, the first in line 4: 'x\\x1b'. "
        "They are left out; the graph has 3 entities."
    ]
    assert [graph.entities.name(i) for i in range(3)] == ["Ant", "Bee", "c"]


def test_names_for_one_id_twice_are_refused(tmp_path):
    folder = graphs.write_dataset(tmp_path / "mine", train=TRAIN, valid=VALID, test=TEST)
    (folder / "relation_names.tsv").write_text("r\tone\n\nq\ttwo\nq\tthree\nr\tfour\n")
    with pytest.raises(
        DataError,
        match=r"relation_names\.tsv, line 4: 'q' has a name in line 3 already \(2 rows too many in all\)\. Keep",
    ):
        KnowledgeGraph.load(folder)


def test_formats_may_be_mixed(tmp_path):
    folder = graphs.write_dataset(tmp_path / "mine", train=TRAIN, valid=VALID)
    (folder / "test.csv.gz").write_bytes(gzip.compress(b"tail,relation,head\na,q,b\n"))
    assert KnowledgeGraph.load(folder).test.tolist() == [[1, 1, 0]]


def test_one_file_is_split_by_seed(tmp_path):
    rows = [f"e{i % 9}\tr\te{i * i % 7}" for i in range(200)]
    path = tmp_path / "my.facts.tsv"
    path.write_text("\n".join(rows))
    one, same, other = (KnowledgeGraph.load(path, seed=seed) for seed in (1, 1, 2))
    assert one.name == "my.facts"
    assert graphs.same(one, same)
    assert not np.array_equal(one.test, other.test)
    assert len(one.facts()) == 200


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({}, r"is not a dataset: it has no train, valid and test .*It holds other"),
        ({"train": TRAIN}, r"mine: it has train\.txt, but no valid and no test .*give that file"),
        ({"valid": VALID, "test": TEST}, r"it has valid\.txt and test\.txt, but no train \("),
        ({"train": TRAIN, "valid": "", "test": TEST}, r"valid\.txt: is empty"),
        ({"train": TRAIN, "valid": VALID, "test": "a b"}, r"test\.txt, line 1: 2 fields"),
    ],
)
def test_folders_that_are_no_datasets(tmp_path, splits, message):
    folder = graphs.write_dataset(tmp_path / "mine", **splits)
    (folder / "other").touch()
    with pytest.raises(DataError, match=message):
        KnowledgeGraph.load(folder)


def test_a_folder_of_parts_is_told_the_pattern_that_reads_it(tmp_path):
    folder = tmp_path / "mine [2]"
    folder.mkdir()
    for part in ("a", "b"):
        (folder / f"{part}.tsv.gz").write_bytes(gzip.compress(f"{part}\tr\tc\n".encode()))
    with pytest.raises(DataError, match="If these files are one set of facts, give the pattern '") as told:
        KnowledgeGraph.load(folder)
    pattern = str(told.value).partition("the pattern '")[2].partition("' (in quotes).")[0]
    assert len(KnowledgeGraph.load(pattern).facts()) == 2
    (folder / "c.csv").touch()  # of another format
    with pytest.raises(DataError, match=r"It holds a\.tsv\.gz, b\.tsv\.gz, c\.csv\.$"):
        KnowledgeGraph.load(folder)


def test_an_empty_name_is_not_the_folder_one_is_in(tmp_path, monkeypatch):
    graphs.write_dataset(tmp_path, train=TRAIN, valid=VALID, test=TEST)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="the name of the data is empty"):
        KnowledgeGraph.load("")
    assert len(KnowledgeGraph.load(".").train)


def test_a_file_with_nothing_to_spare(tmp_path):
    (tmp_path / "tree.tsv").write_text("a\tr\tb\na\tr\tc\n")
    graph = KnowledgeGraph.load(tmp_path / "tree.tsv")
    assert [len(graph.split(split)) for split in SPLITS] == [2, 0, 0]


def test_unknown_names_say_what_was_looked_for_and_what_is_close(tmp_path, monkeypatch):
    monkeypatch.setenv("MURP_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError, match=r"'WN18R' is not the name of a dataset.*data/WN18R\)\. Did you mean WN18RR\?"):
        KnowledgeGraph.load("WN18R")
    with pytest.raises(DataError, match=r"Known datasets: wordnet-mini, WN18RR"):
        KnowledgeGraph.load("zzz")
    with pytest.raises(DataError, match=r"unknown dataset 'umsl'. Did you mean UMLS\?"):
        dataset("umsl")


def test_places_are_looked_at_in_order(tmp_path, monkeypatch):
    """data_dir, MURP_DATA, the cache: told apart by the first fact of each."""
    for place in ("given", "named", "cache/murp"):
        first = place[0]
        graphs.write_dataset(
            tmp_path / place / "toy",
            train=f"{first} r b; b r {first}; b q {first}",
            valid=f"b r {first}",
            test=f"b q {first}",
        )
    monkeypatch.setenv("MURP_DATA", str(tmp_path / "named"))

    def found(data_dir=None):
        with pytest.warns(UserWarning, match="is not Toy as published: 2 entities instead of 3, 3 train instead of 4"):
            return KnowledgeGraph.load("TOY", data_dir=data_dir).entities.id(0)

    assert found(tmp_path / "given") == "g"
    assert found(tmp_path / "nowhere") == "n"
    monkeypatch.delenv("MURP_DATA")
    assert found() == "c"


def test_a_registered_name_comes_before_a_folder_and_own_folders_lie_in_the_data_folder(tmp_path):
    graphs.write_dataset(tmp_path / "Toy", train="x r y; x q y; y q x", valid="x r y", test="x r y")
    graphs.write_dataset(tmp_path / "data" / "Toy", train=TRAIN, valid=VALID, test=TEST)
    graphs.write_dataset(tmp_path / "data" / "mine", train=TRAIN, valid=VALID, test=TEST)
    assert KnowledgeGraph.load("Toy", data_dir=tmp_path / "data").num_entities == 3
    assert KnowledgeGraph.load("./Toy", data_dir=tmp_path / "data").num_entities == 2
    assert KnowledgeGraph.load("mine", data_dir=tmp_path / "data").name == "mine"


def test_a_download_is_kept_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "fetch", serve(FILES))
    first = KnowledgeGraph.load("toy")
    monkeypatch.setattr(download, "fetch", offline)
    assert graphs.same(KnowledgeGraph.load("toy"), first)
    kept = tmp_path / "cache" / "murp" / "Toy"
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == FILES
    assert [path.name for path in kept.parent.iterdir()] == ["Toy"]


def test_offline_the_message_says_where_to_put_which_files(tmp_path):
    with pytest.raises(DataError) as caught:
        KnowledgeGraph.load("toy", data_dir=tmp_path / "data")
    for words in (
        "network is unreachable",
        f"Put train.txt, valid.txt and test.txt (from https://example.org) into {tmp_path}/cache/murp/Toy",
        f"{tmp_path}/data",
        "MURP_DATA",
    ):
        assert words in str(caught.value)
    assert list((tmp_path / "cache" / "murp").iterdir()) == []


def test_a_dataset_without_download_says_where_it_comes_from():
    with pytest.raises(DataError, match=r"NELL-995 is not here and cannot be downloaded.*xwhan/DeepPath"):
        KnowledgeGraph.load("NELL-995")


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_with_another_hash_is_never_read_nor_kept(tmp_path, monkeypatch, name):
    monkeypatch.setattr(download, "fetch", serve(FILES | {name: FILES[name].replace(b"a", b"x")}))
    with pytest.raises(DataError, match=f"{name} has SHA-256"):
        KnowledgeGraph.load("toy")
    assert list((tmp_path / "cache" / "murp").iterdir()) == []


def test_without_hashes_nothing_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "REGISTRY", (replace(TOY, sha256={}),))
    monkeypatch.setattr(download, "fetch", serve(FILES))
    with pytest.raises(DataError, match=r"no hash of train\.txt is known"):
        KnowledgeGraph.load("toy")
    assert list((tmp_path / "cache" / "murp").iterdir()) == []


def test_hashes_of_rows_serve_too_and_the_counts_are_compared(tmp_path, monkeypatch):
    files = FILES | {"test.txt": b"a\tr\tb\na\tr\tb\n"}
    rows = {name: datasets.digest_of_rows(data) for name, data in files.items()}
    monkeypatch.setattr(datasets, "REGISTRY", (replace(TOY, sha256={}, sha256_of_rows=rows),))
    monkeypatch.setattr(download, "fetch", serve(files))
    with pytest.raises(DataError, match="not Toy as published: 2 test instead of 1"):
        KnowledgeGraph.load("toy")
    assert list((tmp_path / "cache" / "murp").iterdir()) == []
    rows = {name: datasets.digest_of_rows(data) for name, data in FILES.items()}
    monkeypatch.setattr(datasets, "REGISTRY", (replace(TOY, sha256={}, sha256_of_rows=rows),))
    monkeypatch.setattr(download, "fetch", serve(FILES))
    assert len(KnowledgeGraph.load("toy").test) == 1


def test_a_run_that_comes_second_uses_what_the_first_made(tmp_path, monkeypatch):
    def slow(url: str) -> bytes:
        graphs.write_dataset(tmp_path / "cache" / "murp" / "Toy", train=TRAIN, valid=VALID, test=TEST)
        return serve(FILES)(url)

    monkeypatch.setattr(download, "fetch", slow)
    assert len(KnowledgeGraph.load("toy").train) == 4


def test_only_https_is_spoken(monkeypatch):
    monkeypatch.undo()
    for url in ("http://example.org/x", "file:///etc/hostname", "ftp://example.org/x"):
        with pytest.raises(DataError, match="over https only"):
            download.fetch(url)


def test_redirects_to_http_are_refused():
    handler, request = download.HttpsRedirects(), urllib.request.Request("https://example.org/x")
    with pytest.raises(DataError, match="over https only"):
        handler.redirect_request(request, None, 302, "", HTTPMessage(), "http://example.org/y")
    followed = handler.redirect_request(request, None, 302, "", HTTPMessage(), "https://example.org/y")
    assert followed.full_url == "https://example.org/y"


def test_the_registry_is_whole():
    assert len({entry.name.lower() for entry in REGISTRY}) == len(REGISTRY)
    for entry in REGISTRY:
        assert all(count > 0 for count in entry.counts().values())
        assert entry.origin.startswith("https://")
        assert entry.licence
        assert entry.citation
        assert all(url.startswith("https://") for url in entry.urls().values())
        assert set(entry.sha256) <= set(entry.urls())
        assert all(len(digest) == 64 for digest in entry.sha256.values())


def test_the_bundled_graph_is_what_the_registry_says():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = KnowledgeGraph.load("wordnet-mini")
    assert graph.entities.gloss(graph.entities.find("asia.n.01"))


@pytest.mark.data
@pytest.mark.parametrize("entry", [e for e in REGISTRY if not e.bundled], ids=lambda entry: entry.name)
def test_the_benchmark_sets_hold_what_the_registry_says(entry, data_folder):
    if not (data_folder / entry.name).is_dir():
        pytest.skip(f"needs benchmark data: {entry.name} in the folder MURP_DATA names")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KnowledgeGraph.load(entry.name, data_dir=data_folder)


@pytest.fixture
def data_folder(alone) -> Path:
    if DATA is None:
        pytest.skip("needs benchmark data: set MURP_DATA to a folder with WN18RR, FB15k-237, NELL-995-h100, …")
    return Path(DATA)


DATA = os.environ.get("MURP_DATA")


def test_a_file_that_is_not_there_is_answered_with_the_one_that_is_close(tmp_path: Path) -> None:
    products = tmp_path / "mine" / "products.tsv"
    products.parent.mkdir()
    products.write_text("a\tr\tb\n")
    with pytest.raises(DataError, match=rf"Did you mean {products}\?$"):
        KnowledgeGraph.load(products.with_name("prodcts.tsv"))
    with pytest.raises(DataError, match=rf"Did you mean {products}\?$"):
        KnowledgeGraph.load("prodcts.tsv", data_dir=products.parent)
    with pytest.raises(DataError, match=r"Did you mean WN18RR"):
        KnowledgeGraph.load(products.with_name("WN18R"))
