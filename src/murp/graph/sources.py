"""Find and load a graph from a dataset's name, a folder or a file.

A folder holds train, valid and test, all three, each in any of :mod:`murp.graph.formats`, or is one that
``KnowledgeGraph.save``, Hugging Face's ``datasets`` or Neo4j wrote; a single file is split by
:mod:`murp.graph.splitting`. So are many files that are one set of facts (:mod:`murp.graph.folders.many_files`). Files
that are large, or many, are read in pieces (:mod:`murp.graph.large`), with the same result.
``entity_names.tsv`` and ``relation_names.tsv`` beside the triples (compressed or not) give readable names; an id that
is named twice is an error, names of ids that the graph does not have are left out with a warning.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.resources
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from murp.errors import DataError
from murp.files import user_cache
from murp.graph.assembly import graph_of
from murp.graph.building import divided
from murp.graph.cache import coded, coded_large
from murp.graph.datasets import Dataset, find_dataset, suggest
from murp.graph.findings import Finding
from murp.graph.folders import hugging_face, many_files, neo4j
from murp.graph.formats import FORMATS_IN_WORDS, read_facts
from murp.graph.formats.text import alone
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph
from murp.graph.large import is_large, suits
from murp.graph.large.pieces import NotInPieces
from murp.graph.large.plan import ReadingPlan
from murp.graph.names.checks import check_names
from murp.graph.reading.columns import EACH_BY_TITLE, Columns, not_understood
from murp.graph.reading.facts import Facts, NoFacts
from murp.graph.reading.files import find_file, read_names
from murp.graph.reading.streams import split_endings
from murp.graph.storage import is_saved, read_saved, save_mapped
from murp.paths import not_a_file

_NAMES = ("entity_names", "relation_names")


def load(
    source: str | os.PathLike[str], *, data_dir: Path | None = None, seed: int = 0, columns: Columns = EACH_BY_TITLE
) -> KnowledgeGraph:
    """The graph ``source`` names; ``seed`` matters only for a single file, which is split by it.

    A registered name comes before a folder of that name in the working directory: write ``./UMLS`` for the folder. If
    the counts of a dataset differ from the registry, a warning says so.
    """
    path = locate(source, data_dir=data_dir)
    known = find_dataset(source) if isinstance(source, str) else None
    if known is None:
        graph = read(path, seed=seed, columns=columns)
        whole = path.is_dir() and not hugging_face.is_single(path) and not _is_one_part(path)
        return replace(graph, source=str(path.resolve()), split_seed=0 if whole else seed, columns=columns)
    graph = replace(read(path, columns=columns), name=known.name, source=known.name, columns=columns)
    if differences := _count_differences(known, graph):
        warnings.warn(f"{path} is not {known.name} as published: {differences}.", stacklevel=2)
    return graph


def locate(source: str | os.PathLike[str], *, data_dir: Path | None = None) -> Path:
    """The folder or file of ``source``; a registered dataset that is not found is downloaded.

    It is searched in ``data_dir``, then in the folder of the environment variable MURP_DATA, then in the user's cache.
    A path that is not registered may be relative to the working directory or the first two.
    """
    if isinstance(source, str) and (known := find_dataset(source)) is not None:
        return _locate_dataset(known, data_dir)
    if os.fspath(source) == "":
        raise DataError("the name of the data is empty. Name a dataset, a folder or a file.")
    candidates = dict.fromkeys([Path(source), *(root / source for root in _data_folders(data_dir))])
    for path in candidates:
        if os.path.exists(path):  # unlike Path.exists, False for a name the system refuses
            return path
    if many_files.is_pattern(os.fspath(source)):
        for path in candidates:
            if many_files.matching(str(path)):
                return path
    looked = ", ".join(str(path) for path in candidates)
    close = next((near for path in candidates if (near := _close(path)) is not None), None)
    hint = suggest(Path(source).name) if close is None else f"Did you mean {close}?"
    raise DataError(
        f"{os.fspath(source)!r} is not the name of a dataset, and there is no such folder or file (looked for "
        f"{looked}). {hint}"
    )


def _close(path: Path) -> Path | None:
    """What lies beside ``path``, which is not there, under the name closest to its."""
    try:
        beside = os.listdir(path.parent)
    except (OSError, ValueError):  # not to be read, or a name the system refuses
        return None
    close = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.8)
    return path.with_name(close[0]) if close else None


def read(path: Path, *, seed: int = 0, columns: Columns = EACH_BY_TITLE) -> KnowledgeGraph:
    """The graph of a folder, or of one file split with ``seed``; from :mod:`murp.graph.cache` if it is there."""
    try:
        graph = _read(path, seed, columns)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Give a folder or file that you may read.") from error
    _warn(path, graph.findings)
    return graph


def _read(path: Path, seed: int, columns: Columns) -> KnowledgeGraph:
    plan = plan_of(path, seed=seed, columns=columns)
    if plan is not None and (plan.many_files or is_large(plan.files)):
        with contextlib.suppress(NotInPieces):
            # The entry may have been made under another name of the folder.
            return replace(coded_large(plan), name=plan.name)
    return _read_folder(path, seed, columns) if path.is_dir() else _read_file(path, seed, columns)


def plan_of(path: Path, *, seed: int = 0, columns: Columns = EACH_BY_TITLE) -> ReadingPlan | None:
    """What is to be read in pieces where ``path`` is; None if it is of a kind that is read whole."""
    if not os.path.lexists(path):
        files = many_files.matching(str(path))
        return ReadingPlan(path.parent.resolve().name, [files], columns, {}, seed, many_files=True) if files else None
    if not path.is_dir():
        form, packed = split_endings(path)
        if not suits([path]) or not_a_file(path) is not None:
            return None
        return ReadingPlan(path.name[: -len(form + packed)], [[path]], columns, _name_files(path.parent), seed)
    if is_saved(path) or hugging_face.splits(path) is not None:
        return None
    name, found = path.resolve().name, [find_file(path, split) for split in SPLITS]
    present: list[list[Path]] = [[file] for file in found if file is not None]
    if len(present) == len(SPLITS) and suits([part[0] for part in present]):
        return ReadingPlan(name, present, columns, _name_files(path))
    if present or neo4j.find(path) is not None or (parts := many_files.find(path)) is None:
        return None
    return ReadingPlan(name, parts, columns, _name_files(path), seed, many_files=True)


def code_source(
    source: str | os.PathLike[str],
    out: Path,
    *,
    data_dir: Path | None = None,
    seed: int = 0,
    columns: Columns = EACH_BY_TITLE,
) -> KnowledgeGraph:
    """Make the new folder ``out`` with the graph of ``source`` in coded form, in pieces where that can be."""
    from murp.graph.large.coding import code  # a compiler, which only this needs

    path = locate(source, data_dir=data_dir)
    plan = plan_of(path, seed=seed, columns=columns)
    if plan is not None:
        try:
            _warn(path, code(plan, out))
            return read_saved(out)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}. Give files that you may read.") from error
        except NotInPieces:
            pass  # read whole
    graph = load(source, data_dir=data_dir, seed=seed, columns=columns)
    save_mapped(graph, out)
    return graph


def _is_one_part(folder: Path) -> bool:
    """Whether a folder holds many files of facts that are split by a seed."""
    plan = plan_of(folder)
    return plan is not None and plan.divided


def _data_folders(data_dir: Path | None) -> list[Path]:
    named = os.environ.get("MURP_DATA")
    return [folder for folder in (data_dir, Path(named) if named else None) if folder is not None]


def _locate_dataset(known: Dataset, data_dir: Path | None) -> Path:
    if known.bundled:
        return Path(str(importlib.resources.files("murp.graph") / "bundled" / known.name))
    cache = user_cache()
    roots = [*_data_folders(data_dir), *([] if cache is None else [cache])]
    for root in roots:
        for folder in _folders(root):
            if folder.name.lower() == known.name.lower():
                return folder
    return _download(known, roots, cache)


def _folders(root: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # there is none, or it may not be read
        yield from (path for path in sorted(root.iterdir()) if path.is_dir())


def _download(known: Dataset, roots: list[Path], cache: Path | None) -> Path:
    looked = f"Looked for a folder {known.name} in {', '.join(map(str, roots))}. " if roots else ""
    to_cache = "" if cache is None else f"into {cache / known.name}, or "
    help = (
        f"{looked}Put train.txt, valid.txt and test.txt (from {known.origin}) {to_cache}into a folder {known.name} and "
        "give the folder above it as data directory or as MURP_DATA."
    )
    if known.base_url is None:
        raise DataError(f"{known.name} is not here and cannot be downloaded. {help}")
    if cache is None:
        raise DataError(
            f"{known.name} is not here, and there is no home folder to download it to: set XDG_CACHE_HOME to a folder "
            f"that can be written. {help}"
        )
    target = cache / known.name

    # urllib is slow to import, and a dataset is downloaded once.
    from murp.graph import download as downloading

    def check(folder: Path) -> None:
        if differences := _count_differences(known, read(folder)):
            raise DataError(f"what {known.base_url} offers is not {known.name} as published: {differences}.")

    try:
        downloading.download(known, target, check, fetch=downloading.fetch)
    except DataError as error:
        # Two runs started together both download; the one that comes second finds the folder made.
        if not target.is_dir():
            raise DataError(f"{error} {help}") from error
    return target


def _count_differences(known: Dataset, graph: KnowledgeGraph) -> str:
    """Each count that is not the registry's, in words; empty if all agree."""
    found = graph.counts()
    return ", ".join(
        f"{found[name]:,} {name} instead of {count:,}" for name, count in known.counts().items() if found[name] != count
    )


