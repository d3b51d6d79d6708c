"""The page of benchmarks is that of the stored results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import benchmark_bars
import benchmark_quality
import benchmark_results
import benchmark_scale
import benchmark_training
import benchmark_uses
import benchmarks_page
import origins
from repository import Repository


def test_page_and_plot_come_from_the_stored_results() -> None:
    assert benchmarks_page.up_to_date(), "run `make figures`"


def test_every_picture_and_file_of_the_page_is_there() -> None:
    for name in re.findall(r"\]\((?!http|#)(.*?)\)", benchmarks_page.page()):
        assert (benchmark_results.DOCS / name).exists()


def test_a_changed_result_makes_page_and_plot_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_results, "RESULTS", tmp_path)
    monkeypatch.setattr(benchmark_results, "DOCS", tmp_path)
    monkeypatch.setattr(origins, "ROOT", tmp_path)  # no repository: git would look at every commit of ours
    spread = {"median": 1e-3, "least": 1e-3, "most": 2e-3, "repeats": 3}
    stored = {
        "what": "a step",
        "settings": {"data": "toy", "dim": 4, "batch_size": 2},
        "figures": {
            "seconds_a_step": {"murp, numba": spread, "murp, textbook": {**spread, "median": 5e-2}},
            "epoch_seconds": {"murp, numba": 1.0, "murp, textbook": 50.0},
            "times_faster": {"numba against textbook": 50.0},
            "left_out": {},
        },
        "machine": {"device": "a CPU", "cores": 2, "murp": "0", "torch": "2"},
        "date": "2026-01-01T00:00:00Z",
    }

    def store() -> None:
        (tmp_path / "cpu_step.json").write_text(json.dumps(stored))

    store()
    monkeypatch.setattr("sys.argv", ["benchmarks_page.py"])
    assert not benchmarks_page.up_to_date()
    benchmarks_page.main()
    assert benchmarks_page.up_to_date()
    assert (
        "| MuRP, textbook | 50.0 ms (1.00 ms to 2.00 ms) | 50.0 s | 50 times | not trained |" in benchmarks_page.page()
    )
    assert "| 40 times or more | 50 times | yes |" in benchmarks_page.page()
    spread["median"] = 2e-3
    store()
    assert not benchmarks_page.up_to_date()
    (tmp_path / "benchmarks.md").write_text(benchmarks_page.page())
    assert not benchmarks_page.up_to_date(), "the plot is still the old one"


def test_the_page_says_which_code_made_each_result(store: Callable[..., None], tmp_path: Path) -> None:
    """On the line of its machine and in a list of all; what is kept of the history decides."""
    seconds = {"seconds": {"murp --help": SPREAD, "first step, numba": SPREAD}}
    store("cpu_start_up", settings={}, figures=seconds)
    assert "2026-01-01; commit not recorded.*" in benchmarks_page.page()
    code = {"commit": "a" * 40, "clean": True, "source": "1" * 12}
    store("cpu_start_up", settings={}, figures=seconds, **code)
    assert "not looked up in the history" in benchmarks_page.page()
    (tmp_path / "history.json").write_text(json.dumps({"commits": {"a" * 40: "1" * 12}, "sources": {}}))
    assert "2026-01-01; commit aaaaaaa.*" in benchmarks_page.page()
    store("reliability_crash", settings={}, figures={})
    (tmp_path / "guides.json").write_text(json.dumps({"first-graph": {"date": "2026-01-01"}}))
    page = benchmarks_page.page()
    assert "The code of 1 of 2 results is in the history; of the others: 1 × commit not recorded." in page
    assert "| commit aaaaaaa | 1 | cpu_start_up |" in page
    assert "| commit not recorded | 1 | guide first-graph |" in page


def test_making_the_page_warns_of_code_that_git_does_not_have(
    store: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = Repository(tmp_path / "root")
    here = repository.commit(a="1")
    monkeypatch.setattr(origins, "ROOT", repository.root)
    monkeypatch.setattr(benchmark_results, "DOCS", tmp_path)
    monkeypatch.setattr("sys.argv", ["benchmarks_page.py"])
    figures = {"seconds": {"murp --help": SPREAD, "first step, numba": SPREAD}}
    store("cpu_start_up", settings={}, figures=figures, commit=here, clean=True)
    benchmarks_page.main()
    assert capsys.readouterr().err == ""
    store("cpu_start_up", settings={}, figures=figures, commit=here, clean=False)
    benchmarks_page.main()
    warned = capsys.readouterr().err
    assert warned.startswith("warning: The code of 0 of 1 results")
    assert f"commit {here[:7]} with changes that are not in the history: cpu_start_up" in warned
    monkeypatch.setattr(origins, "ROOT", tmp_path)
    benchmarks_page.main()
    assert "git or its history is not here" in capsys.readouterr().err


class TestProcessors:
    """A bar has a column for each kind of processor, and the code of each is named below."""

    def test_a_bar_shows_every_processor_and_is_met_where_all_meet_it(
        self, store: Callable[..., None], tmp_path: Path
    ) -> None:
        def step(name: str, device: str, ratio: float, letter: str) -> None:
            here = {**MACHINE, "device": device, "cores": 16, "threads": 2}
            figures = {"times_faster": {"numba against textbook": ratio}}
            store(name, settings={}, figures=figures, machine=here, commit=letter * 40, clean=True)

        history = {"commits": {"a" * 40: None, "b" * 40: None}, "sources": {}}
        (tmp_path / "history.json").write_text(json.dumps(history))
        step("cpu_step", "AMD", 106.0, "a")
        start = "| 40 times or more |"
        assert f"{start} 106 times | yes |" in "\n".join(benchmark_bars.bars())
        step("intel/cpu_step", "Intel", 65.0, "b")
        text = "\n".join(benchmark_bars.bars())
        assert "| what | limit | AMD | Intel | met |" in text
        assert f"{start} 106 times | 65 times | yes |" in text
        assert "*AMD, 16 cores, 2 threads; murp 0, torch 2; 2026-01-01; commit aaaaaaa, not in the history.*" in text
        assert "*Intel, 16 cores, 2 threads; murp 0, torch 2; 2026-01-01; commit bbbbbbb, not in the history.*" in text
        step("intel/cpu_step", "Intel", 39.0, "b")
        assert f"{start} 106 times | 39 times | no |" in "\n".join(benchmark_bars.bars())

    def test_what_one_processor_alone_was_measured_on_says_so(self, store: Callable[..., None]) -> None:
        store("intel/cpu_evaluation", settings={}, figures={"times_faster": 400.0}, machine={**MACHINE, "device": "I"})
        store("cpu_many_entities", settings={}, figures=MANY, machine={**MACHINE, "device": "A"})
        text = "\n".join(benchmark_bars.bars())
        assert "| 300 times or more | not measured | 400 times | yes, where measured |" in text
        assert "| 2.00 times or less | 1.50 times | not measured | yes, where measured |" in text

    def test_results_of_other_processors_are_listed_with_their_code(self, store: Callable[..., None]) -> None:
        store("intel/cpu_evaluation", settings={}, figures={"times_faster": 400.0})
        assert "| commit not recorded | 1 | intel/cpu_evaluation |" in benchmarks_page.page()

    def test_an_earlier_commit_is_compared_on_each_processor(self, store: Callable[..., None]) -> None:
        assert benchmark_uses.earlier() == []
        for name, device, ratio in (("cpu_earlier", "A", 0.5), ("intel/cpu_earlier", "I", 1.25)):
            kinds = {"seconds": ratio, "processor_seconds": ratio + 0.1}
            of_model = {kind: {"earlier": SPREAD, "now": SPREAD, "now_over_earlier": r} for kind, r in kinds.items()}
            quicker = {kind: {**found, "now_over_earlier": 0.1} for kind, found in of_model.items()}
            settings = {"data": "WN18RR", "dim": 40, "earlier": "535de4f", "rounds": 5, "repeats": 5}
            figures = {"murp": of_model, "mure": quicker}
            store(name, settings=settings, figures=figures, machine={**MACHINE, "device": device})
        text = "\n".join(benchmark_uses.earlier())
        assert "this code and that of commit 535de4f" in text
        row = "1.00 ms (1.00 ms to 2.00 ms) | 1.00 ms (1.00 ms to 2.00 ms)"
        assert f"| A: MuRP, on the clock | {row} | 0.50 times |" in text
        assert f"| I: MuRP, processor time | {row} | 1.35 times |" in text
        assert f"| I: MuRE, processor time | {row} | 0.10 times |" in text
        text = "\n".join(benchmark_bars.bars())
        assert "on the clock, slower model | 1.30 times or less | 0.50 times | 1.25 times | yes |" in text
        assert "processor time, slower model | 1.30 times or less | 0.60 times | 1.35 times | no |" in text


MANY = {"ratio": 1.5, "by": [{"entities": 1, "peak_less_constant_over_parameters": 1.0}]}
MACHINE = {"device": "a GPU", "cores": 2, "murp": "0", "torch": "2"}
SPREAD = {"median": 1e-3, "least": 1e-3, "most": 2e-3, "repeats": 3}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stores a result where the page looks for them."""
    monkeypatch.setattr(benchmark_results, "RESULTS", tmp_path)

    def store(name: str, **content: object) -> None:
        stored = {"what": "a step", "machine": MACHINE, "date": "2026-01-01T00:00:00Z", **content}
        (tmp_path / f"{name}.json").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.json").write_text(json.dumps(stored))

    return store


