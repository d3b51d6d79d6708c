"""Download a dataset from its public origin: over https, checked, completely or not at all."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO

from murp.errors import DataError
from murp.files import new_folder
from murp.graph.datasets import Dataset, digest_of_rows

Fetch = Callable[[str], bytes]

_TIMEOUT_S = 30.0


def fetch(url: str) -> bytes:
    """The bytes at ``url``, which must be https from the first request to the last redirect."""
    _require_https(url)
    with urllib.request.build_opener(HttpsRedirects).open(url, timeout=_TIMEOUT_S) as reply:
        content: bytes = reply.read()
        return content


def download(dataset: Dataset, folder: Path, check: Callable[[Path], None], *, fetch: Fetch = fetch) -> None:
    """Make ``folder`` with the dataset's three files.

    Every file is checked by the SHA-256 that the registry has of it, or of its rows, before anything reads it; then
    ``check`` looks at the finished temporary folder and raises if it is not what it should be. If anything fails,
    nothing is left behind.
    """
    with new_folder(folder, DataError) as part:
        for name, url in dataset.urls().items():
            try:
                content = fetch(url)
            except (OSError, HTTPException) as error:
                raise DataError(f"{dataset.name} could not be downloaded from {url}: {error}.") from error
            _check_hash(dataset, name, url, content)
            (part / name).write_bytes(content)
        check(part)


def _check_hash(dataset: Dataset, name: str, url: str, content: bytes) -> None:
    if name in dataset.sha256:
        known, actual, of = dataset.sha256[name], hashlib.sha256(content).hexdigest(), ""
    elif name in dataset.sha256_of_rows:
        known, actual, of = dataset.sha256_of_rows[name], digest_of_rows(content), " of its sorted rows"
    else:
        raise DataError(f"{dataset.name}: no hash of {name} is known, so {url} cannot be trusted.")
    if actual != known:
        raise DataError(
            f"{dataset.name}: {url} has SHA-256 {actual}{of} instead of {known}: it is not the published file."
            " Nothing was kept. Try again, or get the file elsewhere."
        )


class HttpsRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https and refuses all others."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _require_https(url: str) -> None:
    if not url.lower().startswith("https://"):
        raise DataError(f"{url}: datasets are downloaded over https only.")
