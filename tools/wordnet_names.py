"""Names and glosses for datasets whose ids are WordNet offsets without a part of speech, such as WN18RR.

An offset may be a noun's and a verb's and an adjective's at once. Which of them a dataset means is
seen from its facts: a reading of an id is used by a fact that WordNet holds under that reading. An
id whose facts use several readings merges them into one entity; it is named after the reading used
most often (the first met among equals) and is listed, with the counts, as conflated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from wordnet_database import Database, DatabaseError, Key

Triple = tuple[str, str, str]
Readings = list[tuple[Key, int]]


def read_ids(path: Path) -> tuple[list[str], list[Triple]]:
    """The ids, sorted, and the facts of a dataset folder (train, valid, test as .txt or .tsv) or of one file.

    A file's rows are facts (three tab-separated fields) or hold an id in their first field.
    """
    candidates = [path / f"{split}.{kind}" for split in ("train", "valid", "test") for kind in ("txt", "tsv")]
    files = [file for file in candidates if file.exists()] if path.is_dir() else [path]
    rows = [line.split("\t") for file in files for line in file.read_text("utf-8").splitlines() if line]
    if not rows:
        raise DatabaseError(f"{path} holds no ids: give a file, or a folder with train, valid and test as .txt or .tsv")
    triples = [(row[0], row[1].removeprefix("_"), row[2]) for row in rows if len(row) == 3]
    ids = {row[0] for row in rows} | {tail for _, _, tail in triples}
    return sorted(ids), triples


def readings(database: Database, ids: list[str], triples: list[Triple]) -> dict[str, Readings]:
    """For each id the synsets its facts use with the number of such facts, most used first.

    Where no fact tells, all the synsets at that offset, with 0.
    """
    at_offset: dict[str, list[Key]] = defaultdict(list)
    for key in database.synsets:
        at_offset[key[1]].append(key)
    unknown = [id for id in ids if id not in at_offset]
    if unknown:
        raise DatabaseError(f"{len(unknown)} ids are no offsets of this database, the first is {unknown[0]!r}")
    known = set(database.facts)
    used: dict[str, Counter[Key]] = defaultdict(Counter)
    for head, relation, tail in triples:
        held = [(h, t) for h in at_offset[head] for t in at_offset[tail] if (h, relation, t) in known]
        used[head].update({h: 1 for h, _ in held})
        used[tail].update({t: 1 for _, t in held})
    return {id: used[id].most_common() or [(key, 0) for key in at_offset[id]] for id in ids}


def write(database: Database, found: dict[str, Readings], out: Path) -> int:
    """Write id, name, gloss to ``out`` and the ids of several readings beside it as ``…_conflated``.

    Returns how many were conflated.
    """
    synsets = database.synsets
    names = [(id, synsets[best[0][0]]) for id, best in found.items()]
    conflated = {id: several for id, several in found.items() if len(several) > 1}
    out.write_text("".join(f"{id}\t{synset.id}\t{synset.gloss}\n" for id, synset in names), "utf-8")
    out.with_name(f"{out.stem}_conflated{out.suffix}").write_text(
        "".join(
            f"{id}\t" + "; ".join(f"{synsets[key].id}({count})" for key, count in several) + "\n"
            for id, several in conflated.items()
        ),
        "utf-8",
    )
    return len(conflated)
