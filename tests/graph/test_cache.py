"""The cache of coded graphs: the same graph as parsing gives, whatever became of the cache."""

from __future__ import annotations

import os
import pwd
import re
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
from murp.files import lock
from murp.graph import KnowledgeGraph, cache, sources
from murp.graph.auditing.audit import audit_source

TRAIN, VALID, TEST = "a r b; b r c; c q a; a q c", "a r c", "b q a"


@pytest.fixture(autouse=True)
def caching(tmp_path, monkeypatch):
    """Every dataset is large enough to be cached, and the user's cache is empty."""
    monkeypatch.setattr(cache, "LEAST_BYTES", 0)
    monkeypatch.delenv("MURP_CACHE", raising=False)
    monkeypatch.delenv("MURP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))


@pytest.fixture
def home(tmp_path) -> Path:
    """Where the entries lie."""
    return tmp_path / "user" / "murp" / cache.FOLDER


@pytest.fixture
def dataset(tmp_path) -> Path:
    folder = graphs.write_dataset(tmp_path / "mine", train=TRAIN, valid=VALID, test=TEST)
    (folder / "entity_names.tsv").write_text("a\tAnt\tan insect\nb\tBee\t\n")
    return folder


@pytest.fixture
def parsed(monkeypatch) -> list[str]:
    """The names of the files of triples that were parsed, in order."""
    names: list[str] = []
    real = sources.read_facts
    monkeypatch.setattr(sources, "read_facts", lambda path, columns: names.append(path.name) or real(path, columns))
    return names


def entries(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir()) if home.exists() else []


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
def test_a_hit_is_what_parsing_gives_whatever_the_names(tmp_path, home, data):
    folder = tmp_path / "any"
    shutil.rmtree(folder, ignore_errors=True)
    splits = {name: data.draw(graphs.plain_rows) for name in ("train", "valid", "test")}
    folder.mkdir()
    for name, rows in splits.items():
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), newline="")
    shutil.rmtree(home, ignore_errors=True)
    first = KnowledgeGraph.load(folder)
    assert len(entries(home)) == 1
    assert identical(first, KnowledgeGraph.load(folder))


@pytest.mark.parametrize("file", ["train.txt", "valid.txt", "test.txt", "entity_names.tsv"])
def test_changed_content_is_parsed_anew(dataset, parsed, home, file):
    KnowledgeGraph.load(dataset)
    path = dataset / file
    times = path.stat()
    # The same length and the same dates: only the content tells.
    path.write_text(path.read_text().translate(str.maketrans("ab", "ba")))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = KnowledgeGraph.load(dataset)
    assert len(parsed) == 6
    shutil.rmtree(home)
    assert identical(changed, KnowledgeGraph.load(dataset))
    assert len(parsed) == 9


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


@pytest.mark.parametrize("damage", ["empty", "cut", "gone", "manifest", "another version", "told", "a link", "a file"])
def test_a_damaged_entry_is_ignored_and_written_again(dataset, parsed, home, damage):
    first = KnowledgeGraph.load(dataset)
    (name,) = entries(home)
    entry = home / name
    table, manifest = entry / "graph" / "train.parquet", entry / "graph" / "graph.json"
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
    elif damage == "told":
        (entry / "told.json").write_text('["", 3]')
    elif damage == "a link":
        table.symlink_to(table.rename(home.parent / "elsewhere.parquet"))
    else:
        shutil.rmtree(entry)
        entry.write_text("not a folder")
    assert identical(first, KnowledgeGraph.load(dataset))
    assert len(parsed) == 6
    assert entries(home) == [name]
    assert identical(first, KnowledgeGraph.load(dataset))
    # A file in an entry's place is left alone.
    assert len(parsed) == (9 if damage == "a file" else 6)


def planted(tmp_path: Path, entry: Path) -> None:
    """An entry of another graph, as somebody else might make it."""
    other = graphs.write_dataset(tmp_path / "other", train="evil r b; b r c; c q evil", valid=VALID, test="b q c")
    shutil.rmtree(entry, ignore_errors=True)
    KnowledgeGraph.load(other).save(entry / "graph")
    (entry / "told.json").write_text("[]")


