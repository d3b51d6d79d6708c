"""The page as one file without a server: the disk and the search of one run.

The page's modules are joined into one script. They are written so that this is enough: their top-level names differ,
and they import each other by name alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from murp.errors import MurpError
from murp.explorer import answers, columns
from murp.explorer.collection import MOST_NAMED, Collection, PreparedRun
from murp.explorer.facts import likely, probabilities
from murp.explorer.markup import read
from murp.files import replacing
from murp.runs import Run
from murp.web.encoding import packed, to_json

MOST_LIKELY = 50_000  # entities whose likely facts a page carries
_IMPORT = re.compile(r'^import [^;]*? from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|let|function|async|class)", re.MULTILINE)


def write_page(run: Run, path: Path) -> None:
    """Write the page of ``run`` to ``path``; a file that exists is refused."""
    if path.suffix not in (".html", ".htm"):
        raise MurpError(f"{path}: a page is a .html file.")
    try:
        if path.exists():
            raise MurpError(f"{path} exists already. Choose another name, or remove it first.")
        text = page(Collection([run]))
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MurpError(f"could not write {path}: {error.strerror}. Choose a folder that can be written.") from error


def page(collection: Collection) -> str:
    """The whole page: markup, style, script and data."""
    return one_file("index.html", "app.js", contents(collection))


def one_file(markup: str, module: str, values: dict[str, Any]) -> str:
    """A page of ours with everything it needs in it, and ``values`` as its data."""
    script, style = joined(module), read("style.css")
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:"
    icon = base64.b64encode(read("icon.svg").encode()).decode()
    # "<" would let a name end the element it stands in.
    data = to_json(values).decode().replace("<", "\\u003c")
    head = {
        '<link rel="icon" href="/page/icon.svg">': f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">',
        '<link rel="stylesheet" href="/page/style.css">': f"<style>{style}</style>",
        f'<script type="module" src="/page/{module}"></script>': f'<script type="module">{script}</script>',
        '<meta charset="utf-8">': '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        "</head>": f'<script type="application/json" id="data">{data}</script>\n</head>',
    }
    text = read(markup)
    for tag, inline in head.items():
        assert text.count(tag) == 1, tag
        text = text.replace(tag, inline)
    return text


def contents(collection: Collection) -> dict[str, Any]:
    """What the exported page knows: names, glosses, norms, biases, one picture and the facts, known and likely."""
    prepared, shown = collection.prepared[0], collection.shown[:MOST_NAMED]
    glosses = [collection.graph.entities.gloss(int(i)) for i in shown]
    return {
        "about": answers.about(collection),
        "entities": {**answers.drawn(collection), "glosses": glosses},
        "likely": _likely(collection, prepared),
        "columns": {name: columns.column(collection, 1, name) for name in columns.names(collection)},
        "tree": answers.grown(collection, 1),
        "project": answers.project(collection, 1, None, 20, points=True),
        "norms": packed(np.array(prepared.norms)[shown], "float32"),
        "biases": {role: packed(np.array(values)[shown], "float32") for role, values in prepared.biases.items()},
        "edges": {id: collection.edges(r)["edges"] for r, id in enumerate(collection.relations.ids)},
        "splits": {id: collection.edges(r)["splits"] for r, id in enumerate(collection.relations.ids)},
    }


def _likely(collection: Collection, prepared: PreparedRun) -> dict[str, Any]:
    """The likely new facts of the drawn entities (P, k): row, place of the other end and probability; the row is 2R
    if there is none. Of a large graph the most important entities have them."""
    shown = collection.shown[:MOST_LIKELY]
    found = likely(prepared, shown)
    place = np.full(len(collection.entities), -1)
    place[collection.shown] = np.arange(len(collection.shown))
    others = np.where(found.objects < 0, -1, place[found.objects])
    rows = np.where(others < 0, 2 * len(collection.relations), found.rows)
    own, calibrated = probabilities(prepared, found)
    return {
        "rows": packed(rows, "uint32"),
        "others": packed(np.maximum(others, 0), "uint32"),
        "probabilities": packed(own if calibrated is None else calibrated, "float32"),
        "calibrated": prepared.calibration is not None,
    }


def joined(name: str) -> str:
    """A module and everything it imports as one module, each once and before those that need it."""
    order: list[str] = []

    def visit(module: str) -> None:
        if module not in order:
            for needed in _IMPORT.findall(read(module)):
                visit(needed)
            order.append(module)

    visit(name)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", read(module))) for module in order)


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
