"""Ranks on a GPU, whose rows and gradients travel with NCCL, as a user starts them on several machines.

NCCL refuses two ranks on one GPU of one machine. So every rank here has a torchrun of its own, and tells NCCL that it
is on a machine of its own (``NCCL_HOSTID``): messages then go through sockets, not from GPU to GPU.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_fused_on_ranks import engine_of, losses, weights

import murp
from murp.graph import KnowledgeGraph
from murp.runs import folder

pytestmark = pytest.mark.gpu
SETTINGS = ["--dim", "6", "--batch-size", "20", "--negatives", "3", "--lr", "0.02", "--optimizer", "adam"]
SETTINGS += ["--slices", "4", "--validate-every", "1", "--save-every", "0"]
DEVICE = "cuda"


def begun(size: int, *words: str) -> list[subprocess.Popen[str]]:
    """Start a command on ``size`` ranks, each with a torchrun of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", str(size), "--nproc-per-node", "1"]
    launcher += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1"]
    started = []
    for number in range(size):
        here = {"NCCL_HOSTID": f"machine{number}", "NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
        started.append(
            subprocess.Popen(
                [*launcher, "--node-rank", str(number), "-m", "murp", *words],
                env={**os.environ, **here},
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
    return started


def on_machines(size: int, *words: str) -> list[str]:
    """Run a command on ``size`` ranks. Returns what every torchrun printed."""
    started = begun(size, *words)
    ended = [one.communicate(timeout=300) for one in started]
    assert [one.returncode for one in started] == [0] * size, "\n".join(err for _, err in ended)
    return [out for out, _ in ended]


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        (["--model", "murp"], "sharded triton"),
        (["--model", "roth-stretch", "--objective", "self-adversarial", "--lr-schedule", "constant"], "sharded"),
    ],
)
def test_ranks_on_gpus_are_one_process(
    settings: list[str], engine: str, small_tree: KnowledgeGraph, tmp_path: Path, capsys: Any
) -> None:
    """Three ranks, then two, then one: losses, weights and MRR of one process up to the order of additions."""
    small_tree.save(tmp_path / "graph")
    about = ["--data", str(tmp_path / "graph"), "--device", DEVICE, *SETTINGS, *settings]
    calm, run = tmp_path / "calm", tmp_path / "run"
    one = ["train", *about, "--out", str(calm), "--epochs", "3"]
    subprocess.run([sys.executable, "-m", "murp", *one], check=True)
    on_machines(3, "train", *about, "--out", str(run), "--epochs", "1")
    on_machines(2, "train", "--resume", str(run), "--epochs", "2")
    on_machines(1, "train", "--resume", str(run), "--epochs", "3")
    assert engine_of(run) == engine_of(calm) == engine
    np.testing.assert_allclose(losses(run), losses(calm), rtol=1e-4)
    expected = weights(calm)
    for name, values in weights(run).items():
        torch.testing.assert_close(values, expected[name], rtol=1e-2, atol=1e-3, msg=name)

    (said,) = (out for out in on_machines(2, "evaluate", str(run), "--device", DEVICE, "--json") if out)
    assert json.loads(said)["mrr"] == pytest.approx(murp.evaluate(str(run), "test", device=DEVICE).mrr, rel=1e-3)
    asked = ["predict", str(run), "--head", "n4", "--relation", "next", "-k", "5", "--json"]
    (answers,) = (out for out in on_machines(2, *asked, "--device", DEVICE) if out)
    alone = subprocess.run([sys.executable, "-m", "murp", *asked], check=True, capture_output=True, text=True).stdout
    first, second = ([row["id"] for row in json.loads(text)["predictions"]] for text in (answers, alone))
    assert first == second


def test_a_rank_that_is_killed_is_noticed(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """The others end soon, with one message that says how to continue; and so it does."""
    small_tree.save(tmp_path / "graph")
    run = tmp_path / "run"
    about = ["--data", str(tmp_path / "graph"), "--device", DEVICE, *SETTINGS]
    started = begun(2, "train", *about, "--out", str(run), "--epochs", "100000")
    for _ in range(600):
        time.sleep(0.2)
        if (run / folder.LAST).with_suffix(".shards").exists():
            break
    (first,) = Path(f"/proc/{started[0].pid}/task/{started[0].pid}/children").read_text().split()[:1]
    os.kill(int(first), signal.SIGKILL)
    began = time.monotonic()
    said = [one.communicate(timeout=300)[1] for one in started]
    assert all(one.returncode for one in started)
    assert time.monotonic() - began < 40
    (line,) = (line for line in said[1].splitlines() if "another rank has stopped without a message" in line)
    assert f"continue with `murp train --resume {run}`" in line
    epoch = len(losses(run))
    on_machines(2, "train", "--resume", str(run), "--epochs", str(epoch + 1))
    assert len(losses(run)) == epoch + 1