def _read_folder(folder: Path, seed: int, columns: Columns) -> KnowledgeGraph:
    if is_saved(folder):
        return read_saved(folder)
    name = folder.resolve().name
    if (splits := hugging_face.splits(folder)) is not None:
        parts = [hugging_face.read(files, columns) for files in splits]
        return divided(_index(name, parts, {}), seed=seed) if len(parts) == 1 else _index(name, parts, {})
    files = {split: find_file(folder, split) for split in SPLITS}
    missing = " and ".join(split for split, file in files.items() if file is None)
    present = [file for file in files.values() if file is not None]
    if not present and (export := neo4j.find(folder)) is not None:
        return divided(_index(name, [neo4j.read(export)], {}), seed=seed)
    if not present:
        content = f"It holds {', '.join(sorted(path.name for path in folder.iterdir())[:8]) or 'nothing'}."
        pattern = many_files.pattern_for(folder)
        hint = f" If these files are one set of facts, give the pattern '{pattern}' (in quotes)." if pattern else ""
        raise DataError(
            f"{folder} is not a dataset: it has no train, valid and test ({FORMATS_IN_WORDS}). {content}{hint}"
        )
    if missing:
        there = " and ".join(file.name for file in present)
        raise DataError(
            f"{folder}: it has {there}, but no {missing.replace(' and ', ' and no ')} ({FORMATS_IN_WORDS})."
            " A dataset has all three; to have one file split into three, give that file, not the folder."
        )
    names = _name_files(folder)

    def parse() -> KnowledgeGraph:
        parts = _parts(present, columns)
        _refuse_titles(parts)
        return _index(name, parts, names)

    # The entry may have been made under another name of the folder.
    return replace(_coded([*present, *names.values()], parse, repr(columns)), name=name)