def test_a_cache_that_comes_with_the_data_is_not_read(dataset, parsed, home, tmp_path):
    KnowledgeGraph.load(dataset)
    (name,) = entries(home)
    shutil.rmtree(home)
    # Where the first version of this program had entries of its own, and other likely places.
    for place in (".murp-cache", "murp", cache.FOLDER, f"murp/{cache.FOLDER}", f".cache/murp/{cache.FOLDER}"):
        for entry in (dataset / place / name, dataset / place / f"dataset-{name}"):
            planted(tmp_path, entry)
            shutil.copytree(entry / "graph", entry, dirs_exist_ok=True)
    shutil.rmtree(home)
    before = sorted(dataset.rglob("*"))
    assert KnowledgeGraph.load(dataset).entities.ids.to_pylist() == ["a", "b", "c"]
    assert sorted(dataset.rglob("*")) == before  # and nothing is written there
    assert entries(home) == [name]


@pytest.mark.parametrize("whose", ["another's", "everybody's"])
def test_entries_that_others_may_have_written_are_not_read(dataset, parsed, home, tmp_path, monkeypatch, whose):
    KnowledgeGraph.load(dataset)
    (name,) = entries(home)
    assert home.stat().st_mode & 0o777 == 0o700
    planted(tmp_path, home / name)
    assert "evil" in KnowledgeGraph.load(dataset).entities.ids.to_pylist()  # as long as it is the user's own
    if whose == "everybody's":
        home.chmod(0o777)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    assert KnowledgeGraph.load(dataset).entities.ids.to_pylist() == ["a", "b", "c"]
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before  # nor is anything written there


def test_data_that_may_not_be_written_is_cached_all_the_same(dataset, parsed):
    dataset.chmod(0o555)
    assert identical(KnowledgeGraph.load(dataset), KnowledgeGraph.load(dataset))
    assert len(parsed) == 3
    dataset.chmod(0o755)


def test_two_folders_with_the_same_files_share_an_entry(dataset, parsed, home, tmp_path):
    shutil.copytree(dataset, tmp_path / "copy")
    assert [KnowledgeGraph.load(path).name for path in (dataset, tmp_path / "copy")] == ["mine", "copy"]
    assert len(parsed) == 3


def test_entries_not_used_for_longest_make_room(dataset, parsed, home, monkeypatch):
    monkeypatch.setattr(cache, "MOST_ENTRIES", 2)
    (home / "not-an-entry").mkdir(parents=True)
    home.chmod(0o700)
    (dataset / "entity_names.tsv").unlink()
    versions = [f"{TRAIN}; a r e{number}" for number in range(3)]
    for number, text in enumerate(versions):
        graphs.write_dataset(dataset, train=text)
        KnowledgeGraph.load(dataset)
        for name in entries(home):  # no clock is fine enough
            os.utime(home / name, ns=(0, (home / name).stat().st_mtime_ns - 10**9))
        if number == 1:  # the older one is used again
            graphs.write_dataset(dataset, train=versions[0])
            KnowledgeGraph.load(dataset)
    assert len(entries(home)) == 3
    assert (home / "not-an-entry").is_dir()
    count = len(parsed)
    graphs.write_dataset(dataset, train=versions[0])
    KnowledgeGraph.load(dataset)
    assert len(parsed) == count
    graphs.write_dataset(dataset, train=versions[1])
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    KnowledgeGraph.load(dataset)
    assert len(parsed) == count + 3
    assert len(entries(home)) == 2  # the one just written is always kept


def test_what_a_stopped_reading_left_is_removed_after_a_month(dataset, parsed, home):
    home.mkdir(parents=True)
    home.chmod(0o700)
    old, running, new = (home / f".{digit * 32}.graph.work" for digit in "abc")
    for work in (old, running, new):
        work.mkdir()
        (work / "state.json").write_text("{}")
    for work in (old, running):
        for path in (work / "state.json", work):
            os.utime(path, (0, 0))
    held = os.open(running, os.O_RDONLY)
    try:
        lock(held)
        KnowledgeGraph.load(dataset)
    finally:
        os.close(held)
    assert not old.exists()
    assert running.exists()
    assert new.exists()


def test_where_nothing_can_be_written_the_graph_is_parsed_every_time(dataset, parsed, tmp_path):
    (tmp_path / "user").write_text("")
    assert identical(KnowledgeGraph.load(dataset), KnowledgeGraph.load(dataset))
    assert len(parsed) == 6


