"""Tables in every format: what a terminal, Markdown, LaTeX and a program read."""

from __future__ import annotations

import csv
import io

import pytest

from murp.tables import FORMATS, Number, table

HEADER = ["relation", "MRR", "queries"]
ROWS = [["has_part & 50 %", Number(1 / 3), Number(6268)], ["a|b\x1b[31m\nc", Number(None), Number(0)]]
ABOUT = {"split": "test", "protocol": "standard"}


def test_text_has_columns_as_wide_as_their_widest_cell() -> None:
    lines = table(HEADER, [ROWS[0]], right=(1, 2), about=ABOUT).splitlines()
    assert lines == ["relation           MRR  queries", "has_part & 50 %  0.333    6,268"]


def test_markdown_stays_a_table_whatever_names_hold() -> None:
    lines = table(HEADER, ROWS, right=(1, 2), format="markdown", about=ABOUT).splitlines()
    assert lines == [
        "split test, protocol standard",
        "",
        "| relation | MRR | queries |",
        "| --- | ---: | ---: |",
        "| has_part & 50 % | 0.333 | 6,268 |",
        r"| a\|b\x1b[31m c | – | 0 |",
    ]


def test_latex_obeys_nothing_that_a_name_holds() -> None:
    lines = table(HEADER, [*ROWS, ["~^\\{#$", 1, 2]], right=(1, 2), format="latex", about=ABOUT).splitlines()
    assert lines[0] == "% split test, protocol standard"
    assert lines[1].startswith(r"\begin{tabular}{lrr}")
    assert lines[2:5] == [r"\toprule", r"relation & MRR & queries \\", r"\midrule"]
    assert lines[5] == r"has\_part \& 50 \% & 0.333 & 6,268 \\"
    assert lines[6] == r"a|b\textbackslash{}x1b[31m c & -- & 0 \\"
    assert lines[7] == r"\textasciitilde{}\textasciicircum{}\textbackslash{}\{\#\$ & 1 & 2 \\"
    assert lines[8:] == [r"\bottomrule", r"\end{tabular}"]


def test_csv_has_every_digit_and_what_the_rows_share() -> None:
    rows = list(csv.reader(io.StringIO(table(HEADER, ROWS, format="csv", about=ABOUT))))
    assert rows[0] == ["split", "protocol", *HEADER]
    assert rows[1] == ["test", "standard", "has_part & 50 %", "0.3333333333333333", "6268"]
    assert rows[2] == ["test", "standard", "a|b\x1b[31m\nc", "", "0"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_without_rows_has_its_heading(format: str) -> None:
    assert "queries" in table(HEADER, [], format=format)


def test_a_number_may_show_its_sign() -> None:
    assert [str(Number(x, 2, sign=True)) for x in (0.126, -0.5, None)] == ["+0.13", "-0.50", "–"]