def whole_run(store: Callable[..., None], name: str, mrr: float, **settings: object) -> None:
    quality = {"mrr": mrr, "hits@10": mrr}
    figures = {"training_seconds": 5.0, "microseconds_a_step": 7.0, "validation_seconds": 0.1, "selected_epoch": 500}
    figures["steps"] = settings.pop("steps", 678_500)  # type: ignore[assignment]
    figures["test"] = {"standard": quality, "paper": quality}  # type: ignore[assignment]
    shared = {"data": "WN18RR", "model": "murp", "dim": 40, "epochs": 500, "validate_every": 50, "engine": "triton"}
    store(name, settings={**shared, **settings}, figures=figures)


class TestEveryEngineHasItsQuality:
    """The MRR of a step's row is that of a stored run by the same engine, or the row says that there is none."""

    def test_the_run_of_the_same_engine_model_and_dimension(self, store: Callable[..., None]) -> None:
        whole_run(store, "gpu_wn18rr-murp-d40", 0.465)
        whole_run(store, "gpu_wn18rr-murp-d200", 0.473, dim=200)
        whole_run(store, "gpu_fb15k-237-mure-d40", 0.3, model="mure", data="FB15k-237")
        reached = benchmark_training.quality
        assert reached("murp", 40, "triton", "a GPU") == "[.465](../results/gpu_wn18rr-murp-d40.json)"
        assert reached("murp", 40, "triton", "a CPU") == "[.465](../results/gpu_wn18rr-murp-d40.json) on a GPU"
        assert reached("mure", 40, "triton", "a GPU") == "none stored"
        assert reached("murp", 40, "torch compiled", "a GPU") == "none stored"
        assert reached("murp", 40, "geoopt, dense", "a GPU") == "not trained"

    def test_a_long_run_by_the_torch_engine_is_a_compiled_one(self, store: Callable[..., None]) -> None:
        whole_run(store, "gpu_wn18rr-murp-d40-long", 0.466, engine="torch", steps=benchmark_training.COMPILED_AFTER + 1)
        assert "[.466]" in benchmark_training.quality("murp", 40, "torch", "a GPU")  # the same mathematics
        assert "[.466]" in benchmark_training.quality("murp", 40, "torch compiled", "a GPU")
        assert any("are not compiled" in part for part in benchmark_training.gpu_runs())
        whole_run(store, "gpu_wn18rr-murp-d40-long", 0.4, engine="torch", steps=benchmark_training.COMPILED_AFTER)
        assert "[.400]" in benchmark_training.quality("murp", 40, "torch", "a GPU")
        assert not any("are not compiled" in part for part in benchmark_training.gpu_runs())

    def test_the_longest_run_on_the_same_device(self, store: Callable[..., None]) -> None:
        for name, device, epochs, mrr in (
            ("a", "a CPU", 100, 0.4),
            ("b", "a CPU", 500, 0.46),
            ("c", "a GPU", 900, 0.5),
        ):
            config = {"data": "WN18RR", "model": "murp", "dim": 40, "epochs": epochs}
            metrics = {"test": {"standard": {"mrr": mrr}}}
            here = {"engine": "numba", "device": device}
            store(name, config=config, environment=here, selected_epoch=1, metrics=metrics)
        assert benchmark_training.quality("murp", 40, "numba", "a CPU") == "[.460](../results/b.json)"

    def test_a_comparison_that_was_not_made_is_named(self, store: Callable[..., None]) -> None:
        store("gpu_step", settings={}, figures={"seconds_a_step": {"torch_compiled_murp_d40": SPREAD}})
        page = benchmarks_page.page()
        assert "| MuRP d=40, torch compiled | 1.00 ms (1.00 ms to 2.00 ms) | none stored |" in page
        assert "Not measured on a GPU: geoopt and PyKEEN" in page


