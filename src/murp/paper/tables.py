"""Link prediction, table 1 and the appendix' table: ours, the paper's and the difference side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from murp.paper.document import Block, Heading, Table, Text
from murp.paper.evidence import METRICS, NAMES, Evidence, decimals, signed
from murp.paper.experiments import published
from murp.paper.learning_rates import grid

CLOSE = {"table1": 0.005, "nell": 0.008}  # how far from the paper's MRR a cell may be
TITLES = {"table1": "table 1", "nell": "the NELL table"}
COLUMNS = (
    "On test, protocol `paper`, except the last MRR, which is `standard`. The difference is ours minus the paper's."
)


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
        f"Learning rate {item['settings']['lr']:g} for both models and every dimension: the paper's for WN18RR. We "
        "did not choose it on valid. The paper does not say which rate it used here."
    )
    blocks: list[Block] = [Heading("NELL-995-h100, h75, h50, h25"), Text(f"{COLUMNS} {text}")]
    for data in item["settings"]["data"]:
        cells = [cell for cell in item["cells"] if cell["data"] == data]
        blocks += [Heading(data, 3), _comparison(evidence, cells, paper.get(data, {}), [])]
    return [*blocks, *_misses(evidence, item["cells"], paper, CLOSE["nell"])]


def _comparison(
    evidence: Evidence, cells: Sequence[dict[str, Any]], paper: dict[str, Any], quoted: list[list[str]]
) -> Table:
    """A row for each cell: protocol paper with the paper's own values, and the standard protocol's MRR."""
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


def compared(evidence: Evidence, cells: Sequence[dict[str, Any]], name: str) -> tuple[str, int, int]:
    """A table's title, how many of its MRR cells are close to the paper's or better, and how many are compared."""
    gaps = _gaps(evidence, cells, published()[name])
    return TITLES[name], sum(gap >= -CLOSE[name] for gap in gaps.values()), len(gaps)


def _gaps(evidence: Evidence, cells: Sequence[dict[str, Any]], paper: dict[str, Any]) -> dict[str, float]:
    """Our MRR less the paper's, of every cell that the paper has too."""
    found = {}
    for cell in cells:
        theirs = paper.get(cell["data"], {}).get(cell["model"], {}).get(str(cell["dim"]))
        if theirs is not None:
            what = f"{cell['data']} {NAMES[cell['model']]} d={cell['dim']}"
            found[what] = evidence.spread(cell, "mrr", "paper").mean - theirs[0]
    return found


def _misses(evidence: Evidence, cells: Sequence[dict[str, Any]], paper: dict[str, Any], close: float) -> list[Block]:
    """Which MRR cells are further below the paper's than agreed."""
    gaps = _gaps(evidence, cells, paper)
    if not gaps:
        return []
    missed = [f"{what} ({signed(gap)})" for what, gap in gaps.items() if gap < -close]
    near = f"{len(gaps) - len(missed)} of {len(gaps)} MRR values are at most {decimals(close)} below the paper's"
    others = f"; {', '.join(missed)} is not" if missed else ""
    return [Text(f"Protocol `paper`: {near}{others}.")]
