"""Models that are not ours: by the place of a class, by an entry point; and every model through what reads runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from murp import registry
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError
from murp.exchange import export, import_run
from murp.exchange.contents import score_formula
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.models.distmult import DistMult
from murp.models.model import Table
from murp.testing import RUN, check_model
from murp.training import sweep, train
from murp.training.progress import Silent

OWN = '''
from murp.models.distmult import DistMult
from murp.models.model import Model, Query, Table
from murp.settings import setting


class Mine(DistMult):
    """Mine: φ = Σᵢ sᵢ rᵢ oᵢ, and more."""

    sharpness: float = setting(1.0, "how sharp it is", above=0)
    usual = {"lr": 3.0}


class NoModel:
    pass


class NoQuery(Model):
    def declare(self):
        return (Table("entity", "entity", (self.dim,)),)


class NoEnding(NoQuery):
    def query(self, subject, relation, shared):
        return Query((subject["entity"],))


class NoTile(NoEnding):
    products = False


class NoEntity(DistMult):
    def declare(self):
        return (Table("points", "entity", (self.dim,)), Table("relation", "relation", (self.dim,)))


class Clash(DistMult):
    epochs: int = setting(3, "of mine")


class Typo(DistMult):
    def query(self, subject, relation, shared):
        return Query((subject["entitty"],))
'''

FAILING: dict[str, Any] = {
    "model": "own_models_of_a_test:Typo", "objective": "softmax", "dim": 4, "epochs": 2, "device": "cpu"
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on Python's path with ``own_models_of_a_test.py``, and a distribution that names its class."""
    (tmp_path / "own_models_of_a_test.py").write_text(OWN, encoding="utf-8")
    about = tmp_path / "somebodys_models-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-models\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[murp.models]\nmine = own_models_of_a_test:Mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own_models_of_a_test", None)


