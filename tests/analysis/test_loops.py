"""The loops do the same compiled and as they are written, and where they are quick enough nothing is compiled."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from digraphs import edge_lists, edges
from hypothesis import given

from murp.analysis import Directed, graph_kernels, loops


@given(edge_lists)
def test_compiled_or_not_the_result_is_the_same(listed):
    graph = Directed.of(edges(listed))
    rows = graph.starts, graph.targets
    assert loops.components(*rows).tolist() == graph_kernels.components(*rows).tolist()
    sources = np.arange(0, len(graph), 3)
    assert loops.distances(*rows, sources).tolist() == graph_kernels.distances(*rows, sources).tolist()


def test_levels_of_a_small_graph_wait_for_no_compiler_and_a_large_graph_is_worth_one():
    code = """
import sys
import numpy as np
from murp.analysis import Directed, find_levels, loops
tree = np.array([(child, (child - 1) // 2) for child in range(1, 63)])
print(find_levels(tree).depth.max(), "numba" in sys.modules)
loops.SMALL = 10
print(find_levels(tree).depth.max(), "numba" in sys.modules)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["5 False", "5 True"]
