"""The wrong answers to figure 5's question: how many, which, and what became of those the paper names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from murp.paper.document import Block, Heading, Table, Text
from murp.paper.evidence import NAMES, Evidence, decimals
from murp.paper.experiments import published
from murp.paper.items import WRONG

THRESHOLD = 0.5
NEAR = 0.1  # a probability this close to the threshold could fall on its other side with another seed


def wrong_answers(evidence: Evidence) -> list[Block]:
    """Counts and names beside the paper's, how close to the threshold they are, and the paper's names one by one."""
    item = evidence.item("figure5")
    if item is None:
        return []
    paper = published()["figure5"]
    cells = {cell["model"]: cell for cell in item["cells"]}
    rows = []
    for model in paper:
        for kind in WRONG:
            names, counts = item["models"][model][kind], cells[model]["counts"][kind]
            theirs = paper[model][_key(kind)]["count"]
            told = [", ".join(map(str, counts)), str(theirs), ", ".join(names) or "none"]
            rows.append([f"{NAMES[model]}, {kind}s", *told])
    text = (
        "A false positive is an object with a probability of one half or more whose fact no split states. A false "
        "negative is an object of a stated fact with a lower probability. We count all objects, not only those in the "
        "picture; the paper does not say what it counted. There is one count for each seed. Names, probabilities and "
        "the picture are of the first seed. Where the weights of a stored run were lost, it was trained again. A GPU "
        "adds in no fixed order, so the same seed then gives other weights, and the counts differ as much as between "
        "two seeds. A false positive may still be true in the world; nothing here decides that."
    )
    near = ". ".join(_near(item["models"][model], NAMES[model]) for model in paper)
    fates = [
        [f"{NAMES[model]}: {name}", kind, _fate(item["models"][model], name)]
        for model in paper
        for kind in WRONG
        for name in paper[model][_key(kind)]["named"]
    ]
    return [
        Heading("Wrong predictions", 3),
        Text(text),
        Table(["", "ours, by seed", "paper", "names"], rows),
        Text(f"{near}. {_over_seeds(cells, list(paper))}"),
        Text("The objects that the paper's text names, by the same name here:"),
        Table(["", "in the paper", "here"], fates),
    ]


def _key(kind: str) -> str:
    return kind.replace(" ", "_") + "s"


def _probabilities(values: dict[str, Any]) -> dict[str, float]:
    return dict(zip(values["names"], values["probabilities"], strict=True))


def _near(values: dict[str, Any], model: str) -> str:
    """How many of a model's positive answers, false and true, would change with a slightly higher threshold."""
    found = _probabilities(values)
    parts = []
    for kind in ("false positive", "true positive"):
        close = sum(found[name] < THRESHOLD + NEAR for name in values[kind])
        parts.append(f"{close} of {len(values[kind])} {kind}s")
    return f"{model}: {' and '.join(parts)} have a probability below {decimals(THRESHOLD + NEAR, 1)}"


def _over_seeds(cells: Mapping[str, Any], models: Sequence[str]) -> str:
    """How many wrong answers two models have over seeds, and whether that tells them apart."""
    sentences = []
    for kind in WRONG:
        one, other = (cells[model]["counts"][kind] for model in models)
        first, second = (NAMES[model] for model in models)
        seeds = min(len(one), len(other))
        start = "One seed" if seeds == 1 else f"Over {seeds} seeds"
        end = ". The spread over seeds is not known" if seeds == 1 else f", {_compared(one, other)}"
        sentences.append(f"{start}: {_range(one)} {kind}s by {first} and {_range(other)} by {second}{end}.")
    return " ".join(sentences)


def _range(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def _compared(one: Sequence[int], other: Sequence[int]) -> str:
    """Whether the ranges of two models' counts have a number in common."""
    if len({*one, *other}) == 1:
        return "the same"
    apart = max(one) < min(other) or max(other) < min(one)
    return f"ranges that {'do not overlap' if apart else 'overlap'}"


def _fate(values: dict[str, Any], name: str) -> str:
    """What an object of the paper's is here; a WordNet id is its name, part of speech and number."""
    found = {full: p for full, p in _probabilities(values).items() if full.split(".")[0] == name}
    known = dict(zip(values["names"], values["known"], strict=True))
    if not found:
        return "no object of that name has a probability of one half or more, or is stated"
    told = []
    for full, probability in found.items():
        right = known[full] == (probability >= THRESHOLD)
        kind = ("true " if right else "false ") + ("positive" if probability >= THRESHOLD else "negative")
        told.append(f"{full}: {kind}, probability {decimals(probability, 4)}")
    return "; ".join(told)
