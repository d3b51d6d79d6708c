"""A dataset folder made of facts: split without leaks, written the same to the byte every time."""

from __future__ import annotations

import hashlib
import lzma
from collections import Counter, defaultdict
from pathlib import Path

Row = tuple[str, str, str]
Splits = dict[str, list[Row]]

# Spelled out because the default preset may change; lc=4 and pb=0 are liblzma's advice for plain text.
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


def split(facts: list[Row], seed: int, share: float = 0.05) -> Splits:
    """Put a ``share`` of the facts each in valid and test, the rest in train, so that nothing leaks.

    All facts between the same two entities, whichever way round and by whichever relation, go to
    the same split: a symmetric fact is never tested on what its mirror image taught. Every entity
    and every relation stays in train: a fact is held out only while others remain for both its
    entities and its relation. Valid and test can therefore fall short of their share where most
    entities have a single fact.

    Pairs are taken in the order of a hash of the seed and their ids, and so are the rows of each
    split: the same result on every machine, whatever the order of ``facts``.
    """
    pairs: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for head, relation, tail in facts:
        pairs[min(head, tail), max(head, tail)].append((head, relation, tail))
    remaining_pairs = Counter(entity for pair in pairs for entity in set(pair))
    remaining_facts = Counter(relation for _, relation, _ in facts)
    quota = round(share * len(facts))
    splits: Splits = {"train": [], "valid": [], "test": []}
    for pair in sorted(pairs, key=lambda pair: _shuffled(seed, pair)):
        group = pairs[pair]
        room = [name for name in ("valid", "test") if len(splits[name]) + len(group) <= quota]
        relations = Counter(relation for _, relation, _ in group)
        needed = any(remaining_pairs[entity] == 1 for entity in pair) or any(
            remaining_facts[relation] == count for relation, count in relations.items()
        )
        if needed or not room:
            splits["train"] += group
        else:
            splits[room[0]] += group
            remaining_pairs.subtract(set(pair))
            remaining_facts.subtract(relations)
    return {name: sorted(rows, key=lambda row: _shuffled(seed, row)) for name, rows in splits.items()}


def _shuffled(seed: int, ids: tuple[str, ...]) -> bytes:
    return hashlib.sha256("\t".join((str(seed), *ids)).encode()).digest()


def write(out: Path, splits: Splits, names: list[Row], licence: str, about: str) -> None:
    """Write the splits, ``entity_names`` (id, name, gloss), LICENSE, README.md and SHA256SUMS to ``out``.

    ``about`` is the README with ``{counts}`` where the table of counts belongs.
    """
    files = {f"{split}.tsv.xz": _compressed(rows) for split, rows in splits.items()}
    files["entity_names.tsv.xz"] = _compressed(names)
    files["LICENSE"] = licence.encode()
    files["README.md"] = about.replace("{counts}", _counts(splits)).encode()
    sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items())]
    files["SHA256SUMS"] = "".join(sums).encode()
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (out / name).write_bytes(content)


def _compressed(rows: list[Row]) -> bytes:
    text = "".join("\t".join(row) + "\n" for row in rows)
    return lzma.compress(text.encode(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=XZ)


def _counts(splits: Splits) -> str:
    entities = {entity for rows in splits.values() for head, _, tail in rows for entity in (head, tail)}
    by_relation = {name: Counter(relation for _, relation, _ in rows) for name, rows in splits.items()}
    relations = sorted(by_relation["train"], key=lambda relation: (-by_relation["train"][relation], relation))
    lines = [f"{len(entities):,} entities, {len(relations)} relations.", ""]
    lines += ["| relation | train | valid | test |", "|---|---:|---:|---:|"]
    for relation in relations:
        lines.append(f"| {relation} | " + " | ".join(f"{by_relation[name][relation]:,}" for name in splits) + " |")
    lines.append("| all | " + " | ".join(f"{len(rows):,}" for rows in splits.values()) + " |")
    return "\n".join(lines)
