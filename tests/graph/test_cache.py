"""The cache of coded graphs: the same graph as parsing gives, whatever became of the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import graphs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from murp.errors import DataError
from murp.graph import KnowledgeGraph, cache, sources
from murp.graph.audit import audit_source

TRAIN, VALID, TEST = "a r b; b r c; c q a; a q c", "a r c", "b q a"


@pytest.fixture(autouse=True)
def caching(tmp_path, monkeypatch):
    """Every dataset is large enough to be cached, and the user's cache is empty."""
    monkeypatch.setattr(cache, "LEAST_BYTES", 0)
    monkeypatch.delenv("MURP_CACHE", raising=False)
    monkeypatch.delenv("MURP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))


@pytest.fixture
def dataset(tmp_path) -> Path:
    folder = graphs.write_dataset(tmp_path / "mine", train=TRAIN, valid=VALID, test=TEST)
    (folder / "entity_names.tsv").write_text("a\tAnt\tan insect\nb\tBee\t\n")
    return folder


@pytest.fixture
def parsed(monkeypatch) -> list[str]:
    """The names of the files of triples that were parsed, in order."""
    names: list[str] = []
    real = sources.read_triples
    monkeypatch.setattr(sources, "read_triples", lambda path: names.append(path.name) or real(path))
    return names


def entries(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir() if path.is_dir())


def identical(one: KnowledgeGraph, other: KnowledgeGraph) -> bool:
    return graphs.same(one, other) and (one.name, one.source) == (other.name, other.source)


def test_the_second_load_parses_nothing_and_gives_the_identical_graph(dataset, parsed):
    first = KnowledgeGraph.load(dataset)
    assert len(parsed) == 3
    second = KnowledgeGraph.load(dataset)
    assert len(parsed) == 3
    assert identical(first, second)
    assert second.entities.gloss(0) == "an insect"
    assert second.train.dtype == first.train.dtype
    assert second.train.flags.writeable == first.train.flags.writeable


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_hit_is_what_parsing_gives_whatever_the_names(tmp_path, data):
    folder = tmp_path / "any"
    shutil.rmtree(folder, ignore_errors=True)
    splits = {name: data.draw(graphs.plain_rows) for name in ("train", "valid", "test")}
    folder.mkdir()
    for name, rows in splits.items():
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), newline="")
    first = KnowledgeGraph.load(folder)
    assert len(entries(folder / cache.FOLDER)) == 1
    assert identical(first, KnowledgeGraph.load(folder))


@pytest.mark.parametrize("file", ["train.txt", "valid.txt", "test.txt", "entity_names.tsv"])
def test_changed_content_is_parsed_anew_and_takes_the_place_of_the_old(dataset, parsed, file):
    KnowledgeGraph.load(dataset)
    before = entries(dataset / cache.FOLDER)
    path = dataset / file
    times = path.stat()
    # The same length and the same dates: only the content tells.
    path.write_text(path.read_text().translate(str.maketrans("ab", "ba")))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = KnowledgeGraph.load(dataset)
    assert len(parsed) == 6
    after = entries(dataset / cache.FOLDER)
    assert len(after) == 1
    assert after != before
    shutil.rmtree(dataset / cache.FOLDER)
    assert identical(changed, KnowledgeGraph.load(dataset))


def test_another_format_of_the_same_bytes_is_another_dataset(dataset, parsed):
    KnowledgeGraph.load(dataset)
    (dataset / "train.txt").rename(dataset / "train.csv")
    with pytest.raises(DataError, match=r"train\.csv, line 1"):
        KnowledgeGraph.load(dataset)


def test_names_that_come_later_are_seen(dataset):
    KnowledgeGraph.load(dataset)
    (dataset / "relation_names.tsv").write_text("q\tquestions\n")
    assert KnowledgeGraph.load(dataset).relations.label(1) == "questions [q]"


def test_a_folder_that_was_renamed_has_its_new_name(dataset, parsed):
    KnowledgeGraph.load(dataset)
    other = dataset.rename(dataset.with_name("yours"))
    graph = KnowledgeGraph.load(other)
    assert (graph.name, graph.source) == ("yours", str(other))
    assert len(parsed) == 3


