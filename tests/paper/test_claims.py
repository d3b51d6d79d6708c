"""The paper's claims told from results made by hand, so that every verdict can be foreseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stored_results import StoredResults

from murp.paper import claims, claims_on_models
from murp.paper.document import Table
from murp.paper.evidence import Evidence
from murp.paper.learning_rates import choices, grid
from murp.paper.wrong_answers import wrong_answers


@pytest.fixture
def results(tmp_path: Path) -> StoredResults:
    return StoredResults(tmp_path / "paper")


def test_a_diverged_seed_is_told_beside_every_number_that_rests_on_the_others(results: StoredResults) -> None:
    cells = [
        results.cell([0.08, None, 0.09], model="mure", dim=5),
        results.cell([0.13, 0.14, 0.13], model="murp", dim=5),
        results.cell([0.47, 0.48, 0.47], model="mure", dim=200),
        results.cell([0.48, 0.47, 0.48], model="murp", dim=200),
    ]
    item = results.item("figure3a", settings={"data": "WN18RR", "dims": [5, 200], "lr": 50}, cells=cells)
    ahead, greatest, fewer = claims.dimensions(results.evidence, item)
    assert ahead[1] == "1 of 2 yes, 1 within one deviation"
    assert "d=5 +.048 ± .009 (2 of 3 seeds, 1 diverged), d=200 +.003 ± .008" in ahead[2]
    assert greatest[1] == "yes"
    assert "(2 of 3 seeds, 1 diverged)" in greatest[2]
    assert fewer[1] == "no"


def test_how_many_times_fewer_dimensions_is_a_number(results: StoredResults) -> None:
    scores = {
        ("mure", 5): 0.2,
        ("murp", 5): 0.3,
        ("mure", 20): 0.3,
        ("murp", 20): 0.4,
        ("mure", 40): 0.4,
        ("murp", 40): 0.5,
    }
    cells = [results.cell([mrr, mrr], model=model, dim=dim) for (model, dim), mrr in scores.items()]
    item = results.item("figure3a", settings={"data": "WN18RR", "dims": [5, 20, 40], "lr": 50}, cells=cells)
    [*_, fewer] = claims.dimensions(results.evidence, item)
    assert fewer[:2] == ["MuRP needs fewer dimensions than MuRE for the same", "yes"]
    assert fewer[2].startswith("MuRE d=40 .400 ± .000; MuRP first within one deviation of it at d=20: .400 ± .000, ")
    assert fewer[2].endswith("2 times fewer")


def table1(results: StoredResults, mure: list[float], murp: list[float], data: str = "WN18RR") -> dict[str, object]:
    cells = [results.cell(mure, data=data, model="mure", dim=40), results.cell(murp, data=data, model="murp", dim=40)]
    return results.item("table1", settings={"data": [data], "dims": [40], "grid": [10, 50]}, cells=cells, grid=[])


def test_a_model_below_tucker_is_no_state_of_the_art(results: StoredResults) -> None:
    item = table1(results, [0.46, 0.461, 0.459], [0.56, 0.561, 0.559])
    [above, second] = claims.earlier_systems(results.evidence, item)
    assert above[1] == "no: 3 of 6 yes, 3 no"
    assert "MuRE MRR -.010 ± .001" in above[2]
    assert second[1].startswith("no"), "ahead of TuckER is not second"


def test_the_flat_graph_is_claimed_for_mure(results: StoredResults) -> None:
    [row] = claims.models_compared(results.evidence, table1(results, [0.315, 0.314], [0.324, 0.323], "FB15k-237"))
    assert row[:2] == ["MuRE slightly ahead of MuRP on FB15k-237", "no"]
    assert row[2] == "d=40 -.009 ± .001 (paper -.009)"


def test_rates_that_tie_are_called_so(results: StoredResults) -> None:
    tried = {
        rate: results.cell([0.4], [score], model="mure", lr=rate) for rate, score in ((10.0, 0.3), (50.0, 0.45560))
    }
    best = results.cell([0.4, 0.4, 0.4], [0.45561, 0.457, 0.4546], data="WN18RR", model="mure", dim=40, lr=100.0)
    runs = [*(cell["runs"][0] for cell in tried.values()), best["runs"][0]]
    row = {"data": "WN18RR", "model": "mure", "dim": 40, "runs": runs}
    item = results.item("table1", settings={"grid": [10, 50, 100]}, cells=[best], grid=[row])
    [choice] = choices(results.evidence, item)
    assert (choice.chosen, choice.tied(), choice.paper) == (100.0, [50.0], 50)
    _, table = grid(results.evidence, item)
    assert isinstance(table, Table)
    assert table.rows == [["WN18RR, MuRE d=40", ".3000", ".4556", "**.4556**", "50", ".0012", "50"]]
    [claim] = claims.best_rates(results.evidence, item)
    assert claim[1] == "0 of 1 yes, 1 within seed noise"
    assert claim[2] == "WN18RR, MuRE d=40: 100 (50 is .00001 behind)"


def test_a_lead_within_its_deviation_decides_nothing(results: StoredResults) -> None:
    data = ["NELL-995-h100", "NELL-995-h25"]
    scores = {("mure", 0): [0.354, 0.350], ("murp", 0): [0.355, 0.352], ("mure", 1): [0.365, 0.366]}
    scores["murp", 1] = [0.358, 0.359]
    cells = [
        results.cell(values, data=data[i], model=model, dim=dim)
        for dim in (40, 200)
        for (model, i), values in scores.items()
    ]
    item = results.item("nell", settings={"data": data, "dims": [40, 200], "shares": [100, 25], "lr": 50}, cells=cells)
    everywhere, _, apart, shrinks = claims.shares(results.evidence, item)
    assert everywhere[1] == "no: 1 no, 1 within one deviation"
    assert apart[1] == "1 of 2 yes, 1 within one deviation"
    assert "(paper +.005)" in apart[2]
    assert shrinks[1] == "yes"


def test_convergence_has_its_deviation_and_says_what_it_is_of(results: StoredResults) -> None:
    cells = [results.cell([0.4, 0.4], model="mure"), results.cell([0.9, None], model="murp")]
    item = results.item("figure3b", settings={}, cells=cells)
    own, level = claims_on_models.convergence(results.evidence, item)
    assert own[2] == "MuRP after 40, MuRE after 40 ± 0"
    assert level[2] == "MuRP after 20, MuRE after 40 ± 0"
    assert own[3] == "epochs, by valid MRR, `standard`, in steps of 20 epochs"


def test_a_variant_that_diverged_is_not_ahead(results: StoredResults) -> None:
    parts = {"published": [0.46, 0.461], "swapped": [0.44, 0.441], "stretch-both": [None, None]}
    cells = [
        results.cell(scores, kind="transformations", part=part, model=model)
        for part, scores in parts.items()
        for model in ("mure", "murp")
    ]
    item = results.item("table2", settings={}, cells=cells)
    rows = claims_on_models.ablated(results.evidence, item)
    assert [row[3] for row in rows] == 2 * ["test MRR, `paper`", "test hits@1, `paper`"]
    for row in rows:
        assert row[1] == "yes"
        assert "swapped +.020 ± .001, stretch-both diverged" in row[2]


@pytest.mark.parametrize(("leads", "holds"), [([1, 2, 3, 4, 5, 6, 7], "yes"), ([7, 6, 5, 4, 3, 2, 1], "no")])
def test_deeper_relations_and_larger_leads(results: StoredResults, leads: list[int], holds: str) -> None:
    cells = [results.cell([0.5, 0.5], model=model, dim=20) for model in ("mure", "murp")]
    names = [f"r{i}" for i in range(len(leads))]
    for cell, gains in zip(cells, ([0] * len(leads), leads), strict=True):
        for name in cell["runs"]:
            by = {relation: {"hits@10": 0.1 + 0.01 * gain} for relation, gain in zip(names, gains, strict=True)}
            run = results.evidence.run(name)
            run["metrics"]["test"]["paper"]["by_relation"] = by
            (results.out / "runs" / f"{name}.json").write_text(json.dumps(run))
    relations = [{"relation": name, "krackhardt": 1.0, "longest_path": i} for i, name in enumerate(names)]
    item = results.item("table3", settings={"dim": 20, "lr": 50}, cells=cells, relations=relations)
    ahead, deeper = claims_on_models.relation_claims(results.evidence, item)
    assert ahead[1] == "yes"
    assert deeper[1] == holds


def figure5(results: StoredResults) -> None:
    [run] = results.cell([0.4])["runs"]
    answers = {"bahrain.n.02": (0.5011, True), "malaysia.n.01": (0.55, False), "oman.n.01": (0.9, True)}
    answers |= {"philippines.n.01": (0.2, False)}
    model = {
        "run": run,
        "names": list(answers),
        "probabilities": [p for p, _ in answers.values()],
        "known": [known for _, known in answers.values()],
        "true positive": ["bahrain.n.02", "oman.n.01"],
        "false positive": ["malaysia.n.01"],
        "false negative": [],
    }
    counts = {"false positive": [1, 4], "false negative": [0, 0]}
    cells = [{"model": name, "runs": [run], "counts": counts} for name in ("murp", "mure")]
    models = {"murp": model, "mure": model}
    results.item("figure5", subject="asia.n.01", relation="_has_part", models=models, cells=cells)


def test_the_papers_wrong_answers_are_looked_up_here(results: StoredResults) -> None:
    figure5(results)
    [counts, fates] = [block for block in wrong_answers(results.evidence) if isinstance(block, Table)]
    assert counts.rows[0] == ["MuRP, false positives", "1, 4", "15", "malaysia.n.01"]
    by_name = {row[0]: row[1:] for row in fates.rows}
    assert by_name["MuRE: bahrain"] == ["false negative", "bahrain.n.02: true positive, probability .5011"]
    assert by_name["MuRP: malaysia"] == ["false positive", "malaysia.n.01: false positive, probability .5500"]
    assert by_name["MuRE: philippines"] == ["false positive", "philippines.n.01: true negative, probability .2000"]
    assert by_name["MuRP: sri_lanka"][1].startswith("no object of that name")
    text = " ".join(block.text for block in wrong_answers(results.evidence) if hasattr(block, "text"))
    assert "MuRE: 1 of 1 false positives and 1 of 2 true positives have a probability below .6" in text


def test_what_counts_are_worth_follows_from_their_spread_over_seeds(results: StoredResults) -> None:
    figure5(results)

    def said(**counts: list[int]) -> str:
        item = results.evidence.item("figure5")
        assert item is not None
        for cell in item["cells"]:
            cell["counts"] = {"false positive": counts[cell["model"]], "false negative": [0] * len(counts["murp"])}
        results.item("figure5", **{name: item[name] for name in ("subject", "relation", "models", "cells")})
        return " ".join(block.text for block in wrong_answers(results.evidence) if hasattr(block, "text"))

    text = said(murp=[10, 24], mure=[7, 21])
    assert "weak evidence" not in text
    assert "Over 2 seeds: 10 to 24 false positives by MuRP and 7 to 21 by MuRE, ranges that overlap." in text
    assert "0 false negatives by MuRP and 0 by MuRE, the same." in text
    text = said(murp=[22, 24], mure=[7, 21])
    assert "22 to 24 false positives by MuRP and 7 to 21 by MuRE, ranges that do not overlap." in text
    text = said(murp=[22], mure=[7])
    assert "One seed: 22 false positives by MuRP and 7 by MuRE. The spread over seeds is not known." in text


def test_equal_counts_are_neither_more_nor_fewer(results: StoredResults) -> None:
    figure5(results)
    item = results.evidence.item("figure5")
    assert item is not None
    rows = claims_on_models.balanced(results.evidence, item)
    assert [row[1] for row in rows] == ["within one deviation", "within one deviation"]
    assert rows[0][2] == "MuRP 2.5 ± 2.1 (paper 15), MuRE 2.5 ± 2.1 (paper 2)"
    item["cells"][0]["counts"] = {"false positive": [9, 8], "false negative": [1, 1]}
    assert [row[1] for row in claims_on_models.balanced(results.evidence, item)] == ["yes", "no"]


def test_correlations_over_seeds(results: StoredResults) -> None:
    cells = [{"model": "mure", "runs": ["a", "b"], "spearman": [0.6, 0.4]}]
    [row] = claims_on_models.correlated(results.evidence, {"cells": cells})
    assert row[1:3] == ["yes", "MuRE +.50 ± .14"]
    [row] = claims_on_models.correlated(results.evidence, {"cells": [{**cells[0], "spearman": [0.1, -0.2]}]})
    assert row[1] == "within one deviation"
    assert claims_on_models.correlated(results.evidence, {"cells": [{**cells[0], "spearman": [None, 0.2]}]}) == []


def test_every_claim_says_what_its_numbers_are_of(toys: Path) -> None:
    [table] = [block for block in claims.claims(Evidence(toys)) if isinstance(block, Table)]
    assert len(table.rows) > 10
    assert all(all(row) for row in table.rows)
