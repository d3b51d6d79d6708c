"""Recipes: what they complete, what they reached, and how they are listed."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

import murp
from murp import registry
from murp.cli.embed import SETTINGS as EMBEDDED
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError
from murp.graph.shape import Shape
from murp.models.distmult import DistMult
from murp.objectives.softmax import Softmax
from murp.recipes import RECIPES, Result, completed, decide, results
from murp.settings import setting

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_run(name: str) -> None:
    config = Config(**completed({"recipe": name}))
    assert {key: getattr(config, key) for key in RECIPES[name].settings} == dict(RECIPES[name].settings)


def test_the_defaults_are_the_papers() -> None:
    assert Config(**completed({})) == Config(**completed({"recipe": "paper"})) == Config()


@pytest.mark.parametrize("name", registry.MODELS)
def test_what_suits_a_model_are_settings_that_it_has(name: str) -> None:
    usual = registry.find("model", name).usual
    config = Config(**completed({"model": name}))
    assert {key: getattr(config, key) for key in usual} == dict(usual)


def test_what_the_user_says_comes_first() -> None:
    chosen = completed({"model": "complex", "optimizer": "sgd", "objective": "bernoulli", "negatives": 7, "lr": 3.0})
    config = Config(**chosen)
    assert (config.optimizer, config.objective, config.negatives, config.lr) == ("sgd", "bernoulli", 7, 3.0)


def rate(**values: Any) -> float:
    """The learning rate of a run."""
    return float(Config(**completed(values)).lr)


def test_a_learning_rate_counts_with_the_optimizer_that_it_was_chosen_for() -> None:
    """Of a recipe or a model it is left out beside another optimizer; then the next one counts."""
    assert rate(model="transe") == 0.003
    assert rate(model="transe", optimizer="adagrad") == 0.1
    assert rate(model="transe", optimizer="adagrad", lr=7.0) == 7.0
    assert rate(recipe="wn18rr") == 0.002
    assert rate(recipe="wn18rr", optimizer="adagrad") == 0.1
    assert rate(recipe="paper", optimizer="adam") == 0.001


def test_a_learning_rate_of_sgd_counts_with_the_objective_that_it_was_chosen_for() -> None:
    """Gradients are of another size under another objective; Adam and Adagrad divide by it."""
    assert rate(model="mure", objective="bernoulli") == 50.0
    assert rate(recipe="paper", objective="margin") == 1.0
    assert rate(model="transe", optimizer="sgd") == 1.0
    assert rate(model="transe", optimizer="sgd", objective="bernoulli") == 50.0
    assert rate(model="transe", objective="margin") == 0.003
    assert rate(model="mure", objective="margin", optimizer="adam") == 0.001
    assert rate(model="test_recipes:Own") == 20.0
    assert rate(model="test_recipes:Own", objective="margin") == 1.0


class Own(DistMult):
    usual: ClassVar[Mapping[str, Any]] = {"lr": 20.0}


class Misspelt(Own):
    usual: ClassVar[Mapping[str, Any]] = {"objektive": "bernoulli"}


class OfOthers(Own):
    """Names settings of parts that are not chosen with it."""

    usual: ClassVar[Mapping[str, Any]] = {"temperature": 1.0, "regularizer_weight": 0.1, "beta1": 0.5}


class OfItsObjective(Own):
    usual: ClassVar[Mapping[str, Any]] = {"objective": "test_recipes:Sharper", "sharpness": 2.0}


class Sharper(Softmax):
    sharpness: float = setting(1.0, "of no other part")
    usual: ClassVar[Mapping[str, Any]] = {"lr": 1.0, "sharpnes": 3.0}


def test_usual_names_settings() -> None:
    words = r"model test_recipes:Misspelt has 'objektive' in usual, which is not a setting\. Did you mean 'objective'\?"
    with pytest.raises(ConfigError, match=words) as told:
        completed({"model": "test_recipes:Misspelt"})
    assert told.value.setting == "model"
    words = r"objective test_recipes:Sharper has 'sharpnes' in usual, .* Did you mean 'sharpness'\?"
    with pytest.raises(ConfigError, match=words) as told:
        completed({"objective": "test_recipes:Sharper"})
    assert told.value.setting == "objective"


def test_usual_may_name_settings_of_parts_that_are_not_chosen() -> None:
    assert completed({"model": "test_recipes:OfOthers"}) == {"model": "test_recipes:OfOthers"}
    left = completed({"model": "test_recipes:OfItsObjective", "objective": "margin"})
    assert "sharpness" not in left


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_part_of_a_recipe_can_be_replaced(recipe: str) -> None:
    """Its settings of the part that is replaced go with it; those that the user gives are checked as always."""
    refusals = []
    for kind, places in registry.KINDS.items():
        for name in places:
            try:
                Config(**completed({"recipe": recipe, kind: name}))
            except ConfigError as error:  # of parts that do not go together
                refusals.append(str(error))
    assert len(refusals) < sum(map(len, registry.KINDS.values()))
    assert not [text for text in refusals if re.search("is a setting of|unknown setting", text)]
    with pytest.raises(ConfigError, match="is a setting of regularizer"):
        Config(**completed({"recipe": recipe, "regularizer": "none", "regularizer_weight": 0.1}))


def test_an_unknown_recipe_is_refused_with_what_is_close() -> None:
    with pytest.raises(ConfigError, match=r"recipe 'papr' is not known\. Did you mean paper\?"):
        completed({"recipe": "papr"})


@pytest.mark.parametrize(("name", "found"), [(name, one) for name in RECIPES for one in results(name)], ids=str)
def test_what_a_recipe_reached_is_what_the_stored_results_say(name: str, found: Result) -> None:
    stored = [json.loads((ROOT / file).read_text()) for file in found.files]
    mrr = [one["figures"]["test"][found.protocol]["mrr"] for one in stored]
    assert (found.mrr, found.seeds) == (pytest.approx(statistics.fmean(mrr), abs=1e-5), len(mrr))
    recipe = Config(**completed({"recipe": name})).to_dict() | dict(found.with_settings)
    for one in stored:
        settings = one["settings"]  # of before there were other objectives and optimizers, too
        assert (Path(settings["data"]).name, settings["dim"]) == (found.data, found.dim)
        known = [key for key in RECIPES[name].settings if key in settings]
        assert {key: settings[key] for key in known} == {key: recipe[key] for key in known}


def test_auto_is_for_training_alone() -> None:
    with pytest.raises(ConfigError, match="recipe auto decides by a graph"):
        completed({"recipe": "auto"})


def of(density: float, chained: float, facts: int = 1_000_000) -> Shape:
    return Shape(round(facts / density), 10, facts, density, chained)


@pytest.mark.parametrize(
    ("shape", "recipe", "words"),
    [
        (
            of(2.1, 0.42),
            "wn18rr",
            "sparse and hierarchical (2.1 facts an entity, 42% of them in chains of one relation).",
        ),
        (of(2.4, 0.23), "fb15k-237", "sparse and not hierarchical"),
        (of(18.8, 0.04), "fb15k-237", "dense and not hierarchical"),
        (of(38.6, 0.35), "fb15k-237", "dense and hierarchical"),
    ],
)
def test_auto_decides_by_density_and_hierarchy_and_says_why(shape: Shape, recipe: str, words: str) -> None:
    choice = decide(shape)
    assert (choice.recipe, choice.settings) == (recipe, {})
    assert f"recipe {recipe}, since the graph is {words}" in choice.why


def test_auto_makes_batches_smaller_where_a_graph_is_small() -> None:
    choice = decide(of(38.6, 0.35, facts=5216))
    assert choice.settings == {"batch_size": 130}
    assert choice.why.endswith("Batches of 130 instead of 1024, since it has only 5,216 facts.")
    assert decide(of(2, 0.3, facts=60)).settings == {"batch_size": 64}


def test_a_run_with_recipe_auto_keeps_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("".join(f"a{i}\tr\ta{j}\n" for i in range(14) for j in range(14)))
    words = ["--recipe", "auto", "--data", str(facts), "--epochs", "1", "--dim", "4", "--device", "cpu"]
    assert main(["train", *words, "--out", str(tmp_path / "run"), "--regularizer-weight", "0.07"]) == 0
    err = capsys.readouterr().err
    why = next(line for line in err.splitlines() if line.startswith("murp: recipe fb15k-237, since the graph is dense"))
    run = murp.load(tmp_path / "run")
    assert (run.config.model, run.config.regularizer, run.config.epochs) == ("rescal", "dura", 1)
    assert (run.config.batch_size, run.config.regularizer_weight) == (64, 0.07)
    assert main(["info", str(tmp_path / "run")]) == 0
    assert f"recipe auto  {why.removeprefix('murp: ')}" in capsys.readouterr().out
    assert main(["analyze", str(facts), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"]["why"] == why.removeprefix("murp: ")
    again = murp.train(run.graph, recipe="auto", epochs=1, dim=4, device="cpu", out=tmp_path / "again")
    assert again.config.model == "rescal"


def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    text = capsys.readouterr().out
    assert "paper: MuRP as published" in text
    assert re.search(r"paper +WN18RR +40 +0\.46\d +– +1 +standard +epochs 500", text)
    assert main(["recipes", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == list(RECIPES)
    assert listed["paper"]["results"][0]["seeds"] == 1
    assert listed["paper"]["settings"]["lr"] == 50.0


def test_help_shows_the_settings_of_what_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown, hidden in (
        (["--model", "rotate"], "settings of model rotate", "--curvature"),
        (["--model", "murp"], "--curvature", "settings of model rotate"),
        (["--objective=self-adversarial"], "--temperature", "--label-smoothing"),
        (["--objective", "k-vs-all"], "--label-smoothing", "--negatives"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["train", *words, "--help"])
        text = capsys.readouterr().out
        assert stop.value.code == 0
        assert shown in text
        assert hidden not in text


@pytest.fixture
def defaults(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    """What ``--help`` says after "default:", by setting; nothing if it says none."""
    monkeypatch.setenv("COLUMNS", "10000")  # no line is broken

    def shown(*words: str) -> dict[str, str]:
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        lines = re.sub(r"\n {10,}", " ", capsys.readouterr().out).splitlines()
        options = [line.partition("; default: ") for line in lines if line.startswith("  --")]
        return {option.split()[0].removeprefix("--").replace("-", "_"): default for option, _, default in options}

    return shown


def values(shown: Mapping[str, str]) -> dict[str, str]:
    """The defaults without what they are of."""
    return {name: re.sub(r" \(of .*\)$", "", default) for name, default in shown.items()}


@pytest.mark.parametrize(
    ("kind", "name"), [*(("model", name) for name in registry.MODELS), *(("recipe", name) for name in RECIPES)]
)
def test_the_defaults_of_help_are_those_of_the_run(
    kind: str, name: str, defaults: Callable[..., dict[str, str]]
) -> None:
    config = Config(**completed({kind: name}))
    usual = {setting: "" if value is False else str(value) for setting, value in config.to_dict().items()}
    shown = values(defaults("train", f"--{kind}", name))
    usual.pop(kind, None)
    assert {name: shown[name] for name in usual} == usual


@pytest.mark.parametrize(
    "words", [[], ["--model", "lorentz"], ["--objective", "rank"], ["--optimizer", "sgd", "--objective", "rank"]]
)
def test_the_defaults_of_help_are_those_of_an_embedding(
    words: list[str], defaults: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    shown = values(defaults("embed", *words))
    tree, run = tmp_path / "tree.tsv", tmp_path / "run"
    tree.write_text("b\tis\ta\nc\tis\ta\nd\tis\tb\n")
    assert main(["embed", *words, "--data", str(tree), "--out", str(run), "--quiet"]) == 0
    used = {name: str(value) for name, value in murp.load(run).config.to_dict().items()}
    named = {word.removeprefix("--") for word in words}
    options = [name for name in ("model", *EMBEDDED) if name in used and name not in named]
    assert {name: shown[name] for name in options} == {name: used[name] for name in options}
    assert not [name for name in EMBEDDED if shown[name] and name not in used]


def test_what_is_not_trained_has_no_defaults(defaults: Callable[..., dict[str, str]]) -> None:
    shown = defaults("embed", "--model", "layout")
    assert shown["scale"]
    assert not [name for name in EMBEDDED if shown[name]]


RUN_OF_FORMAT_1 = ROOT / "tests" / "compat" / "format-1" / "run"


@pytest.mark.parametrize(
    "words", [None, ["--model", "rotate", "--seed", "3"], ["--recipe", "fb15k-237", "--lr", "0.3"]]
)
def test_the_defaults_of_help_are_those_of_the_run_to_continue(
    words: list[str] | None, defaults: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    path = RUN_OF_FORMAT_1 if words is None else tmp_path / "run"
    if words is not None:
        toy = ["--dim", "4", "--epochs", "1", "--validate-every", "0", "--device", "cpu", "--quiet"]
        assert main(["train", *words, *toy, "--out", str(path)]) == 0
    config = murp.load(path).config
    used = {
        name: "" if value == "" or value is False else f"{value} (of this run)"
        for name, value in config.to_dict().items()
    }
    for options in (["--resume", str(path)], [f"--resume={path}", "--epochs", "9"]):
        shown = defaults("train", *options)
        assert {name: shown[name] for name in used} == used


@pytest.mark.parametrize(
    "options",
    [["--objective", "self-adversarial", "--temperature", "2"], ["--regularizer", "dura", "--dura-balance", "2"]],
)
def test_other_parts_are_refused_when_a_run_is_continued(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(RUN_OF_FORMAT_1, tmp_path / "run")
    assert main(["train", "--resume", str(run), *options]) != 0
    assert f"leave out {options[0]}, {options[2]}." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nowhere", ""),
        ("config.toml", ""),
        ("environment.json", '{"format": 999}'),
        ("config.toml", "model ="),
        ("config.toml", "model = 'nowhere.to.be:Found'"),
        ("config.toml", "dim = 'x'"),
    ],
)
def test_help_shows_no_defaults_of_a_run_that_cannot_be_read(
    name: str, text: str, defaults: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    run = shutil.copytree(RUN_OF_FORMAT_1, tmp_path / "run")
    shown = defaults("train", "--resume", str(run))
    assert shown["lr"]
    if text:
        (run / name).write_text(text)
    else:
        run = run / name
    shown = defaults("train", "--resume", str(run))
    assert {"data", "model", "epochs"} <= shown.keys()
    assert not [setting for setting in Config.settings if shown[setting]]


def test_help_says_what_a_default_is_of(defaults: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    for words, name, default in (
        (["train"], "lr", "50.0"),
        (["train", "--model", "rotate"], "lr", "0.003 (of rotate)"),
        (["train", "--model=rotate"], "model", "murp"),
        (["train", "--model", "rotate", "--objective", "bernoulli"], "objective", "self-adversarial (of rotate)"),
        (["train", "--model", "rotate", "--objective", "self-adversarial"], "dim", "40"),
        (["train", "--recipe", "wn18rr"], "lr", "0.002 (of recipe wn18rr)"),
        (["train", "--recipe", "wn18rr"], "model", "roth-stretch (of recipe wn18rr)"),
        (["train", "--recipe", "auto"], "lr", "0.002 (of recipe wn18rr), 0.1 (of recipe fb15k-237)"),
        (["embed"], "model", "poincare"),
        (["embed"], "lr", "1.0 (of poincare)"),
        (["embed"], "dim", "40"),
        (["embed", "--objective", "rank"], "objective", "softmax (of poincare)"),
        (["tune", "--model", "rotate"], "lr", "0.003 (of rotate)"),
        (["tune", "--space", "model=mure,rotate"], "batch_size", "500 (of rotate), else 128"),
        (["sweep", "--model", "rotate", "mure"], "batch_size", "500 (of rotate), else 128"),
        (["sweep", "--model", "rotate", "mure"], "lr", "0.003 (of rotate), 50.0 (of sgd)"),
        (["sweep", "--model", "rotate", "mure"], "temperature", "1.0 (of rotate)"),
        (["sweep", "--model", "mure", "murp"], "batch_size", "128"),
        (["sweep", "--model", "complex", "distmult"], "batch_size", "1000 (of complex, distmult)"),
        (["sweep", "--optimizer", "sgd", "adam"], "lr", "50.0 (of sgd), 0.001 (of adam)"),
    ):
        assert defaults(*words)[name] == default, words
    file = tmp_path / "100%.toml"
    file.write_text("model = 'rotate'\nlr = 20\ntensorboard = true\ncolumns = ''\nno_header = false\ndim = 'x'\n")
    shown = defaults("train", "--config", str(file))
    assert {name: shown[name] for name in ("model", "lr", "negatives", "tensorboard", "columns", "no_header")} == {
        "model": f"rotate (of {file})",
        "lr": f"20.0 (of {file})",
        "negatives": "250 (of rotate)",
        "tensorboard": f"True (of {file})",
        "columns": "",
        "no_header": "",
    }
    assert defaults("train", "--config", str(file), "--model", "murp")["batch_size"] == "128"
