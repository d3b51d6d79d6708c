"""The benchmarks of many ranks: every case runs in a toy size, and finds the same losses and MRR."""

from __future__ import annotations

from typing import Any

import pytest
from run_on_ranks import on_ranks

import distributed_fused
from distributed import CASES, COPIES, FEW_STEPS, OTHERS, PARTS, QUICK, REST, SETTINGS, case, sent_alone, summary

FUSED = "fused"


def test_every_case_finds_the_same_training() -> None:
    found = {name: on_ranks(cases, *CASES[name]) for name in CASES if name not in COPIES}
    found |= dict.fromkeys(COPIES, found["1"])
    sending = sent_alone([one["own"] for one in found["4"]])
    assert 0 < sending < 1
    for setting in SETTINGS:
        turns = {name: [[one[setting] for one in ranks]] for name, ranks in found.items()}
        figures = summary(turns, {"4": [sending]})
        assert figures["4"]["work_a_step_of_a_rank_to_send_alone"]["median"] == sending
        for ranks in found["4"]:  # the parts of the work are all of it; the clocks are read one after the other
            assert sum(ranks[setting]["parts"].values()) == pytest.approx(ranks[setting]["work"], rel=0.05, abs=2e-3)
        assert figures["4"]["work_a_step_of_a_rank_by_part"].keys() == {*PARTS, OTHERS, REST}
        compared = figures["compared"]
        assert compared["losses and MRR of 1, 2 and 4 ranks bit for bit"]
        assert compared["greatest relative difference of a loss to plain"] < 1e-5
        assert compared["bytes of triples of 4 ranks, of those computed"] == pytest.approx(1, abs=0.1)
    kinds = {"torch": "own", "numba": FUSED}
    by_ranks = {
        ranks: {engine: [[one[kind] for one in found[ranks]]] for engine, kind in kinds.items()}
        for ranks in distributed_fused.RANKS
    }
    fused = distributed_fused.summary({64: by_ranks})
    assert fused["batch 64, losses and MRR of 1 and 4 ranks bit for bit"]
    assert 0 < fused["batch 64, ranks 4"]["greatest relative difference of a loss"] < 1e-5


def cases(slices: int) -> dict[str, Any]:
    """A case with each of the settings, and with fused gradients."""
    settings = {**SETTINGS, **({FUSED: {**SETTINGS["own"], "engine": "numba"}} if slices else {})}
    return {name: case("toy", {**given, **QUICK}, slices, FEW_STEPS) for name, given in settings.items()}