@pytest.mark.parametrize("name", ["own_models_of_a_test:Mine", "mine"])
def test_a_model_of_ones_own_is_chosen_by_its_place_or_its_entry_point(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert registry.find("model", name).__name__ == "Mine"
    assert "mine" in registry.names("model")
    config = Config(model=name, sharpness=2)
    assert config.sharpness == 2.0
    assert "sharpness = 2.0" in config.to_toml()
    assert check_model(name)
    with pytest.raises(SystemExit):
        main(["train", "--model", name, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "how sharp it is" in text
    assert f"default: 3.0 (of {name})" in text


def test_a_package_that_is_installed_meanwhile_is_found(folder: Path) -> None:
    """As by ``%pip install`` in a notebook: packages are looked through again when the folder has changed."""
    assert "other" not in registry.names("model")
    about = folder / "others_models-1.0.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text("[murp.models]\nother = own_models_of_a_test:Mine\n")
    assert "other" in registry.names("model")
    assert registry.find("model", "other").__name__ == "Mine"


def test_what_cannot_be_a_model_is_refused_with_what_to_do(folder: Path) -> None:
    for name, words in (
        ("own_models_of_a_test:NoModel", "is no class of that kind: derive it from murp.models.model.Model"),
        ("murp.optimizers.adam:Adam", "is no class of that kind: derive it from murp.models.model.Model"),
        ("own_models_of_a_test:Zebra", "cannot be imported.*PYTHONPATH=. murp"),
        ("own_models_of_a_test:Mien", r"own_models_of_a_test has no Mien\. Did you mean own_models_of_a_test:Mine\?"),
        ("no_such_module:Mine", "cannot be imported.*PYTHONPATH=. murp"),
        ("min", "is not known. Did you mean mine?"),
        ("own_models_of_a_test:NoQuery", "does not define query: write it as its base class explains"),
        ("own_models_of_a_test:NoEnding", "has no ending: write one, or products = False and tile"),
        ("own_models_of_a_test:NoTile", "has products = False and no tile: write one"),
    ):
        with pytest.raises(ConfigError, match=words):
            Config(model=name)


# What is wrong in a user's file, and what is said of it after "cannot be imported: {folder}".
WRONG_FILES = [
    (
        {"mine": "from murp.settings import setting\n\n\nclass Mine:\n    weight: float = setting(1.0)\n"},
        r"mine.py, line 5: TypeError: setting\(\) missing 1 required positional argument: 'help'\. Correct this line\.",
    ),
    ({"mine": "\nvalue = unknown\n"}, r"mine.py, line 2: NameError: name 'unknown' is not defined\. Correct"),
    ({"mine": "class Mine(:\n"}, r"mine.py, line 1: SyntaxError: invalid syntax\. Correct"),
    ({"mine": "\nint('one')\n"}, r"mine.py, line 2: ValueError: invalid literal"),
    ({"mine": "import math\n\nmath.no\n"}, r"mine.py, line 3: AttributeError: module 'math' has no attribute 'no'"),
    ({"mine": "import json\n\njson.loads('[')\n"}, r"mine.py, line 3: JSONDecodeError: Expecting value"),
    ({"mine": "from murp.models import Modell\n"}, r"mine.py, line 1: ImportError: cannot import name 'Modell'"),
    (
        {"mine": "\nimport no_such_package\n"},
        r"mine.py, line 2: ModuleNotFoundError: No module named 'no_such_package'\. Install no_such_package, or put",
    ),
    ({"mine": "import helper\n", "helper": "\n\n1 / 0\n"}, r"helper.py, line 3: ZeroDivisionError: division by zero"),
    (
        {"mine": "from murp.config import Config\n\nConfig(dim=0)\n"},
        r"mine.py, line 3: ConfigError: dim must be at least 1, not 0\. Correct",
    ),
]


@pytest.mark.parametrize(("files", "words"), WRONG_FILES)
def test_an_error_in_the_file_of_a_model_is_said_with_its_line(
    files: dict[str, str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with pytest.raises(
            ConfigError, match=f"model mine:Mine cannot be imported: {re.escape(str(tmp_path))}.{words}"
        ) as told:
            Config(model="mine:Mine")
    finally:
        for name in files:
            sys.modules.pop(name, None)
    assert told.value.setting == "model"
    assert "PYTHONPATH" not in str(told.value)


@pytest.mark.parametrize(
    "place", ["no_such.module:Mine", "murp.no_such:Mine", ":Mine", ".own:Mine", "math:Mine", "math:"]
)
def test_the_place_of_a_class_is_doubted_if_no_file_is_found_there(place: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be imported: [^/]*\. Name a class as .*PYTHONPATH=") as told:
        Config(model=place)
    assert told.value.setting == "model"


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (
            (Table("entity", "entity", (4,))),
            "a tuple of Table, not Table. Of one table it is (Table(…),), with a comma.",
        ),
        (None, "a tuple of Table, not NoneType."),
        ((("entity", "entity", (4,)),), "a tuple of Table, not a tuple of tuple."),
        ([Table("entity", "entity", (4,)), "relation"], "a tuple of Table, not a list of Table, str."),
    ],
)
def test_what_is_no_tuple_of_tables_is_refused(tables: Any, words: str) -> None:
    class Mine(DistMult):
        def declare(self) -> Any:
            return tables

    with pytest.raises(ConfigError, match=re.escape(f"declare of model Mine must return {words}")):
        Mine(10, 4, 4)


def test_a_table_whose_shape_is_a_number_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"table entity: its shape must be a tuple as \(self\.dim,\) or \(\), not 4\."
    ):
        Table("entity", "entity", 4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"objective": "one-vs-all", "negatives": 50},
            "negatives is a setting of objectives that draw false triples: ",
        ),
        ({"regularizer_weight": 0.1}, "regularizer_weight is a setting of regularizer l2, n3, dura"),
        ({"beta1": 0.5}, "beta1 is a setting of optimizer adam, and not of sgd."),
        ({"beta3": 0.5}, "unknown setting 'beta3'"),
    ],
)
def test_a_setting_of_another_part_is_refused_with_whose_it_is(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Config(**settings)


def test_a_run_whose_model_cannot_be_found_says_how_to_find_it(
    folder: Path, small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "run"
    train(small_tree, out=out, progress=Silent(), model="own_models_of_a_test:Mine", dim=4, epochs=1, **RUN | {"lr": 1})
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(folder)])
    del sys.modules["own_models_of_a_test"]
    assert main(["evaluate", str(out)]) == 1
    assert "PYTHONPATH=." in capsys.readouterr().err


