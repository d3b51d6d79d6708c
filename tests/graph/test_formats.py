"""Every format on a small file of its kind: facts, names, what is left out, and the way to tsv and back."""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import graphs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from murp.cli.main import main
from murp.errors import DataError
from murp.graph import KnowledgeGraph
from murp.graph.auditing.audit import audit_source
from murp.graph.convert import convert
from murp.graph.formats import FORMATS, read_facts
from murp.graph.rdf import turtle
from murp.runs import load as load_run

FILES = Path(__file__).parent / "files"

FACTS = {
    "animals.ttl": "ex:cat rdf:type ex:Species; ex:cat ex:eats ex:mouse; ex:cat ex:eats ex:fish;"
    "ex:mouse ex:eats ex:corn; _:b1 ex:part_of ex:ocean;"
    "ex:fish ex:lives_in _:b1; http://example.org/plants#corn ex:eaten_by ex:mouse",
    "animals.nt": "A#cat A#eats A#mouse; A#cat A#eats A#fish; _:b1 A#part_of A#ocean; A#fish A#lives_in _:b1",
    "animals.nq": "A#cat A#eats A#mouse; A#cat A#eats A#fish; A#mouse A#eats A#corn",
    "animals.trig": "ex:cat ex:eats ex:mouse; ex:mouse ex:eats ex:corn",
    "animals.jsonld": "ex:cat ex:eats ex:mouse; ex:cat ex:eats ex:fish; ex:mouse ex:eats ex:corn",
    "pizza.owl": "ex:hasTopping rdfs:subPropertyOf ex:hasIngredient; ex:Pizza rdfs:subClassOf ex:Food;"
    "ex:Margherita rdfs:subClassOf ex:Pizza; ex:Margherita ex:hasTopping ex:Tomato;"
    "ex:CheesyPizza rdfs:subClassOf ex:Pizza; ex:CheesyPizza ex:hasTopping ex:Cheese;"
    "ex:PizzaPie owl:equivalentClass ex:Pizza; ex:mine rdf:type ex:Margherita",
    "thesaurus.rdf": "T/1 skos:broader T/2; T/1 skos:related T/3; T/1 skos:inScheme T; T/2 skos:narrower T/1",
    "cells.obo": "C:2 is_a C:1; C:2 part_of C:3; C:4 is_a C:2; C:4 has_target C:5; part_of is_a overlaps;"
    "mine instance_of C:2",
    "friends.graphml": "n0 knows n1; n1 likes n2",
    "neo4j.graphml": "n0 KNOWS n1",
    "neo4j.csv": "0 KNOWS 1; 1 KNOWS 2",
    "neo4j.jsonl": "0 KNOWS 1",
}
NAMES = {
    "animals.ttl": {"ex:cat": ("cat", 'A small "house" animal. It purrs. (also: kitty)'), "ex:mouse": ("mouse", None)},
    "animals.nt": {"A#cat": ("cat", None)},
    "pizza.owl": {"ex:Margherita": ("Margherita", None), "ex:hasIngredient": ("has ingredient", None)},
    "thesaurus.rdf": {"T/1": ("coffee", "A drink. (also: java)"), "T/2": ("drink", None)},
    "cells.obo": {"C:1": ("cell", 'The "basic" unit! of life.'), "C:2": ("nerve cell", "also: neuron; neurone")},
    "friends.graphml": {"n0": ("Ann", None), "n1": ("Bob & Co", None)},
    "neo4j.graphml": {"n0": ("Adam", None), "n1": ("Jim", None)},
    "neo4j.csv": {"0": ("Adam", None), "1": ("Jim", None)},
    "neo4j.jsonl": {"0": ("Adam", None)},
}
LEFT_OUT = {
    "animals.ttl": {"literals": 1},
    "animals.nt": {"literals": 1},
    "animals.nq": {"named_graphs": 2},
    "animals.trig": {"named_graphs": 1},
    "pizza.owl": {"declarations": 9, "class_expressions": 3},
    "thesaurus.rdf": {"declarations": 2},
    "cells.obo": {"further_tags": 2},
    "friends.graphml": {"further_columns": 1},
    "neo4j.graphml": {"further_columns": 1},
    "neo4j.csv": {"further_columns": 2},
}


