"""Points in host memory (``tables = host``): what has them, what is refused, and that a run with them goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import murp
from murp.config import Config
from murp.engines import refuse_host_tables
from murp.errors import ConfigError
from murp.graph import KnowledgeGraph
from murp.models import MODELS
from murp.models.host_memory import room
from murp.runs import Run
from murp.training.progress import Silent
from murp.training.sharded import refuse
from murp.training.start import configure

SETTINGS: dict[str, Any] = {"dim": 8, "epochs": 4, "lr": 5.0, "batch_size": 16, "negatives": 5, "validate_every": 2}


def test_the_setting_is_kept_and_may_change() -> None:
    config = Config(tables="host")
    assert 'tables = "host"' in config.to_toml()
    assert Config().tables == "device"
    assert "tables" in config.free(), "where a table lies does not decide the weights"
    with pytest.raises(ConfigError, match="device, host"):
        Config(tables="disk")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"model": "transe"}, "knows MuRP and MuRE, no other model"),
        ({"optimizer": "adam"}, "the paper's objective, negatives and optimizer"),
        ({"entity_dropout": 0.1}, "the paper's objective, negatives and optimizer"),
        ({"engine": "torch"}, "engine torch needs its tables on the device that computes"),
    ],
)
def test_what_has_no_such_tables_is_refused(settings: dict[str, str], why: str) -> None:
    pytest.importorskip("triton", reason="needs triton: pip install triton")
    with pytest.raises(ConfigError, match=rf"needs the engine triton.*murp or mure.*{why}.*Leave tables at device"):
        refuse_host_tables(Config(tables="host", **settings))


@pytest.mark.parametrize("settings", [{}, {"model": "mure", "bias": "norm"}, {"transformation": "swapped"}])
def test_the_papers_models_have_them(settings: dict[str, str]) -> None:
    pytest.importorskip("triton", reason="needs triton: pip install triton")
    refuse_host_tables(Config(tables="host", **settings))


def test_on_the_cpu_they_are_refused(small_tree: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"for training on a GPU.*leave tables at device"):
        configure(small_tree, {"tables": "host", "device": "cpu"})


def test_ranks_have_none() -> None:
    with pytest.raises(ConfigError, match="tables = host needs one process"):
        refuse(Config(tables="host", slices=2), 2)


def test_a_model_computes_where_its_other_tables_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of the device "meta" stand for those of a GPU."""
    monkeypatch.setattr("murp.models.model.pinned", torch.clone)
    model = MODELS["murp"](5, 2, 3).initialise(0)
    assert not model.on_host
    points = model.parameters["entity"].clone()
    model.to("meta", host=True)
    assert model.device.type == "meta"
    assert model.on_host
    assert torch.equal(model.parameters["entity"], points)


def test_a_look_at_all_rows_names_the_first_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces, since a copy of a table in host memory may not fit."""
    monkeypatch.setattr("murp.models.model.LOOKED_AT", 2)
    model = MODELS["murp"](7, 2, 3).initialise(0)
    assert model.broken() == []
    model.parameters["entity"][5:] = torch.nan
    model.parameters["subject_bias"][3] = torch.inf
    assert model.broken() == ["entity (row 5)", "subject_bias (row 3)"]


class Driver:
    """What is registered with it."""

    def __init__(self) -> None:
        self.held: list[int] = []

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        assert size >= 24
        self.held.append(address)
        return 0

    def cudaHostUnregister(self, address: int) -> None:
        self.held.remove(address)


def test_pinned_memory_is_given_back_with_the_last_tensor_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(torch.cuda, "cudart", lambda: driver)
    values = room((3, 2), torch.float32)
    assert values.tolist() == [[0.0, 0.0]] * 3
    assert driver.held == [values.data_ptr()]
    view = values[None].fill_(2.0)
    del values
    assert driver.held == [view.data_ptr()], "the engine has a view of the table"
    assert view.sum() == 12
    del view
    assert driver.held == []


@pytest.mark.gpu
def test_a_run_with_points_in_host_memory_trains_saves_and_goes_on(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    def trained(name: str, **settings: Any) -> Run:
        out = tmp_path / name
        return murp.train(small_tree, out=out, progress=Silent(), device="cuda", **{**SETTINGS, **settings})

    device, host = trained("device"), trained("host", tables="host")
    assert host.model.device.type == "cpu"
    assert [record["loss"] for record in host.metrics()] == pytest.approx(
        [record["loss"] for record in device.metrics()], rel=1e-3
    )
    trained("half", tables="host", epochs=2)
    half = murp.resume(tmp_path / "half", epochs=4, progress=Silent())
    assert half.state["epoch"] == host.state["epoch"]
    for table, values in host.model.parameters.items():
        torch.testing.assert_close(half.model.parameters[table], values, rtol=1e-2, atol=1e-3, msg=table)
        on_device = device.model.parameters[table].cpu()
        torch.testing.assert_close(values, on_device, rtol=1e-2, atol=1e-3, msg=table)
    assert host.evaluate("test").mrr == pytest.approx(device.evaluate("test").mrr, abs=0.02)
