"""New entities and relations in a trained run: the old rows stay, the new ones mean something, the folder is whole."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from typed import ok
from typed import refused as said_no

import murp
from api_runs import QUICK, trained
from murp import registry
from murp.cli.main import parser
from murp.config import Config
from murp.engines import Chunk, TorchEngine
from murp.errors import ConfigError, DataError, NotFiniteError, RunError, UnknownNameError
from murp.graph.adding_facts import add_facts, given_facts
from murp.models import from_config
from murp.runs import checkpoint, folder
from murp.training import new_entities
from murp.training.new_entities import (
    EPOCHS,
    LARGE,
    MORE_STEPS,
    SHARE,
    STEPS,
    STEPS_AN_EPOCH,
    _pace,
    train_new_entities,
)
from murp.training.new_rows import share_of_rate
from murp.training.weight_transfer import refuse_other, transfer
from runs_of_parts import settings, tables
from trees import tree

NEW = [("x", "parent", "n3"), ("n3", "next", "x"), ("y", "parent", "x"), ("y", "likes", "n4"), ("n5", "likes", "x")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> murp.Run:
    return trained(tmp_path_factory.mktemp("extend"), epochs=6)


def rows(run: murp.Run) -> dict[str, torch.Tensor]:
    return {name: values.clone() for name, values in run.model.parameters.items()}


# Of each kind of objective, optimizer and space one; with shared tables, batch statistics and tiles among them.
PARTS: list[dict[str, Any]] = [
    {},
    {"model": "mure", "engine": "torch", "corruption": "shared"},
    {"model": "rescal", "objective": "one-vs-all", "optimizer": "adagrad", "lr": 0.1, "regularizer": "dura"},
    {"model": "conve", "dim": 8, "objective": "k-vs-all", "optimizer": "adam", "lr": 0.01},
    {"model": "hybonet", "objective": "bernoulli", "optimizer": "adam", "lr": 0.01, "corruption": "both-sides"},
    {"model": "mixed-curvature", "dim": 6, "optimizer": "row-adagrad", "lr": 0.1},
    {"model": "tucker", "objective": "self-adversarial", "optimizer": "adam", "lr": 0.01},
    {"model": "poincare", "corruption": "unrelated", "objective": "softmax", "lr": 0.3},
]


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: parts.get("model", "murp"))
def test_old_rows_stay_bit_for_bit_and_new_ones_are_placed(parts: dict[str, Any], tmp_path: Path) -> None:
    murp.train(tree(), out=tmp_path / "run", **settings(**{"dim": 4, "epochs": 2, **parts}))
    run = murp.load(tmp_path / "run", device="cpu")
    before = rows(run)
    made = run.extend(NEW, tmp_path / "more", epochs=2)
    assert (made.graph.num_entities, made.graph.num_relations) == (65, 3)
    half = run.graph.num_relations
    for table in made.model.tables:
        old, new = before[table.name], made.model.parameters[table.name]
        if table.of == "relation":
            assert torch.equal(old, new[[*range(half), *range(half + 1, 2 * half + 1)]])
        else:
            assert torch.equal(old, new[: len(old)])
    assert not made.model.broken()
    assert all(torch.equal(before[name], values) for name, values in run.model.parameters.items())
    assert made.evaluate("valid").mrr > 0
    assert murp.load(made.path).predict(head="x", relation="likes", k=2)


@pytest.mark.parametrize("parts", [{"optimizer": "adagrad", "lr": 0.1}, {"optimizer": "adam", "lr": 0.01, "slices": 2}])
def test_an_extended_run_can_be_continued(parts: dict[str, Any], tmp_path: Path) -> None:
    """The optimizer knows the old rows as it did, and begins anew with the new ones."""
    run = murp.train(tree(), out=tmp_path / "run", **settings(dim=4, epochs=1, **parts))
    made = run.extend(NEW, tmp_path / "more", epochs=1)
    before, after = tables(run.path), tables(made.path)
    assert before.keys() == after.keys()
    half = run.graph.num_relations
    for name in (name for name in after if name.startswith("optimizer.")):
        old, new = before[name], after[name]
        is_relation = len(old) == 2 * half
        kept = [*range(half), *range(half + 1, 2 * half + 1)] if is_relation else list(range(len(old)))
        assert torch.equal(new[kept], old)
        assert not new[[row for row in range(len(new)) if row not in kept]].any()
    assert murp.resume(made.path, epochs=2).state["epoch"] == 2
    bare = {name: values for name, values in after.items() if not name.startswith("optimizer.")}
    checkpoint.write(made.path / "last.safetensors", bare, checkpoint.state_of(made.path / "last.safetensors"))
    again = shlex.quote(str(made.path))
    with pytest.raises(RunError, match=rf"no tables of the optimizer.*--data {again}/graph --init-from {again}`"):
        murp.resume(made.path, epochs=3)


def test_an_extended_run_validates_anew(tmp_path: Path) -> None:
    """The best MRR before was of another graph, and of weights that are not kept here."""
    run = murp.train(tree(), out=tmp_path / "run", **settings(dim=4, epochs=1, validate_every=1))
    assert run.state["best_mrr"] is not None
    made = run.extend(NEW, tmp_path / "more", epochs=1)
    assert (made.state["best_mrr"], made.state["best_epoch"], made.state["stale"]) == (None, None, 0)
    state = checkpoint.state_of(made.path / "last.safetensors")
    assert state["epoch"] == 1
    again = murp.resume(made.path, epochs=2)
    assert (again.state["best_epoch"], again.checkpoint) == (2, "best")


def test_a_run_by_sgd_is_placed_well_however_small_its_learning_rate(tmp_path: Path) -> None:
    run = murp.train(tree(), out=tmp_path / "run", **settings(dim=10, epochs=40, lr=1.0))
    both = [((f"new{i}", "parent", f"n{10 + i}"), (f"new{i}", "next", f"n{30 + i}")) for i in range(8)]
    facts = [fact for two in both for fact in two]
    made = run.extend(facts, tmp_path / "more")
    places = [
        1 + [one.id for one in made.predict(head=head, relation=relation, k=made.graph.num_entities)].index(tail)
        for head, relation, tail in facts
    ]
    assert np.median(places) <= 7  # of 71; by SGD itself about 10


@pytest.mark.parametrize("asked", [3, 100, 6_000, 40_000, 1_000_000])
def test_placing_makes_few_large_steps_and_enough_however_few_facts_are_new(asked: int) -> None:
    size, epochs = _pace(Config(lr=50.0, batch_size=128), asked, 200_000, 51 * 40, None)
    assert epochs >= EPOCHS
    assert epochs * -(-asked // size) >= EPOCHS * STEPS_AN_EPOCH
    assert min(asked, 128) <= size <= LARGE
    size, epochs = _pace(Config(optimizer="adagrad", lr=0.1, batch_size=128, epochs=1), asked, 200_000, 51 * 40, None)
    assert STEPS <= epochs * -(-asked // size) <= (MORE_STEPS + STEPS if asked <= 100 else 2 * STEPS)
    assert min(asked, 128) <= size <= LARGE


def test_a_step_of_the_placing_takes_no_more_memory_than_it_may(
    run: murp.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among a million entities 65,536 questions at once would have 262 GB of scores."""
    size, _ = _pace(Config(optimizer="adagrad", lr=0.1, batch_size=500), 3_000_000, 200_000, 1_000_000, None)
    assert size == 500
    assert _pace(Config(batch_size=128), 3_000_000, 200_000, 1000 * 500, None)[0] == 256
    chunks = steps_of_the_placing(monkeypatch)
    facts = [(f"new{i}", "parent", f"n{i % 60}") for i in range(200)]
    run.extend(facts, tmp_path / "large", epochs=1)
    assert max(chunk.positives.shape[1] for chunk in chunks) > run.config.batch_size
    chunks.clear()
    monkeypatch.setattr(new_entities, "NUMBERS", 1)
    run.extend(facts, tmp_path / "small", epochs=1)
    assert max(chunk.positives.shape[1] for chunk in chunks) == run.config.batch_size


