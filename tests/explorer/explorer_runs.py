"""Small runs to explore: a tree whose names would be trouble as markup, and random weights in both geometries."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from murp import models
from murp.config import Config
from murp.explorer.app import create_app
from murp.explorer.collection import Collection
from murp.graph import KnowledgeGraph, Vocabulary
from murp.runs import Run, folder
from murp.web.connections import Server
from murp.web.server import bind, configured

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have a successor of httpx, and works with both
    from starlette.testclient import TestClient

NASTY = [
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "</script><script>document.title='taken'</script>",
    '"quoted" & \\ back\\slash \u2028 </td>',
    "ünïcödé 木 🌳",
    "javascript:alert(1)",
]


def nasty_graph(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The same facts among entities whose names and glosses are markup, script and other alphabets."""
    names = [NASTY[i] if i < len(NASTY) else f"node {i}" for i in range(graph.num_entities)]
    glosses = [NASTY[i % len(NASTY)] for i in range(graph.num_entities)]
    ids = [f"n{i}" for i in range(graph.num_entities)]
    relations = Vocabulary("relation", ["parent", "next"], ["<b>parent</b>", "next"])
    entities = Vocabulary("entity", ids, names, glosses)
    return KnowledgeGraph("tree <i>of names</i>", entities, relations, graph.train, graph.valid, graph.test)


def made_run(path: Path, graph: KnowledgeGraph, *, seed: int = 0, save: bool = False, **settings: Any) -> Run:
    """A run with random weights, far enough from the origin for distances to differ."""
    config = Config(**{"dim": 5, "dtype": "float64", **settings})
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(seed)
    generator = torch.Generator().manual_seed(seed)
    for name, scale in (("entity", 150.0 if config.dim < 9 else 60.0), ("translation", 100.0)):
        if name in model.parameters:
            model.parameters[name] *= scale
    for name in ("subject_bias", "object_bias"):
        if name in model.parameters:
            model.parameters[name].normal_(0.5, 0.5, generator=generator)
    state = {"epoch": 3, "best_mrr": 0.25, "best_epoch": 3}
    if save:
        folder.create(path, config, graph, model, state, "torch")
    return Run(path, config, graph, model, state)


def client_of(*runs: Run, bound: str = "127.0.0.1", host: str = "127.0.0.1:8000") -> TestClient:
    """A client that speaks to the application without a network."""
    return TestClient(
        create_app(Collection(list(runs)), bound), base_url=f"http://{host}", raise_server_exceptions=True
    )


@contextlib.contextmanager
def running(app: Any, loop: str = "auto") -> Iterator[tuple[Server, tuple[str, int]]]:
    """An application served as `murp explore` serves it, in a thread: the server and its address."""
    bound = bind("127.0.0.1", 0)
    config = configured(app)
    config.loop = loop
    server = Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield server, bound.getsockname()
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        bound.close()
    assert not thread.is_alive(), "it does not end"


@contextlib.contextmanager
def serving(app: Any, loop: str = "auto") -> Iterator[tuple[str, int]]:
    """The address at which an application is served."""
    with running(app, loop) as (_, address):
        yield address


def wait_for(happens: Callable[[], bool]) -> None:
    """Until something has come true; half a minute without it fails."""
    end = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.05)