def test_a_run_that_was_validated_once_says_so(store: Callable[..., None]) -> None:
    whole_run(store, "gpu_wn18rr-murp-d40", 0.465)
    assert "Validated only once" not in benchmarks_page.page()
    whole_run(store, "gpu_fb15k-237-murp-d40", 0.3, data="FB15k-237", validate_every=500)
    page = benchmarks_page.page()
    assert "epoch 500, of 10 validated" in page
    assert "Validated only once, at the end: MuRP d=40, FB15k-237." in page


def test_steps_beyond_the_papers_have_their_bars_and_their_tables(store: Callable[..., None]) -> None:
    second = {"median": 2e-4, "least": 1e-4, "most": 3e-4, "repeats": 3}
    steps = {
        name: {"seconds_a_step": {"ours": second, "plain PyTorch": {**second, "median": 1e-3}}, "times_faster": 5.0}
        for name in (benchmark_bars.ROTATION, benchmark_bars.MATRICES)
    }
    size = {"seconds_a_step": second, "memory_over_parameters": 3.0, "memory_is": "peak allocated"}
    state = {name: {"by": {"41": size, "1000": size}, "ratio": 1.5} for name in ("adam", "row-adagrad")}
    store("gpu_any_model", figures={"steps": steps, "state": state})
    assert "Where a step on the CPU goes" not in benchmarks_page.page()
    steps[benchmark_bars.ROTATION] |= {"seconds_of_own_loops": {"_adam": 1e-4, "_rows": 5e-5}}
    parts = ("scores and gradients", "scores", "four products at the processor's peak")
    bounds = {name: {**second, "median": 1e-4 * (3 - place)} for place, name in enumerate(parts)}
    steps[benchmark_bars.MATRICES] |= {"seconds_of_own_loops": {"_passed": 1.5e-4}, "bounds": bounds}
    ways = {"ours": second, "plain PyTorch": second, "blocks by autograd": second}
    curved = {"murp": {"seconds": ways, "times_faster": 3.0}}
    store("cpu_any_model", figures={"steps": steps, "state": state, "curved": curved})
    text = "\n".join(benchmarks_page.page().splitlines())
    assert "batch 500, 250 negatives, d=40 | 150 µs or less | 200 µs | no |" in text
    assert "Adagrad, DURA | 200 µs or less | 200 µs | yes |" in text
    assert "step with Adam at 10 million entities against 41 thousand | 1.30 times or less | 1.50 times | no |" in text
    assert "memory with Adam against the parameters | 3.1 times or less | 3.0 times | yes |" in text
    assert "1.00 ms (100 µs to 300 µs) | 5.0 times |" in text
    assert f"| {benchmark_bars.ROTATION} | 200 µs | 150 µs | – | – | – |" in text
    assert f"| {benchmark_bars.MATRICES} | 200 µs | 150 µs | 300 µs | 200 µs | 100 µs |" in text
    assert "| CPU: murp | 200 µs (100 µs to 300 µs) | 200 µs (100 µs to 300 µs) |" in text
    assert "| GPU: row-adagrad, 1,000 | 200 µs (100 µs to 300 µs) | 3.0 times (peak allocated) |" in text


