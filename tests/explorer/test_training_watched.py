"""A training that is watched: snapshots that stay few, the page that shows them, and films of them."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import BROWSER, Page, dots, settled
from explorer_runs import serving

from forked import Forked
from murp.cli.main import main
from murp.errors import MurpError
from murp.explorer import animation, snapshots
from murp.explorer.animation import EVERY_MS, LAST_MS, beside, write_animation
from murp.explorer.app import create_live_app
from murp.explorer.live import Live
from murp.explorer.snapshots import Recorder, Snapshots
from murp.explorer.watched import Watched
from murp.training import resume, train
from murp.training.progress import Silent
from trees import tree

SETTINGS: dict[str, Any] = {"dim": 5, "engine": "torch", "validate_every": 4, "batch_size": 64, "negatives": 5}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twelve epochs, all of which it has time to record, of which it may keep eight."""

    path = tmp_path_factory.mktemp("watched") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "SHARE", 100.0)
        patch.setattr(snapshots, "MOST", 8)
        train(tree(), out=path, epochs=12, progress=Recorder(Silent()), **SETTINGS)
    return path


def test_snapshots_are_thinned_and_the_last_is_there(recorded: Path) -> None:
    epochs = Snapshots(recorded).epochs()
    assert epochs[0] == 0
    assert epochs[-1] == 12
    assert len(epochs) <= 9
    assert all(epoch % 2 == 0 for epoch in epochs)
    first, last = (np.linalg.norm(Snapshots(recorded).frame(epoch), axis=1) for epoch in (0, 12))
    assert first.max() < last.max()  # it grows


def test_snapshots_change_no_bit_of_the_training(recorded: Path, tmp_path: Path) -> None:

    plain = train(tree(), out=tmp_path / "plain", epochs=12, progress=Silent(), **SETTINGS)
    from murp.runs import load

    watched = load(recorded, device="cpu")
    for name, values in plain.model.parameters.items():
        assert np.array_equal(values.numpy(), watched.model.parameters[name].numpy()), name


def test_a_snapshot_that_costs_too_much_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(snapshots, "SHARE", 0.0)
    train(tree(), out=tmp_path / "run", epochs=6, progress=Recorder(Silent()), **SETTINGS)
    assert Snapshots(tmp_path / "run").epochs() == [0, 6]  # the first and the last, whatever they cost
    resume(tmp_path / "run", epochs=8, progress=Recorder(Silent()))
    assert Snapshots(tmp_path / "run").epochs() == [0, 6, 8]


def test_a_watched_training_answers_while_it_trains(tmp_path: Path) -> None:

    asked: list[Any] = []

    class Asking(Silent):
        def epoch(self, record: dict[str, Any]) -> None:
            if record["epoch"] == 3:
                with urllib.request.urlopen(f"http://127.0.0.1:{watched.port}/api/training", timeout=30) as answer:
                    asked.append(json.load(answer))
                    asked.append(answer.headers["content-security-policy"])

    watched = Watched(Asking(), "127.0.0.1", 0)
    train(tree(), out=tmp_path / "run", epochs=5, progress=watched, **SETTINGS)
    told, policy = asked
    assert (told["epochs"], told["done"]) == (5, False)
    assert 0 in told["snapshots"]
    assert "default-src 'none'" in policy


