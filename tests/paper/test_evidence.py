"""Means over seeds, what is printed of them, and what becomes of seeds that diverged."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.paper.convergence import best_on_valid, epochs, first_at, near
from murp.paper.evidence import Evidence, Spread, below_one, counted, decimals, seeds_of, signed, signed_spread
from murp.paper.verdicts import listed, noted, verdict

figures = st.lists(st.floats(0, 1), min_size=1, max_size=9)


@given(figures)
def test_spread_is_the_mean_and_the_sample_deviation(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread.mean == pytest.approx(np.mean(values))
    if len(values) > 1:
        assert spread.deviation == pytest.approx(np.std(values, ddof=1))
    else:
        assert spread.deviation is None


@given(figures, figures)
def test_a_difference_is_that_of_the_means_and_its_deviation_that_of_both(x: list[float], y: list[float]) -> None:
    one, other = Spread.of(x, planned=10), Spread.of(y)
    found = one.less(other)
    assert found.mean == pytest.approx(-other.less(one).mean)
    assert (found.n, found.planned) == (min(len(x), len(y)), 10)
    if one.deviation is not None and other.deviation is not None:
        assert found.deviation == pytest.approx(math.sqrt(np.var(x, ddof=1) + np.var(y, ddof=1)))
        assert found.deviation == (-found).deviation
    else:
        assert found.deviation is None
    assert one.less(0.25).deviation == one.deviation
    assert one.less(0.25).mean == pytest.approx(one.mean - 0.25)


@given(st.floats(-0.9994, 1.5))
def test_decimals_are_read_back(value: float) -> None:
    assert float(decimals(value)) == pytest.approx(value, abs=0.000501)
    assert float(signed(value)) == pytest.approx(value, abs=0.000501)
    assert signed(value) == ".000" or signed(value)[0] in "+-"


@pytest.mark.parametrize(("value", "shown"), [(-0.0003, ".000"), (0.0, ".000"), (0.0006, "+.001"), (-0.0006, "-.001")])
def test_a_difference_that_rounds_to_nothing_has_no_sign(value: float, shown: str) -> None:
    assert signed(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "1.0000"), (0.999992368, ".99999"), (0.99947, ".9995"), (0.0, ".0000"), (0.99996, ".99996")],
)
def test_only_one_reads_as_one(value: float, shown: str) -> None:
    assert below_one(value, 4) == shown


def test_one_of_a_thing_is_singular() -> None:
    assert [counted(n, "seed") for n in (0, 1, 2, 1000)] == ["0 seeds", "1 seed", "2 seeds", "1,000 seeds"]


class TestVerdict:
    """A lead decides where it is larger than its own deviation."""

    clear, unclear, lost = Spread(0.02, 0.01, 3, 3), Spread(0.003, 0.004, 3, 3), Spread(-0.02, 0.01, 3, 3)

    def test_of_one(self) -> None:
        assert verdict([self.clear]) == "yes"
        assert verdict([self.unclear]) == "within one deviation"
        assert verdict([-self.unclear]) == "within one deviation"
        assert verdict([self.lost]) == "no"

    def test_of_several(self) -> None:
        assert verdict([self.clear, self.clear]) == "yes"
        assert verdict([self.clear, self.unclear]) == "1 of 2 yes, 1 within one deviation"
        assert verdict([self.clear, self.unclear, self.lost]) == "no: 1 of 3 yes, 1 no, 1 within one deviation"

    def test_one_seed_is_told(self) -> None:
        assert verdict([Spread(0.02, None, 1, 1)]) == "yes (one seed)"
        assert verdict([Spread(-0.02, None, 1, 1)]) == "no (one seed)"

    @given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=5))
    def test_yes_is_what_every_lead_says(self, pairs: list[tuple[float, float]]) -> None:
        leads = [Spread(mean, deviation, 3, 3) for mean, deviation in pairs]
        assert (verdict(leads) == "yes") == all(mean > deviation for mean, deviation in pairs)
        assert verdict(leads).startswith("no") == any(mean < -deviation for mean, deviation in pairs)


def test_seeds_that_diverged_are_told() -> None:
    whole, torn = Spread.of([0.1, 0.2, 0.3]), Spread.of([0.1, 0.2], planned=3)
    assert (whole.seeds, torn.seeds) == ("3", "2 of 3, 1 diverged")
    assert seeds_of({"mure": whole, "murp": whole}) == "3"
    assert seeds_of({"mure": torn, "murp": whole}) == "MuRE 2 of 3, 1 diverged; MuRP 3"
    assert noted(whole.less(torn)) == "+.050 ± .122 (2 of 3 seeds, 1 diverged)"
    assert signed_spread(whole.less(torn)) == "+.050 ± .122"
    assert listed({"d=5": whole.less(0.1)}, {"d=5": -0.02}) == "d=5 +.100 ± .100 (paper -.020)"
    gone = Spread.of([], planned=2)
    assert str(gone) == signed_spread(whole.less(gone)) == "diverged"
    assert gone.seeds == "0 of 2, 2 diverged"


def store(out: Path, name: str, **content: object) -> None:
    (out / "runs").mkdir(exist_ok=True)
    (out / "runs" / f"{name}.json").write_text(json.dumps({"name": name, **content}))


def test_evidence_leaves_out_runs_that_failed_and_counts_them(toys: Path, tmp_path: Path) -> None:
    shutil.copytree(toys / "runs", tmp_path / "runs")
    good = next((tmp_path / "runs").iterdir()).stem
    store(tmp_path, "bad", failed="NaN")
    evidence = Evidence(tmp_path)
    spread = evidence.spread({"runs": [good, "bad"]}, "mrr", "paper")
    assert (spread.n, spread.planned) == (1, 2)
    assert "bad" in [run["name"] for run in evidence.every_run()]


def test_the_first_epoch_near_a_level(tmp_path: Path) -> None:
    curve = [[10, 0.2], [20, 0.38], [30, 0.4], [40, 0.39]]
    store(tmp_path, "a", valid_curve=curve)
    store(tmp_path, "b", failed="NaN")
    evidence, cell = Evidence(tmp_path), {"runs": ["a", "b"]}
    assert (near(evidence, cell, 0.95).mean, near(evidence, cell, 1.0).mean) == (20, 30)
    assert near(evidence, cell, 0.95).seeds == "1 of 2, 1 diverged"
    run = evidence.run("a")
    assert best_on_valid(run) == 0.4
    assert first_at(run, 0.41) == math.inf
    assert epochs(Spread.of([20.0, math.inf])) == "never"
    assert epochs(Spread.of([100.0, 140.0])) == "120 ± 28"
    assert epochs(Spread.of([])) == "diverged"