def test_what_was_scaled_or_measured_once_says_so(store: Callable[..., None]) -> None:
    seconds = {"murp": SPREAD, "murp, one query at a time": SPREAD}
    store("cpu_evaluation", settings={"queries": 100}, figures={"seconds": seconds, "times_faster": 1.0})
    store(
        "gpu_evaluation",
        settings={"queries": 100},
        figures={"seconds": {"murp": SPREAD}, "textbook_seconds_a_query": SPREAD},
    )
    text = "\n".join(benchmark_uses.evaluations())
    assert "| CPU: MuRP | 1.00 ms" in text
    assert "| CPU: MuRP, one query at a time (scaled) | 1.00 ms" in text
    assert "| GPU: MuRP, one query at a time (scaled) | 100 ms (100 ms to 200 ms)" in text
    assert benchmark_results.spread({**SPREAD, "repeats": 1}) == "1.00 ms (once)"


def test_hierarchies_stand_in_the_order_of_their_dimensions(store: Callable[..., None]) -> None:
    for dim in (5, 10, 20):
        reached = {"map": 0.8, "mean_rank": 5.0}
        case = {**reached, "untrained": reached, "published": None, "seconds": 1.0}
        figures = {"nodes": 10, "pairs": 20, "reconstruction": {f"poincare d={dim}": case}}
        store(f"hierarchy_poincare_d{dim}", settings={}, figures=figures)
    text = "\n".join(benchmark_quality.hierarchies())
    assert re.findall(r"poincare d=(\d+)", text) == ["5", "10", "20"]


