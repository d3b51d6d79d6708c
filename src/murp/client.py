"""A client of ``murp serve``: ask the questions of :class:`murp.Run` over the network.

    client = murp.Client("http://127.0.0.1:8000", key="…")
    client.ask(head="asia.n.01", relation="has_part", k=5, new_only=True)
    client.predict([{"head": "asia.n.01", "relation": "has_part"}, {"relation": "has_part", "tail": "india.n.01"}])
    client.score([("asia.n.01", "has_part", "india.n.01")])

It needs only the standard library and does not import PyTorch.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import SplitResult, urlsplit

from murp.errors import ConfigError, MurpError, first_line
from murp.rows import Rows
from murp.shapes import Answer, Health, Prediction, Question, Reference, Scored

Triple = tuple[str, str, str]
Found = TypeVar("Found")
# What keeps a question from being answered; UnicodeError: of a host name that no machine can have.
FAILURES = (http.client.HTTPException, OSError, UnicodeError)


class RefusedError(MurpError):
    """The server refused a request: HTTP ``status``, ``error``, ``advice``, and the ``closest`` names."""

    def __init__(self, status: int, error: str, advice: str, closest: Sequence[str] = ()) -> None:
        self.status, self.error, self.advice, self.closest = status, error, advice, tuple(closest)
        super().__init__(f"{error} {advice}".strip())

    def __reduce__(self) -> tuple[type[RefusedError], tuple[int, str, str, Sequence[str]]]:
        return type(self), (self.status, self.error, self.advice, self.closest)


class Client:
    """A client of the server at ``address``; each thread has its own connection, which stays open.

    ``key`` is an API key of the server. ``timeout``: seconds to wait for an answer.
    """

    def __init__(self, address: str, *, key: str | None = None, timeout: float = 30.0) -> None:
        if key is not None and not (key and key.isascii() and key.isprintable()):
            raise ConfigError("this is not an API key: a key has only ASCII characters and no line end.")
        self.address, self.timeout = address.rstrip("/"), timeout
        self._parts = _parts(address)
        self._headers = {"content-type": "application/json"} | ({} if key is None else {"x-api-key": key})
        self._lines = threading.local()

    def ask(
        self,
        *,
        relation: str,
        head: str | None = None,
        tail: str | None = None,
        k: int = 10,
        new_only: bool = False,
        types: bool | None = None,
        candidates: Sequence[str] | None = None,
    ) -> Rows[Prediction]:
        """The ``k`` most probable tails of (head, relation, ?) or heads of (?, relation, tail), as ``Run.predict``.

        ``types``: leave out answers that the type constraints refuse; None: the server's default. ``candidates``: rank
        only these entities, by id or name.
        """
        chosen = None if candidates is None else list(candidates)
        given = {"head": head, "tail": tail, "types": types, "candidates": chosen}
        asked = {name: value for name, value in given.items() if value is not None}
        body = {"questions": [{"relation": relation, "k": k, "new_only": new_only, **asked}]}
        answer = self._json("POST", "/predict", lambda found: _answers(found)[0], body)
        return Rows(Prediction, answer.predictions)

    def predict(
        self, questions: Sequence[Question], *, k: int = 10, new_only: bool = False, types: bool | None = None
    ) -> list[Answer]:
        """Answers to many questions, in their order; ``k``, ``new_only`` and ``types`` are defaults for the
        questions."""
        body = {"questions": list(questions), "k": k, "new_only": new_only}
        if types is not None:
            body["types"] = types
        return self._json("POST", "/predict", _answers, body)

    def score(self, triples: Sequence[Triple]) -> Rows[Scored]:
        """φ of each triple (head, relation, tail) by id or name."""
        body = {"triples": [list(triple) for triple in triples]}
        return Rows(Scored, self._json("POST", "/score", _scores, body))

    def health(self) -> Health:
        """Which run is served, and since when."""
        return self._json("GET", "/health", lambda told: Health(**told))

    def metrics(self) -> str:
        """The server's counters, as Prometheus reads them."""
        return self._request("GET", "/metrics").decode()

    def close(self) -> None:
        """End this thread's connection; the next question opens another."""
        line, self._lines.open = getattr(self._lines, "open", None), None
        if line is not None:
            line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.address!r})"

    def _json(
        self, method: str, path: str, read: Callable[[Any], Found], body: Mapping[str, Any] | None = None
    ) -> Found:
        """The answer, converted by ``read``."""
        answer = self._request(method, path, None if body is None else json.dumps(body).encode())
        try:
            return read(json.loads(answer))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise MurpError(
                f"{self.address}{path}: the answer is not from `murp serve` of this version ({first_line(error)}). Use "
                "the address that `murp serve` prints, and install the same version of murp on both sides."
            ) from error

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The body of the answer. If the server has closed an idle connection, the request is sent once more on a new
        one.

        Questions change nothing on the server, so sending one twice does no harm.
        """
        reused = getattr(self._lines, "open", None) is not None
        try:
            status, answer = self._exchange(method, path, body)
        except FAILURES as error:
            self.close()
            if not reused or isinstance(error, TimeoutError):
                raise self._unreachable(error) from error
            try:
                status, answer = self._exchange(method, path, body)
            except FAILURES as again:
                self.close()
                raise self._unreachable(again) from again
        if status != 200:
            raise _refused(status, answer)
        return answer

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        line = getattr(self._lines, "open", None)
        if line is None:
            line = self._lines.open = self._connected()
        line.request(method, f"{self._parts.path.rstrip('/')}{path}", body, self._headers)
        response = line.getresponse()
        return response.status, response.read()

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            line: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self.timeout, context=ssl.create_default_context()
            )
        else:
            line = http.client.HTTPConnection(host, port, timeout=self.timeout)
        line.connect()
        # A question is sent in two pieces, and an answer must not wait for the first to be confirmed.
        line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return line

    def _unreachable(self, error: Exception) -> MurpError:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        return MurpError(f"{self.address}: {why}. Is `murp serve` running there? timeout is {self.timeout:g} s.")


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0  # a port that is none raises
    except ValueError:
        fits = False
    if not fits:
        raise ConfigError(f"{address!r} is not the address of a server: give one like http://127.0.0.1:8000.")
    return parts


def _answers(found: Any) -> list[Answer]:
    return [_answer(one) for one in found["answers"]]


def _scores(found: Any) -> list[Scored]:
    return [Scored(**one) for one in found["scores"]]


def _answer(found: dict[str, Any]) -> Answer:
    def reference(name: str) -> Reference | None:
        return Reference(**found[name]) if found.get(name) else None

    predictions = [Prediction(**one) for one in found["predictions"]]
    return Answer(Reference(**found["relation"]), reference("head"), reference("tail"), predictions)


def _refused(status: int, body: bytes) -> RefusedError:
    try:
        told = json.loads(body)
        return RefusedError(status, told["error"], told["advice"], told.get("closest", ()))
    except (ValueError, KeyError, TypeError):
        return RefusedError(status, f"the server answered {status}.", "Is it `murp serve`?")
