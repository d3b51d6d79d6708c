"""From the bytes of a request to questions in numbers, or an error response that says which is wrong and why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.files import parse_json
from murp.serving.limits import LONGEST_NAME, MOST_ANSWERS, Limits
from murp.serving.loaded import Loaded
from murp.web.names import Index, find
from murp.web.refusals import Refused

FIELDS = {"head", "tail", "relation", "k", "new_only", "types", "candidates"}
SHARED = {"k", "new_only", "types", "candidates"}  # that may be said once, for all questions of a request
ADVICE = {"entity": "Ask by an id or a name of the run's graph.", "relation": "GET /relations lists the relations."}
LOOK = "GET /docs shows a whole example."
TURN = 1000  # names after which other requests have a turn: some milliseconds
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class ParsedQuestion:
    """A question in numbers: ``row`` is a relation r, or r + R where its heads are asked for."""

    given: int
    row: int
    k: int
    new_only: bool
    types: bool
    candidates: Indices | None

    def heads(self, relations: int) -> bool:
        """Whether heads are asked for."""
        return self.row >= relations


def parsed(body: bytes) -> Any:
    """The JSON of a body."""
    try:
        return parse_json(body)
    except ValueError as error:  # not UTF-8, not JSON, nested too deeply
        raise Refused(400, f"the body is no JSON in UTF-8: {str(error)[:200]}.", LOOK) from None


async def questions(body: Any, loaded: Loaded, limits: Limits) -> list[ParsedQuestion]:
    """The questions of a request: a list of them, or an object with a list and what holds for all of them."""
    listed, shared = _listed(body, "questions", SHARED, limits)
    names = _Names(loaded)
    # Looked up once: a long list, looked up again for each question, would keep everyone waiting.
    everyones = await names.candidates(shared.pop("candidates", None), "the body: ")
    return [await _question(one, {**shared, **_object(one, at)}, at, names, everyones) for at, one in _numbered(listed)]


async def triples(body: Any, loaded: Loaded, limits: Limits) -> Indices:
    """The triples (n, 3) of a request: a list of [head, relation, tail], or an object that has one."""
    listed, _ = _listed(body, "triples", set(), limits)
    names = _Names(loaded)
    rows = np.empty((len(listed), 3), np.int64)
    for at, one in enumerate(listed):
        where = f"triple {at + 1}: "
        if isinstance(one, Mapping) and set(one) == {"head", "relation", "tail"}:
            one = [one["head"], one["relation"], one["tail"]]
        if not isinstance(one, list) or len(one) != 3:
            raise Refused(422, f"{where}it is no list of head, relation and tail.", LOOK)
        rows[at, 0] = await names.entity("head", one[0], where)
        rows[at, 1] = await names.relation(one[1], where)
        rows[at, 2] = await names.entity("tail", one[2], where)
    return rows


def _listed(body: Any, name: str, shared: set[str], limits: Limits) -> tuple[list[Any], dict[str, Any]]:
    rest: dict[str, Any] = {}
    if isinstance(body, Mapping):
        if not isinstance(body.get(name), list):
            raise Refused(422, f"the body has no list {name!r}.", LOOK)
        rest = {key: value for key, value in body.items() if key != name}
        _refuse_others(rest, shared, "the body")
        body = body[name]
    if not isinstance(body, list):
        raise Refused(422, f"the body is neither a list of {name} nor an object with one.", LOOK)
    if len(body) > limits.questions:
        raise Refused(
            413, f"{len(body):,} {name} in one request; at most {limits.questions:,} are taken.", "Ask twice."
        )
    return body, rest


def _numbered(listed: Sequence[Any]) -> list[tuple[int, Any]]:
    return list(enumerate(listed, start=1))


def _object(one: Any, at: int) -> dict[str, Any]:
    if not isinstance(one, Mapping):
        raise Refused(422, f'question {at}: it is no object like {{"head": …, "relation": …}}.', LOOK)
    return dict(one)


def _refuse_others(given: Mapping[str, Any], known: set[str], what: str) -> None:
    for name in given:
        if name not in known:
            fields = f"Its fields are {', '.join(sorted(known))}." if known else LOOK
            raise Refused(422, f"{what} has an unknown field {str(name)[:LONGEST_NAME]!r}.", fields)


async def _question(
    one: Any, given: Mapping[str, Any], at: int, names: _Names, everyones: Indices | None
) -> ParsedQuestion:
    where = f"question {at}: "
    _refuse_others(one, FIELDS, f"question {at}")
    head, tail = given.get("head"), given.get("tail")
    if (head is None) == (tail is None):
        raise Refused(422, f"{where}it has either a head or a tail.", "Give one; the other is predicted.")
    k, switches = given.get("k", 10), {"new_only": False, "types": names.loaded.types}
    switches |= {name: given[name] for name in switches if name in given}
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST_ANSWERS:
        raise Refused(422, f"{where}k must be a whole number from 1 to {MOST_ANSWERS}.", LOOK)
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise Refused(422, f"{where}{name} must be true or false.", LOOK)
    relation = await names.relation(given.get("relation"), where)
    role, text = ("head", head) if head is not None else ("tail", tail)
    entity = await names.entity(role, text, where)
    row = relation if head is not None else relation + len(names.loaded.relations)
    candidates = await names.candidates(one["candidates"], where) if "candidates" in one else everyones
    return ParsedQuestion(entity, row, k, **switches, candidates=candidates)


class _Names:
    """Looks up the names of one request; after every ``TURN`` of them other requests have a turn."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self._looked_up = loaded, 0

    async def relation(self, text: Any, where: str) -> int:
        """The index of a relation."""
        return await self._find(self.loaded.relations, "relation", text, where)

    async def entity(self, role: str, text: Any, where: str) -> int:
        """The index of an entity, which is a head, a tail or a candidate."""
        return await self._find(self.loaded.entities, role, text, where)

    async def candidates(self, given: Any, where: str) -> Indices | None:
        """The indices of candidates in ascending order, each once."""
        if given is None:
            return None
        if not isinstance(given, list) or not given:
            raise Refused(422, f"{where}candidates must be a list of entities by id or name.", LOOK)
        found = np.sort(np.array([await self.entity("candidate", text, where) for text in given], np.int64))
        # np.unique does the same by hashing: fifty times longer, in which nobody else is answered.
        each: Indices = found[np.append(True, found[1:] != found[:-1])]
        return each

    async def _find(self, index: Index, role: str, text: Any, where: str) -> int:
        if not isinstance(text, str) or not text:
            raise Refused(422, f"{where}the {role} is missing, or no text.", ADVICE[index.vocabulary.kind])
        if len(text) > LONGEST_NAME:
            raise Refused(422, f"{where}the {role} has more than {LONGEST_NAME} characters.", LOOK)
        self._looked_up += 1
        if self._looked_up % TURN == 0:
            await asyncio.sleep(0)
        found = index.known(text)
        return found if found is not None else await find(index, text, ADVICE, where)
