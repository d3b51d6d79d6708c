"""The named datasets: origin, licence, and expected counts.

To add one: a :class:`Dataset` in :data:`REGISTRY`. Its folder's name is its name.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from murp.errors import DataError
from murp.rows import Rows


@dataclass(frozen=True)
class Dataset:
    """One entry of the registry.

    ``base_url`` is the folder to download train.txt, valid.txt and test.txt from, None if there is none; ``sha256`` is
    by file name, for the files as the origin publishes them; ``sha256_of_rows`` for those of which only the rows are
    known, in whatever order. A downloaded file must match one of the two. A local copy may differ in bytes (line ends,
    row order): only its counts are checked.
    """

    name: str
    description: str
    entities: int
    relations: int
    train: int
    valid: int
    test: int
    origin: str
    licence: str
    citation: str
    base_url: str | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)
    sha256_of_rows: Mapping[str, str] = field(default_factory=dict)
    bundled: bool = False

    def counts(self) -> dict[str, int]:
        """Entities, relations and the rows of each split, duplicates counted."""
        names = ("entities", "relations", "train", "valid", "test")
        return {name: getattr(self, name) for name in names}

    def urls(self) -> dict[str, str]:
        """File name to address, empty if nothing can be downloaded."""
        files = ("train.txt", "valid.txt", "test.txt")
        return {} if self.base_url is None else {file: f"{self.base_url}/{file}" for file in files}

    def to_dict(self) -> dict[str, Any]:
        """Everything that is known of it, ready for JSON."""
        return {
            "name": self.name,
            "description": self.description,
            **self.counts(),
            "origin": self.origin,
            "licence": self.licence,
            "citation": self.citation,
            "files": self.urls(),
            "sha256": dict(self.sha256),
        }


def digest_of_rows(content: bytes) -> str:
    """SHA-256 of the lines of a file, sorted and joined by LF."""
    return hashlib.sha256(b"\n".join(sorted(content.splitlines()))).hexdigest()


def datasets() -> Rows[Dataset]:
    """The datasets known by name."""
    return Rows(Dataset, REGISTRY)


def find_dataset(name: str) -> Dataset | None:
    """The dataset called ``name``, upper and lower case alike; None if there is none."""
    return next((entry for entry in REGISTRY if entry.name.lower() == name.lower()), None)


def dataset(name: str) -> Dataset:
    """The dataset called ``name``; a DataError with the closest names if there is none."""
    found = find_dataset(name)
    if found is None:
        raise DataError(f"unknown dataset {name!r}. {suggest(name)}")
    return found


def suggest(name: str) -> str:
    """A sentence with the names that ``name`` may have been meant for, or with all of them."""
    spelled = {entry.name.lower(): entry.name for entry in REGISTRY}
    close = difflib.get_close_matches(name.lower(), spelled, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {' or '.join(spelled[word] for word in close)}?"
    return f"Known datasets: {', '.join(spelled.values())}."


_PAPER_ORIGIN = "https://github.com/ibalazevic/multirelational-poincare"
_PAPER_DATA = "https://raw.githubusercontent.com/ibalazevic/multirelational-poincare/master/data"
_PYKEEN_ORIGIN = "https://github.com/pykeen/pykeen"
_PYKEEN_DATA = "https://raw.githubusercontent.com/pykeen/pykeen/master/src/pykeen/datasets"
_NOT_STATED = "not stated by its publishers"
_DEEPPATH = "Xiong, Hoang, Wang. DeepPath: A Reinforcement Learning Method for Knowledge Graph Reasoning. EMNLP 2017."
_MURP = "Balažević, Allen, Hospedales. Multi-relational Poincaré Graph Embeddings. NeurIPS 2019."


def _nell(
    percent: int,
    counts: tuple[int, int, int, int, int],
    sha256: Mapping[str, str],
    sha256_of_rows: Mapping[str, str] | None = None,
) -> Dataset:
    name = f"NELL-995-h{percent}"
    return Dataset(
        name,
        f"NELL-995 with at least {percent} % of its relations hierarchical.",
        *counts,
        origin=_PAPER_ORIGIN,
        licence=_NOT_STATED,
        citation=f"{_DEEPPATH} Hierarchical subsets: {_MURP}",
        base_url=f"{_PAPER_DATA}/{name}",
        sha256=sha256,
        sha256_of_rows=sha256_of_rows or {},
    )


REGISTRY: tuple[Dataset, ...] = (
    Dataset(
        "wordnet-mini",
        "A part of WordNet 3.0 with several hierarchies and readable names; comes with murp.",
        *(9_152, 9, 17_575, 976, 976),
        origin="https://wordnet.princeton.edu",
        licence="WordNet 3.0 licence (redistribution with its notice, which lies beside the data)",
        citation="Fellbaum (ed.). WordNet: An Electronic Lexical Database. MIT Press 1998.",
        bundled=True,
    ),
    Dataset(
        "WN18RR",
        "WordNet synsets and 11 relations, inverse relations removed.",
        *(40_943, 11, 86_835, 3_034, 3_134),
        origin=_PAPER_ORIGIN,
        licence=f"{_NOT_STATED}; derived from WordNet 3.0, whose licence permits redistribution with notice",
        citation=("Dettmers, Minervini, Stenetorp, Riedel. Convolutional 2D Knowledge Graph Embeddings. AAAI 2018."),
        base_url=f"{_PAPER_DATA}/WN18RR",
        sha256={
            "train.txt": "038612e783c215ee5f3ca9fbfca27b8d0739be1028fe4ee7c174aecf0b83d5df",
            "valid.txt": "453ce7202afa58094a04d2b1560ee2b02660f1c260b32ce6651c8ccedd1028ab",
            "test.txt": "0383bceaaa1096cf3c03ec021ed0048068e2355dbfc0239b292cefdac821cec5",
        },
    ),
    Dataset(
        "FB15k-237",
        "Freebase facts with 237 relations, inverse relations removed.",
        *(14_541, 237, 272_115, 17_535, 20_466),
        origin=_PAPER_ORIGIN,
        licence=f"{_NOT_STATED}; derived from Freebase, published under CC BY",
        citation=(
            "Toutanova, Chen. Observed versus latent features for knowledge base and text inference."
            " CVSC workshop 2015."
        ),
        base_url=f"{_PAPER_DATA}/FB15k-237",
        # The publishers' files have CRLF line ends; copies with LF have other hashes and the same rows.
        sha256={
            "train.txt": "6e4c2782169af21e9743f3b1d200886f5d595bf6bc504ec1351720949c5cdfae",
            "valid.txt": "cf6309010852f6a8d47a45df830a426415d1ee6f7a3970a8376ff1fb81db4a5c",
            "test.txt": "5711cf41623ceb4eacc50eb6108a3ca6565c7492e3caaf82a3e355cc660d1574",
        },
    ),
    _nell(
        100,
        (22_411, 43, 50_314, 3_763, 3_746),
        {
            "train.txt": "4654e0c41c6d0a429621e797548c3c3f6eb91da2a594e93bf5e5d42b2f2f0b97",
            "valid.txt": "8d8e42703c754a046c1be55d88ddbc326f3c337cc63eab479628a139b0da3b3a",
            "test.txt": "5e8efe88fb1e9086ae714b447de30b295dc68d56d0494105ea777778c4242b19",
        },
    ),
    _nell(
        75,
        (28_085, 57, 59_135, 4_441, 4_389),
        {
            "valid.txt": "a25a351f7bef7b214d20a8d80ea7293264d53b5c3f575ab800392726b9a83de4",
            "test.txt": "7740960a49decf623a7442199b2f4bb6641466803e2093f88c33537bf20b55d5",
        },
        {"train.txt": "e6897e810b138a98c807c9b344713c3bdcbf0762eab8a083fedb0ee351012605"},
    ),
    _nell(
        50,
        (34_667, 86, 72_767, 5_440, 5_393),
        {
            "valid.txt": "3df23061a81d053d0a571e35b34646f834a04e33a03d91eb83f9cc9acfa31418",
            "test.txt": "abe28d04ba451213132f7ab8b1b90fe2626a97ef5bd80b075690e657d0a67454",
        },
        {"train.txt": "c701bb99cccd5b3cf71e6366f9bc9bbb039b0d702603188c7840e0fecb32026b"},
    ),
    _nell(
        25,
        (70_145, 172, 122_618, 9_194, 9_187),
        {
            "valid.txt": "3d1896a168a56bc60cc79ec47867db49b8d60de4ae9fcb3b3ab53530d505761e",
            "test.txt": "fb3e4a35da91a9b28a703cb4aef0088a0fb3c0db516975aebc3a15a54ac80cb8",
        },
        {"train.txt": "6d3f947e293699e64fade93f35a250899b92eaf3920bfdfad8dd27ae8bb66087"},
    ),
    Dataset(
        "NELL-995",
        "The 995th iteration of the Never-Ending Language Learner, 200 relations.",
        *(75_492, 200, 149_678, 543, 3_992),
        origin="https://github.com/xwhan/DeepPath",
        licence=_NOT_STATED,
        citation=_DEEPPATH,
    ),
    Dataset(
        "UMLS",
        "The semantic network of the Unified Medical Language System.",
        *(135, 46, 5_216, 652, 661),
        origin=_PYKEEN_ORIGIN,
        licence=_NOT_STATED,
        citation=(
            "McCray. An upper-level ontology for the biomedical domain. Comparative and Functional Genomics 4, 2003."
        ),
        base_url=f"{_PYKEEN_DATA}/umls",
        sha256_of_rows={
            "train.txt": "ed2be825ca1777202e8a28e6ed4b273d380125165ebd3cd67feadd30db726226",
            "valid.txt": "b29d4122f4ee66a5fb8e088d1d8038254def91c90213f7120f4918da6ad9d2ec",
            "test.txt": "bd22e07d3a292bfbfc0f0aafb4fbad5b58821061981dd1bcdfb02f25ff3f7311",
        },
    ),
    Dataset(
        "Nations",
        "Fourteen countries and what they do to each other.",
        *(14, 55, 1_592, 199, 201),
        origin=_PYKEEN_ORIGIN,
        licence=_NOT_STATED,
        citation=(
            "Kemp, Tenenbaum, Griffiths, Yamada, Ueda."
            " Learning Systems of Concepts with an Infinite Relational Model. AAAI 2006."
        ),
        base_url=f"{_PYKEEN_DATA}/nations",
        sha256_of_rows={
            "train.txt": "ba0e9277a89b4b4cab7c4b016edd9977907615ae149ed7216f64eb72c7c8852d",
            "valid.txt": "7ea3a8ee5581501eb75e7bcce291d68640455d2e97ec9ef696357f498da399dd",
            "test.txt": "917265698d32f2b488438cf0620661ac156962681baf260d99f9c611d1cf5783",
        },
    ),
)
