"""A model may live in any space that geometry offers: it begins, trains and is saved there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from murp.cli.main import main
from murp.exchange import export, import_run
from murp.exchange.contents import contents_of
from murp.geometry import Euclidean, Geometry, Hyperboloid, PoincareBall, Product, Sphere
from murp.models.model import Candidate, Model, Query, Rows, Table
from murp.runs import Run
from murp.testing import RUN, check_model, tree
from murp.training import train
from murp.training.progress import Silent


class Near(Model):
    """φ = b_o - e^{p_r} d(s, o)² in any space."""

    products = False
    space: Geometry

    def declare(self) -> tuple[Table, ...]:
        return (
            Table("entity", "entity", (self.dim,), self.space),
            Table("object_bias", "entity", (), initial="zero", roles=("object",)),
            Table("weight", "relation", ()),
        )

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["entity"],), {"weight": relation["weight"].exp()})

    def tile(self, query: Query, candidate: Candidate) -> Tensor:
        squared = self.space.squared_distance(query.vectors[0], candidate.vectors[0])
        return candidate.numbers["object_bias"] - query.numbers["weight"] * squared


class OnHyperboloid(Near):
    space = Hyperboloid(0.7)


class Globe(Sphere):
    """As a user's own space, which is in no list of ours."""

    name = "globe"


class OnSphere(Near):
    space = Globe(1.5)


class OnProduct(Near):
    space = Product(((PoincareBall(1.0), 2), (Sphere(1.0), 3), (Euclidean(), 3)))


@pytest.mark.parametrize("model", [OnHyperboloid, OnSphere, OnProduct])
def test_a_model_in_any_space_passes_the_battery(model: type[Near]) -> None:
    check_model(model, initial_scale=0.1)


@pytest.fixture(scope="module", params=[OnHyperboloid, OnSphere, OnProduct])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    name = f"{__name__}:{request.param.__name__}"
    out = tmp_path_factory.mktemp("spaces") / "run"
    return train(tree(), out=out, progress=Silent(), epochs=1, **{**RUN, "model": name, "dim": 8, "initial_scale": 0.1})


@pytest.mark.parametrize("to", ["npz", "parquet", "safetensors", "hub-folder"])
def test_its_points_come_back_from_an_export(run: Run, to: str, tmp_path: Path) -> None:
    out = tmp_path / (f"out.{to}" if to in ("npz", "safetensors") else "out")
    export(run, to, out)  # type: ignore[arg-type]
    back = import_run(out, tmp_path / "back", None if to == "hub-folder" else str(run.path / "graph"))
    for name, values in run.model.parameters.items():
        assert torch.equal(back.model.parameters[name], values), name


def test_a_picture_that_there_is_not_is_refused(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["plot", run.path, "disk", "--out", tmp_path / "disk.png"],
        ["explore", run.path, "--export", tmp_path / "page.html"],
    ):
        assert main([str(word) for word in words]) == 1
        assert "there are pictures of the Poincaré ball and of Euclidean space" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert main(["nearest", str(run.path), "n3"]) == 0


def test_an_export_says_which_way_a_space_is_curved(run: Run) -> None:
    about = contents_of(run, None).about
    assert about["curvature"] == run.model.geometry.curvature
