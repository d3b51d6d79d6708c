from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from murp.analysis import spearman
from murp.analysis.correlation import mean_ranks

pairs = st.lists(st.tuples(st.integers(-5, 5), st.floats(-3, 3, width=16)), min_size=2, max_size=30)


@given(pairs)
def test_spearman_is_that_of_scipy(listed):
    x, y = np.array(listed).T
    found = spearman(x, y)
    assert found.n == len(x)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found.rho is None
    else:
        assert found.rho == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


@given(st.lists(st.integers(-3, 3)))
def test_equal_values_share_the_mean_of_their_ranks(values):
    assert mean_ranks(np.array(values)).tolist() == rankdata(values).tolist()


def test_monotone_relations_and_the_empty_one():
    x = np.arange(10)
    assert spearman(x, np.exp(x)).rho == 1
    assert spearman(x, -(x**3)).rho == -1
    assert spearman([], []) == spearman([], ())
    assert spearman([], []).rho is None
    assert spearman([1.0], [2.0]).rho is None
