"""A header is never a fact, a fact never a header: whatever the spelling and the order of the columns."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import warnings
from pathlib import Path

import graphs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from murp.cli.main import main
from murp.errors import DataError
from murp.graph import KnowledgeGraph
from murp.graph.formats import read_facts
from murp.graph.reading.columns import Columns, role_positions
from murp.graph.reading.files import read_triples
from murp.training.start import configure

ENDS = [
    ("head", "tail"), ("subject", "object"), ("source", "target"), ("src", "dst"), ("from", "to"), ("start", "end"),
    ("entity1", "entity2"), ("head_id", "tail_id"), ("headEntity", "tailEntity"), ("Start Node", "End Node"),
    ("node_1", "node_2"), ("from_id", "to_id"), ("subject_uri", "object_uri"), (":START_ID", ":END_ID"),
    (":START_ID(Person)", ":END_ID(Movie)"), ("_start", "_end"), ("SourceId", "TargetId"), ("x_id", "y_id"),
]  # fmt: skip
RELATIONS = [
    "relation",
    "rel",
    "predicate",
    "type",
    "label",
    "edge_type",
    "relationship",
    ":TYPE",
    "Relation Type",
    "link",
]
FURTHER = [[], ["weight"], ["date", "source_of_it"], ["weight", "confidence", "comment"], ["year"]]
STYLES = [str, str.upper, str.title, lambda word: f" {word} ", lambda word: word.replace("_", "-")]


def spellings() -> list[tuple[list[str], tuple[int, int, int]]]:
    """Headers of every family of words in some order, spelling and company, with the places of the three roles."""
    draw = random.Random(0)
    found = []
    for (head, tail), relation in itertools.product(ENDS, RELATIONS):
        style = draw.choice(STYLES) if ":" not in head + relation else str
        words = {"head": style(head), "relation": style(relation), "tail": style(tail)}
        titles = [*words.values(), *draw.choice(FURTHER)]
        draw.shuffle(titles)
        found.append((titles, tuple(titles.index(words[role]) for role in ("head", "relation", "tail"))))
    others = ["thing", "verb2", "gene", "drug name", "Person", "wert", "x1"]
    for _ in range(60):  # two titles that are known, one that is not
        (head, tail), relation = draw.choice(ENDS[:6]), draw.choice(RELATIONS[:7])
        titles = draw.choice([[head, draw.choice(others), tail], [head, relation, draw.choice(others)]])
        draw.shuffle(titles)
        found.append((titles, None))
    return found


ROWS = [[f"{letter}{i}" for letter in "arbcde"] for i in range(12)]


def written(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def test_two_hundred_spellings_of_headers_and_none_misread(tmp_path: Path) -> None:
    generated = spellings()
    assert len(generated) >= 200
    understood = 0
    for number, (titles, places) in enumerate(generated):
        rows = [row[: len(titles)] for row in ROWS]
        path = tmp_path / f"{number}.csv"
        path.write_text(written([titles, *rows]))
        if places is None:
            with pytest.raises(DataError, match=r"line 1: the first row .*--columns head=.*--no-header"):
                read_triples(path)
        else:
            assert graphs.listed(read_triples(path)) == [tuple(row[i] for i in places) for row in rows], titles
            understood += 1
    assert understood >= 180


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("head,relation,tail,source", "head relation tail"),
        ("source,target,type,start,end", "source type target"),
        ("subject_id,subject_name,predicate,object_id,object_name", "subject_id predicate object_id"),
        ("CUI1,REL,CUI2,RELA", "CUI1 REL CUI2"),
        ("relation,display_relation,x_id,x_name,y_id,y_name", "x_id relation y_id"),
        ("from,to,type,label", None),
        ("source,target,relation,src,dst", None),
        ("head,head,tail", None),
        ("relation,predicate,head,tail", None),
    ],
)
def test_the_most_telling_titles_count_and_of_two_alike_none(header: str, chosen: str | None) -> None:
    titles = header.split(",")
    places = role_positions(titles)
    assert (None if places is None else " ".join(titles[i] for i in places)) == chosen


def test_a_first_row_unlike_all_others_is_not_taken_for_a_fact(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("gene,interacts,disease\n" + "".join(f"{i},{i % 3},{i + 1}\n" for i in range(9)))
    with pytest.raises(DataError, match=r"line 1: the first row has words where the others have numbers"):
        KnowledgeGraph.load(path)
    path.write_text("gene,association,disease\n" + "".join(f"g{i},causes,d{i % 4}\n" for i in range(9)))
    with pytest.raises(DataError, match=r"the first row holds nothing that comes again, like a header: 'gene'"):
        KnowledgeGraph.load(path)
    # Relations that come once do not hide it; another fact that stands as much alone shows that such facts are usual.
    path.write_text("gene,association,disease\n" + "".join(f"g{i % 3},is{i},d{i % 4}\n" for i in range(9)))
    with pytest.raises(DataError, match=r"holds nothing that comes again"):
        KnowledgeGraph.load(path)
    path.write_text("gene,association,disease\nx,y,z\n" + "".join(f"g{i % 3},is{i},d{i % 4}\n" for i in range(9)))
    assert len(KnowledgeGraph.load(path)) == 11
    path.write_text("entity1,likes,entity2\n" + "".join(f"entity{i},likes,entity{i + 1}\n" for i in range(1, 9)))
    assert len(KnowledgeGraph.load(path).facts()) == 9
    path.write_text("entity1,likes,entity2\n" + "".join(f"a{i},likes,a{i + 1}\n" for i in range(1, 9)))
    with pytest.raises(DataError, match=r"looks like a header"):
        KnowledgeGraph.load(path)


def test_the_same_odd_first_row_in_all_three_files(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.tsv").write_text("gene\tassociation\tdisease\n" + "g1\tcauses\td1\ng2\tcauses\td1\n" * 3)
    with pytest.raises(DataError, match=r"train\.tsv, line 1: the first row holds nothing that comes again"):
        KnowledgeGraph.load(tmp_path)
    assert len(KnowledgeGraph.load(tmp_path, header=False).test) == 7


def test_columns_and_the_header_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("wer,kennt,wen,seit\na,knows,b,1999\nb,likes,a,2001\n")
    facts = [("a", "knows", "b"), ("b", "likes", "a")]
    assert graphs.listed(read_triples(path, Columns.parse("head=wer, relation=kennt, tail=wen"))) == facts
    assert graphs.listed(read_triples(path, Columns.of(["wer", "kennt", "wen"]))) == facts
    assert graphs.listed(read_triples(path, Columns.of({"tail": "wen", "head": "wer", "relation": "kennt"}))) == facts
    by_number = [("wer", "kennt", "wen"), *facts]
    assert graphs.listed(read_triples(path, Columns.parse("head=1,relation=2,tail=3", header=False))) == by_number
    assert graphs.listed(read_triples(path, Columns.of([2, 1, 0], header=False)))[1] == ("b", "knows", "a")
    path.write_text("head,relation,tail\na,knows,b\n")
    assert graphs.listed(read_triples(path, Columns(header=False)))[0] == ("head", "relation", "tail")
    assert graphs.listed(read_triples(path, Columns.parse("head=3,relation=2,tail=1"))) == [("b", "knows", "a")]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("a,b,c\n", "head=x,relation=b,tail=c", r"line 1: no column is titled 'x'. There are 'a', 'b', 'c'"),
        ("a,b,c,b\n", "head=a,relation=b,tail=c", r"several columns are titled 'b'"),
        ("a,b,c\n", "head=a,relation=a,tail=c", r"must be three columns"),
        ("a,b,c\n", "head=a,tail=c", r"given as head=…,relation=…,tail=…"),
        ("a,b,c\n", "head=1,relation=2,tail=9", r"has 3 fields, and not three different ones"),
        ("a,b,c,d\n1,2,3,4\n", "", r"line 1: 4 fields instead of 3 .*--columns head=1,relation=2,tail=3"),
    ],
)
def test_columns_that_are_not_there(tmp_path: Path, content: str, columns: str, message: str) -> None:
    (tmp_path / "facts.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_triples(tmp_path / "facts.csv", Columns.parse(columns))


def test_further_columns_are_left_out_and_said_so_in_every_format(tmp_path: Path) -> None:
    rows = [{"source": "a", "weight": 0.5, "type": "r", "target": "b", "date": "2020"}]
    rows.append({"source": "b", "weight": 1.5, "type": "q", "target": "a", "date": ""})
    (tmp_path / "facts.csv").write_text(written([list(rows[0]), *([str(v) for v in row.values()] for row in rows)]))
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "facts.parquet")
    for form in ("csv", "jsonl", "parquet"):
        facts = read_facts(tmp_path / f"facts.{form}")
        assert graphs.listed(facts.triples) == [("a", "r", "b"), ("b", "q", "a")]
        (finding,) = facts.findings
        assert (finding.check, finding.count, finding.text) == ("further_columns", 2, "2 further columns left out")
        assert finding.examples == (", ".join(sorted(["weight", "date"], reverse=form != "jsonl")),)
        with pytest.warns(UserWarning, match=rf"facts\.{form}: 2 further columns left out: .*weight"):
            KnowledgeGraph.load(tmp_path / f"facts.{form}")


def test_titles_of_parquet_that_say_nothing_count_by_position_and_others_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    for titles in ("abc", ("0", "1", "2"), ("column_1", "column_2", "column_3")):
        pq.write_table(pa.table(dict(zip(titles, (["x"], ["r"], ["y"]), strict=True))), path)
        assert graphs.listed(read_triples(path)) == [("x", "r", "y")]
    pq.write_table(pa.table({"child": ["x"], "parent": ["y"], "how": ["r"]}), path)
    with pytest.raises(DataError, match=r"facts\.parquet: .*not understood: 'child', 'parent', 'how'.*--columns"):
        read_triples(path)
    chosen = Columns.parse("head=child,relation=how,tail=parent")
    assert graphs.listed(read_triples(path, chosen)) == [("x", "r", "y")]


def test_the_command_line_says_columns_and_a_run_repeats_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [[f"e{i % 7}", f"e{i * i % 5}", f"r{i % 2}"] for i in range(60)]
    Path("facts.csv").write_text(written([["wer", "wen", "wie"], *rows]))
    assert main(["data", "convert", "facts.csv", "out"]) == 1
    assert not Path("out").exists()
    columns = "head=wer,relation=wie,tail=wen"
    assert main(["data", "convert", "facts.csv", "out", "--columns", columns]) == 0
    converted = KnowledgeGraph.load("out")
    assert (converted.num_entities, converted.num_relations) == (7, 2)
    graph = KnowledgeGraph.load("facts.csv", columns=columns)
    assert graphs.same(converted, graph)
    _, config = configure(graph, {})
    again, _ = configure("facts.csv", {"columns": config.columns, "no_header": config.no_header})
    assert graphs.same(again, graph)


def test_benchmark_names_of_generated_graphs_are_facts() -> None:
    assert role_positions(["entity_000417", "relation_07", "entity_993120"]) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Columns.parse("") == Columns()