@pytest.mark.parametrize("damage", ["empty", "cut", "gone", "manifest", "another version", "a file"])
def test_a_damaged_entry_is_ignored_and_written_again(dataset, parsed, damage):
    first = KnowledgeGraph.load(dataset)
    (name,) = entries(dataset / cache.FOLDER)
    entry = dataset / cache.FOLDER / name
    table, manifest = entry / "train.parquet", entry / "graph.json"
    if damage == "empty":
        table.write_bytes(b"")
    elif damage == "cut":
        table.write_bytes(table.read_bytes()[:-3])
    elif damage == "gone":
        table.unlink()
    elif damage == "manifest":
        manifest.write_text("{")
    elif damage == "another version":
        manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 0'))
    else:
        shutil.rmtree(entry)
        entry.write_text("not a folder")
    assert identical(first, KnowledgeGraph.load(dataset))
    assert len(parsed) == 6
    if damage != "a file":  # a file in an entry's place is left alone; the user's cache takes over
        assert entries(dataset / cache.FOLDER) == [name]
    assert identical(first, KnowledgeGraph.load(dataset))
    assert len(parsed) == 6


@pytest.mark.parametrize("why", ["marked read-only", "refused"])
def test_where_the_data_cannot_be_written_the_users_cache_is_used(dataset, parsed, tmp_path, why):
    if why == "refused":  # a file in the cache's place refuses everybody, the superuser too
        (dataset / cache.FOLDER).write_text("")
    else:
        dataset.chmod(0o555)
    first = KnowledgeGraph.load(dataset)
    assert identical(first, KnowledgeGraph.load(dataset))
    assert len(parsed) == 3
    assert not (dataset / cache.FOLDER).is_dir()
    (home,) = (tmp_path / "user" / "murp" / "coded").iterdir()
    assert len(entries(home)) == 1
    dataset.chmod(0o755)


def test_where_nothing_can_be_written_the_graph_is_parsed_every_time(dataset, parsed, tmp_path):
    (dataset / cache.FOLDER).write_text("")
    (tmp_path / "user").write_text("")
    assert identical(KnowledgeGraph.load(dataset), KnowledgeGraph.load(dataset))
    assert len(parsed) == 6


def test_it_can_be_switched_off(dataset, parsed, monkeypatch):
    monkeypatch.setenv("MURP_CACHE", "off")
    assert identical(KnowledgeGraph.load(dataset), KnowledgeGraph.load(dataset))
    assert len(parsed) == 6
    assert not (dataset / cache.FOLDER).exists()


def test_small_datasets_are_not_cached(dataset, parsed, monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("MURP_CACHE", raising=False)
    KnowledgeGraph.load(dataset)
    assert not (dataset / cache.FOLDER).exists()


def test_a_single_file_has_an_entry_for_each_seed(tmp_path, parsed):
    path = tmp_path / "facts.tsv"
    path.write_text("\n".join(f"e{i % 9}\tr\te{i * i % 7}" for i in range(200)))
    one, two = (KnowledgeGraph.load(path, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.test, two.test)
    assert len(parsed) == 2
    assert identical(one, KnowledgeGraph.load(path, seed=1))
    assert identical(two, KnowledgeGraph.load(path, seed=2))
    assert len(parsed) == 2
    path.write_text(path.read_text() + "\ne1\tr\te2")
    KnowledgeGraph.load(path, seed=1)
    assert len(parsed) == 3
    assert len(entries(tmp_path / cache.FOLDER)) == 2


def test_faults_are_told_as_without_a_cache(dataset, parsed):
    KnowledgeGraph.load(dataset)
    (dataset / "test.txt").write_text("a\tb\n")
    with pytest.raises(DataError, match=r"test\.txt, line 1: 2 fields"):
        KnowledgeGraph.load(dataset)
    (dataset / "test.txt").unlink()
    with pytest.raises(DataError, match="test is missing"):
        KnowledgeGraph.load(dataset)


def test_an_audit_of_a_cached_graph_reads_its_files(dataset, parsed):
    (dataset / "test.txt").write_text("b\tq\ta")
    first = audit_source(dataset)
    again = audit_source(dataset)
    assert len(parsed) == 3
    assert again == first
    assert again.count("no_final_newline") == 1


def test_processes_that_start_together_are_safe(tmp_path):
    rows = "; ".join(f"e{i % 50} r{i % 3} e{i * 7 % 41}" for i in range(2000))
    folder = graphs.write_dataset(tmp_path / "mine", train=rows, valid=VALID, test=TEST)
    program = """
import shutil, sys
from murp.graph import KnowledgeGraph, cache
cache.LEAST_BYTES = 0
for _ in range(20):
    graph = KnowledgeGraph.load(sys.argv[1])
    assert len(graph.train) == 2000 and graph.num_entities == 53, graph
    if sys.argv[2] == "remove":
        shutil.rmtree(sys.argv[1] + "/.murp-cache", ignore_errors=True)
"""
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(folder), what]) for what in ("keep", "keep", "remove")
    ]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(KnowledgeGraph.load(folder).train) == 2000
    assert not list(tmp_path.rglob("*.part"))
