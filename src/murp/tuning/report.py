"""The report of a search: Markdown, two tables as CSV, and a picture."""

from __future__ import annotations

import csv
import io
import warnings
from typing import Any

from murp.commands import command
from murp.files import write_text
from murp.plots.style import save
from murp.plots.tuning import tuning
from murp.tables import MISSING, Number, table
from murp.tuning.results import TrialRow, Tuning
from murp.tuning.study import optuna

FEWEST = 8  # trials that importance is told from
SHOWN = 20  # trials in the table


def write(found: Tuning) -> None:
    """Write the report beside the storage: ``report.md``, ``trials.csv``, ``curves.csv`` and ``tuning.png``."""
    folder = found.report
    folder.mkdir(parents=True, exist_ok=True)
    shares = importance(found)
    done = any(trial.state == "complete" for trial in found)
    numbers = [trial.number for trial in found]
    best = numbers.index(found.best_trial.number) if done else None
    save(tuning([trial.curve for trial in found], best, shares), folder / "tuning.png")
    write_text(folder / "trials.csv", _csv(found.columns()))
    points = [(trial.number, epoch, mrr) for trial in found for epoch, mrr in trial.curve.items()]
    curves = dict(zip(("trial", "epoch", "mrr"), zip(*points, strict=True), strict=True)) if points else {"trial": ()}
    write_text(folder / "curves.csv", _csv(curves))
    write_text(folder / "report.md", _markdown(found, shares, done=done))


def importance(found: Tuning) -> dict[str, float]:
    """The importance of each setting for the MRR at the first validation that all trials share; the sum is 1.

    By PED-ANOVA, for settings that every trial has. Stopped trials are included: only the best trials reach later
    validations. Empty if there are too few trials.
    """
    package = optuna()
    shared = [trial for trial in found if trial.curve]
    names = [name for name in (shared[0].settings if shared else ()) if all(name in one.settings for one in shared)]
    if len(shared) < FEWEST or len(names) < 2:
        return {}
    first = max(min(trial.curve) for trial in shared)
    at_first = [(trial, trial.curve[first]) for trial in shared if first in trial.curve]
    spans = {name: _distribution([trial.settings[name] for trial, _ in at_first]) for name in names}
    kept = [name for name in names if spans[name] is not None]
    if len(at_first) < FEWEST or len(kept) < 2 or len({mrr for _, mrr in at_first}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = package.create_study(direction="maximize")
        for trial, mrr in at_first:
            params = {name: trial.settings[name] for name in kept}
            distributions = {name: spans[name] for name in kept}
            study.add_trial(package.trial.create_trial(params=params, distributions=distributions, value=mrr))
        evaluator = package.importance.PedAnovaImportanceEvaluator()
        shares: dict[str, float] = package.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in shares.items()}


def _distribution(values: list[Any]) -> Any:
    """The distribution of some values, for Optuna's importance; None if all are the same."""
    kinds = optuna().distributions
    if len(set(values)) < 2:
        return None
    if any(isinstance(value, str | bool) for value in values):
        return kinds.CategoricalDistribution(sorted(set(values), key=str))
    log = min(values) > 0 and max(values) / min(values) > 10
    kind = kinds.IntDistribution if all(isinstance(value, int) for value in values) else kinds.FloatDistribution
    return kind(min(values), max(values), log=log)


def _markdown(found: Tuning, shares: dict[str, float], *, done: bool) -> str:
    states = {state: sum(trial.state == state for trial in found) for state in dict.fromkeys(t.state for t in found)}
    told = ", ".join(f"{number} {state}" for state, number in states.items())
    lines = [f"# Search for settings on {found.about.get('graph', '?')}", ""]
    lines += [f"{len(found)} trials: {told}. MRR is on valid, protocol standard; test was not looked at.", ""]
    if done:
        best = found.best_trial
        lines += [f"**Best: MRR {best.mrr:.4f}** (trial {best.number}, run folder `{found.best_run}`).", ""]
        lines += ["To train with its settings again:", "", "```", _again(found), "```", ""]
    ranked = sorted(found, key=lambda trial: -(trial.mrr or 0.0))[:SHOWN]
    names = list(dict.fromkeys(name for trial in ranked for name in trial.settings))
    cells = [_cells(trial, names) for trial in ranked]
    lines += ["![curves, best so far, importance](tuning.png)", "", f"## The best {len(ranked)} trials", ""]
    lines += [table(["trial", "state", "MRR", "epoch", *names], cells, format="markdown"), "", "## Importance", ""]
    if shares:
        lines += ["What the trials' MRR at the first validation depends on, as shares of 1 (PED-ANOVA).", ""]
        lines += [table(["setting", "importance"], [[n, Number(v)] for n, v in shares.items()], format="markdown")]
    else:
        lines += [f"Too few trials: it takes at least {FEWEST}, with two settings that differ."]
    lines += ["", "All trials: `trials.csv`; every validation: `curves.csv`.", ""]
    return "\n".join(lines)


def _cells(trial: TrialRow, names: list[str]) -> list[object]:
    values = [trial.settings.get(name, MISSING) for name in names]
    shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
    mrr: object = MISSING if trial.mrr is None else Number(trial.mrr, 4)
    return [str(trial.number), trial.state, mrr, str(trial.epoch or MISSING), *shown]


def _again(found: Tuning) -> str:
    """The command that trains with the best settings."""
    settings = {"data": found.about["data"], **found.best_settings}
    words = [
        word
        for name, value in settings.items()
        if value is not False
        for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))
    ]
    return command("train", *words)


def _csv(columns: Any) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
