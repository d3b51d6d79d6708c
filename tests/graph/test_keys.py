from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from murp.graph.keys import pack

large = st.sampled_from([0, 1, 2, 2**31 - 2, 2**31 - 3, 2**30])


@given(st.lists(st.tuples(large, large, large), min_size=1, max_size=30), st.booleans())
def test_keys_are_equal_and_ordered_as_rows_are_even_where_the_product_of_sizes_overflows(rows, small):
    if small:
        rows = [tuple(value % 3 for value in row) for row in rows]
    columns = np.array(rows, dtype=np.int32).T
    sizes = [3] * 3 if small else [2**31 - 1] * 3
    keys = pack(list(columns), sizes).tolist()
    for one, key in zip(rows, keys, strict=True):
        assert key % sizes[-1] == one[-1]
        for other, other_key in zip(rows, keys, strict=True):
            assert (one < other) == (key < other_key)