def test_facts_that_are_asked_together_are_placed_by_enough_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty children of one node are one question from its side."""
    parts = {"model": "conve", "dim": 8, "objective": "k-vs-all", "optimizer": "adam", "lr": 0.01, "batch_size": 8}
    run = murp.train(tree(), out=tmp_path / "run", **settings(epochs=1, **parts))
    chunks = steps_of_the_placing(monkeypatch)
    run.extend([(f"new{i}", "parent", "n3") for i in range(20)], tmp_path / "more")
    assert STEPS <= sum(chunk.steps for chunk in chunks) <= MORE_STEPS + STEPS


def steps_of_the_placing(monkeypatch: pytest.MonkeyPatch) -> list[Chunk]:
    """The chunks that the placing trains on from now on."""
    chunks: list[Chunk] = []
    run = TorchEngine.run

    def told(engine: TorchEngine, given: list[Chunk], rates: list[float]) -> torch.Tensor:
        chunks.extend(given)
        return run(engine, given, rates)

    monkeypatch.setattr(TorchEngine, "run", told)
    return chunks


def test_placing_makes_more_steps_where_they_are_a_small_share_of_the_training() -> None:
    """As for RESCAL on WN18RR and on FB15k-237: 150 epochs of 174 thousand questions, 80 of 544 thousand."""

    def steps(asked: int, trained: int, epochs: int) -> int:
        config = Config(optimizer="adagrad", lr=0.1, batch_size=1024, epochs=epochs)
        size, passes = _pace(config, asked, trained, 14_541, None)
        assert passes == 1 or passes * asked <= SHARE * epochs * trained
        return passes * -(-asked // size)

    assert steps(225_000, 544_000, 80) < 2 * STEPS < MORE_STEPS < steps(70_000, 174_000, 150)
    assert _pace(Config(optimizer="adagrad", lr=0.1, epochs=80), 225_000, 544_000, 14_541, 4)[1] == 4


@pytest.mark.parametrize(("model", "numbers"), [("rescal", 9), ("murp", 1)])
def test_a_first_step_has_the_same_length_in_every_model(model: str, numbers: int) -> None:
    """Adam moves each coordinate of a flat row by the rate, and a point of the ball as a whole."""
    tables = {table.name: table for table in from_config(Config(model=model, dim=9), 5, 2).tables}
    assert share_of_rate(tables["entity"]) == pytest.approx(numbers**-0.5)
    assert all(share_of_rate(table) == 1 for table in tables.values() if not table.shape)


def test_the_regularizer_of_the_run_does_not_keep_new_rows_short(tmp_path: Path) -> None:
    """The old rows have their length already: among them a shorter one would lose its facts."""
    matrices = {"model": "rescal", "objective": "one-vs-all", "optimizer": "adagrad", "lr": 0.1, "epochs": 10, "dim": 6}
    run = murp.train(tree(), out=tmp_path / "run", **settings(**matrices))
    growth = add_facts(run.graph, given_facts(NEW))
    placed = []
    for weight in (1e-6, 10.0):
        config = run.config.replace(regularizer="dura", regularizer_weight=weight)
        model = from_config(config, growth.graph.num_entities, growth.graph.num_relations).initialise(0)
        transfer(run, model, growth.graph)
        train_new_entities(model, growth, config)
        placed.append(model.parameters["entity"])
    assert torch.equal(*placed)


def test_a_new_entity_answers_the_questions_it_was_placed_by(tmp_path: Path) -> None:
    matrices = {"model": "rescal", "objective": "one-vs-all", "optimizer": "adagrad", "lr": 0.1, "epochs": 20}
    run = murp.train(tree(), out=tmp_path / "run", **settings(dim=10, **matrices))
    leaves = [f"new{i}" for i in range(8)]
    facts = [(leaf, "parent", f"n{10 + i}") for i, leaf in enumerate(leaves)]
    made = run.extend(facts, tmp_path / "more")
    places = []
    for head, relation, tail in facts:
        found = [one.id for one in made.predict(head=head, relation=relation, k=made.graph.num_entities)]
        places.append(1 + found.index(tail))
    assert np.median(places) <= 2  # of 70; at its initial values a leaf knows nothing: about 35
    same = made.predict(head="n9", relation="parent", k=70)
    old = run.predict(head="n9", relation="parent", k=70)
    scores = {one.id: one.score for one in same}
    assert all(scores[one.id] == pytest.approx(one.score, abs=1e-5) for one in old)


def test_the_weight_of_old_answers_keeps_new_entities_from_taking_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a softmax gives new entities of the questions that the old run was trained on."""
    matrices = {"model": "rescal", "objective": "one-vs-all", "optimizer": "adagrad", "lr": 0.1, "epochs": 20}
    old = murp.train(tree(), out=tmp_path / "old", **settings(**matrices))
    asked = torch.from_numpy(old.graph.train.astype(np.int64))
    taken = {}
    for weight in (1.0, 2.0, 20.0):
        monkeypatch.setattr(new_entities, "OLD_ANSWERS", weight)
        model = old.extend(NEW, tmp_path / f"weight {weight}").model
        chances = model.score_objects(asked[:, 0], asked[:, 1]).softmax(1)
        taken[weight] = float(chances[:, old.graph.num_entities :].sum(1).mean())
    assert taken[1.0] > taken[2.0] > taken[20.0]


