"""Which part of WordNet is wordnet-mini: a rule, not a list."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable

from wordnet_database import Database, DatabaseError, Fact, Key

KINDS_OF = ("furniture.n.01", "vehicle.n.01", "musical_instrument.n.01", "carnivore.n.01", "travel.v.01")
PARTS_OF = (
    "africa.n.01",
    "asia.n.01",
    "australia.n.01",
    "europe.n.01",
    "north_america.n.01",
    "oceania.n.01",
    "south_america.n.01",
)
# WN18RR's relations without also_see and similar_to: those join adjectives, of which few are chosen.
RELATIONS = (
    "hypernym",
    "instance_hypernym",
    "has_part",
    "member_meronym",
    "synset_domain_topic_of",
    "member_of_domain_region",
    "member_of_domain_usage",
    "derivationally_related_form",
    "verb_group",
)


def _listed(ids: tuple[str, ...]) -> str:
    return textwrap.fill(", ".join(ids), width=97, subsequent_indent="   ")


RULE = f"""\
1. With all their kinds and instances, to any depth:
   {_listed(KINDS_OF)}.
2. With all their parts and members, to any depth:
   {_listed(PARTS_OF)}.
3. The parts, to any depth, of what was chosen so far, and the groups it belongs to
   (a carnivore's genus, family, order …).
4. All hypernyms up to the roots.
5. Twice: every synset joined by a fact to two or more chosen ones, then again all hypernyms.
6. Every fact between two chosen synsets, for the relations of the table above.
"""


def select(database: Database) -> tuple[list[Key], list[Fact]]:
    """The synsets and facts of wordnet-mini, in the order of the database; :data:`RULE` says which."""
    facts = [fact for fact in database.facts if fact[1] in RELATIONS]
    tails, heads = _neighbours(facts), _neighbours([(tail, relation, head) for head, relation, tail in facts])
    kinds, up = (heads, ("hypernym", "instance_hypernym")), (tails, ("hypernym", "instance_hypernym"))

    chosen = _closure(_keys(database, KINDS_OF), *kinds)
    chosen |= _closure(_keys(database, PARTS_OF), tails, ("has_part", "member_meronym"))
    chosen = _closure(chosen, tails, ("has_part",))
    chosen = _closure(chosen, heads, ("member_meronym",))
    chosen = _closure(chosen, *up)
    for _ in range(2):
        chosen = _closure(chosen | _joined_twice(chosen, facts), *up)
    return (
        [key for key in database.synsets if key in chosen],
        [fact for fact in facts if fact[0] in chosen and fact[2] in chosen],
    )


Neighbours = dict[Key, dict[str, list[Key]]]


def _neighbours(facts: Iterable[Fact]) -> Neighbours:
    """head -> relation -> tails."""
    found: Neighbours = defaultdict(lambda: defaultdict(list))
    for head, relation, tail in facts:
        found[head][relation].append(tail)
    return found


def _closure(start: set[Key], neighbours: Neighbours, relations: tuple[str, ...]) -> set[Key]:
    """``start`` and all that can be reached from it through the relations."""
    reached, waiting = set(start), list(start)
    while waiting:
        key = waiting.pop()
        for relation in relations:
            new = [other for other in neighbours[key][relation] if other not in reached]
            reached.update(new)
            waiting.extend(new)
    return reached


def _joined_twice(chosen: set[Key], facts: Iterable[Fact]) -> set[Key]:
    """The synsets outside ``chosen`` with facts to two or more different synsets inside."""
    inside: dict[Key, set[Key]] = defaultdict(set)
    for head, _, tail in facts:
        if head in chosen and tail not in chosen:
            inside[tail].add(head)
        elif tail in chosen and head not in chosen:
            inside[head].add(tail)
    return {key for key, joined in inside.items() if len(joined) >= 2}


def _keys(database: Database, ids: tuple[str, ...]) -> set[Key]:
    by_id = {synset.id: key for key, synset in database.synsets.items()}
    missing = [id for id in ids if id not in by_id]
    if missing:
        raise DatabaseError(f"the database has no {', '.join(missing)}: is it WordNet 3.0?")
    return {by_id[id] for id in ids}
