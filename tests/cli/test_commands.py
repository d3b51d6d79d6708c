"""The command line as a user types it: its output, its exit status."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typed import TRAIN, murp, ok, process, refused

from examples import PATIENCE
from forked import Forked
from murp.runs import checkpoint


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small family tree as a folder of TSV files with names, two of them shared."""
    folder = tmp_path_factory.mktemp("data") / "family"
    folder.mkdir()
    facts = [(f"p{i}", "child_of", f"p{(i - 1) // 2}") for i in range(1, 63)]
    facts += [(f"p{i}", "sibling_of", f"p{i + 1}") for i in range(1, 62, 2)]
    held = [facts[i] for i in (10, 20, 30, 70)], [facts[i] for i in (12, 22, 32, 72)]
    train = [fact for fact in facts if fact not in held[0] + held[1]]
    for name, rows in zip(("train", "valid", "test"), (train, *held), strict=True):
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    names = [(f"p{i}", "John Smith" if i in (3, 4) else f"Person {i}") for i in range(63)]
    (folder / "entity_names.tsv").write_text("".join("\t".join(row) + "\n" for row in names))
    return folder


@pytest.fixture(scope="module")
def run(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "first"
    ok(*TRAIN, "--data", dataset, "--out", path)
    return path


def test_help_names_every_command_and_option() -> None:
    text = ok("--help", by=process)
    assert all(command in text for command in ("train", "evaluate", "predict", "nearest", "info", "plot", "data"))
    options = ok("train", "--help")
    contract = "data model dim lr epochs batch-size negatives seed device dtype out config resume json"
    assert all(f"--{name}" in options for name in contract.split())
    assert ok("--version").startswith("murp ")


def test_help_does_not_import_what_takes_long() -> None:
    code = (
        "import sys; from murp.cli.main import parser; parser();"
        "sys.exit(' '.join({'torch', 'pyarrow', 'scipy'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_collector_rests_while_the_settings_of_a_command_are_found() -> None:
    """They are those of parts, and these import PyTorch."""
    code = """
import gc, sys
from murp.cli.main import parser
collections = []
gc.callbacks.append(lambda phase, info: collections.append("torch" in sys.modules and not gc.get_freeze_count()))
parser(["train"])
print("torch" in sys.modules, any(collections), gc.isenabled(), gc.get_freeze_count() > 0)
"""
    alone = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert alone.stdout.split() == ["True", "False", "True", "True"]


def test_train_says_where_the_run_is_and_a_log_gets_its_validations(dataset: Path, tmp_path: Path) -> None:
    process = Forked(*TRAIN, "--data", dataset, "--out", tmp_path / "run")
    printed, log = process.communicate()
    assert process.returncode == 0
    assert f"saved in {tmp_path / 'run'}" in printed
    assert f"next: murp evaluate {tmp_path / 'run'}" in printed
    assert re.fullmatch(r"epoch 3/3: loss 0\.\d{4}, valid MRR 0\.\d{3}, \d+ s", log.splitlines()[-1])
    quiet = murp(*TRAIN, "--data", dataset, "--out", tmp_path / "quiet", "--quiet")
    assert quiet.stderr == ""
    again = ok("train", "--resume", tmp_path / "run")
    assert again.startswith("nothing to do: murp d=5 on family is trained, epoch 3.")
    assert ok("train", "--resume", tmp_path / "run", "--epochs", "4").startswith("trained murp d=5 on family: epoch 4")


def test_train_shows_progress_in_a_terminal(dataset: Path, tmp_path: Path) -> None:
    """On a terminal of its own: epochs, loss, validation MRR, speed and time left."""
    ours, theirs = pty.openpty()
    more = ["--epochs", "40", "--validate-every", "5", "--data", str(dataset), "--out", str(tmp_path / "run")]
    process = Forked(*TRAIN, *more, err=theirs, before=lambda: os.environ.update(TERM="xterm", COLUMNS="160"))
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while part := os.read(ours, 65536):
            seen += part
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0
    text = seen.decode()
    assert "40/40" in text
    assert all(word in text for word in ("loss 0.", "valid MRR 0.", "triples/s", "0:00:00"))


def test_train_json_is_a_line_an_epoch_and_then_the_run(dataset: Path, tmp_path: Path) -> None:
    lines = [
        json.loads(line) for line in ok(*TRAIN, "--data", dataset, "--out", tmp_path / "run", "--json").splitlines()
    ]
    assert [line["epoch"] for line in lines[:-1]] == [1, 2, 3]
    assert lines[-2]["valid"]["protocol"] == "standard"
    assert lines[-1]["run"] == str(tmp_path / "run")


def test_train_without_out_takes_a_free_name(dataset: Path, tmp_path: Path) -> None:
    for _ in range(2):
        ok(*TRAIN, "--data", dataset, cwd=tmp_path)
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {
        "family-murp-d5-seed0",
        "family-murp-d5-seed0-2",
    }


def test_train_on_the_working_folder_names_the_run_after_it(dataset: Path) -> None:
    try:
        ok(*TRAIN, "--data", ".", cwd=dataset)
        assert [p.name for p in (dataset / "runs").iterdir()] == ["family-murp-d5-seed0"]
    finally:
        shutil.rmtree(dataset / "runs", ignore_errors=True)


def test_train_on_one_file_splits_it(dataset: Path, tmp_path: Path) -> None:
    rows = "".join((dataset / f"{name}.tsv").read_text() for name in ("train", "valid", "test"))
    (tmp_path / "facts.tsv").write_text(rows)
    ok(*TRAIN, "--data", tmp_path / "facts.tsv", "--out", tmp_path / "run")
    graph = json.loads(ok("info", tmp_path / "run", "--json"))["graph"]
    assert graph["train"] + graph["valid"] + graph["test"] == len(rows.splitlines())
    assert graph["valid"] > 0
    assert graph["test"] > 0


def test_a_tree_with_nothing_to_hold_out_can_be_audited_and_trained_whole(tmp_path: Path) -> None:
    tree = tmp_path / "tree.tsv"
    tree.write_text("animal\thas\tbird\nanimal\thas\tcat\nbird\thas\towl\nbird\thas\thawk\n")
    assert "4 train, 0 valid, 0 test" in ok("data", "audit", tree)
    assert "--validate-every 0" in refused("train", "--data", tree, "--out", tmp_path / "run")
    whole = ["--epochs", "2", "--dim", "2", "--validate-every", "0"]
    assert "next: murp explore" in ok("train", "--data", tree, "--out", tmp_path / "run", *whole)
    assert "test split has no triples" in refused("evaluate", tmp_path / "run")


def test_config_file_repeats_a_run_and_options_override_it(run: Path, tmp_path: Path) -> None:
    ok("train", "--config", run / "config.toml", "--out", tmp_path / "again")
    ok("train", "--config", run / "config.toml", "--out", tmp_path / "other", "--seed", "5")
    assert (tmp_path / "again" / "config.toml").read_text() == (run / "config.toml").read_text()
    tables = [
        checkpoint.load(path / "last.safetensors")[0]["entity"]
        for path in (run, tmp_path / "again", tmp_path / "other")
    ]
    assert tables[0].equal(tables[1])
    assert not tables[0].equal(tables[2])


@pytest.mark.parametrize("protocol", ["standard", "paper"])
def test_evaluate_json_is_the_contract(run: Path, protocol: str) -> None:
    report = json.loads(ok("evaluate", run, "--split", "valid", "--protocol", protocol, "--by-relation", "--json"))
    assert report["protocol"] == protocol
    assert report["split"] == "valid"
    assert report["queries"] == 8
    assert {"mrr", "mr", "hits@1", "hits@3", "hits@10"} <= report.keys()
    assert set(report["by_relation"]) == {"child_of", "sibling_of"}
    assert "by_relation" not in json.loads(ok("evaluate", run, "--json"))


def test_evaluate_names_its_protocol_and_split(run: Path) -> None:
    text = ok("evaluate", run, "--by-relation")
    assert "protocol standard" in text
    assert "split test" in text
    assert "child_of" in text


def test_predict_by_id_and_by_name_in_both_directions(run: Path) -> None:
    by_id = json.loads(ok("predict", run, "--head", "p9", "--relation", "child_of", "-k", "5", "--json"))
    by_name = json.loads(ok("predict", run, "--head", "Person 9", "--relation", "child_of", "-k", "5", "--json"))
    assert by_id["predictions"] == by_name["predictions"]
    assert len(by_id["predictions"]) == 5
    heads = json.loads(ok("predict", run, "--tail", "p0", "--relation", "child_of", "-k", "63", "--json"))[
        "predictions"
    ]
    assert {p["id"] for p in heads if p["known"]} == {"p1", "p2"}
    scores = [p["score"] for p in heads]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= p["probability"] <= 1 for p in heads)
    assert "known (train)" in ok("predict", run, "--tail", "p0", "--relation", "child_of", "-k", "63")


def test_nearest_is_sorted_and_leaves_out_the_entity_itself(run: Path) -> None:
    found = json.loads(ok("nearest", run, "p9", "-k", "62", "--json"))["neighbours"]
    assert len(found) == 62
    assert "p9" not in {n["id"] for n in found}
    assert [n["distance"] for n in found] == sorted(n["distance"] for n in found)


def test_info_tells_what_the_folder_holds(run: Path) -> None:
    text = ok("info", run)
    assert "63 entities" in text
    assert "epoch 3 of 3" in text


def test_plot_writes_a_picture(run: Path, tmp_path: Path) -> None:
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        words = ["--head", "p0", "--relation", "child_of", "--out", tmp_path / f"disk{ending}"]
        ok("plot", run, "disk", *words)
        assert (tmp_path / f"disk{ending}").read_bytes().startswith(start)
    assert "not '.gif'" in refused(
        "plot", run, "disk", "--head", "p0", "--relation", "child_of", "--out", tmp_path / "a.gif"
    )


def test_names_that_are_unknown_or_ambiguous(run: Path) -> None:
    assert "Closest: Person 9" in refused("predict", run, "--head", "Persn 9", "--relation", "child_of")
    assert "p3, p4" in refused("predict", run, "--head", "John Smith", "--relation", "child_of")
    assert "child_of" in refused("predict", run, "--head", "p1", "--relation", "childof")
    assert "unknown entity" in refused("nearest", run, "nobody at all")


def test_data_commands(dataset: Path, tmp_path: Path) -> None:
    assert "WN18RR" in ok("data", "list")
    assert "Dettmers" in ok("data", "info", "wn18rr")
    assert "Did you mean WN18RR" in refused("data", "info", "WN18R")
    ok("data", "convert", dataset, tmp_path / "out", "--format", "csv.gz", by=process)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "entity_names.tsv",
        "test.csv.gz",
        "train.csv.gz",
        "valid.csv.gz",
    ]
    ours, theirs = (json.loads(ok("data", "audit", path, "--json"))["counts"] for path in (dataset, tmp_path / "out"))
    assert ours == theirs
    assert "exists" in refused("data", "convert", dataset, tmp_path / "out")
    # The format is looked at before the data, which may take long to read.
    assert "unknown format 'xml'" in refused(
        "data", "convert", tmp_path / "nothing", tmp_path / "new", "--format", "xml"
    )