def test_the_same_seed_gives_the_same_folder_and_every_command_takes_it(run: murp.Run, tmp_path: Path) -> None:
    facts = tmp_path / "new.tsv"
    facts.write_text("".join("\t".join(row) + "\n" for row in NEW))
    out = ok("extend", run.path, "--facts", facts, "--out", tmp_path / "a", "--device", "cpu", "--seed", "3")
    assert out.splitlines()[0] == "placed 2 entities, 1 relation, 5 facts; 63 entities and 2 relations unchanged"
    (tmp_path / "one.tsv").write_text("one\tparent\tn3\n")
    said = ok("extend", run.path, "--facts", tmp_path / "one.tsv", "--out", tmp_path / "one", "--device", "cpu")
    assert said.startswith("placed 1 entity, 0 relations, 1 fact;")
    again = run.extend(facts, tmp_path / "b", seed=3)
    other = run.extend(facts, tmp_path / "c", seed=4)
    first = murp.load(tmp_path / "a")
    assert all(torch.equal(first.model.parameters[n], again.model.parameters[n]) for n in rows(first))
    assert not torch.equal(first.model.parameters["entity"], other.model.parameters["entity"])
    assert "extended" in ok("info", tmp_path / "a")
    for words in (
        ("evaluate", tmp_path / "a"), ("nearest", tmp_path / "a", "x", "-k", "2"),
        ("discover", tmp_path / "a", "--relation", "likes", "-k", "2"), ("calibrate", tmp_path / "a"),
        ("export", tmp_path / "a", "--to", "npz", "--out", tmp_path / "a.npz"),
        ("train", "--config", tmp_path / "a" / "config.toml", "--epochs", "1", "--out", tmp_path / "again"),
        ("extend", tmp_path / "a", "--facts", facts.with_name("z.tsv"), "--out", tmp_path / "d"),
    ):  # fmt: skip
        (tmp_path / "z.tsv").write_text("z\tlikes\tx\n")
        ok(*words)
    assert murp.load(tmp_path / "again").graph.num_entities == 65
    assert murp.load(tmp_path / "d").graph.num_entities == 66


