"""Facts from nodes and edges: GraphML files and NetworkX graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from murp.errors import DataError
from murp.graph.findings import Finding, noticed
from murp.graph.reading.apoc import name_of
from murp.graph.reading.columns import role_of, role_positions
from murp.graph.reading.facts import Facts, Ids, identifier, names_of, triples_of

EDGE = "edge"
"""The relation of edges that have none of their own."""

Edge = tuple[object, object, Mapping[str, Any]]


def network_facts(
    nodes: Iterable[tuple[object, Mapping[str, Any]]],
    edges: Sequence[Edge],
    *,
    directed: bool,
    where: str,
    name: str,
    relation: str | None = None,
) -> Facts:
    """One fact per edge. The relation is the attribute ``relation``, or one with a known title; otherwise ``edge``.

    A node attribute such as name or label is the name. An undirected edge becomes one fact, in one direction.
    """
    titles = list(dict.fromkeys(title for _, _, attributes in edges for title in attributes))
    chosen = relation if relation is not None else _relation(titles, where)
    if chosen is not None and chosen not in titles:
        raise DataError(f"{where}: no edge has the attribute {chosen!r}. There are {', '.join(titles) or 'none'}.")
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    relations = Ids()
    for number, (head, tail, attributes) in enumerate(edges):
        place = f"{where}, edge {number + 1}"
        columns[0].append(identifier(head, f"{place}: its source"))
        columns[1].append(EDGE if chosen is None else relations(attributes.get(chosen), f"{place}: {chosen!r}"))
        columns[2].append(identifier(tail, f"{place}: its target"))
    known = _names(nodes, where)
    other = [title for title in titles if title != chosen]
    return Facts(
        triples_of(*columns),
        lambda row: f"{where}, edge {row + 1}",
        names_of(known),
        findings=[
            *noticed(
                "further_columns", name, len(other), "further attribute{s} of edges left out", [", ".join(other[:10])]
            ),
            *relations.findings(name),
            *_shape(name, len(edges), directed, chosen),
        ],
    )


def _names(nodes: Iterable[tuple[object, Mapping[str, Any]]], where: str) -> dict[str, tuple[str | None, str | None]]:
    """The names of nodes by id.

    Two nodes with the same id are refused: in NetworkX the number 1 and the text '1' are two nodes.
    """
    seen: dict[str, object] = {}
    known: dict[str, tuple[str | None, str | None]] = {}
    for node, attributes in nodes:
        id = identifier(node, f"{where}: a node")
        if id in seen:
            both = f" ({seen[id]!r} and {node!r})" if seen[id] != node else ""
            raise DataError(f"{where}: two nodes have the id {id!r}{both}. Give each of them an id of its own.")
        seen[id] = node
        if (title := name_of(attributes)) is not None:
            known[id] = (title, None)
    return known


def _relation(titles: Sequence[str], where: str) -> str | None:
    """The attribute that is the relation by its title; an error if several are."""
    named = [title for title in titles if role_of(title) == "relation"]
    if not named:
        return None
    places = role_positions(["head", *named, "tail"])
    if places is None:
        raise DataError(f"{where}: each of {', '.join(named)} could be the relation. Say which (relation=…).")
    return named[places[1] - 1]


def _shape(name: str, edges: int, directed: bool, relation: str | None) -> list[Finding]:
    return [
        *noticed(
            "edges_without_relation", name, 0 if relation else edges, f"edge{{s}} without a relation, called {EDGE!r}"
        ),
        *noticed(
            "edges_without_direction", name, 0 if directed else edges, "edge{s} without direction, stated one way"
        ),
    ]


def networkx_facts(graph: Any, where: str, relation: str | None = None) -> Facts:
    """The facts of a graph of NetworkX; keys of parallel edges that are texts count as their relation."""
    if not hasattr(graph, "edges") or not hasattr(graph, "is_directed"):
        raise DataError(f"{where}: {type(graph).__name__} is not a NetworkX graph.")
    edges: list[Edge] = []
    if graph.is_multigraph():
        keyed = all(isinstance(key, str) for _, _, key in graph.edges(keys=True))
        for head, tail, key, attributes in graph.edges(keys=True, data=True):
            edges.append((head, tail, {"relation": key} | attributes if keyed else attributes))
    else:
        edges = list(graph.edges(data=True))
    if not edges:
        raise DataError(f"{where}: has no edges.")
    return network_facts(
        graph.nodes(data=True), edges, directed=graph.is_directed(), where=where, name=where, relation=relation
    )
