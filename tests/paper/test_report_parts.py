"""What the report says of itself, of far ablations, of relations and of flawed data, from results made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stored_results import StoredResults

from murp.paper.ablations import table2
from murp.paper.document import Block, Table, Text, markdown, page
from murp.paper.methods import diverged, findings, method
from murp.paper.pictures import figure3a
from murp.paper.relations import hierarchy, scores_compared


@pytest.fixture
def results(tmp_path: Path) -> StoredResults:
    return StoredResults(tmp_path / "paper")


def texts(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def listed(results: StoredResults) -> list[list[str]]:
    """The rows of the table of diverged runs."""
    [table] = [block for block in diverged(results.evidence) if isinstance(block, Table)]
    return [list(row) for row in table.rows]


def test_seeds_commands_and_diverged_runs_are_those_of_the_stored_items(results: StoredResults) -> None:
    three = [results.cell([0.4, None, 0.4], model=model, dim=5) for model in ("mure", "murp")]
    two = [results.cell([0.4, 0.4], kind="biases", part="norm", model=model) for model in ("mure", "murp")]
    results.item("figure3a", settings={}, cells=three)
    results.item("table2", settings={}, cells=two)
    results.item("figure4", settings={}, cells=[{"model": "mure", "runs": two[0]["runs"][:1]}])
    results.item("hierarchy", settings={}, graphs={})
    said = texts(method(results.evidence))
    assert said.startswith("8 runs on a GPU, 500 epochs")
    assert "figure3a: seeds 0, 1, 2; table2: seeds 0, 1; figure4: seed 0." in said
    for items, seeds in (("figure3a hierarchy", 3), ("table2", 2), ("figure4", 1)):
        assert f"`murp paper run {items} --seeds {seeds}`" in said
    assert "2 further runs stopped because a parameter became NaN or infinite" in said
    assert [three[0]["runs"][1], "3"] in listed(results)


def test_the_epoch_of_a_diverged_run_is_a_field_and_in_old_results_a_text(results: StoredResults) -> None:
    names = results.cell([0.4, None, None])["runs"]
    file = results.out / "runs" / f"{names[1]}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "failed": "in epoch 7", "failed_epoch": 8}))
    assert listed(results) == [[names[1], "8"], [names[2], "3"]]


def test_a_row_with_a_diverged_seed_says_so(results: StoredResults, tmp_path: Path) -> None:
    cells = [results.cell([0.08, None, 0.09], model="mure", dim=5), results.cell([0.1, 0.1, 0.1], model="murp", dim=5)]
    results.item("figure3a", settings={"data": "WN18RR", "dims": [5], "lr": 50}, cells=cells)
    [table] = [block for block in figure3a(results.evidence, tmp_path / "figures") if isinstance(block, Table)]
    assert table.rows == [
        ["5", ".085 ± .007", ".100 ± .000", "+.015 ± .007", "MuRE 2 of 3, 1 diverged; MuRP 3"],
    ]


class TestFarAblations:
    """An account belongs to its own cell, and lists what was run."""

    def stored(self, results: StoredResults, part: str, kind: str, mrr: float) -> str:
        near = {"published": [0.459, 0.477], "both": [0.459, 0.477]}
        cells = []
        for place, own in (("transformations", "published"), ("biases", "both"), (kind, part)):
            for i, model in enumerate(("mure", "murp")):
                score = near[own][i] if own in near else mrr if model == "mure" else 0.367
                lr = 20.0 if (own, model) == (part, "mure") else 50.0
                cells.append(results.cell([score, score], kind=place, part=own, model=model, lr=lr) | {"lr": lr})
        results.cell([None, None], kind=kind, part=part, model="mure", lr=50.0)  # tried first; no item names it
        parts = {"transformations": ["published"], "biases": ["both"]}
        parts[kind].append(part)
        results.item("table2", settings={"lr": [50, 20, 10, 5], **parts}, cells=cells)
        return texts(table2(results.evidence))

    def test_rates_are_those_of_stored_runs_and_no_reason_is_borrowed(self, results: StoredResults) -> None:
        said = self.stored(results, "stretch-both", "transformations", 0.309)
        assert "**MuRE stretch-both**: -.032 at 20." in said
        assert "50 (0 of 2 seeds reached the end), 20 (2 of 2 seeds reached the end, MRR .309 ± .000)." in said
        assert "Neither more epochs nor other initial values were tried" in said
        assert "complete the square" not in said

    def test_a_reason_that_is_known(self, results: StoredResults) -> None:
        assert "complete the square" in self.stored(results, "transformed-norm", "biases", 0.29)

    def test_what_other_optimizers_reach_is_told_where_it_is_stored(self, results: StoredResults) -> None:
        where = {"kind": "biases", "part": "transformed-norm", "model": "mure"}
        tried = [{"lr": 0.01, "initial_scale": 0.1, "valid_mrr": 0.43, "epoch": 90}]
        adam = {"tried": tried, "best": {"lr": 0.01, "initial_scale": 0.1}, "runs": [{"paper": 0.42}, {"paper": 0.44}]}
        sgd = {"tried": [{"lr": 10.0, "initial_scale": 0.1, "valid_mrr": None, "epoch": None}], "runs": []}
        figures = {"cell": where, "optimizers": {"adam": adam, "sgd": sgd}}
        self.stored(results, "transformed-norm", "biases", 0.29)
        assert "With other optimizers" not in texts(table2(results.evidence))
        adaptive = {"settings": {"epochs": 500, "batch_size": 1024}, "figures": figures, "commit": "a" * 40}
        (results.out / "adaptive.json").write_text(json.dumps(adaptive))  # as a benchmark stores it
        blocks = table2(results.evidence)
        table = next(block for block in blocks if isinstance(block, Table) and block.header[:1] == ["optimizer"])
        assert table.rows[0] == ["adam", "0.01", "0.1", ".430", ".430 ± .014"]
        assert table.rows[1][:2] == ["sgd", "diverged at every rate"]
        assert "With other optimizers, 500 epochs in batches of 1,024" in texts(blocks)
        assert "The best of them is -.013 to the paper's." in texts(blocks)

    def test_what_was_tried_stands_below(self, results: StoredResults) -> None:
        where = {"kind": "biases", "part": "transformed-norm", "model": "mure"}
        scores = {(20.0, 0.001): None, (10.0, 0.001): 0.3, (20.0, 0.1): 0.36, (10.0, 0.1): 0.38}
        tried = {}
        for (lr, scale), score in scores.items():
            [tried[lr, scale]] = results.cell([score], **where, lr=lr, initial_scale=scale, epochs=2000)["runs"]
        best = results.cell([0.38, 0.36], **where, lr=10.0, initial_scale=0.1, epochs=2000)
        item = {"settings": {}, "cells": [{**where, "tried": [*tried.values()], "runs": best["runs"]}]}
        results.item("trials", **item)
        self.stored(results, "transformed-norm", "biases", 0.29)
        blocks = table2(results.evidence)
        table = next(
            block for block in blocks if isinstance(block, Table) and block.header[1:] == ["rate 20", "rate 10"]
        )
        assert table.rows == [
            ["initial scale 0.001", "diverged", ".150, .300 at 2,000"],
            ["initial scale 0.1", ".180, .360 at 2,000", ".190, .380 at 2,000"],
        ]
        said = texts(blocks)
        assert "50 (0 of 2 seeds reached the end), 20 (2 of 2 seeds reached the end, MRR .290 ± .000)." in said
        assert "-.073 ± .014 to the paper's .443. Rate, length and initial values do not explain that." in said
        assert "rate 10 from initial scale 0.1, on test under protocol `paper`: .370 ± .014 (seeds: 2)" in said

    def test_a_cell_that_lost_seeds_is_accounted_for(self, results: StoredResults) -> None:
        self.stored(results, "stretch-both", "transformations", 0.341)
        item = results.evidence.item("table2")
        assert item is not None
        where = {"kind": "transformations", "part": "stretch-both", "model": "mure"}
        item["cells"][4] = results.cell([None, 0.341], **where, lr=20.0)
        results.item("table2", settings=item["settings"], cells=item["cells"])
        assert "**MuRE stretch-both**: .000 at 20. Rates tried: 50 (0 of 2" in texts(table2(results.evidence))

    def test_nothing_is_far(self, results: StoredResults) -> None:
        said = self.stored(results, "stretch-both", "transformations", 0.341)
        assert "every MRR is within .020" in said
        assert "2 seeds a cell" in said


def test_scores_of_the_graph_that_the_paper_calls_hierarchical(results: StoredResults) -> None:
    relations = [{"krackhardt": score, "longest_path": path} for score, path in ((1.0, 3), (0.3, 16), (0.999996, 4))]
    results.item("hierarchy", graphs={"NELL-995-h100": relations, "other": relations})
    blocks = hierarchy(results.evidence)
    [table] = [block for block in blocks if isinstance(block, Table)]
    assert table.rows[0] == ["NELL-995-h100", "3", "1", ".77", ".30", "3", "16"]
    assert "1 of them have it, the mean is .77 and the least .30" in texts(blocks)
    assert "other" not in texts(blocks)


class TestScoresBesideThePapers:
    """What is said of our scores and the paper's follows from both, relation by relation."""

    def said(self, **scores: tuple[float, int]) -> str:
        rows = [
            {"relation": f"_{name}", "krackhardt": score, "longest_path": path}
            for name, (score, path) in scores.items()
        ]
        return scores_compared(rows)

    def test_digits_that_are_rounded_and_digits_that_are_cut_off(self) -> None:
        text = self.said(hypernym=(0.99999, 18), also_see=(0.2355, 44), has_part=(1.0, 13), not_in_the_paper=(0.5, 1))
        assert "the paper's for 2 of 3 relations if we round, and for 2 of 3 if we drop the other digits." in text
        assert "neither way" not in text
        assert "0 says" not in text

    def test_what_agrees_neither_way_is_named_with_both_figures(self) -> None:
        text = self.said(derivationally_related_form=(0.012345, 95), verb_group=(0.0, 6))
        assert "1 of 2 relations if we round, and for 1 of 2 if we drop the other digits." in text
        assert "In neither way for derivationally_related_form: .0123 here, .04 in the paper." in text
        assert "A score of 0 says that every path has a way back: verb_group." in text

    def test_a_relation_without_a_path_has_no_way_back(self) -> None:
        assert "A score of 0 says" not in self.said(verb_group=(0.0, 0))


def test_findings_can_be_read_on_their_own() -> None:
    found = [
        {"check": "unseen_entities", "text": "953 entities of valid never seen in training"},
        {"check": "triples_with_unseen_entities", "text": "911 of 4,441 valid triples hold such entities"},
        {"check": "shared_facts", "text": "1 fact of test also in valid"},
        {"check": "shared_facts", "text": "11 facts of test also in train"},
        {"check": "duplicate_rows", "text": "1 duplicate row in test"},
    ]
    assert findings(found) == (
        "911 of 4,441 valid triples hold entities that training never saw; 1 fact of test also in valid; "
        "11 facts of test also in train; 1 duplicate row in test"
    )


def test_columns_of_words_are_set_left_and_columns_of_figures_right() -> None:
    table = Table(["", "MRR", "seeds"], [["a", ".1 ± .2", "MuRE 2 of 3, 1 diverged; MuRP 3"], ["b", ".2", "3"]])
    assert "| --- | ---: | --- |" in markdown([table], Path())
    html = page("title", [table])
    assert '<th scope="col" class=text>seeds</th>' in html
    assert '<th scope="col">MRR</th>' in html
    assert '<td class="text">3</td>' in html
    assert "<td>.1&nbsp;±&nbsp;.2</td>" in html