def test_new_entities_of_one_graph_leave_the_bars_of_the_other_open(store: Callable[..., None]) -> None:
    shares = {"data": "WN18RR", "share_of_mrr": 0.95, "share_of_seconds": 0.02}
    for name in ("gpu_extending_d200", "gpu_extending"):
        store(name, settings={}, figures=[shares])
    text = "\n".join(benchmark_bars.bars())
    assert "| new entities, WN18RR, MRR against a whole training's, best model | 0.900 or more | 0.950 | yes |" in text
    assert (
        "FB15k-237, MRR against a whole training's, best model | 0.900 or more | not measured | not measured |" in text
    )
    assert benchmark_bars.headline().startswith("**1 of 2 limits are met.**")


def test_a_service_and_a_search_have_their_bars(store: Callable[..., None]) -> None:
    wait = {"wait_ms": {"median": 1.0, "p99": 2.0, "most": 3.0}, "requests": 1000}
    paced = {**wait, "errors": 0, "memory_mib": {"before": 100, "after": 110}}
    store("serve_load", settings={}, figures={"paced": paced, "replaced": {**wait, "errors": 10}})
    seconds = {"grid": 100.0, "tune": 99.0}
    store("tuning_nell", settings={}, figures={"grid": {"mrr": 0.2}, "tune": {"mrr": 0.22}, "seconds": seconds})
    text = "\n".join(benchmark_bars.bars())
    assert "for a minute: share answered | 1.000 or more | 1.000 | yes |" in text
    assert "while the run is replaced: share answered | 1.000 or more | 0.990 | no |" in text
    assert "against before | 1.05 times or less | 1.10 times | no |" in text
    assert (
        "tuning, NELL-995-h100, best MRR on valid against the grid's | 1.00 times or more | 1.10 times | yes |" in text
    )
    assert "tuning, NELL-995-h100, time against the grid's | 1.00 times or less | 0.99 times | yes |" in text


