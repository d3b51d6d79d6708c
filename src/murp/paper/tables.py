"""Link prediction, table 1 and the appendix' table: ours, the paper's and the difference side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from murp.paper.document import Block, Heading, Table, Text
from murp.paper.evidence import METRICS, NAMES, Evidence, decimals, signed
from murp.paper.experiments import published
from murp.paper.learning_rates import grid

CLOSE = {"table1": 0.005, "nell": 0.008}  # how far from the paper's MRR a cell may be
COLUMNS = "On test, protocol `paper` but for the last MRR; the difference is ours less the paper's."


def table1(evidence: Evidence) -> list[Block]:
    """The learning rates tried, then a table for each dataset."""
    item = evidence.item("table1")
    if item is None:
        return []
    paper = published()
    blocks: list[Block] = [Heading("Table 1: link prediction"), *grid(evidence, item), Text(COLUMNS)]
    for data in item["settings"]["data"]:
        quoted = [[f"{row['system']} (quoted)", *_quoted(row[data]), "", ""] for row in paper["quoted"] if data in row]
        cells = [cell for cell in item["cells"] if cell["data"] == data]
        blocks += [Heading(data, 3), _comparison(evidence, cells, paper["table1"].get(data, {}), quoted)]
    return [*blocks, *_misses(evidence, item["cells"], paper["table1"], CLOSE["table1"])]


def nell(evidence: Evidence) -> list[Block]:
    """The appendix' table."""
    item = evidence.item("nell")
    if item is None:
        return []
    paper = published()["nell"]
    text = (
        f"Learning rate {item['settings']['lr']:g} for both models and every dimension: the paper's for WN18RR, taken "
        "over and not chosen on valid. The paper does not say which it used here."
    )
    blocks: list[Block] = [Heading("NELL-995-h100, h75, h50, h25"), Text(f"{COLUMNS} {text}")]
    for data in item["settings"]["data"]:
        cells = [cell for cell in item["cells"] if cell["data"] == data]
        blocks += [Heading(data, 3), _comparison(evidence, cells, paper.get(data, {}), [])]
    return [*blocks, *_misses(evidence, item["cells"], paper, CLOSE["nell"])]


def _comparison(
    evidence: Evidence, cells: Sequence[dict[str, Any]], paper: dict[str, Any], quoted: list[list[str]]
) -> Table:
    """A row for each cell: protocol paper with the paper's own figures, and the standard protocol's MRR."""
    header = ["", "MRR", "paper", "difference", "hits@10", "paper", "hits@3", "paper", "hits@1", "paper"]
    rows = [[row[0], "", row[1], "", "", row[2], "", row[3], "", row[4], "", ""] for row in quoted]
    for cell in cells:
        theirs = paper.get(cell["model"], {}).get(str(cell["dim"]), [None] * 4)
        ours = [evidence.spread(cell, metric, "paper") for metric in METRICS]
        row = [f"{NAMES[cell['model']]} d={cell['dim']}"]
        for i, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            row += [str(our), "–" if their is None else decimals(their)]
            if i == 0:
                row.append("–" if their is None else signed(our.mean - their))
        standard = evidence.spread(cell, "mrr", "standard")
        rows.append([*row, str(standard), standard.seeds])
    return Table([*header, "MRR, standard", "seeds"], rows)


def _quoted(values: Sequence[float | str]) -> list[str]:
    return ["–" if isinstance(value, str) else decimals(value) for value in values]


def _misses(evidence: Evidence, cells: Sequence[dict[str, Any]], paper: dict[str, Any], close: float) -> list[Block]:
    """Which MRR cells are further below the paper's than agreed."""
    compared, missed = 0, []
    for cell in cells:
        theirs = paper.get(cell["data"], {}).get(cell["model"], {}).get(str(cell["dim"]))
        if theirs is None:
            continue
        compared += 1
        gap = evidence.spread(cell, "mrr", "paper").mean - theirs[0]
        if gap < -close:
            missed.append(f"{cell['data']} {NAMES[cell['model']]} d={cell['dim']} ({signed(gap)})")
    if not compared:
        return []
    verdict = "every one is" if not missed else f"all are but {', '.join(missed)}"
    return [
        Text(
            f"Of {compared} MRR cells, protocol `paper`, within {decimals(close)} of the paper's or better: {verdict}."
        )
    ]
