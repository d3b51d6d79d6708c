"""From questions in numbers to answers: few are answered in place, a millisecond each; many in a thread, together.

So are questions about graphs with millions of entities, which take longer, and the first questions with types, which
must be learned from the graph before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from murp.prediction import Ranking
from murp.serving.limits import LateError
from murp.serving.loaded import BATCH, Loaded
from murp.serving.parsing import Indices, ParsedQuestion
from murp.web.encoding import to_json

SLICE = 64  # questions between two looks at the clock
IN_PLACE = 2**22  # scores: they take some milliseconds, in which nobody else is answered


class Answerer:
    """Answers requests, each until it is ``late``. A thread has the long ones, one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "murp-answers")

    async def predict(self, loaded: Loaded, asked: Sequence[ParsedQuestion], late: float) -> bytes:
        """The answers, in the order of the questions, as JSON."""
        in_place = len(asked) < BATCH and len(asked) * loaded.graph.num_entities < IN_PLACE
        if in_place and (loaded.types_learned or not any(one.types for one in asked)):
            return to_json({"answers": [_said(loaded, one, _alone(loaded, one)) for one in asked]})
        return await self._in_thread(lambda: to_json({"answers": _answered(loaded, asked, late)}))

    async def score(self, loaded: Loaded, triples: Indices) -> bytes:
        """The scores, in the order of the triples, as JSON."""
        if len(triples) < BATCH:
            return to_json({"scores": loaded.scores(triples)})
        return await self._in_thread(lambda: to_json({"scores": loaded.scores(triples)}))

    async def _in_thread(self, work: Callable[[], bytes]) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _answered(loaded: Loaded, asked: Sequence[ParsedQuestion], late: float) -> list[dict[str, Any]]:
    """Questions that want the same number of answers are answered together; those with candidates one by one."""
    rankings: dict[int, Ranking] = {}
    groups: dict[tuple[int, bool, bool], list[int]] = {}
    for at, one in enumerate(asked):
        if one.candidates is None:
            groups.setdefault((one.k, one.new_only, one.types), []).append(at)
        else:
            _check(late)
            rankings[at] = _alone(loaded, one)
    for (k, new_only, types), places in groups.items():
        for start in range(0, len(places), SLICE):
            _check(late)
            some = places[start : start + SLICE]
            subjects, rows = (np.array([of(asked[at]) for at in some], np.int64) for of in (_given, _row))
            best = loaded.answers(types=types).best(subjects, rows, k, new_only=new_only)
            for place, at in enumerate(some):
                found = best.entities[place] >= 0  # fewer than k where fewer are left
                columns = (of[place][found] for of in (best.entities, best.scores, best.splits))
                rankings[at] = Ranking(*columns)
    said = []
    for at, one in enumerate(asked):
        if at % SLICE == 0:
            _check(late)
        said.append(_said(loaded, one, rankings[at]))
    return said


def _given(one: ParsedQuestion) -> int:
    return one.given


def _row(one: ParsedQuestion) -> int:
    return one.row


def _check(late: float) -> None:
    if time.monotonic() > late:
        raise LateError


def _alone(loaded: Loaded, one: ParsedQuestion) -> Ranking:
    answers = loaded.answers(types=one.types)
    if one.candidates is None:
        return answers.to_one(one.given, one.row, one.k, new_only=one.new_only)
    return answers.among(one.given, one.row, one.candidates, one.k, new_only=one.new_only)


def _said(loaded: Loaded, one: ParsedQuestion, ranking: Ranking) -> dict[str, Any]:
    """A question with its answers. A calibration knows the place among all entities, which a list does not have."""
    relations = len(loaded.relations)
    given = loaded.entities.reference(one.given)
    heads = one.heads(relations)
    return {
        "relation": loaded.relations.reference(one.row % relations),
        "head": None if heads else given,
        "tail": given if heads else None,
        "predictions": loaded.listed(ranking, calibrated=one.candidates is None),
    }
