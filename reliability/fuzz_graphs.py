"""Readers of graphs in other formats than rows: RDF, OBO, GraphML, JSON lines, queries, folders of other tools."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
from damage import mutated, mutated_json
from fuzz_files import one_file
from fuzz_formats import Damage, facts_table, gz, packed
from fuzz_oracle import Attempt, Make, told

from murp.graph import KnowledgeGraph, sources

FILES = Path(__file__).parents[1] / "tests" / "graph" / "files"

_FURTHER = {
    ".ttl": [
        b'@prefix a: <http://a/> .\na:1 a:2 ( a:3 [ a:4 "x"@en ] ) .\n',
        b'@prefix a: <http://a/> .\na:1 a a:2 ;\n  a:3 <http://b/c#d>, _:x , a:1 .\n_:x a:3 "x . y"@en .\n',
    ],
    ".nt": [b'<a:1> <a:2> <a:3> .\n<a:1> <a:2> "x\\u00e9"@en .\n_:x <a:2> _:y .\n'],
    ".jsonl": [b'{"head": "a", "relation": "r", "tail": 3}\n["b", "r", "a"]\n'],
    ".graphml": [b'<graphml><graph edgedefault="undirected"><edge source="a" target="b"/></graph></graphml>'],
    ".csv": [b":START_ID,w,:END_ID,:TYPE\na,1,b,r\nb,2,a,r\n", b"from,to,type\na,b,r\nb,a,q\n"],
}
_QUERIES = [
    b"SELECT * FROM 'facts.parquet'",
    b"WITH t AS (SELECT 1 AS s, 'r' AS p, 2 AS o) SELECT s, p, o FROM t UNION ALL SELECT 2, 'q', 1",
    b"SELECT tail AS head, relation, head AS tail, 0.5 AS weight FROM 'facts.parquet' LIMIT 7",
]


def read(path: Path) -> KnowledgeGraph:
    """What a user loads, without what is said beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sources.read(path)


def wounded(ending: str) -> Damage:
    """The small files of a format with wounds."""
    seeds = [file.read_bytes() for file in sorted(FILES.iterdir()) if file.suffix == ending]
    seeds += _FURTHER.get(ending, [])
    return lambda random: mutated(random.choice(seeds), random, seeds)


def make_query(scratch: Path) -> Attempt:
    """A query with wounds beside a file that it reads."""
    pa.parquet.write_table(facts_table(), scratch / "facts.parquet")
    path = scratch / "asked.sql"

    def attempt(random: Random) -> bool:
        path.write_bytes(mutated(random.choice(_QUERIES), random, _QUERIES))
        return told(lambda: read(path), str(path))

    return attempt


def a_folder(fill: Callable[[Path], None]) -> Make:
    """A reader of a folder, of which one file is damaged."""

    def make(scratch: Path) -> Attempt:
        folder = scratch / "folder"
        fill(folder)
        whole = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}

        def attempt(random: Random) -> bool:
            file = random.choice(list(whole))
            good = whole[file]
            described = file.suffix == ".json" and random.random() < 0.7
            file.write_bytes(mutated_json(json.loads(good), random) if described else mutated(good, random))
            try:
                return told(lambda: read(folder), str(folder))
            finally:
                file.write_bytes(good)

        return attempt

    return make


def fill_neo4j(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "people.csv").write_text("personId:ID(Person),name,:LABEL\na,Ann,Person\nb,Bob,Person\n")
    (folder / "films.csv").write_text("filmId:ID(Film),title,year:int\nf,Film,1999\n")
    (folder / "seen.csv").write_text(":START_ID(Person),:END_ID(Film),:TYPE,stars\na,f,SAW,3\nb,f,SAW,4\n")


def fill_hugging_face(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    table = facts_table()
    feature = {"names": ["x", "y"], "_type": "ClassLabel"}
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {"head": feature}}})})
    for split in ("train", "validation", "test"):
        (folder / split).mkdir(parents=True)
        with pa.ipc.new_stream(str(folder / split / "data-00000-of-00001.arrow"), table.schema) as writer:
            writer.write_table(table)
        state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_format_type": None}
        (folder / split / "state.json").write_text(json.dumps(state))
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation", "test"]}))


GRAPHS: dict[str, tuple[int, Make]] = {
    "triples .jsonl": (3_000, one_file("facts.jsonl", wounded(".jsonl"), read)),
    "triples of Neo4j .csv": (3_000, one_file("facts.csv", wounded(".csv"), read)),
    "graph .nt": (4_000, one_file("facts.nt", wounded(".nt"), read)),
    "graph .nq": (2_000, one_file("facts.nq", wounded(".nq"), read)),
    "graph .ttl": (4_000, one_file("facts.ttl", wounded(".ttl"), read)),
    "graph .ttl.gz": (1_000, one_file("facts.ttl.gz", packed(wounded(".ttl"), gz), read)),
    "graph .trig": (2_000, one_file("facts.trig", wounded(".trig"), read)),
    "graph .rdf": (3_000, one_file("facts.rdf", wounded(".rdf"), read)),
    "graph .owl": (4_000, one_file("facts.owl", wounded(".owl"), read)),
    "graph .jsonld": (3_000, one_file("facts.jsonld", wounded(".jsonld"), read)),
    "graph .obo": (4_000, one_file("facts.obo", wounded(".obo"), read)),
    "graph .graphml": (4_000, one_file("facts.graphml", wounded(".graphml"), read)),
    "graph .sql": (1_000, make_query),
    "folder of Neo4j": (2_000, a_folder(fill_neo4j)),
    "folder of Hugging Face": (2_000, a_folder(fill_hugging_face)),
}
"""How many inputs each reader is tried with, and how to make it."""
