from __future__ import annotations

import csv
import gzip
import io
import lzma
import tempfile
from pathlib import Path

import graphs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.errors import DataError
from murp.graph.reading import delimited
from murp.graph.reading.files import find_file, read_names, read_triples


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}


def read(content: bytes, ending: str, block: int | None = None) -> list[graphs.Row]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if block:
            patch.setattr(delimited, "_BLOCK_BYTES", block)
        path = Path(folder) / f"triples{ending}"
        path.write_bytes(content)
        return graphs.listed(read_triples(path))


@given(
    rows=graphs.plain_rows,
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    last=st.booleans(),
    mark=st.booleans(),
    blank=st.sampled_from(["", "  "]),
    blanks=st.lists(st.integers(0, 30), max_size=3),
    packing=st.sampled_from(list(PACKERS)),
    form=st.sampled_from([".txt", ".tsv", ".TSV"]),
    block=st.sampled_from([None, 400]),
)
def test_tab_separated_rows_come_back_as_they_are(rows, newline, last, mark, blank, blanks, packing, form, block):
    lines = ["\t".join(row) for row in rows]
    for place in blanks:
        lines.insert(min(place, len(lines)), blank)
    text = "\ufeff" * mark + newline.join(lines) + newline * last
    assert read(PACKERS[packing](text.encode()), form + packing, block) == rows


quoted_names = st.text(st.characters(codec="utf-8", exclude_characters="\ufeff\0"), min_size=1, max_size=8)


@given(
    rows=st.lists(st.tuples(quoted_names, quoted_names, quoted_names), min_size=1, max_size=10),
    newline=st.sampled_from(["\n", "\r\n"]),
    packing=st.sampled_from(list(PACKERS)),
)
def test_quoted_csv_holds_commas_quotes_and_line_ends(rows, newline, packing):
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=newline)
    writer.writerow(["head", "relation", "tail"])
    writer.writerows(rows)
    assert read(PACKERS[packing](text.getvalue().encode()), ".csv" + packing) == rows


def test_tab_separated_files_are_not_quoted():
    assert read(b'"a\tr\tb"\n"c\tr\td\n', ".tsv") == [('"a', "r", 'b"'), ('"c', "r", "d")]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("head,relation,tail", ("1", "2", "3")),
        ("Head,Tail,Relation", ("1", "3", "2")),
        ("SUBJECT,predicate,object", ("1", "2", "3")),
        ("o,p,s", ("3", "2", "1")),
        ("source,target,type", ("1", "3", "2")),
        (" h , r , t ", ("1", "2", "3")),
        ('"head","relation","tail"', ("1", "2", "3")),
    ],
)
def test_a_header_says_which_column_is_which(header, expected):
    assert read(f"{header}\n1,2,3\n".encode(), ".csv") == [expected]


@pytest.mark.parametrize("first", ["head,part_of,body", "a,r,t", "entity_1,r1,entity_2", "alga,isa,entity", "e1,r,e2"])
def test_a_first_row_that_is_no_header_is_a_fact(first):
    assert read(f"{first}\n1,2,3\n".encode(), ".csv")[0] == tuple(first.split(","))


@given(
    before=st.lists(st.sampled_from(["a\tr\tb", "", "c d\tr\te"]), max_size=20),
    bad=st.sampled_from(["x\ty", "x\ty\tz\tw", "x", "x\t\ty", "\tx\ty", "x\ty\t", "\t\t", "x\ty\t\udcff"]),
    after=st.lists(st.sampled_from(["a\tr\tb", "", "x\ty"]), max_size=20),
    newline=st.sampled_from(["\n", "\r\n"]),
    header=st.booleans(),
    packing=st.sampled_from(list(PACKERS)),
)
def test_a_bad_row_is_named_by_file_and_line(before, bad, after, newline, header, packing):
    lines = ["h\tr\tt"] * header + before + [bad] + after
    content = newline.join(lines).encode("utf-8", "surrogateescape")
    number = len(lines) - len(after)
    with pytest.raises(DataError, match=rf"triples\.tsv{packing}, line {number}: "):
        read(PACKERS[packing](content), ".tsv" + packing)


