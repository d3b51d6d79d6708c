"""Write docs/protocols.md from results/protocols_*.json; with --check, only say whether it is up to date.

    python tools/protocols_page.py

`benchmarks/protocols.py` makes the results. Every sentence about values is made from them; what other systems do was
read in their code, and the page says where.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import benchmark_results as stored
import origins
from benchmark_results import PROTOCOLS, machine, table
from murp.paper.contents import contents
from murp.paper.evidence import counted, decimals, signed

UNCHECKED, TRAIN, ALL = "any entity", "checked against train", "checked against train, valid and test"
EFFECTS = {
    "subject out": "Taking the entity of the question out of its ranking",
    "unseen dropped": "Dropping the facts with entities that train does not have",
    "ties in favour": "Ranking ties in the model's favour",
    "ties against": "Ranking ties against the model",
    "all in favour": "The entity of the question out with those facts dropped and ties in the model's favour",
}
HEADS = {"subject out": "question's entity out", "all in favour": "out, dropped and in favour together"}
LEAST = 0.0005  # of a difference that shows in three digits

INTRODUCTION = (
    "The same weights have different test metrics under different protocols. This page changes one choice of the "
    "protocol at a time, with the same weights or the same training. All values are filtered MRR on test. `standard` "
    "is the protocol of this library: all entities are candidates, including the entity of the question; "
    "tied entities get their mean rank; no fact is dropped. `python tools/protocols_page.py` makes this page from "
    "`results/protocols_….json`, which `python benchmarks/protocols.py` writes."
)
OTHERS = (
    ("the entity of the question removed from its ranking", "the code of MuRP's authors [1], HyboNet [2], UltraE [3]"),
    ("negatives checked against train, valid and test", "HyboNet [2] with `--real_neg`, as in its script for "
     "WN18RR; UltraE [3] with the same option; LorentzKG [4] by default"),
    ("facts with unseen entities dropped", "PyKEEN 1.11 [5], which numbers only the entities of train"),
    ("ties against the model", "HyboNet [2], UltraE [3], KGEmb [6]"),
    ("ties in the order that a sort gives", "the code of MuRP's authors [1]"),
    ("tied entities get their mean rank", "PyKEEN [5] by default (\"realistic\"), and this library"),
)  # fmt: skip
SOURCES = (
    "[1] ibalazevic/multirelational-poincare 1c64d94, `main.py`; [2] chenweize1998/fully-hyperbolic-nn 1d3cb8c, "
    "`kg/main.py` (`sr_vocab` is made of `d.data`, all three splits) and `kg/run.wn18rr.32.sh`; [3] "
    "xiongbo010/UltraKGEmbeddings 6eef077, `main.py`; [4] LorentzKG/LorentzKG 9c25c45, `main.py`; [5] PyKEEN 1.11.1, "
    "`triples/triples_factory.py` and `evaluation/ranks.py`; [6] HazyResearch/KGEmb 9d6b9d6, `models/base.py`."
)


@dataclass(frozen=True)
class Weights:
    """Runs that differ by their seed alone, and what they are called."""

    name: str
    data: str
    runs: Sequence[dict[str, Any]]

    def mrr(self, *place: str) -> float:
        """The mean over seeds of a metric: ``mrr("subject out")``, ``mrr("in bfloat16", "standard")``."""
        return fmean(_at(run["test"], place)["mrr"] for run in self.runs)

    def change(self, effect: str) -> float:
        """By how much an effect changes the metric under ``standard``."""
        return self.mrr(effect) - self.mrr("standard")

    def total(self, *place: str) -> int:
        """A count, added over seeds."""
        return sum(_at(run["test"], place) for run in self.runs)


def _at(values: Any, place: Sequence[str]) -> Any:
    for name in place:
        values = values[name]
    return values


def found() -> origins.Results:
    """The stored results by name."""
    return dict(stored.results(f"{PROTOCOLS}*"))


def page() -> str:
    """The whole page; where nothing was measured, who does what alone."""
    results = found()
    weights = [one for result in results.values() for one in every(result["figures"])]
    parts: list[str] = []
    if weights:
        trainings = [training for result in results.values() for training in result["figures"]["trainings"]]
        parts += [*same_weights(weights), *ties(weights), *leak(trainings)]
    else:
        parts.append("Nothing was measured yet.")
    parts += ["## Who does what", "From the code of each system:", table(["what", "who"], map(list, OTHERS)), SOURCES]
    if weights:
        parts += ["## How it was made", *settings(weights), *(machine(dict(result)) for result in results.values())]
    parts += origins.section(results, stored.RESULTS)
    titles = [part.removeprefix("## ") for part in parts if part.startswith("## ")]
    return "\n\n".join(["# What protocols change", INTRODUCTION, contents(titles), *parts]) + "\n"


def every(figures: dict[str, Any]) -> list[Weights]:
    """All weights that were ranked: each training with each kind of negatives, and runs that were given."""
    trained = [
        Weights(f"{training['name']}, negatives: {kind}", training["data"], runs)
        for training in figures["trainings"]
        for kind, runs in training["by_negatives"].items()
    ]
    given = [Weights(run["run"], run["settings"]["data"], [run]) for run in figures["runs"]]
    return trained + given


def same_weights(weights: list[Weights]) -> Iterator[str]:
    """Each effect alone, in a table and a sentence each."""
    yield "## The same weights, ranked in other ways"
    rows = [
        [one.name, one.data, decimals(one.mrr("standard"))]
        + [f"{decimals(one.mrr(effect))} ({signed(one.change(effect))})" for effect in EFFECTS]
        for one in weights
    ]
    yield table(["weights", "graph", "`standard`", *(HEADS.get(effect, effect) for effect in EFFECTS)], rows)
    yield "Brackets show the difference from `standard`. " + " ".join(
        f"{words} {changes([one.change(effect) for one in weights])}." for effect, words in EFFECTS.items()
    )
    yield " ".join(unseen(weights))


def changes(differences: Sequence[float]) -> str:
    """What an effect does to the MRR of several sets of weights, in words."""
    among = f"({counted(len(differences), 'set')} of weights)"
    if max(map(abs, differences)) < LEAST:
        return f"changes no MRR by {decimals(LEAST, 4)} or more {among}"
    return f"changes MRR by {span(map(signed, sorted(differences)))} {among}"


def span(sorted_texts: Iterable[str]) -> str:
    """The first and the last of some values; where they read the same, one of them."""
    texts = list(sorted_texts)
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def unseen(weights: list[Weights]) -> Iterator[str]:
    """Of each graph: how many test facts have an entity that train does not have."""
    for data, first in {one.data: one for one in reversed(weights)}.items():
        counts = first.runs[0]["test"]
        dropped, facts = counts["unseen"]["facts"], counts["standard"]["queries"] // 2
        if dropped:
            yield (
                f"{data}: {dropped:,} of {facts:,} test facts ({dropped / facts:.1%}) have an entity that train does "
                f"not have; {counts['unseen']['entities']:,} entities are then not candidates either."
            )
        else:
            yield f"{data}: train has every entity of the {facts:,} test facts, so nothing is dropped."


def ties(weights: list[Weights]) -> Iterator[str]:
    """How often there are ties, and what they are worth, also in half precision."""
    yield "## Ties"
    yield (
        "A query is tied if another candidate has the same score as the right answer. The table also shows the scores "
        "rounded to bfloat16, as in an evaluation in half precision."
    )
    kinds = ("ties in favour", "standard", "ties against")
    rows = []
    for one in weights:
        asked = one.total("standard", "queries")
        row = [one.name, one.data]
        for precision, place in (("queries", ()), ("in bfloat16", ("in bfloat16",))):
            row.append(f"{one.total('tied', precision) / asked:.1%}")
            row += [decimals(one.mrr(*place, kind), 4) for kind in kinds]
        rows.append(row)
    head = ["tied", "in favour", "half", "against"]
    yield table(["weights", "graph", *head, *(f"bfloat16: {name}" for name in head)], rows)
    for what, place in (("With scores as they are", ()), ("In bfloat16", ("in bfloat16",))):
        gaps = [one.mrr(*place, "ties in favour") - one.mrr(*place, "ties against") for one in weights]
        if max(gaps) < LEAST:
            yield f"{what} the choice changes no MRR by {decimals(LEAST, 4)} or more."
        else:
            yield f"{what} the MRR in favour is above the MRR against by {span(map(decimals, sorted(gaps)))}."


def leak(trainings: list[dict[str, Any]]) -> Iterator[str]:
    """The same training with negatives that know more and more facts."""
    if not trainings:
        return
    yield "## Negatives that know the test facts"
    yield (
        "Negatives are entities drawn at random. Some of them make true facts. A check against the facts of train "
        "replaces these negatives. A check that also uses valid and test leaks the test set into training: among all "
        "entities that are not answers in train, only the answers of the test set are never used as negatives. This "
        "library does not allow that; the benchmark script adds these facts itself. The values are MRR under "
        "`standard`. The effect of the leak is the third value minus the second, under `standard` and with the "
        "entity of the question out."
    )
    rows, said = [], []
    for training in trainings:
        kinds = {kind: Weights(kind, training["data"], runs) for kind, runs in training["by_negatives"].items()}
        worth = [kinds[ALL].mrr(what) - kinds[TRAIN].mrr(what) for what in ("standard", "subject out")]
        figures = [decimals(kinds[kind].mrr("standard")) for kind in (UNCHECKED, TRAIN, ALL)]
        name, seeds = f"{training['name']} on {training['data']}", len(kinds[ALL].runs)
        rows.append([training["name"], training["data"], str(seeds), *figures, *map(signed, worth)])
        said.append(worth_in_words(name, kinds))
        said.append(gained(name, kinds))
    yield table(
        ["training", "graph", "seeds", UNCHECKED, TRAIN, ALL, "effect", f"effect, {HEADS['subject out']}"], rows
    )
    yield " ".join(said)


def worth_in_words(name: str, kinds: dict[str, Weights]) -> str:
    """What knowing valid and test is worth, and whether seeds could have made the difference."""
    honest, informed = ([run["test"]["standard"]["mrr"] for run in kinds[kind].runs] for kind in (TRAIN, ALL))
    worth = fmean(informed) - fmean(honest)
    if abs(worth) < LEAST:
        return f"{name}: knowing the facts of valid and test changes MRR by less than {decimals(LEAST, 4)}."
    start = f"{name}: knowing the facts of valid and test changes MRR by {signed(worth)}"
    if len(honest) == 1:
        return f"{start} (one seed each, so the spread over seeds is not known)."
    apart = min(informed) > max(honest) or max(informed) < min(honest)
    among = f"{decimals(min(honest))} to {decimals(max(honest))} and {decimals(min(informed))} to"
    return (
        f"{start}; over {len(honest)} seeds the values are {among} {decimals(max(informed))}, which "
        f"{'do not overlap' if apart else 'overlap'}."
    )


def gained(name: str, kinds: dict[str, Weights]) -> str:
    """The whole way from the honest value to the most that can be printed."""
    honest, most = kinds[TRAIN].mrr("standard"), kinds[ALL].mrr("all in favour")
    return (
        f"With these negatives, the entity of the question out, unseen facts dropped and ties in favour, {name} has an "
        f"MRR of {decimals(most)}. With negatives checked only against train, and `standard`, it has "
        f"{decimals(honest)}: a difference of {signed(most - honest)}."
    )


SHOWN = ("model", "dim", "objective", "negatives", "optimizer", "lr", "batch_size", "epochs", "engine", "dtype")


def settings(weights: list[Weights]) -> Iterator[str]:
    """The settings of each set of weights, the epoch that valid chose, and how long it trained."""
    rows = []
    for one in weights:
        own = one.runs[0]["settings"]
        epochs = ", ".join(str(run["epoch"]) for run in one.runs)
        seconds = [run["seconds"] for run in one.runs if "seconds" in run]
        time = stored.time(fmean(seconds)) if seconds else "–"
        rows.append([one.name, one.data, *(str(own.get(name, "–")) for name in SHOWN), epochs, time])
    yield table(["weights", "graph", *SHOWN, "epoch chosen by valid", "training"], rows)


def up_to_date() -> bool:
    """Whether the page is that of the stored result."""
    file = stored.DOCS / "protocols.md"
    return file.exists() and file.read_text(encoding="utf-8") == page()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the page is out of date")
    if parser.parse_args().check:
        return int(not up_to_date())
    if results := found():
        origins.warn(results, stored.RESULTS)
    (stored.DOCS / "protocols.md").write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
