"""How table 1 chose its learning rates, and whether the choice was one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from murp.paper.document import Block, Table, Text
from murp.paper.evidence import NAMES, Evidence, decimals
from murp.paper.experiments import published


@dataclass(frozen=True)
class Choice:
    """A row of the grid: MRR on valid by learning rate, None if it diverged.

    ``noise`` is the deviation of the same metric over table 1's seeds at the chosen rate, ``paper`` the paper's rate.
    """

    data: str
    model: str
    dim: int
    scores: dict[float, float | None]
    noise: float | None
    paper: float | None

    @property
    def name(self) -> str:
        """``WN18RR, MuRE d=40``."""
        return f"{self.data}, {NAMES[self.model]} d={self.dim}"

    @property
    def chosen(self) -> float:
        """The rate with the best score, the first of them where there are several."""
        found = {rate: score for rate, score in self.scores.items() if score is not None}
        return max(found, key=lambda rate: found[rate])

    def gap(self, rate: float) -> float | None:
        """By how much a rate's score is below the best."""
        best, score = self.scores[self.chosen], self.scores.get(rate)
        return None if best is None or score is None else best - score

    def tied(self) -> list[float]:
        """The other rates whose gap is no larger than the noise."""
        gaps = {rate: self.gap(rate) for rate in self.scores if rate != self.chosen}
        return [rate for rate, gap in gaps.items() if gap is not None and self.noise is not None and gap <= self.noise]


def choices(evidence: Evidence, item: dict[str, Any]) -> list[Choice]:
    """Every row of table 1's grid."""
    found = []
    for row in item["grid"]:
        scores = {
            float(rate): None if "failed" in run else run["metrics"]["valid"]["standard"]["mrr"]
            for rate, run in zip(item["settings"]["grid"], map(evidence.run, row["runs"]), strict=True)
        }
        data, model, dim = row["data"], row["model"], row["dim"]
        cells = [cell for cell in item["cells"] if (cell["data"], cell["model"], cell["dim"]) == (data, model, dim)]
        noise = evidence.spread(cells[0], "mrr", "standard", "valid").deviation if cells else None
        found.append(Choice(data, model, dim, scores, noise, published()["rates"].get(data)))
    return found


def grid(evidence: Evidence, item: dict[str, Any]) -> list[Block]:
    """MRR on valid by learning rate, the chosen one strong, the paper's beside it."""
    rates = item["settings"]["grid"]
    rows = []
    for choice in choices(evidence, item):
        cells = []
        for rate in rates:
            score = choice.scores[float(rate)]
            shown = "diverged" if score is None else decimals(score, 4)
            cells.append(f"**{shown}**" if rate == choice.chosen else shown)
        tied = ", ".join(f"{rate:g}" for rate in choice.tied())
        noise = "–" if choice.noise is None else decimals(choice.noise, 4)
        rows.append([choice.name, *cells, "–" if choice.paper is None else f"{choice.paper:g}", noise, tied or "none"])
    text = (
        "Learning rates: MRR on valid, protocol `standard`, one seed, for each rate of the paper's grid. The best, in "
        "bold, is used for every dimension of that dataset and model. `Seed noise` is the deviation of this MRR over "
        "the seeds of table 1. A rate that is less than that below the best is as good: then one seed decided the "
        "choice, and the last column says so. The paper names one best rate for each dataset, for both models."
    )
    header = ["", *(f"{rate:g}" for rate in rates), "the paper's rate", "seed noise", "within seed noise of the best"]
    return [Text(text), Table(header, rows)]