@pytest.mark.parametrize(
    ("content", "ending", "message"),
    [
        (b"a\tr\tb\nx\ty\n", ".tsv", r"line 2: 2 fields instead of 3 \(head, relation, tail\): 'x\\ty'"),
        (b"a\tr\tb\n\nx\t\tz\n", ".tsv", r"line 3: the relation is empty"),
        (b"a\tr\t\xe9\n", ".tsv", r"line 1: not UTF-8: .*\\xe9"),
        ("a\tr\tb\n".encode("utf-16"), ".tsv", r"line 1: not UTF-8"),
        (b"a r b\n", ".txt", r"line 1: 1 field .* seem to be separated by blanks"),
        (b"a,r,b\n", ".txt", r"seem to be separated by commas: name it .csv"),
        (b"a;r;b\n", ".csv", r"seem to be separated by semicolons"),
        (b"a\tr\tb\n", ".csv", r"seem to be separated by tabs: name it .tsv"),
        (b'a,r,b\n"x\ny",z\nc,r,d\n', ".csv", r"line 2: 2 fields"),
        (b'a,r,b\n"x,r,y\nc,r,d\n', ".csv", r"line 2: 1 field .* Is a quote left open there\?"),
        (b"", ".tsv", r"is empty"),
        (b"\n\n  \n", ".tsv", r"is empty"),
        (b"head\trelation\ttail\n", ".tsv", r"holds no triples"),
        (b"a\tr\tb\n", ".doc", r"Known: .txt, .tsv, .csv, .parquet"),
        (b"a\tr\tb\n", "", r"Known: .txt"),
        (b"a\tr\tb\n", ".tsv.gz", r"cannot be read: .* damaged or incomplete"),
        (b"a\tr\tb\n", ".tsv.xz", r"cannot be read: .* damaged or incomplete"),
        (b"a\tr\tb\n", ".tsv.zst", r"cannot be read: .* damaged or incomplete"),
        (b"PAR1 no", ".parquet", r"cannot be read as Parquet"),
    ],
)
def test_what_is_wrong_is_said(content, ending, message):
    with pytest.raises(DataError, match=message):
        read(content, ending)


@pytest.mark.parametrize(("ending", "line"), [(".tsv", b"a\tr\tb\n"), (".trig", b"<a:a> <a:r> 5 .\n")])
@pytest.mark.parametrize(("packing", "cut"), [(".gz", 20), (".xz", 20), (".zst", 5)])
def test_a_file_cut_short_is_called_incomplete(packing, cut, ending, line):
    content = PACKERS[packing](line * 1000)[:-cut]
    with pytest.raises(DataError, match=r"cannot be read: .* incomplete"):
        read(content, ending + packing)


def test_a_missing_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match=r"train\.tsv: no such file"):
        read_triples(tmp_path / "train.tsv")


@pytest.mark.parametrize("packing", list(PACKERS))
def test_parquet_columns_are_found_by_name_and_integers_become_strings(tmp_path, packing):
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(
            {
                "weight": [0.5, 1.0],
                "target": pa.array([3, 4], pa.int64()),
                "predicate": pa.array(["likes", "likes"]).dictionary_encode(),
                "source": pa.array([1, 2], pa.uint8()),
            }
        ),
        sink,
    )
    path = tmp_path / f"x.parquet{packing}"
    path.write_bytes(PACKERS[packing](sink.getvalue().to_pybytes()))
    assert graphs.listed(read_triples(path)) == [("1", "likes", "3"), ("2", "likes", "4")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["x"], "b": ["y"]}, "2 columns instead of 3"),
        ({"a": ["x"], "b": ["y"], "c": [0.5]}, "column 'c' holds double"),
        ({"a": ["x", "x"], "b": ["y", None], "c": ["z", "z"]}, "row 2: column 'b' is empty"),
        ({"a": ["x", ""], "b": ["y", "y"], "c": ["z", "z"]}, "row 2: column 'a' is empty"),
        (
            {"a": pa.array([], pa.string()), "b": pa.array([], pa.string()), "c": pa.array([], pa.string())},
            "no",
        ),
    ],
)
def test_unfit_parquet_is_refused(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=message):
        read_triples(tmp_path / "x.parquet")


def test_names_and_glosses(tmp_path):
    path = tmp_path / "entity_names.tsv"
    path.write_text('1\tone\n2\t\n3\t"three"\n')
    assert read_names(path).to_pydict() == {"id": ["1", "2", "3"], "name": ["one", None, '"three"']}
    path.write_text("1\tone\tuno\tfirst\n2\ttwo\tdue\t\n")
    assert read_names(path).to_pydict() == {
        "id": ["1", "2"],
        "name": ["one", "two"],
        "gloss": ["first", None],
    }
    path.write_text("1\tone\n2\n")
    with pytest.raises(DataError, match=r"line 2: 1 field instead of 2 \(id, name\)"):
        read_names(path)
    path.write_text("one\n")
    with pytest.raises(DataError, match="first row has no tab"):
        read_names(path)
    path.write_text("")
    with pytest.raises(DataError, match="holds no names"):
        read_names(path)


def test_two_files_for_one_split_are_refused(tmp_path):
    (tmp_path / "train.txt").touch()
    assert find_file(tmp_path, "train") == tmp_path / "train.txt"
    assert find_file(tmp_path, "valid") is None
    (tmp_path / "train.csv.gz").touch()
    with pytest.raises(DataError, match=r"train\.txt, train\.csv\.gz could each be 'train'"):
        find_file(tmp_path, "train")
