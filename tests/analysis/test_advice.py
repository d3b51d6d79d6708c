from __future__ import annotations

import digraphs
import pytest

from murp.analysis import advise, advise_on_relation, hyperbolicity, profile

DEEP = profile("deep", digraphs.edges([(i, i + 1) for i in range(20)]))
PAIRS = profile("pairs", digraphs.edges([(2 * i, 2 * i + 1) for i in range(20)]))


def mixed(pairs: int) -> list:
    return [DEEP, *[PAIRS] * pairs]


@pytest.mark.parametrize(
    ("profiles", "dim", "degree", "verdict"),
    [
        (mixed(0), 20, "mostly", "should pay"),
        (mixed(3), 20, "partly", "should pay"),
        (mixed(9), 20, "hardly", "may pay a little"),
        (mixed(0), 200, "mostly", "may pay a little"),
        (mixed(3), 200, "partly", "not expected to pay"),
        (mixed(9), 200, "hardly", "not expected to pay"),
        ([PAIRS], 200, "hardly", "not expected to pay"),
    ],
)
def test_low_dimension_and_deep_hierarchies_speak_for_hyperbolic_space(profiles, dim, degree, verdict):
    advice = advise(profiles, None, dim)
    text = " ".join(advice.sentences)
    assert f"{degree} hierarchical" in text
    assert verdict in text
    assert f"dimension {dim}" in text
    assert advice.share == pytest.approx(sum(p.hierarchical for p in profiles) / len(profiles))
    assert advice.mean_path == (None if profiles == [PAIRS] else pytest.approx(22 / 3))


def test_the_sample_behind_delta_is_named():
    ring = digraphs.edges([(i, (i + 1) % 8) for i in range(8)])
    sentences = advise([DEEP], hyperbolicity(ring), 40).sentences
    assert any("at most 2 (a tree: 0) over all quadruples; the part's diameter is 4." in line for line in sentences)
    ring = digraphs.edges([(i, (i + 1) % 1200) for i in range(1200)])
    (sentence,) = (line for line in advise([DEEP], hyperbolicity(ring), 40).sentences if "Gromov" in line)
    assert (
        "over 100,000 drawn quadruples of 200 of its 1,200 entities; the part's diameter is at least 600." in sentence
    )


@pytest.mark.parametrize(
    ("relation", "dim", "degree", "verdict"),
    [
        (DEEP, 20, "is hierarchical: a Krackhardt score of 1.000 and paths of up to 20 edges", "should pay"),
        (DEEP, 200, "is hierarchical", "may pay a little"),
        (PAIRS, 200, "is not hierarchical: a Krackhardt score of 1.000 and paths of up to 1 edge (", "not expected"),
    ],
)
def test_advice_on_one_relation_speaks_of_it(relation, dim, degree, verdict):
    advice = advise_on_relation(relation, None, dim)
    text = " ".join(advice.sentences)
    assert text.startswith(f"The relation {degree}")
    assert verdict in text
    assert "graph is" not in text
    assert advice.mean_path == advise([relation], None, dim).mean_path


def test_no_facts_no_hierarchy():
    assert advise([], None, 40).share == 0