def test_the_commands_of_the_pages_are_understood() -> None:
    pages = [Path(__file__).parents[2] / "docs" / name for name in ("extending.md", "types.md")]
    lines = [line for page in pages for line in page.read_text().splitlines() if line.startswith("murp ")]
    assert len(lines) >= 6
    for line in lines:
        words = shlex.split(line)[1:]
        assert parser(words).parse_args(words).run


def test_bad_facts_are_refused_and_nothing_is_written(run: murp.Run, tmp_path: Path) -> None:
    file, out = tmp_path / "facts.tsv", tmp_path / "out"

    def refused(text: str, *more: str) -> str:
        file.write_text(text)
        return said_no("extend", run.path, "--facts", file, "--out", out, "--device", "cpu", *more)

    assert "facts.tsv: is empty" in refused("")
    assert "unknown relation 'parrent'. Closest: parent" in refused("x\tparrent\tn1\n", "--new", "entities")
    assert "unknown entity 'x'. To add new entities, give --new all or --new entities." in refused(
        "x\tlikes\tn1\n", "--new", "relations"
    )
    known = next(iter(run.graph))
    assert "already has all of these facts" in refused("\t".join(known) + "\n")
    strangers = refused("n11x\tparent\tzz\nzz\tlikes\tzy\n")
    assert "no fact names an entity of" in strangers
    assert "unknown entity 'n11x'. Closest: n11" in strangers
    assert "nothing to place" in refused("n1\tnext\tn1\n")
    assert "line 2" in refused("x\tparent\tn1\nx\tparent\n")
    assert "none.tsv" in said_no("extend", run.path, "--facts", tmp_path / "none.tsv", "--out", out)
    assert "no run folder" in said_no("extend", tmp_path / "nowhere", "--facts", file, "--out", out)
    assert "exists already" in said_no("extend", run.path, "--facts", file, "--out", run.path)
    assert [p.name for p in tmp_path.iterdir()] == ["facts.tsv"]
    with pytest.raises(ConfigError, match="epochs"):
        run.extend(NEW, out, epochs=0)
    with pytest.raises(ConfigError, match="new must be one of"):
        run.extend(NEW, out, new="none")  # type: ignore[arg-type]