def long(id: str) -> str:
    if id.startswith("A#"):
        return f"http://example.org/animals{id[1:]}"
    return f"http://example.org/t{id[1:]}" if id in ("T", "T/1", "T/2", "T/3") else id


def expected(name: str) -> list[graphs.Row]:
    return [tuple(map(long, fact.split())) for fact in FACTS[name].split(";")]


def load(path: Path) -> KnowledgeGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KnowledgeGraph.load(path)


@pytest.mark.parametrize("name", FACTS)
def test_facts_and_names_and_what_was_left_out(name: str) -> None:
    graph = load(FILES / name)
    assert sorted(graph) == sorted(expected(name))
    for id, (called, gloss) in NAMES.get(name, {}).items():
        place = graph.entities.find(long(id))
        assert (graph.entities.name(place), graph.entities.gloss(place)) == (called, gloss)
    assert {finding.check: finding.count for finding in graph.findings} == LEFT_OUT.get(name, {})


@pytest.mark.parametrize("name", FACTS)
def test_to_tsv_and_back_compressed_and_audited(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = load(FILES / name)
    for form in ("tsv", "csv.gz", "parquet"):
        convert(graph, tmp_path / form, form)
        assert sorted(load(tmp_path / form)) == sorted(graph)
    back = load(tmp_path / "tsv")
    for i, id in enumerate(back.entities.ids.to_pylist()):
        place = graph.entities.find(id)
        assert (back.entities.name(i), back.entities.gloss(i)) == (
            graph.entities.name(place),
            graph.entities.gloss(place),
        )
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress((FILES / name).read_bytes()))
    assert graphs.same(load(packed), graph)
    assert main(["data", "audit", str(packed), "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    found = {one["check"]: one["count"] for one in findings if one["where"] == packed.name}
    assert found == LEFT_OUT.get(name, {}) | ({"no_final_newline": 0} if "no_final_newline" in found else {})


def test_every_format_has_a_file_here() -> None:
    tried = {Path(name).suffix for name in FACTS} | {".txt", ".tsv", ".parquet", ".sql"}  # these: test_reading, below
    assert tried == set(FORMATS)


def test_lines_and_pyoxigraph_say_the_same(tmp_path: Path) -> None:
    """The quick way through N-Triples against the library, which reads the same file as Turtle."""
    draw = random.Random(0)
    terms = [f"<http://e.org/{i}>" for i in range(9)] + ["_:n1", "_:n2", "<http://e.org/\u00e9\u6728>"]
    texts = ['"a b"', '"a \\" . b"@en', '"4"^^<http://e.org/int>', '"\\u00e9 \\\\ "', '" . "']
    lines = [f"{draw.choice(terms)} {draw.choice(terms[:9])} {draw.choice(terms + texts * 2)} ." for _ in range(400)]
    for odd in ([], ["# comment", ""], ["<a:a>\t<a:b>   <a:c>."]):
        text = "\n".join([*lines[:200], *odd, *lines[200:]]) + "\n"
        for form in (".nt", ".ttl"):
            (tmp_path / f"x{form}").write_text(text, encoding="utf-8")
        one, other = (read_facts(tmp_path / f"x{form}") for form in (".nt", ".ttl"))
        assert graphs.listed(one.triples) == graphs.listed(other.triples)
        assert [(f.check, f.count) for f in one.findings] == [(f.check, f.count) for f in other.findings]


OPENING = "@prefix e: <http://e.org/> .\n@prefix : <http://x.org/a#> .\n\n"
NODES = ["e:a", "e:1_b-", ":x", "<http://a.org>", "<http://a.org/b/c.d#e>", "<urn://a/>", "_:n1", "_:n-2"]
RELATIONS = ["a", "e:r", ":r", "<http://a.org/r>"]
STRINGS = ['""', '"a ; b , c . # \u6728"', '"it\'s <e:b>"@en']
NOT_PLAIN = [
    "e:", "e:.b", "e:b.c", "e:-b", "e:a:b", "e:%41", "e:\u00e9", "z:a", "_:-a", "_:a.b", "5", "true", "[]", "( e:a )",
    "[ e:r e:a ]", "<a>", "<http://a.org/../b>", "<http://a.org/?b>", "<http://a.org:80/>", "<http://\u00e9.org/>",
    "<http://a b>", "<>", "<", ">", '"', "'a'", '"a\\n"', '"a"@en-GB', '"a"@e', '"a"^^e:t', '"""a . \n b"""', '"\t"',
    '"\x7f"', '"\ufffe"', "#", "# c\n", "\t", "\r\n", "\ufeff", ";", ",", ".", "@base <http://b/> .",
    "@prefix e: <http://f.org/> .", "PREFIX z: <http://z.org/>",
]  # fmt: skip


def turtle_of(draw: random.Random, odd: float) -> str:
    """Statements in plain Turtle, where words and marks are ``odd`` with this probability."""
    words = []
    for _ in range(draw.randint(1, 6)):
        words.append(draw.choice(NODES))
        for mark in [*draw.choices(";,", k=draw.choice([0, 1, 4])), "."]:
            if words[-1][-1] != ",":
                words.append(draw.choice(RELATIONS))
            words.append(draw.choice(NODES + STRINGS))
            if mark == "." or draw.random() < 0.5:
                words.append(mark)
            else:
                words[-1] += mark
        words[-1] += "\n"
    words = [draw.choice(NOT_PLAIN + NODES) if draw.random() < odd else word for word in words]
    return OPENING + "".join(word + draw.choice([" ", " ", "\n  "]) * (word[-1] != "\n") for word in words)


@pytest.mark.parametrize("block", [40, 150, 1 << 21])
def test_plain_turtle_and_pyoxigraph_say_the_same(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way through Turtle against the library, which reads the same file as TriG."""
    monkeypatch.setattr("murp.graph.rdf.statements._BLOCK", block)
    draw = random.Random(block)
    refused = 0
    for turn in range(400):
        text = turtle_of(draw, 0.1 if turn % 2 else 0)
        read: list[Any] = []
        for form in (".ttl", ".trig"):
            path = tmp_path / f"x{form}"
            path.write_text(text, encoding="utf-8", newline="")
            try:
                facts = read_facts(path)
            except DataError as error:
                place = re.search(r", line \d+, column \d+", str(error))
                read.append(str(place and place[0]))
            else:
                names = None if facts.entity_names is None else facts.entity_names.to_pylist()
                found = [(one.check, one.count) for one in facts.findings]
                read.append((graphs.listed(facts.triples), names, found, facts.prefixes))
        assert read[0] == read[1], text
        refused += isinstance(read[0], str)
    assert 100 < refused < 200


def test_which_turtle_is_plain() -> None:
    """Plain words are cut as the parser reads them; a text in which one word is not plain is left to the parser."""
    known, end = turtle.prefixes(OPENING.encode())
    assert (known, end) == ({"e": "http://e.org/", "": "http://x.org/a#"}, len(OPENING))

    def cut(text: str) -> Any:
        table = turtle.cut(text.encode(), known)
        return None if table is None else graphs.listed(table)

    for word in NODES + STRINGS:
        assert cut(f"e:a e:r {word} .\n"), word
    for word in NOT_PLAIN:
        assert cut(f"e:a e:r e:b . e:a e:r {word} .\n") is None, word
    first = ("http://e.org/a", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://e.org/b")
    second = ("http://e.org/a", "http://x.org/a#r", '" . "@en')
    third = (*second[:2], "http://a.org/b")
    assert cut('e:a a e:b;\n  :r " . "@en , <http://a.org/b> .\n') == [first, second, third]
    for text in ("a e:r e:b", "e:a e:r a", '"a" e:r e:b', 'e:a "r" e:b', "e:a _:r e:b", "e:a e:r", ". e:a e:r e:b"):
        assert cut(f"{text} .\n") is None, text
    for text in ('e:a e:r e:b . " .\n', "e:a e:r e:b\n", "e:a e:r e:b ;\n", "e:a e:r e:b .", "\n", ""):
        assert cut(text) is None, text
    for text in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"):  # not UTF-8
        assert turtle.cut(b'e:a e:r "' + text + b'" .\n', known) is None


def test_prefixes_never_make_one_id_of_two(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text("@prefix a: <http://a.org/> .\n@prefix b: <http://a.org/x#> .\na:1 a:r b:1 . <b:1> a:r a:1 .\n")
    assert sorted(load(path)) == [
        ("a:1", "a:r", "http://a.org/x#1".replace("http://a.org/", "a:")),
        ("b:1", "a:r", "a:1"),
    ]


def test_three_files_of_rdf_share_their_prefixes(tmp_path: Path) -> None:
    (tmp_path / "train.ttl").write_text("@prefix a: <http://a.org/> .\na:1 a:r a:2 . a:2 a:r a:1 .\n")
    (tmp_path / "valid.nt").write_text("<http://a.org/1> <http://a.org/r> <http://a.org/1> .\n")
    (tmp_path / "test.ttl").write_text("@prefix z: <http://a.org/> .\nz:2 z:r z:2 .\n")
    assert list(load(tmp_path))[2:] == [("a:1", "a:r", "a:1"), ("a:2", "a:r", "a:2")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.nt", "<a:a> <a:b> <a:c> .\n<a:aaaaaaa> <a:bbbb> .\n", r"line 2, column 22: The object .* Fix it"),
        ("x.ttl", "@prefix a: <http://a/> .\na:b a:c a:d .\na:b a:c d:e .\n", r"line 3, column \d+: The prefix d:"),
        ("x.rdf", "<rdf:RDF>", r"x\.rdf: Unknown prefix rdf"),
        ("x.jsonld", '{"@context": "https://example.org/context", "a": 1}', r"jsonld: its context lies elsewhere"),
        ("x.owl", "Prefix(:=<http://a>)\nOntology(<http://a>)", r"XML syntax. Save it as RDF/XML or Turtle"),
        ("x.nt", '<http://a> <http://b> "only a literal" .\n', r"x\.nt: holds no triples"),
        ("x.obo", "[Term]\nname: a\nis_a: b\n", r"x\.obo, line 3: 'is_a' stands before the id"),
        ("x.obo", "[Term]\nid: a\nrelationship: part_of\n", r"line 3: a relationship is a relation and a term"),
        ("x.obo", "[Term]\nid: a\nnonsense\n", r"line 3: not 'tag: value', but 'nonsense'"),
        ("x.obo", "[Term]\nid: a\nsynonym: a\n", r"line 3: .* quotation marks"),
        ("x.graphml", "<graphml>\n<graph>\n<edge source='a'/></graph></graphml>", r"graphml, edge 1: has no 'target'"),
        ("x.graphml", "<graphml><graph>\n<node", r"x\.graphml, line 2: not XML"),
        ("x.graphml", "<html></html>", r"is not GraphML"),
        (
            "x.graphml",
            "<graphml><graph><node id='1'/><node id='2'/><node id='1'/><edge source='1' target='2'/></graph></graphml>",
            r"x\.graphml: two nodes have the id '1'",
        ),
        ("x.jsonl", '{"head": "a", "relation": "r"}\n', r"x\.jsonl, line 1: .*not understood: 'head', 'relation'"),
        ("x.jsonl", '["a", "r", "b"]\n["a", "r"]\n', r"line 2: a list of 2 and not of 3"),
        ("x.jsonl", '["a", "r", "b"]\n["a", 1.5, "b"]\n', r"line 2: the relation is '1.5'; ids are strings or whole"),
        ("x.jsonl", '["a", "r", null]\n', r"line 1: the tail is empty"),
        ("x.jsonl", "nonsense\n", r"line 1: not JSON in UTF-8"),
        ("x.sql", "DROP TABLE a", r"is not a single SELECT"),
        ("x.sql", "SELECT 1 AS head, 2 AS relation, 3 AS tail FROM '/etc/passwd'", r"the query cannot be run: "),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_its_place(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        KnowledgeGraph.load(tmp_path / name)


def test_json_lines_by_any_title_with_numbers_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('# by hand\n{"from": 1, "to": 2, "type": "r", "w": 0.5}\n\n{"type": "q", "from": "2", "to": 1}\n')
    graph = load(path)
    assert list(graph) == [("1", "r", "2"), ("2", "q", "1")]
    found = {one.check: one for one in graph.findings}
    assert {check: one.count for check, one in found.items()} == {
        "further_columns": 1, "comment_lines": 1, "numbers_and_texts": 1
    }  # fmt: skip
    told = "1 name written as a number in one place and as a text in another, taken as one: 2."
    assert found["numbers_and_texts"].sentence == told


def test_a_query_reads_the_files_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "edges.csv").write_text("a,b,kind\nx,y,r\ny,x,q\n")
    query = tmp_path / "facts.sql"
    query.write_text("SELECT a AS head, kind AS relation, b AS tail, 1 AS weight FROM 'edges.csv' ORDER BY kind DESC")
    monkeypatch.chdir(tmp_path.parent)
    assert list(load(query)) == [("x", "r", "y"), ("y", "q", "x")]
    with duckdb.connect(str(tmp_path / "facts.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS s, 'r' AS p, 2 AS o UNION ALL SELECT 2, 'r', 1 ORDER BY 1")
    query.write_text("SELECT s, p, o FROM t")
    assert list(load(query)) == [("1", "r", "2"), ("2", "r", "1")]
    assert main(["data", "audit", str(query)]) == 0


def test_neo4j_import_files(tmp_path: Path) -> None:
    (tmp_path / "movies.csv").write_text("movieId:ID(Movie),title,year:int,:LABEL\ntt1,The Matrix,1999,Movie\n")
    (tmp_path / "actors.csv").write_text("personId:ID(Person),name,:LABEL\nkeanu,Keanu Reeves,Actor\ncarrie,,Actor\n")
    (tmp_path / "roles.csv").write_text(
        ":START_ID(Person),role,:END_ID(Movie),:TYPE\nkeanu,Neo,tt1,ACTED_IN\ncarrie,Trinity,tt1,ACTED_IN\n"
    )
    graph = load(tmp_path)
    assert list(graph) == [("keanu", "ACTED_IN", "tt1"), ("carrie", "ACTED_IN", "tt1")]
    assert [graph.entities.name(i) for i in range(3)] == ["Keanu Reeves", "carrie", "The Matrix"]
    assert [finding.check for finding in graph.findings] == ["further_columns"]
    (tmp_path / "actors.csv").write_text("personId:ID(Person),name,:LABEL\ntt1,Keanu Reeves,Actor\n")
    with pytest.raises(DataError, match=r"has ids that the nodes of 'Person' have too"):
        load(tmp_path)


def test_hugging_face_folders(tmp_path: Path) -> None:
    tables = {"train": [("a", 0, "b"), ("b", 1, "a")], "validation": [("a", 1, "b")], "test": [("b", 0, "a")]}
    feature = {"names": ["likes", "knows"], "_type": "ClassLabel"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"relation": feature}}})}
    saved, hub = tmp_path / "saved", tmp_path / "hub"
    (hub / "data").mkdir(parents=True)
    for split, rows in tables.items():
        columns = dict(zip(("head", "relation", "tail"), map(list, zip(*rows, strict=True)), strict=True))
        table = pa.table(columns).replace_schema_metadata(metadata)
        (saved / split).mkdir(parents=True)
        with pa.ipc.new_stream(str(saved / split / "data-00000-of-00001.arrow"), table.schema) as writer:
            writer.write_table(table)
        (saved / split / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
        pq.write_table(table, hub / "data" / f"{split}-00000-of-00001.parquet")
    (saved / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    expected = [("a", "likes", "b"), ("b", "knows", "a"), ("a", "knows", "b"), ("b", "likes", "a")]
    for folder in (saved, hub):
        graph = load(folder)
        assert list(graph) == expected
        assert [len(graph.split(split)) for split in ("train", "valid", "test")] == [2, 1, 1]
    assert list(load(saved / "train")) == expected[:2]
    (saved / "train" / "state.json").write_text('{"_data_files": [{"filename": "../../x.arrow"}]}')
    with pytest.raises(DataError, match=r"state\.json: does not list the files"):
        load(saved)
    (hub / "data" / "test-00000-of-00001.parquet").rename(hub / "data" / "other-00000-of-00001.parquet")
    with pytest.raises(DataError, match=r"has the splits other, train, validation; train, validation and test"):
        load(hub)


@pytest.mark.parametrize(("package", "extra", "file"), [("pyoxigraph", "rdf", "x.ttl"), ("duckdb", "sql", "x.sql")])
def test_a_package_that_is_missing_is_named_with_its_extra(
    package: str, extra: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / file).write_text("SELECT 1")
    with pytest.raises(
        DataError, match=rf"{file}: .* needs {package}, which is not installed: pip install 'murp\[{extra}\]'"
    ):
        KnowledgeGraph.load(tmp_path / file)


def test_plain_n_triples_and_plain_turtle_need_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "x.nt").write_text('<a:a> <a:b> <a:c> .\n<a:a> <a:b> "text" .\n')
    assert list(load(tmp_path / "x.nt")) == [("a:a", "a:b", "a:c")]
    (tmp_path / "x.ttl").write_text('@prefix a: <http://a.org/> .\na:a a:b a:c , "text" .\n')
    assert list(load(tmp_path / "x.ttl")) == [("a:a", "a:b", "a:c")]


@pytest.mark.parametrize("size", [1, 2, 3, 50_000])
def test_ids_do_not_depend_on_where_statements_are_divided(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prefix that only a part of an XML file has is never one of the file's, wherever a group of statements ends."""
    monkeypatch.setattr("murp.graph.rdf.statements._QUADS", size)
    statement = "<rdf:Description rdf:about='http://e.org/{}'><{}:r rdf:resource='http://e.org/2'{}/></rdf:Description>"
    local = " xmlns:e='http://other.org/'"
    inside = [statement.format(n, "e", local if n == 3 else "") for n in range(6)]
    (tmp_path / "x.rdf").write_text(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e.org/'>"
        f"{''.join(inside)}</rdf:RDF>"
    )
    facts = [(f"e:{n}", "http://other.org/r" if n == 3 else "e:r", "e:2") for n in range(6)]
    assert sorted(load(tmp_path / "x.rdf")) == sorted(facts)


def test_what_the_formats_say_is_in_the_audit_in_words() -> None:
    text = "\n".join(audit_source(FILES / "pizza.owl").lines())
    assert "9 declarations of terms and of the ontology itself left out" in text
    assert "3 class expressions or axioms left out (not of the form: P some B)" in text


NESTED = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
BOMB = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "boom">{NESTED}]>'
LONG = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a11 "{"boom" * 1000}">]>'
BODIES = {
    "x.graphml": "<graphml><graph><node id='a'><data key='name'>&a11;</data></node></graph></graphml>",
    "x.rdf": "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>"
    "<rdf:Description rdf:about='http://a'><e:b>&a11;</e:b></rdf:Description></rdf:RDF>",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("prolog", [BOMB, LONG, " " * (1 << 20)])
def test_xml_that_unpacks_itself_is_refused(name: str, prolog: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(prolog + BODIES[name])
    with pytest.raises(DataError, match=r"the entity '\w+' is made of others or longer|no element begins within 1 MiB"):
        KnowledgeGraph.load(tmp_path / name)


def test_a_line_of_n_triples_is_counted_through_all_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murp.graph.rdf.statements._BLOCK", 100)
    path = tmp_path / "x.nt"
    path.write_text("<a:a> <a:b> <a:c> .\n" * 50)
    assert len(read_facts(path).triples) == 50
    path.write_text("<a:a> <a:b> <a:c> .\n" * 50 + "# comment\n<a:a> <a:b> x .\n")
    with pytest.raises(DataError, match=r"x\.nt, line 52, column 13"):
        read_facts(path)


def test_training_on_an_ontology_keeps_its_names(tmp_path: Path) -> None:
    lines = [f"a:e{i % 7} a:r{i % 2} a:e{i * i % 5} ." for i in range(60)]
    path = tmp_path / "x.ttl"
    path.write_text("\n".join(["@prefix a: <http://a.org/> .", 'a:e1 <http://schema.org/name> "one" .', *lines]))
    settings = ["--epochs", "1", "--dim", "2", "--engine", "torch", "--device", "cpu", "--quiet"]
    assert main(["train", "--data", str(path), "--out", str(tmp_path / "run"), *settings]) == 0
    graph = load_run(tmp_path / "run").graph
    assert sorted(graph) == sorted(load(path))
    assert graph.entities.name(graph.entities.find("a:e1")) == "one"


@pytest.mark.parametrize("name", ["facts.zip", "facts.tar", "facts.tar.gz", "facts.tgz"])
def test_who_gives_a_packed_folder_is_told_to_unpack_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"packed")
    with pytest.raises(DataError, match=r"not a format of triples that is known here\. Unpack it first\. Known: \.txt"):
        read_facts(tmp_path / name)