def test_what_to_do_next_can_be_copied(dataset: Path, tmp_path: Path) -> None:
    """Spaces in a name are quoted."""
    path = tmp_path / "a run's folder"
    printed = ok(*TRAIN, "--data", dataset, "--out", path)
    program, *words = shlex.split(printed.splitlines()[-1].removeprefix("next: "))
    assert (program, words) == ("murp", ["evaluate", str(path)])
    printed = ok("export", path, "--to", "npz", "--out", tmp_path / "a run.npz")
    words = shlex.split(printed.splitlines()[-1].removeprefix("back: murp "))
    assert words == ["import", str(tmp_path / "a run.npz"), "--out", "RUN", "--data", "DATA"]
    message = refused(*TRAIN, "--data", dataset, "--out", path)
    assert f"`murp train --resume {shlex.quote(str(path))}`" in message


def test_nothing_to_do_says_why(dataset: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    ok(*TRAIN, "--data", dataset, "--out", path, "--epochs", "200", "--validate-every", "1", "--patience", "1")
    said = ok("train", "--resume", path).splitlines()[0]
    assert said.startswith("nothing to do: murp d=5 on family stopped early, in epoch ")
    assert f"`murp train --resume {path} --patience 0`" in said
    before = (path / "config.toml").read_bytes()
    message = refused("train", "--resume", path, "--epochs", "800")
    assert f"`murp train --resume {path} --epochs 800 --patience 0`" in message
    assert (path / "config.toml").read_bytes() == before
    more = str(len((path / "metrics.jsonl").read_text().splitlines()) + 1)
    assert ok("train", "--resume", path, "--epochs", more, "--patience", "0").startswith("trained")


def test_nothing_to_do_where_no_metrics_are_left(run: Path, tmp_path: Path) -> None:
    """Lost with their file, or of an imported run, which never had any."""
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").unlink()
    assert "is trained, epoch 3." in ok("train", "--resume", tmp_path / "run")


class TestBadInput:
    """Each with a clear message, a non-zero exit and nothing half-written."""

    @pytest.fixture
    def out(self, tmp_path: Path) -> Path:
        return tmp_path / "out" / "run"

    @pytest.fixture(autouse=True)
    def _nothing_half_written(self, out: Path) -> Any:
        out.parent.mkdir(exist_ok=True)
        yield
        assert list(out.parent.iterdir()) == []

    def broken(self, dataset: Path, tmp_path: Path, file: str, text: str | None) -> Path:
        folder = tmp_path / "broken"
        folder.mkdir()
        for path in dataset.iterdir():
            (folder / path.name).write_text(path.read_text())
        if text is None:
            (folder / file).unlink()
        else:
            (folder / file).write_text(text)
        return folder

    def test_a_row_with_two_fields(self, dataset: Path, tmp_path: Path, out: Path) -> None:
        folder = self.broken(dataset, tmp_path, "valid.tsv", "p1\tchild_of\tp0\np2\tchild_of\n")
        message = refused(*TRAIN, "--data", folder, "--out", out)
        assert "valid.tsv" in message
        assert "line 2" in message

    def test_an_empty_split(self, dataset: Path, tmp_path: Path, out: Path) -> None:
        message = refused(*TRAIN, "--data", self.broken(dataset, tmp_path, "test.tsv", ""), "--out", out)
        assert "test.tsv" in message

    def test_a_missing_file(self, dataset: Path, tmp_path: Path, out: Path) -> None:
        message = refused(*TRAIN, "--data", self.broken(dataset, tmp_path, "train.tsv", None), "--out", out)
        assert "train" in message
        assert "no such folder or file" in refused(*TRAIN, "--data", tmp_path / "nowhere.tsv", "--out", out)

    def test_a_folder_that_is_no_dataset(self, tmp_path: Path, out: Path) -> None:
        (tmp_path / "empty").mkdir()
        assert "is not a dataset" in refused(*TRAIN, "--data", tmp_path / "empty", "--out", out)

    def test_unknown_option_values(self, dataset: Path, out: Path) -> None:
        assert "transf" in refused("train", "--model", "transf", "--out", out, status=2, by=process)
        assert "--dim: must be at least 1" in refused("train", "--data", dataset, "--dim", "0", "--out", out, status=2)
        assert "--lr: must be a finite" in refused("train", "--data", dataset, "--lr", "nan", "--out", out, status=2)
        assert "must be a whole number" in refused("train", "--dim", "many", status=2)
        assert "at least 0" in refused("data", "audit", dataset, "--split-seed", "-1", status=2)
        assert "too long" in refused("data", "convert", dataset, out.parent / ("x" * 300))

    def test_a_bad_configuration_file(self, tmp_path: Path, out: Path) -> None:
        path = tmp_path / "config.toml"
        for text, expected in (
            ("dims = 5", "Did you mean 'dim'"),
            ("dim = 'five'", "dim must be a whole number"),
            ("dim = ", "not a readable TOML"),
        ):
            path.write_text(text)
            message = refused("train", "--config", path, "--out", out)
            assert expected in message
            assert "config.toml" in message

    def test_an_unwritable_output_folder(self, dataset: Path, out: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        told = refused(*TRAIN, "--data", dataset, "--out", tmp_path / "file" / "run")
        assert "cannot be made: a part of this path is a file. Choose a folder" in told
        told = refused(*TRAIN, "--data", dataset, "--out", tmp_path / ("n" * 300))
        assert "cannot be made: its name is too long. Choose a shorter one." in told
        if os.geteuid() != 0:  # root writes everywhere
            (tmp_path / "locked").mkdir(mode=0o500)
            assert "cannot be made" in refused(*TRAIN, "--data", dataset, "--out", tmp_path / "locked" / "run")

    def test_a_run_folder_that_exists(self, run: Path, dataset: Path) -> None:
        assert "exists already" in refused(*TRAIN, "--data", dataset, "--out", run)

    def test_a_folder_that_is_no_run(self, dataset: Path, tmp_path: Path) -> None:
        assert "is not a run folder" in refused("evaluate", dataset)
        assert "there is no run folder" in refused("evaluate", tmp_path / "nothing")

    def test_a_resume_with_other_settings(self, run: Path) -> None:
        assert "--lr" in refused("train", "--resume", run, "--lr", "3")

    def test_a_damaged_checkpoint(self, run: Path, tmp_path: Path) -> None:
        best = run / "best.safetensors"
        (run / "best.previous.safetensors").unlink(missing_ok=True)
        whole = best.read_bytes()
        try:
            best.write_bytes(whole[:-10])
            message = refused("evaluate", run)
        finally:
            best.write_bytes(whole)
        assert "best.safetensors is damaged" in message
        assert "--checkpoint last" in message


def test_a_full_disk_while_saving_keeps_the_last_good_checkpoint(dataset: Path, tmp_path: Path) -> None:
    """The system refuses to write past a limit that the checkpoint exceeds, as a full disk would."""
    run = tmp_path / "run"
    ok(*TRAIN, "--data", dataset, "--out", run, "--dim", "100")
    before = (run / "last.safetensors").read_bytes()
    limit = len(before) // 2

    def little_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = Forked("train", "--resume", run, "--epochs", "5", before=little_space)
    printed, message = process.communicate()
    assert (process.returncode, printed) == (1, "")
    assert "Traceback" not in message
    assert "could not write" in message
    assert ".safetensors" in message
    assert "--resume" in message
    assert (run / "last.safetensors").read_bytes() == before
    assert [p.name for p in run.iterdir() if p.name.endswith(".part")] == []
    ok("train", "--resume", run, "--epochs", "5")


def test_a_full_disk_while_writing_metrics_leaves_them_whole(dataset: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ok(*TRAIN, "--data", dataset, "--out", run, "--dim", "1", "--epochs", "9", "--validate-every", "1")
    metrics = run / "metrics.jsonl"
    before, limit = metrics.read_text(), metrics.stat().st_size + 10

    whole = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, whole[1]))
    try:
        message = refused("train", "--resume", run, "--epochs", "12")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, whole)
    assert "metrics.jsonl" in message
    assert metrics.read_text() == before


def test_ctrl_c_writes_a_checkpoint_and_says_how_to_go_on(dataset: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "murp",
        *TRAIN,
        "--epochs",
        "100000",
        "--validate-every",
        "0",
        "--data",
        str(dataset),
        "--out",
        str(run),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").read_text():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"murp train --resume {run}" in message
    _, state = checkpoint.load(run / "last.safetensors")
    assert state["epoch"] >= 1
    ok("train", "--resume", run, "--epochs", str(state["epoch"] + 1))