def test_large_graphs_have_their_sections_as_far_as_they_were_measured(store: Callable[..., None]) -> None:
    assert benchmark_scale.rows_by_table_size() == benchmark_scale.whole_run_at_scale() == []
    place = {"table_bytes": 100, "bytes_in_large_pages": 90, "seconds_by_rows": {"100000": SPREAD, "10000000": SPREAD}}
    short = {**place, "bytes_in_large_pages": 0, "seconds_by_rows": {"100000": SPREAD}}
    by_place = {"in host memory, pages of 2 MB": place, "in host memory, pages of 4 KB": short}
    store("gpu_scale_rows", settings={}, figures={"row_bytes": 160, "rows": 6656, "by_place": by_place})
    text = "\n".join(benchmark_scale.rows_by_table_size())
    assert "6,656 of 160 bytes (1.06 MB)" in text
    assert "| 1.6 GB | 1.00 ms (1.00 ms to 2.00 ms) | – |" in text
    assert "90% (in host memory, pages of 2 MB)" in text

    graph = {"entities": 300, "relations": 3, "train": 1800, "valid": 100, "test": 100}
    settings = {"model": "murp", "dim": 4, "objective": "softmax", "optimizer": "adam", "batch_size": 8, "negatives": 2}
    figures = {"finished": False, "graph": graph, "reading": {"reading": 200.0}, "seconds": {"opening": 1.0}}
    store("gpu_scale_whole", settings=settings, figures=figures)
    text = "\n".join(benchmark_scale.whole_run_at_scale())
    assert "300 entities and 2,000 facts" in text
    assert "was cut off" in text
    assert "| reading (apart) | 200 s |" in text
    assert "| 600 s or less | not measured | not measured |" in "\n".join(benchmark_bars.bars())
    assert benchmark_bars.headline() == "", "what was not reached is no limit that is met"
    kin = {
        "distance_by_levels_to_the_common_ancestor": {"1": SPREAD, "2": SPREAD},
        "share_with_a_sibling_nearer_than_the_farthest_kin": 0.95,
        "share_of_parents_nearer_to_the_origin": 0.7,
        "part_of": {"hits@10": 0.6, "chance": {"hits@10": 0.02}},
        "learned": True,
    }
    test = {"candidates": 500, "queries": 200, "mrr": 0.25, "hits@10": 0.5, "intervals": {"mrr": [0.2, 0.3]}}
    figures |= {"finished": True, "test": test, "hierarchy": kin, "seconds_without_reading": 300.0}
    figures |= {"epoch_seconds": 30.0, "steps": 225, "microseconds_a_step": 90.0}
    store("gpu_scale_whole", settings=settings, figures=figures)
    text = "\n".join(benchmark_scale.whole_run_at_scale())
    assert "was cut off" not in text
    assert "MRR 0.2500 (95 % interval 0.2000 to 0.3000)" in text
    assert "| of training, the epoch alone | 30.0 s, 225 steps of 90.0 µs |" in text
    assert "**Yes**" in text
    assert "| 600 s or less | 300 s | yes |" in "\n".join(benchmark_bars.bars())


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (9.313e-6, "9.31 µs"),
        (1.2e-3, "1.20 ms"),
        (0.0304, "30.4 ms"),
        (6.4, "6.40 s"),
        (387.9, "388 s"),
        (1e-8, "0.0100 µs"),
        (0.9996, "1.00 s"),
        (99.99, "100 s"),
    ],
)
def test_times_have_their_unit(seconds: float, shown: str) -> None:
    assert benchmark_results.time(seconds) == shown


def test_every_bar_has_its_reason() -> None:
    explained = {result for _, results, _ in benchmark_bars.WHY for result in results}
    assert explained == {bar.result for bar in benchmark_bars.BARS}


