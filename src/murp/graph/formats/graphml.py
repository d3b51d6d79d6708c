"""GraphML, as NetworkX, Gephi, yEd and Neo4j write it: edges are facts, see :mod:`murp.graph.reading.networks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from murp.errors import DataError
from murp.graph.reading.columns import Columns
from murp.graph.reading.facts import Facts
from murp.graph.reading.networks import Edge, network_facts
from murp.graph.reading.streams import open_input
from murp.graph.reading.xml_entities import Checked

_PIECE = 1 << 18
_DEEPEST = 100


def read(path: Path, columns: Columns) -> Facts:
    """The facts of all edges; a node's ``name`` or ``label`` is its name."""
    del columns
    reader = _Reader(path)
    try:
        with open_input(path) as stream:
            reader.feed(Checked(stream, str(path)))
    except ParseError as error:
        line, _ = error.position
        raise DataError(f"{path}, line {line}: not XML: {error}. Get or write it again.") from error
    except (LookupError, ValueError) as error:
        raise DataError(f"{path}: its encoding cannot be read: {error}. Save it in the encoding UTF-8.") from error
    if not reader.seen:
        raise DataError(f"{path}: is not GraphML: it has no element 'graph'.")
    return network_facts(reader.nodes, reader.edges, directed=reader.directed, where=str(path), name=path.name)


class _Reader:
    """Elements are looked at when they end, and emptied, so that a file need not fit into memory as a tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: dict[str, str] = {}
        self.nodes: list[tuple[object, dict[str, Any]]] = []
        self.edges: list[Edge] = []
        self.directed, self.seen = True, False

    def feed(self, stream: Any) -> None:
        parser: Any = XMLPullParser(events=("start", "end"))
        depth = 0
        while piece := stream.read(_PIECE):
            parser.feed(bytes(piece))
            for event, element in parser.read_events():
                depth += 1 if event == "start" else -1
                if depth > _DEEPEST:
                    raise DataError(f"{self.path}: elements are nested more than {_DEEPEST} deep.")
                self._element(event, element, _tag(element))
        parser.close()
        for event, element in parser.read_events():
            self._element(event, element, _tag(element))

    def _element(self, event: str, element: Element, tag: str) -> None:
        if event == "start":
            if tag == "graph":
                self.seen = True
                self.directed = self.directed and element.get("edgedefault", "directed") != "undirected"
            return
        if tag == "key" and (id := element.get("id")):
            self.keys[id] = element.get("attr.name") or id
        elif tag == "node":
            self.nodes.append((self._need(element, "id"), self._attributes(element)))
            element.clear()
        elif tag == "edge":
            self.edges.append((self._need(element, "source"), self._need(element, "target"), self._attributes(element)))
            element.clear()

    def _need(self, element: Element, name: str) -> str:
        value = element.get(name)
        if not value:
            what = f"{_tag(element)} {len(self.edges if name != 'id' else self.nodes) + 1}"
            raise DataError(f"{self.path}, {what}: has no {name!r}. Every node has an id, every edge both ends.")
        return value

    def _attributes(self, element: Element) -> dict[str, Any]:
        """What stands in the element's data, and Neo4j's ``label`` of an edge, without the empty ones."""
        found = {"label": element.get("label")} if element.get("label") else {}
        for child in element:
            if _tag(child) == "data" and (text := (child.text or "").strip()):
                found[self.keys.get(child.get("key", ""), child.get("key", ""))] = text
        return found


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