def _parts(files: list[Path], columns: Columns) -> list[Facts]:
    """Train, valid and test; train alone where the others are both empty, as a tree that was converted has them."""
    parts, empty = [read_facts(files[0], columns)], []
    for file in files[1:]:
        try:
            parts.append(read_facts(file, columns))
        except NoFacts as error:
            empty.append(error)
    if len(empty) == 1:
        raise empty[0]
    return parts


def _read_file(path: Path, seed: int, columns: Columns) -> KnowledgeGraph:
    if (why := not_a_file(path)) is not None:
        raise DataError(f"{path} {why}.")
    names = _name_files(path.parent)

    def parse() -> KnowledgeGraph:
        facts = read_facts(path, columns)
        _refuse_titles([facts])
        form, packed = split_endings(path)
        return divided(_index(path.name[: -len(form + packed)], [facts], names), seed=seed)

    return _coded([path, *names.values()], parse, f"{seed} {columns!r}")


def _coded(files: list[Path], parse: Callable[[], KnowledgeGraph], how: str) -> KnowledgeGraph:
    """From the cache, unless the files say what other files hold."""
    elsewhere = any(split_endings(file)[0] == ".sql" for file in files)
    return parse() if elsewhere else coded(files, parse, how)


def _refuse_titles(parts: list[Facts]) -> None:
    """Stop where the first row, which was read as a fact, is the same in all files and nothing of it comes again."""
    firsts = {tuple(column[0].as_py() for column in facts.triples.columns) for facts in parts}
    if len(firsts) == 1 and all(facts.doubtful for facts in parts):
        first = parts[0].triples.slice(0, 1)
        if alone(pa.concat_tables([first, *(facts.triples.slice(1) for facts in parts)])):
            raise not_understood(parts[0].place(0), [*firsts.pop()], "holds nothing that comes again, like a header")


def _name_files(folder: Path) -> dict[str, Path]:
    """The files of names that there are."""
    found = {stem: find_file(folder, stem, (".tsv",)) for stem in _NAMES}
    return {stem: file for stem, file in found.items() if file is not None}


def _index(name: str, parts: list[Facts], files: dict[str, Path]) -> KnowledgeGraph:
    """The graph of one file or three with the names in ``files``, and what was found in reading."""
    tables = {stem: read_names(file) for stem, file in files.items()}
    graph = graph_of(name, parts, tables)
    vocabularies = dict(zip(_NAMES, (graph.entities, graph.relations), strict=True))
    found = [one for stem, file in files.items() for one in check_names(file, tables[stem], vocabularies[stem])]
    return replace(graph, findings=(*graph.findings, *found))


def _warn(path: Path, findings: Sequence[Finding]) -> None:
    """Warn about what was changed or left out, and where: a file of the folder, or everything."""
    folder = path if path.is_dir() else path.parent
    for finding in findings:
        file = os.path.join(folder, finding.where) if "." in finding.where else path
        warnings.warn(f"{file}: {finding.sentence}", stacklevel=4)