def test_fused_gradients_of_ranks_stand_beside_those_of_autograd(store: Callable[..., None]) -> None:
    case = {
        "work_a_step_of_a_rank": {"torch": SPREAD, "numba": SPREAD},
        "fused, in times of autograd": 0.5,
        "greatest relative difference of a loss": 1.2e-7,
    }
    figures = {"batch 1024, ranks 1": case, "batch 1024, losses and MRR of 1 and 4 ranks bit for bit": True}
    store("distributed_fused_cpu", settings={"dim": 40, "data": "WN18RR", "negatives": 50}, figures=figures)
    text = "\n".join(benchmark_uses.ranks())
    assert "| batch 1024, ranks 1 |" in text
    assert "| 0.50 |" in text
    assert "1e-07 at most" in text


def test_a_target_is_shown_for_the_graph_that_it_is_of(store: Callable[..., None]) -> None:
    """A stored result of the other graph has it, too; new ones have none."""

    def stored(name: str, data: str, target: float | None, seconds: float | None) -> str:
        run = {"seconds": 6.0, "test_mrr_standard": 0.35, "seconds_to_target": seconds}
        store(name, settings={"data": data, "target": target}, figures={"some": [run]})
        return "\n".join(benchmark_uses.time_to_quality())

    other = "gpu_time_to_quality_fb15k-237"
    row = "some | 1 | 6.00 s | 0.350 |"
    assert f"| GPU, WN18RR: {row} 0.46: 3.00 s |" in stored("gpu_time_to_quality", "WN18RR", 0.46, 3.0)
    assert f"| CPU, WN18RR: {row} 0.46: – |" in stored("cpu_time_to_quality", "WN18RR", 0.46, None)
    assert f"| GPU, FB15k-237: {row} – |" in stored(other, "FB15k-237", 0.46, None)
    assert f"| GPU, FB15k-237: {row} – |" in stored(other, "FB15k-237", None, None)
    assert f"| GPU, FB15k-237: {row} 0.34: 2.00 s |" in stored(other, "FB15k-237", 0.34, 2.0)


def test_the_work_of_a_rank_is_told_part_by_part(store: Callable[..., None]) -> None:
    def case(work: float, messages: float) -> dict[str, Any]:
        spread = {"median": work, "least": work, "most": work, "repeats": 3}
        names = ("seconds_a_step", "work_a_step_of_a_rank", "system_work_a_step_of_a_rank")
        parts = {"gradients": spread, "messages": {**spread, "median": messages}}
        sizes = dict.fromkeys(("bytes_a_step", "bytes_a_step_computed"), 1e6)
        alone = {"work_a_step_of_a_rank_to_send_alone": spread}
        return {**dict.fromkeys(names, spread), **sizes, **alone, "work_a_step_of_a_rank_by_part": parts}

    compared = {
        "losses and MRR of 1, 2 and 4 ranks bit for bit": True,
        "work of a rank at 4, in quarters of one": 1.2,
        "two ranks, in times of one process on two threads": 0.9,
    }
    settings = {"model": "murp", "dim": 40, "data": "WN18RR", "batch_size": 64, "negatives": 5}
    store(
        "distributed_cpu",
        settings=settings,
        figures={"1": case(0.08, 0.008), "4": case(0.03, 0.001), "compared": compared},
    )
    text = "\n".join(benchmark_uses.ranks())
    assert "a quarter of one process's work is 20.0 ms. Of the 10.0 ms between them" in text
    assert "| gradients | 20.0 ms | 30.0 ms | 10.0 ms |" in text
    assert "| messages | 2.00 ms | 1.00 ms | −1.00 ms |" in text


def test_two_results_of_one_processor_are_not_mixed_up(store: Callable[..., None]) -> None:
    for name in ("cpu_evaluation", "amd/cpu_evaluation"):
        store(name, settings={}, figures={"times_faster": 400.0})
    with pytest.raises(SystemExit, match="two results cpu_evaluation come from"):
        benchmarks_page.page()