def test_a_broken_run_is_refused_by_name(run: murp.Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(run.path, broken)
    for file in broken.glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:100])
    facts = tmp_path / "f.tsv"
    facts.write_text("x\tparent\tn1\n")
    assert "broken" in said_no("extend", broken, "--facts", facts, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_names_are_found_by_id_then_by_name_and_facts_to_be_predicted_are_left_out() -> None:
    graph = murp.KnowledgeGraph.from_triples(
        [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")], valid=[("a", "r", "c")], test=[("b", "r", "a")]
    )
    entities = murp.graph.Vocabulary("entity", graph.entities.ids, ["Anna", "Ben", "Ben"])
    named = murp.KnowledgeGraph(graph.name, entities, graph.relations, graph.train, graph.valid, graph.test)
    found = add_facts(
        named, given_facts([("Anna", "r", "new"), ("new", "r", "a"), ("a", "r", "c"), ("new", "r", "a ")])
    )
    assert found.facts.tolist() == [[0, 0, 3], [3, 0, 0]]
    assert found.left_out == {"train": 0, "valid": 1, "test": 0}
    assert (found.graph.entities.id(3), found.graph.entities.name(3), found.graph.entities.name(0)) == (
        "new", "new", "Anna",
    )  # fmt: skip
    assert len(found.graph.valid) == len(found.graph.test) == 1
    with pytest.raises(UnknownNameError, match="ambiguous"):
        add_facts(named, given_facts([("Ben", "r", "new")]))
    with pytest.raises(DataError, match="no triples"):
        given_facts([])


def test_training_starts_from_another_runs_weights_by_name(run: murp.Run, tmp_path: Path) -> None:
    facts = [(h, r, t) for h, r, t in run.graph if "n7" not in (h, t)]
    more = murp.KnowledgeGraph.from_triples(
        [*reversed(facts), ("x", "parent", "n3"), ("x", "likes", "n2")], valid=0, test=0
    )
    start = {**QUICK, "epochs": 1, "lr": 1e-30, "validate_every": 0, "init_from": str(run.path)}
    begun = murp.train(more, out=tmp_path / "more", **start)
    fresh = murp.train(more, out=tmp_path / "fresh", **{**start, "init_from": ""})
    for ours, theirs, table in (
        (more.entities, run.graph.entities, "entity"),
        (more.relations, run.graph.relations, "translation"),
    ):
        same = [(ours.find(name), theirs.find(name)) for name in ours.ids.to_pylist() if name in theirs.ids.to_pylist()]
        new, old = map(list, zip(*same, strict=True))
        assert len(same) >= 2
        assert torch.equal(begun.model.parameters[table][new], run.model.parameters[table][old])
        if table == "translation":
            new, old = [i + len(ours) for i in new], [i + len(theirs) for i in old]
            assert torch.equal(begun.model.parameters[table][new], run.model.parameters[table][old])
    x = more.entities.find("x")
    assert torch.equal(begun.model.parameters["entity"][x], fresh.model.parameters["entity"][x])
    assert folder.read_config(tmp_path / "more").init_from == str(run.path.resolve())


@pytest.mark.parametrize("large", [0, checkpoint.LARGE], ids=["mapped", "read"])
def test_weights_with_nan_are_refused(
    large: int, run: murp.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LARGE", large)
    broken = Path(shutil.copytree(run.path, tmp_path / "broken"))
    for name in (folder.LAST, folder.BEST):
        if (broken / name).exists():
            tables, state = checkpoint.load(broken / name)
            tables["entity"][3] = float("nan")
            checkpoint.save(broken / name, tables, state)
    with pytest.raises(NotFiniteError, match=r"broken.* holds NaN, infinity or points outside"):
        murp.train(tree(), out=tmp_path / "out", **QUICK, init_from=str(broken))
    assert not (tmp_path / "out").exists()


def test_weights_that_do_not_fit_are_refused_with_what_differs(run: murp.Run, tmp_path: Path) -> None:
    start: dict[str, Any] = {**QUICK, "init_from": str(run.path)}
    for other, words in (
        ({"dim": 4}, "dim: 3 there, 4 here"),
        ({"model": "mure"}, "model: murp there, mure here"),
        ({"dtype": "float64"}, "dtype: float32 there, float64 here"),
        ({"curvature": 2.0}, "curvature: 1.0 there, 2.0 here"),
    ):
        with pytest.raises(ConfigError, match=words):
            murp.train(tree(), out=tmp_path / "out", **{**start, **other})
    other_names = murp.KnowledgeGraph.from_triples([("a", "r", "b")], valid=0, test=0)
    with pytest.raises(ConfigError, match="no entity of"):
        murp.train(other_names, out=tmp_path / "out", **{**start, "validate_every": 0})
    with pytest.raises(RunError, match="no run folder"):
        murp.train(tree(), out=tmp_path / "out", **{**start, "init_from": str(tmp_path / "none")})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("model", registry.MODELS)
def test_dropout_may_be_another_than_in_the_run_that_training_starts_from(model: str) -> None:
    settings = registry.find("model", model).settings
    rates = {name: 0.25 for name in settings if name.endswith("_dropout")}
    if not registry.find("model", model).drops_queries:
        del rates["query_dropout"]
    there, here = Config(model=model), Config(model=model, **rates)
    refuse_other(SimpleNamespace(path="there", config=there), here)  # type: ignore[arg-type]
