"""The paper's claims with our numbers: how well the models predict.

Every claim here is a sentence of the paper's text. A row: the claim, whether it holds, the numbers, and what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from murp.paper.claims_on_models import ablated, balanced, convergence, correlated, norm_biases, relation_claims
from murp.paper.document import Block, Heading, Table, Text
from murp.paper.evidence import NAMES, Evidence, Spread, decimals
from murp.paper.experiments import published
from murp.paper.learning_rates import choices
from murp.paper.verdicts import listed, noted, verdict

Row = list[str]
FLAT = "FB15k-237"  # the graph of table 1 that the paper calls not hierarchical
MRR = "test MRR, `paper`"


def counts(evidence: Evidence) -> tuple[int, int, int]:
    """How many claims hold, hold in part or cannot be decided, and do not hold."""
    found = [row[1] for row in claim_rows(evidence)]
    holds, fails = (sum(verdict.startswith(word) for verdict in found) for word in ("yes", "no"))
    undecided = sum(verdict.startswith("not clear") for verdict in found)
    return holds, len(found) - holds - fails + undecided, fails - undecided


def claim_rows(evidence: Evidence) -> list[Row]:
    """A row for every claim that the stored items can check."""
    about: list[tuple[str, Callable[[Evidence, dict[str, Any]], list[Row]]]] = [
        ("table1", best_rates),
        ("table1", models_compared),
        ("table1", earlier_systems),
        ("figure3a", dimensions),
        ("figure3b", convergence),
        ("table2", ablated),
        ("table2", norm_biases),
        ("table3", relation_claims),
        ("figure4", correlated),
        ("figure5", balanced),
        ("nell", shares),
    ]
    return [row for name, made in about if (item := evidence.item(name)) is not None for row in made(evidence, item)]


def claims(evidence: Evidence) -> list[Block]:
    """Every claim that the stored items can check."""
    rows = claim_rows(evidence)
    if not rows:
        return []
    text = (
        "`yes`: every difference has the sign that the paper claims, and is larger than its deviation. `no`: it is "
        "larger than its deviation, but has the other sign. `within one deviation`: it is smaller than its deviation, "
        "so these runs cannot decide. This is a rule of thumb for two or three seeds, not a statistical test. Brackets "
        "hold the paper's own values, and say which seeds are missing."
    )
    return [Heading("The paper's claims"), Text(text), Table(["claim", "holds", "numbers", "of what"], rows)]


def best_rates(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """One best rate a dataset, for both models."""
    found = [choice for choice in choices(evidence, item) if choice.paper is not None]
    if not found:
        return []
    same = [choice.paper == choice.chosen for choice in found]
    tied = [choice.paper in choice.tied() for choice in found]
    numbers = []
    for choice in found:
        gap = choice.gap(choice.paper or 0.0)
        behind = "diverged" if gap is None else f"is {decimals(gap, 5)} behind"
        rest = "" if choice.paper == choice.chosen else f" ({choice.paper:g} {behind})"
        numbers.append(f"{choice.name}: {choice.chosen:g}{rest}")
    holds = f"{sum(same)} of {len(found)} yes"
    holds = "yes" if all(same) else f"{holds}, {sum(tied)} within seed noise"
    if any(not s and not t for s, t in zip(same, tied, strict=True)):
        holds = f"no: {holds}"
    rates = ", ".join(f"{data} {rate:g}" for data, rate in published()["rates"].items())
    return [[f"best learning rate for both models: {rates}", holds, "; ".join(numbers), "valid MRR, `standard`"]]


def models_compared(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """MuRP ahead on the hierarchical graph, MuRE slightly on the flat one."""
    rows = []
    for data in item["settings"]["data"]:
        sign = -1 if data == FLAT else 1
        paper = published()["table1"].get(data)
        leads, theirs = {}, {}
        for dim in item["settings"]["dims"]:
            lead = evidence.lead(item, data=data, dim=dim)
            leads[f"d={dim}"] = -lead if data == FLAT else lead
            if paper is not None:
                theirs[f"d={dim}"] = sign * (paper["murp"][str(dim)][0] - paper["mure"][str(dim)][0])
        name = f"MuRE slightly ahead of MuRP on {data}" if data == FLAT else f"MuRP ahead of MuRE on {data}"
        rows.append([name, verdict(list(leads.values())), listed(leads, theirs), MRR])
    return rows


def earlier_systems(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """Both models compared with the systems whose values the paper quotes."""
    rows = []
    for data in item["settings"]["data"]:
        quoted = {row["system"]: row[data] for row in published()["quoted"] if data in row}
        if not quoted:
            continue
        cells = {(cell["model"], cell["dim"]): cell for cell in item["cells"] if cell["data"] == data}
        dims, most = item["settings"]["dims"], max(item["settings"]["dims"])
        if data == FLAT:
            name = f"on {data} of the quoted systems only TuckER above MuRE, d={most}"
            mure = evidence.spread(cells["mure", most], "mrr", "paper")
            rows.append([name, *_only_behind("TuckER", mure, _column(quoted, 0)), MRR])
            continue
        for dim in dims:
            leads: dict[str, Spread] = {}
            for model in NAMES:
                for column, metric in enumerate(("mrr", "hits@10", "hits@3")):
                    ours = evidence.spread(cells[model, dim], metric, "paper")
                    best = max(_column(quoted, column).values())
                    leads[f"{NAMES[model]} {'MRR' if metric == 'mrr' else metric}"] = ours.less(best)
            name = f"both models above every quoted system on {data} in all but hits@1, d={dim}"
            numbers = f"ahead of the best quoted: {listed(leads)}"
            rows.append([name, verdict(list(leads.values())), numbers, "test, `paper`"])
        murp, mure = (evidence.spread(cells[model, most], "hits@1", "paper") for model in ("murp", "mure"))
        rivals: dict[str, Spread | float] = {**_column(quoted, 3), f"our MuRE d={most}": mure}
        name = f"MuRP second best by hits@1 on {data}, after TuckER, d={most}"
        rows.append([name, *_only_behind("TuckER", murp, rivals), "test hits@1, `paper`"])
    return rows


def _column(quoted: dict[str, list[float | str]], column: int) -> dict[str, float]:
    """One metric of the quoted systems, without those that have a dash."""
    figures = {name: row[column] for name, row in quoted.items()}
    return {name: figure for name, figure in figures.items() if not isinstance(figure, str)}


def _only_behind(first: str, ours: Spread, rivals: Mapping[str, Spread | float]) -> list[str]:
    """Whether ``first`` and nobody else is ahead of us: the verdict, and the numbers."""
    leads = {f"less {name}": ours.less(rival) for name, rival in rivals.items()}
    behind = leads.pop(f"less {first}")
    closest = min(leads, key=lambda name: leads[name].mean)
    shown = {f"less {first}": behind, closest: leads[closest]}
    return [verdict([-behind, leads[closest]]), f"{ours}; {listed(shown)}"]


def dimensions(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """Ahead at every dimension, more so at low ones, and as good with fewer dimensions: how many times fewer."""
    dims, data = item["settings"]["dims"], item["settings"]["data"]
    leads = {dim: evidence.lead(item, dim=dim) for dim in dims}
    low, high = dims[0], dims[-1]
    more = leads[low].less(leads[high])
    largest = max(dims, key=lambda dim: leads[dim].mean)
    by_name = {f"d={dim}": lead for dim, lead in leads.items()}
    grown = f"d={low} less d={high}: {noted(more)}; the largest, {noted(leads[largest])}, at d={largest}"
    ours = {(cell["model"], cell["dim"]): evidence.spread(cell, "mrr", "paper") for cell in item["cells"]}
    goal = ours["mure", high]
    level = [dim for dim in dims if ours["murp", dim].mean + (ours["murp", dim].less(goal).deviation or 0) >= goal.mean]
    reached = "MuRP never within one deviation of it"
    if level:
        first = f"MuRP first within one deviation of it at d={level[0]}: {ours['murp', level[0]]}"
        reached = f"{first}, {high / level[0]:g} times fewer" if level[0] < high else first
    return [
        [f"MuRP ahead of MuRE on {data} at every dimension", verdict(list(leads.values())), listed(by_name), MRR],
        ["the difference is greatest at low dimension", verdict([more]), grown, MRR],
        [
            "MuRP needs fewer dimensions than MuRE for the same",
            "yes" if level and level[0] < high else "no",
            f"MuRE d={high} {goal}; {reached}",
            MRR,
        ],
    ]


def shares(evidence: Evidence, item: dict[str, Any]) -> list[Row]:
    """What the share of hierarchical relations does to the lead."""
    first, *_, last = item["settings"]["data"]
    rows = []
    for dim in item["settings"]["dims"]:
        paper = published()["nell"]
        leads, theirs = {}, {}
        for data in item["settings"]["data"]:
            leads[data] = evidence.lead(item, data=data, dim=dim)
            if data in paper:
                theirs[data] = paper[data]["murp"][str(dim)][0] - paper[data]["mure"][str(dim)][0]
        if dim == min(item["settings"]["dims"]):
            name = f"MuRP ahead on every graph from {first} to {last}, d={dim}"
            rows.append([name, verdict(list(leads.values())), listed(leads, theirs), MRR])
        else:
            name = f"MuRP ahead on {first}, MuRE on {last}, d={dim}"
            rows.append([name, verdict([leads[first], -leads[last]]), listed(leads, theirs), MRR])
        shrunk = leads[first].less(leads[last])
        numbers = f"lead on {first} less lead on {last}: {noted(shrunk)}"
        rows.append([f"the lead shrinks from {first} to {last}, d={dim}", verdict([shrunk]), numbers, MRR])
    return rows