def test_train_explore_as_a_user_types_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The address of the training is told, then the run is shown there until Ctrl-C, and its film is kept."""
    tree().save(tmp_path / "tree")
    typed = ["train", "--data", str(tmp_path / "tree"), "--dim", "2", "--epochs", "2", "--engine", "torch"]
    (our_out, their_out), (our_err, their_err) = os.pipe(), os.pipe()
    words = [*typed, "--out", str(tmp_path / "run"), "--explore", "--port", "0"]
    process = Forked(*words, out=their_out, err=their_err)
    os.close(their_out)
    os.close(their_err)
    with open(our_out) as printed, open(our_err) as errors:
        try:
            told = next(line for line in errors if line.startswith("training: "))
            training = re.match(r"training: (http://127\.0\.0\.1:(\d+)/)$", told)
            assert training, told
            said = [printed.readline() for _ in range(4 + 1)]
            assert said[0].startswith("trained murp d=2 on tree: epoch 2, loss ")
            assert said[-1] == f"explorer: {training[1]}  (Ctrl-C ends it)\n"  # a page that is open goes on
            with urllib.request.urlopen(f"{training[1]}api/run", timeout=60) as answer:
                assert json.load(answer)["runs"][0]["dim"] == 2
            # A port that is taken is told before anything is trained, and one without --explore too.
            for port, explore in ((training[2], ["--explore"]), ("8000", [])):
                assert main([*typed, "--out", str(tmp_path / "other"), "--port", port, *explore]) == 1
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    assert process.returncode == 0
    taken, alone = capsys.readouterr().err.splitlines()
    assert f"port {training[2]} of 127.0.0.1 is in use" in taken
    assert "--port is the port of --explore" in alone
    assert not (tmp_path / "other").exists()
    assert {0, 2} <= set(Snapshots(tmp_path / "run").epochs())


def test_films(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    write_animation(recorded, tmp_path / "film.gif")
    monkeypatch.setattr(animation, "FRAMES", 3)
    write_animation(recorded, tmp_path / "short.gif")
    with Image.open(tmp_path / "short.gif") as film:
        assert film.n_frames == 3  # type: ignore[attr-defined]
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == len(Snapshots(recorded).epochs())  # type: ignore[attr-defined]
    with pytest.raises(MurpError, match="exists already"):
        write_animation(recorded, tmp_path / "film.gif")
    with pytest.raises(MurpError, match=r"a film is a \.gif, \.mp4 or \.html"):
        write_animation(recorded, tmp_path / "film.avi")
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MurpError, match="ffmpeg, which is not installed"):
        write_animation(recorded, tmp_path / "film.mp4")
    assert not (tmp_path / "film.mp4").exists()


def test_no_name_of_a_film_is_cut_at_the_rim() -> None:
    for x in (0.0, 400.0, 700.0, 879.0):
        at, anchor = beside(x, 200.0, 880.0)
        left = at if anchor == "lm" else at - 200
        assert left >= 0
        assert left + 200 <= 880
        assert left > x or left + 200 < x  # beside its point


def test_an_mp4_is_made_by_ffmpeg(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of ffmpeg, by one that stands in for it: the pictures in order, the last one for a while."""
    asked = tmp_path / "bin" / "ffmpeg"
    asked.parent.mkdir()
    asked.write_text(
        '#!/bin/sh\nfor last; do :; done\nwhile [ "$1" != -i ]; do shift; done\nls "$(dirname "$2")" > "$last"\n',
        encoding="utf-8",
    )
    asked.chmod(0o755)
    monkeypatch.setenv("PATH", f"{asked.parent}{os.pathsep}{os.environ['PATH']}")
    write_animation(recorded, tmp_path / "film.mp4")
    pictures = (tmp_path / "film.mp4").read_text(encoding="utf-8").split()
    assert pictures == [f"{i:05d}.png" for i in range(len(Snapshots(recorded).epochs()) + LAST_MS // EVERY_MS)]
    asked.write_text("#!/bin/sh\necho no such codec >&2\nexit 3\n", encoding="utf-8")
    with pytest.raises(MurpError, match="ffmpeg could not make the film: no such codec"):
        write_animation(recorded, tmp_path / "again.mp4")
    assert not (tmp_path / "again.mp4").exists()


@pytest.mark.browser
@pytest.mark.skipif(BROWSER[1].args[0], reason=BROWSER[1].kwargs["reason"])
def test_the_page_shows_the_newest_and_plays(page: Page, recorded: Path, tmp_path: Path, complaints: list[str]) -> None:
    with serving(create_live_app(Live(recorded))) as (host, port):
        page.goto(f"http://{host}:{port}/")
        settled(page)
        assert page.locator("#epoch-said").inner_text() == "epoch 12 of 12"
        last = dots(page)
        page.locator("#epoch").fill("0")
        page.get_by_text("epoch 0 of 12").wait_for()
        assert dots(page) != last
        page.locator("#play").click()
        page.get_by_text("epoch 12 of 12").wait_for()
        assert dots(page) == last
        assert page.locator("#validations tbody tr").count() == 3
    write_animation(recorded, tmp_path / "film.html")
    assert not re.findall(r'(?:src|href)="(?!data:|#)', (tmp_path / "film.html").read_text(encoding="utf-8"))
    page.goto((tmp_path / "film.html").as_uri())
    settled(page)
    assert dots(page) == last
