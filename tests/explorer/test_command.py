"""``murp explore`` as a user types it, and the page it exports."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from explorer_runs import NASTY, made_run, nasty_graph, wait_for

from forked import Forked
from murp.cli.main import main
from murp.errors import MurpError
from murp.explorer.collection import Collection
from murp.explorer.export import joined, page, write_page
from murp.graph import KnowledgeGraph

LIMIT = 60


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "murp", "explore", *map(str, arguments)]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The message of a command that must fail before anything is served or written."""
    assert main(["explore", *map(str, arguments)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, make_tree: Callable[..., KnowledgeGraph]) -> Path:
    path = tmp_path_factory.mktemp("runs") / "names"
    made_run(path, nasty_graph(make_tree()), save=True)
    return path


def test_it_serves_says_where_and_ends_with_ctrl_c(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in saved.rglob("*")}
    ours, theirs = os.pipe()
    process = Forked("explore", saved, "--port", "0", out=theirs)
    os.close(theirs)
    printed = open(ours)  # noqa: SIM115 (to the end of the test)
    try:
        line = printed.readline()
        found = re.fullmatch(r"explorer: (http://127\.0\.0\.1:(\d+)/)  \(Ctrl-C ends it\)\n", line)
        assert found, line
        with urllib.request.urlopen(f"{found[1]}api/predict?head=n5&relation=parent&k=3", timeout=LIMIT) as response:
            assert len(json.load(response)["predictions"]) == 3
            assert "server" not in response.headers
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(urllib.request.Request(found[1], headers={"Host": "evil.example"}), timeout=LIMIT)
        assert "in use" in refused(capsys, saved, "--port", found[2])
        # Bound to one address: another one of this machine, as good as one from elsewhere, finds nothing.
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", int(found[2])), timeout=5).close()
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
        with printed:
            out = printed.read()
    err = "".join(line for line in err.splitlines(True) if not line.startswith("murp: compiling"))
    assert (process.returncode, out, err) == (0, "", "")
    assert before == {path: path.stat().st_mtime_ns for path in saved.rglob("*")}


def test_it_serves_without_standard_streams(saved: Path) -> None:
    """Closed, so that their numbers are free for the sockets."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command(saved, "--port", str(port))]
    process = subprocess.Popen(closed, env=os.environ)
    try:
        wait_for(lambda: process.poll() is not None or answers(port))
        assert answers(port)
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 0
    finally:
        process.kill()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/metrics", timeout=LIMIT) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_what_it_refuses(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], make_tree: Callable[..., KnowledgeGraph]
) -> None:
    assert "there is no run folder" in refused(capsys, tmp_path / "nothing", "--port", "0")
    other = tmp_path / "other"
    made_run(other, make_tree(levels=3), save=True)
    assert "another graph than" in refused(capsys, saved, other, "--port", "0")
    assert "ports end at 65535" in refused(capsys, saved, "--port", "70000")
    assert "one run" in refused(capsys, saved, other, "--export", tmp_path / "a.html")


def test_the_export_is_one_file_that_asks_for_nothing(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert main(["explore", str(saved), "--export", str(out)]) == 0
    assert capsys.readouterr().out == f"page: {out}\n"
    text = out.read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!data:|#|/openapi)', text)
    assert not re.findall(r"^import |^export ", text, re.MULTILINE)
    for name in NASTY[:3]:
        assert name not in text  # not as markup: only escaped, inside the data
    assert "exists already" in refused(capsys, saved, "--export", out)
    assert out.read_text(encoding="utf-8") == text
    assert "a page is a .html file" in refused(capsys, saved, "--export", tmp_path / "page.pdf")


def test_the_exported_data_is_the_runs(tmp_path: Path, small_tree: KnowledgeGraph) -> None:
    run = made_run(tmp_path, nasty_graph(small_tree))
    text = page(Collection([run]))
    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[0])
    assert data["entities"]["names"] == [run.graph.entities.name(i) for i in range(63)]
    assert data["entities"]["glosses"] == [run.graph.entities.gloss(i) for i in range(63)]
    assert set(data["edges"]) == {"parent", "next"}


def test_a_folder_that_cannot_be_written(tmp_path: Path, small_tree: KnowledgeGraph) -> None:
    with pytest.raises(MurpError, match=r"could not write .*page\.html"):
        write_page(made_run(tmp_path, small_tree), tmp_path / "missing" / "page.html")


@pytest.mark.parametrize(("module", "last"), [("app.js", "const start ="), ("live.js", "const begin = guarded")])
def test_modules_are_joined_each_once_and_in_order(module: str, last: str) -> None:
    script = joined(module)
    assert script.count("class Disk ") == 1
    assert script.index("const poincare") < script.index("class Disk ") < script.index(last)
    names = re.findall(r"^(?:async )?(?:const|let|function|class) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)), "two modules share a top-level name"


def test_the_page_of_the_bundled_graph_is_under_five_megabytes(tmp_path: Path) -> None:
    run = made_run(tmp_path, KnowledgeGraph.load("wordnet-mini"), dim=3)
    assert len(page(Collection([run])).encode()) < 5_000_000
