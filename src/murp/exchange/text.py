"""Vectors of entities as text, for tools that read nothing else. They cannot hold the whole model.

word2vec: ``vectors.txt`` (a line of counts, then a word and its numbers a line), ``words.tsv`` (word, id, name).
TensorBoard's projector: ``tensors.tsv``, ``metadata.tsv`` (name, id, gloss), ``projector_config.pbtxt``.
Both with the description in ``about.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import torch

from murp.errors import DataError
from murp.exchange.contents import Contents
from murp.export_formats import FORMATS
from murp.files import new_folder
from murp.graph import Vocabulary
from murp.runs import Run

ABOUT = "about.json"
WORD2VEC, PROJECTOR = FORMATS["word2vec"].holds, FORMATS["tensorboard"].holds


def write_word2vec(contents: Contents, run: Run, path: Path) -> None:
    """Make the folder ``path``, whole or not at all."""
    words = unique_words(contents.entities)
    points = contents.tables["entity"]
    with new_folder(path, DataError) as part:
        with (part / WORD2VEC).open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"{points.shape[0]} {points.shape[1]}\n")
            file.writelines(f"{word} {row}\n" for word, row in zip(words, _numbers(contents, " "), strict=True))
        labels = zip(words, _labels(contents.entities), strict=True)
        (part / "words.tsv").write_text(
            "".join(f"{word}\t{id}\t{name}\n" for word, (id, name, _) in labels), encoding="utf-8"
        )
        (part / ABOUT).write_text(contents.about_json(), encoding="utf-8")


def write_projector(contents: Contents, run: Run, path: Path) -> None:
    """Make the folder ``path``, whole or not at all."""
    with new_folder(path, DataError) as part:
        with (part / "tensors.tsv").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{row}\n" for row in _numbers(contents, "\t"))
        lines = (f"{name}\t{id}\t{gloss}\n" for id, name, gloss in _labels(contents.entities))
        (part / "metadata.tsv").write_text("name\tid\tgloss\n" + "".join(lines), encoding="utf-8")
        (part / PROJECTOR).write_text(
            'embeddings {\n  tensor_name: "entity"\n  tensor_path: "tensors.tsv"\n  metadata_path: "metadata.tsv"\n}\n'
        )
        (part / ABOUT).write_text(contents.about_json(), encoding="utf-8")


def unique_words(vocabulary: Vocabulary) -> list[str]:
    """A word for each entity, in order: its name without blanks, with its id where another has the same.

    A blank becomes _. Two that would still be the same get a number.
    """
    names = [_word(name) for _, name, _ in _labels(vocabulary)]
    shared = {name for name, count in _counts(names).items() if count > 1}
    taken = set(names) - shared
    words = []
    for name, id in zip(names, vocabulary.ids.to_pylist(), strict=True):
        word = name
        if name in shared:
            word = base = f"{name}[{_word(id)}]"
            number = 1
            while word in taken:
                number += 1
                word = f"{base}#{number}"
            taken.add(word)
        words.append(word)
    return words


def _word(text: str) -> str:
    return re.sub(r"\s", "_", text) or "_"


def _counts(names: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _labels(vocabulary: Vocabulary) -> Iterator[tuple[str, str, str]]:
    """Id, name and gloss on one line each, without tabs."""
    table = vocabulary.table()
    columns = [
        table[column].to_pylist() if column in table.column_names else [None] * len(table)
        for column in ("id", "name", "gloss")
    ]
    for id, name, gloss in zip(*columns, strict=True):
        yield _line(id), _line(name or id), _line(gloss or "")


def _line(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def _numbers(contents: Contents, separator: str) -> Iterator[str]:
    points = contents.tables["entity"]
    # So many digits that a reader of the same precision gets the same bits.
    digits = "%.9g" if points.dtype == torch.float32 else "%.17g"
    for row in points:
        yield separator.join([digits % value for value in row.tolist()])
