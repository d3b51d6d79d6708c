"""The benchmark of many ranks: every case runs in a toy size, and finds the same losses and MRR."""

from __future__ import annotations

from together import together

from distributed import CASES, QUICK, case, summary


def test_every_case_finds_the_same_training() -> None:
    turns = {name: [together(case, size, "toy", QUICK, slices, 2)] for name, (size, slices) in CASES.items()}
    compared = summary(turns)["compared"]
    assert compared["losses and MRR of 1, 2 and 4 ranks bit for bit"]
    assert compared["greatest relative difference of a loss to plain"] < 1e-5
