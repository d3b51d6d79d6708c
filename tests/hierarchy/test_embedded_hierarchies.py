"""Training on a closure: the compiled steps against PyTorch's, what they draw, and the command from file to picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from trees_and_dags import crossings, of_parents, ternary

import murp
from murp.cli.main import main
from murp.engines import Chunk, Task, TorchEngine, build
from murp.engines.hierarchy_engine import HierarchyEngine
from murp.errors import ConfigError
from murp.hierarchy import embed, reconstruction
from murp.models.hierarchy import Distance, Lorentz, Poincare
from murp.negatives.unrelated import Relatives, Unrelated
from murp.objectives.objective import Sampled
from murp.objectives.rank import Rank
from murp.objectives.softmax import Softmax
from murp.optimizers.adagrad import Adagrad
from murp.optimizers.optimizer import Optimizer
from murp.optimizers.sgd import SGD
from murp.training import resume
from murp.training.progress import Silent

N = 40


def task(
    model: type[Distance],
    optimizer: type[Optimizer] = SGD,
    negatives: Unrelated | None = None,
    objective: Sampled | None = None,
) -> Task:
    made = model(N, 2, 5, dtype=torch.float64).initialise(0, 0.15)
    drawn = negatives or Unrelated(negatives=4)
    return Task(made, objective=objective or Softmax(), negatives=drawn, optimizer=optimizer())


def batches(false: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    positives = torch.randint(N, (5, 8, 3), generator=draw)
    positives[..., 1] = 0
    positives[..., 2] = (positives[..., 0] + 1 + positives[..., 2] % (N - 1)) % N
    negatives = torch.randint(N, (5, 8, false), generator=draw)
    return positives, torch.where(negatives == positives[..., :1], (negatives + 1) % N, negatives)


@pytest.mark.parametrize("objective", [Softmax(), Rank(softness=0.5)], ids=["softmax", "rank"])
@pytest.mark.parametrize("optimizer", [SGD, Adagrad])
@pytest.mark.parametrize("model", [Poincare, Lorentz])
def test_compiled_steps_are_those_of_torch(
    model: type[Distance], optimizer: type[Optimizer], objective: Sampled
) -> None:
    given, lr = batches(), 2.0 if optimizer is SGD else 0.5
    compiled, plain = (task(model, optimizer, objective=objective) for _ in range(2))
    engine, judge = HierarchyEngine(compiled), TorchEngine(plain)
    assert float(engine.steps(*given, lr)) == pytest.approx(float(judge.steps(*given, lr)), rel=1e-9)
    found, expected = (one.model.parameters["entity"] for one in (compiled, plain))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
    for mine, theirs in zip(engine.states[0].items(), judge.states[0].items(), strict=True):
        assert mine[0] == theirs[0]
        torch.testing.assert_close(mine[1], theirs[1], rtol=1e-9, atol=1e-12)
    assert bool(compiled.model.geometry.contains(found).all())


def closure() -> torch.Tensor:
    return torch.from_numpy(of_parents(ternary(3)).graph("tree").train).long()


@pytest.mark.parametrize("kind", [Unrelated, Relatives])
def test_no_negative_is_related_to_the_subject(kind: type[Unrelated]) -> None:
    facts = closure()
    negatives = kind(negatives=6)
    negatives.prepare(facts, N, 4)
    related = {(s, o) for s, _, o in facts.tolist()} | {(s, s) for s in range(N)}
    chunk = Chunk(facts.view(6, 17, 3), N, 6, 3)
    engine = HierarchyEngine(task(Poincare, negatives=negatives))
    engine.run([chunk], [0.1])
    (space,) = engine.spaces.values()
    drawn = negatives.draw(chunk.positives, torch.Generator().manual_seed(0)).objects
    for positives, found in ((chunk.positives[-1], torch.from_numpy(space.false)), (chunk.positives, drawn)):
        pairs = torch.stack([positives[..., :1].expand(found.shape), found], -1).view(-1, 2).tolist()
        wrong = sum(tuple(pair) in related for pair in pairs)
        assert wrong <= 0.01 * len(pairs)
        assert len({o for _, o in pairs}) > N / 3


def test_relatives_are_nearer_than_others() -> None:
    facts = closure()
    above = [{s, *(o for t, _, o in facts.tolist() if t == s)} for s in range(N)]
    shared = []
    for kind in (Unrelated, Relatives):
        negatives = kind(negatives=20)
        negatives.prepare(facts, N, 4)
        drawn = negatives.draw(facts, torch.Generator().manual_seed(0)).objects
        pairs = zip(facts[:, 0].tolist(), drawn.tolist(), strict=True)
        shared.append(np.mean([len(above[s] & above[o]) for s, objects in pairs for o in objects]))
    assert shared[1] > shared[0] + 0.1


@pytest.mark.parametrize("objective", [Softmax(), Rank()], ids=["softmax", "rank"])
def test_the_result_does_not_depend_on_the_number_of_threads(objective: Sampled) -> None:
    facts, found = closure(), []
    for number in (1, 3):
        negatives = Relatives(negatives=5)
        negatives.prepare(facts, N, 4)
        one = task(Poincare, Adagrad, negatives, objective)
        engine = HierarchyEngine(one)
        engine.choice.next = lambda number=number: number  # type: ignore[method-assign,misc]
        engine.choice.most = number
        engine.run([Chunk(facts[:100].view(5, 20, 3), N, 5, 3)], [0.3])
        found.append(one.model.parameters["entity"].clone())
    assert torch.equal(*found)


def test_what_the_engine_cannot_train_is_trained_by_torch() -> None:
    other = task(Poincare)
    assert build("auto", [other]).name == "numba"
    other.negatives = type("Other", (Unrelated,), {})(negatives=4)
    assert build("auto", [other]).name == "torch"
    with pytest.raises(ConfigError, match="corruption unrelated or relatives"):
        build("numba", [other])


def test_a_trained_tree_of_364_nodes_looks_like_a_tree_and_is_reconstructed(tmp_path: Path) -> None:
    parents = ternary()
    run = embed(of_parents(parents), out=tmp_path / "run", dim=2, epochs=40, lr=0.1, progress=Silent())
    points = run.model.parameters["entity"].numpy()
    radius = np.linalg.norm(points, axis=1)
    assert radius[0] < 0.2
    assert radius[121:].min() > 0.98
    assert crossings(points, parents) == 0
    found = reconstruction(run)
    assert found.map > 0.95
    assert found.mean_rank < 1.3


def test_resuming_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    settings = {"dim": 3, "lr": 0.3, "lr_schedule": "constant", "progress": Silent()}
    whole = embed(of_parents(ternary(3)), out=tmp_path / "whole", epochs=4, **settings)
    embed(of_parents(ternary(3)), out=tmp_path / "part", epochs=2, **settings)
    part = resume(tmp_path / "part", epochs=4, progress=Silent())
    assert torch.equal(whole.model.parameters["entity"], part.model.parameters["entity"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tree.tsv"
    path.write_text("".join(f"n{i}\tparent\tn{(i - 1) // 3}\n" for i in range(1, 40)))
    return path


def run_of(words: list[str | Path]) -> int:
    return main([str(word) for word in words])


def test_an_embedding_is_told_of_its_data_what_a_training_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tree.csv"
    path.write_text("up,kind,down\n" + "".join(f"n{(i - 1) // 3},parent,n{i}\n" for i in range(1, 40)))
    words = ["embed", "--data", "tree.csv", "--data-dir", tmp_path, "--model", "layout", "--json", "--quiet"]
    assert run_of([*words, "--columns", "head=down,relation=kind,tail=up", "--out", tmp_path / "run"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["nodes"] == 39
    assert run_of([*words, "--no-header", "--relation", "kind", "--out", tmp_path / "one"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["nodes"] == 1


@pytest.mark.parametrize("model", ["poincare", "lorentz", "layout"])
def test_the_command_makes_a_run_folder_that_other_commands_open(
    model: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    settings = [] if model == "layout" else ["--dim", "2", "--epochs", "3", "--lr", "0.3"]
    assert run_of(["embed", "--data", file, "--model", model, "--out", out, "--json", "--quiet", *settings]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["nodes"] == 39
    assert run_of(["reconstruct", out, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again == {name: figures[name] for name in again}
    assert run_of(["nearest", out, "n5", "-k", "3"]) == 0
    assert run_of(["export", out, "--to", "npz", "--out", tmp_path / "points.npz"]) == 0
    if model != "lorentz":
        assert run_of(["plot", out, "disk", "--edges", "parent", "--out", tmp_path / "disk.png"]) == 0


def test_the_objective_is_an_option_of_the_command(file: Path, tmp_path: Path) -> None:
    words = ["embed", "--data", file, "--dim", "6", "--epochs", "2", "--quiet", "--objective", "rank"]
    assert run_of([*words, "--softness", "0.2", "--out", tmp_path / "run"]) == 0
    config = murp.load(tmp_path / "run").config
    assert (config.objective, config.softness) == ("rank", 0.2)


def test_mistakes_are_told(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    for words, message in (
        (["--model", "layout", "--dim", "3"], "leave out --dim"),
        (["--scale", "2"], "--model layout"),
        (["--dim", "1"], "two dimensions at least"),
        (["--relation", "child"], "unknown relation 'child'"),
        (["--optimizer", "adam", "--lr", "-1"], "lr must be above 0"),
        (["--softness", "0.2"], "softness is a setting of objective rank, and not of softmax"),
        (["--objective", "rank", "--softness", "0"], "softness must be above 0"),
    ):
        assert run_of(["embed", "--data", file, "--out", out, "--quiet", *words]) == 1, words
        assert message in capsys.readouterr().err
        assert not out.exists()
    file.write_text("a\tr\tb\nb\tr\tc\nc\tr\ta\n")
    assert run_of(["embed", "--data", file, "--out", out, "--quiet"]) == 1
    assert "cycle" in capsys.readouterr().err
    assert not out.exists()