def test_every_command_works_with_a_model_of_ones_own(
    folder: Path, small_tree: KnowledgeGraph, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the guide does not run; it runs train, evaluate, predict, plot, explore --export and export."""
    settings = {**RUN, "model": "own_models_of_a_test:Mine", "dim": 4, "lr": 1, "sharpness": 2.0}
    a, b = folder / "a", folder / "b"
    for seed, out in enumerate((a, b)):
        train(small_tree, out=out, progress=Silent(), **{**settings, "seed": seed, "epochs": 2 - seed})
    for words in (
        ["train", "--resume", b, "--epochs", "2", "--quiet"],
        ["compare", a, b, "--samples", "100"],
        ["analyze", "--run", a],
        ["calibrate", a],
        ["classify", a],
        ["discover", a, "-k", "2"],
        ["plot", a, b, "convergence", "--out", folder / "both.png"],
        ["export", a, "--to", "hub-folder", "--out", folder / "out"],
        ["import", folder / "out", "--out", folder / "back"],
        ["evaluate", folder / "back"],
    ):
        assert main([str(word) for word in words]) == 0, (words, capsys.readouterr().err)
    assert main(["info", str(folder / "back")]) == 0
    assert "own_models_of_a_test:Mine" in capsys.readouterr().out


# One of each kind: no biases and no shared tables, a core tensor, matrices and biases, tangent vectors, tiles, a ball.
KINDS = ["complex", "tucker", "hybonet", "roth", "transe", "murp-matrix"]


@pytest.fixture(scope="module", params=KINDS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, make_tree: object) -> Path:
    out = tmp_path_factory.mktemp("zoo") / "run"
    settings = {**RUN, "model": request.param, "dim": 4 if request.param == "transe" else 6, "validate_every": 1}
    train(make_tree(), out=out, progress=Silent(), epochs=1, **settings)  # type: ignore[operator]
    return out


@pytest.mark.parametrize("to", ["npz", "parquet", "safetensors", "hub-folder"])
def test_every_kind_of_model_comes_back_from_an_export(trained: Path, to: str, tmp_path: Path) -> None:
    from murp.runs import load

    run = load(trained, device="cpu")
    out = tmp_path / (f"out.{to}" if to in ("npz", "safetensors") else "out")
    export(run, to, out)  # type: ignore[arg-type]
    back = import_run(out, tmp_path / "back", None if to == "hub-folder" else str(trained / "graph"))
    assert back.model.parameters.keys() == run.model.parameters.keys()
    for name, values in run.model.parameters.items():
        assert torch.equal(back.model.parameters[name], values), name
    assert back.evaluate("test").mrr == run.evaluate("test").mrr


def test_every_kind_of_model_has_its_pictures_and_its_page(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["--head", "n3", "--relation", "parent"]
    for words in (
        ["plot", trained, "disk", "--out", tmp_path / "all.png"],
        ["plot", trained, "disk", *question, "--out", tmp_path / "disk.png"],
        ["plot", trained, "question", *question, "--out", tmp_path / "question.png"],
        ["explore", trained, "--export", tmp_path / "page.html"],
        ["info", trained],
        ["nearest", trained, "n3"],
        ["predict", trained, *question],
    ):
        assert main([str(word) for word in words]) == 0, capsys.readouterr().err
    assert capsys.readouterr().err == ""


def test_the_explorer_shows_a_question_to_every_kind_of_model(trained: Path) -> None:
    from murp.projection import Points, question
    from murp.runs import load

    model = load(trained, device="cpu").model
    points = Points(model.geometry, model.parameters["entity"])
    for how in ("paper", "distances"):
        seen = question(model, points, 3, 0, how)  # type: ignore[arg-type]
        assert torch.from_numpy(seen.after).isfinite().all()


@pytest.mark.parametrize("name", registry.MODELS)
def test_a_relation_moves_a_subject_of_every_model_to_a_point_of_its_space(name: str) -> None:
    model: Model = registry.find("model", name)(10, 4, 8).initialise(0)
    for table in model.tables:  # a new relation may move nothing
        if table.of == "relation":
            values = model.parameters[table.name]
            noise = torch.linspace(0.001, 0.01, values.numel()).view_as(values)
            model.parameters[table.name] = table.geometry.project(values + noise)
    points = model.parameters["entity"][:1].double()
    moved = model.move_subject(points, model.rows("relation", torch.tensor([1])))
    assert moved.shape == points.shape
    assert moved.dtype == torch.float64
    has_relations = any(table.of == "relation" for table in model.tables)  # those of one hierarchy have none
    assert torch.equal(moved, points) != has_relations
    assert model.geometry.contains(moved.to(model.dtype)).all()  # to the rounding of its parameters


def test_an_export_says_what_the_score_is() -> None:
    said = score_formula(registry.find("model", "complex")(10, 4, 8))
    assert said == "ComplEx: φ = Re Σᵢ sᵢ rᵢ ōᵢ with s, r, o ∈ ℂᵏ, held as d = 2k real numbers"


def test_a_run_folder_without_a_name_of_its_own_has_no_colon(folder: Path) -> None:
    """A colon separates folders in PATH and hosts in scp, and Windows takes none."""
    from murp.runs.default_folder import unused_folder

    config = Config(model="own_models_of_a_test:Mine", data="wordnet-mini", dim=4)
    assert unused_folder(config) == Path("runs/wordnet-mini-own_models_of_a_test.Mine-d4-seed0")


def test_points_need_a_table_of_the_usual_name(folder: Path, small_tree: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"NoEntity declares no table of .* name entity.* tables: points, relation"):
        train(small_tree, out=folder / "run", progress=Silent(), model="own_models_of_a_test:NoEntity", device="cpu")
    assert not (folder / "run").exists()


def test_a_setting_with_the_name_of_another_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"own_models_of_a_test:Clash has settings with names of other .*: epochs\."):
        Config(model="own_models_of_a_test:Clash")


@pytest.mark.parametrize("slices", [0, 2])
def test_of_a_model_that_fails_in_its_first_step_no_run_folder_stays(
    folder: Path, small_tree: KnowledgeGraph, slices: int
) -> None:
    with pytest.raises(KeyError, match="entitty"):
        train(small_tree, out=folder / "run", progress=Silent(), slices=slices, **FAILING)
    assert not (folder / "run").exists()


def test_a_sweep_goes_on_after_a_model_that_failed_in_its_first_step(folder: Path, small_tree: KnowledgeGraph) -> None:
    """The model begins anew with what was corrected; runs that are finished stay."""
    settings = [{**FAILING, "model": f"own_models_of_a_test:{name}"} for name in ("Mine", "Typo")]
    with pytest.raises(KeyError, match="entitty"):
        sweep(small_tree, settings, out=folder / "runs", progress=Silent())
    (finished,) = (folder / "runs").iterdir()
    before = (finished / "last.safetensors").stat().st_mtime_ns
    corrected = sys.modules["own_models_of_a_test"].Mine.query
    sys.modules["own_models_of_a_test"].Typo.query = corrected
    assert [run.state["epoch"] for run in sweep(small_tree, settings, out=folder / "runs", progress=Silent())] == [2, 2]
    assert (finished / "last.safetensors").stat().st_mtime_ns == before