@pytest.mark.parametrize("home", ["none", "not there", "relative", "a name the system refuses"])
def test_without_a_home_folder_there_is_no_cache(dataset, parsed, tmp_path, monkeypatch, home):
    """Nor is there anything to download to; the error says what to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME")
    if home == "none":
        monkeypatch.delenv("HOME", raising=False)

        def nobody(number: int) -> None:
            raise KeyError(number)

        monkeypatch.setattr(pwd, "getpwuid", nobody)
    else:
        names = {"not there": str(tmp_path / "nowhere"), "relative": "mine"}
        monkeypatch.setenv("HOME", names.get(home, "/" + "x" * 300))
    before = sorted(tmp_path.rglob("*"))
    assert identical(KnowledgeGraph.load(dataset), KnowledgeGraph.load(dataset))
    assert len(parsed) == 6
    with pytest.raises(DataError, match=r"WN18RR is not here, .*no home folder .*set XDG_CACHE_HOME"):
        KnowledgeGraph.load("WN18RR")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_relative_cache_folder_does_not_count(dataset, parsed, tmp_path, monkeypatch):
    """It would lie where one happens to be, which may be in the data of others."""
    monkeypatch.chdir(dataset)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    KnowledgeGraph.load(dataset)
    assert not (dataset / "here").exists()
    assert len(entries(tmp_path / "home" / ".cache" / "murp" / cache.FOLDER)) == 1


def test_it_can_be_switched_off(dataset, parsed, home, monkeypatch):
    monkeypatch.setenv("MURP_CACHE", "off")
    assert identical(KnowledgeGraph.load(dataset), KnowledgeGraph.load(dataset))
    assert len(parsed) == 6
    assert not home.exists()


def test_small_datasets_are_not_cached(dataset, home, monkeypatch):
    monkeypatch.setattr(cache, "LEAST_BYTES", 10_000)
    KnowledgeGraph.load(dataset)
    assert not home.exists()


def test_a_single_file_has_an_entry_for_each_seed(tmp_path, parsed, home):
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
    assert len(entries(home)) == 3


def test_what_was_told_of_the_names_is_told_again(dataset, parsed, home, tmp_path):
    (dataset / "entity_names.tsv").write_text("a\tAnt\nx//y\tGhost\n")
    shutil.copytree(dataset, tmp_path / "copy")
    for path in (dataset, dataset, tmp_path / "copy"):
        with pytest.warns(UserWarning, match=re.escape(f"{path}/entity_names.tsv: 1 of 2 rows") + ".*'x//y'"):
            KnowledgeGraph.load(path)
    assert len(parsed) == 3


def test_faults_are_told_as_without_a_cache(dataset, parsed):
    KnowledgeGraph.load(dataset)
    (dataset / "test.txt").write_text("a\tb\n")
    with pytest.raises(DataError, match=r"test\.txt, line 1: 2 fields"):
        KnowledgeGraph.load(dataset)
    (dataset / "test.txt").unlink()
    with pytest.raises(DataError, match=r"it has train\.txt and valid\.txt, but no test"):
        KnowledgeGraph.load(dataset)


def test_an_audit_of_a_cached_graph_reads_its_files(dataset, parsed):
    (dataset / "test.txt").write_text("b\tq\ta")
    first = audit_source(dataset)
    again = audit_source(dataset)
    assert len(parsed) == 3
    assert again == first
    assert again.count("no_final_newline") == 1


@pytest.mark.usefixtures("copied")
def test_processes_that_start_together_are_safe(tmp_path):
    rows = "; ".join(f"e{i % 50} r{i % 3} e{i * 7 % 41}" for i in range(2000))
    folder = graphs.write_dataset(tmp_path / "mine", train=rows, valid=VALID, test=TEST)
    program = """
import os, shutil, sys
from murp.graph import KnowledgeGraph, cache
cache.LEAST_BYTES = 0
for _ in range(20):
    graph = KnowledgeGraph.load(sys.argv[1])
    assert len(graph.train) == 2000 and graph.num_entities == 53, graph
    if sys.argv[2] == "remove":
        shutil.rmtree(os.environ["XDG_CACHE_HOME"] + "/murp/parsed", ignore_errors=True)
"""
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(folder), what]) for what in ("keep", "keep", "remove")
    ]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(KnowledgeGraph.load(folder).train) == 2000
    assert not list(tmp_path.rglob("*.part"))
