"""Which requests are accepted, and what a browser may do with the answer.

A page of another site must not read a run through the user's browser: answers carry no permission for other
origins, and on loopback only names of this machine are answered, so that a foreign name made to point here (DNS
rebinding) is refused.
"""

from __future__ import annotations

import ipaddress
import socket

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from murp.web.refusals import refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "cache-control": "no-store",
}
# In a notebook: the pages of this machine may show it in a frame, whatever their port; no other site may.
LOCAL = "http://127.0.0.1:* http://localhost:* https://127.0.0.1:* https://localhost:*"
FRAMED_HEADERS = {
    **{name: value for name, value in HEADERS.items() if name != "x-frame-options"},
    "content-security-policy": POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {LOCAL}"),
}


def is_loopback(host: str) -> bool:
    """Whether a bound address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed(header: str, bound: str) -> bool:
    """Whether a request with this Host header is meant for a server bound to ``bound``.

    On loopback: this machine's names for itself. Elsewhere also the name it was bound to, the machine's own name,
    and addresses, which no foreign name server can forge.
    """
    name = _name(header)
    if name is None:
        return False
    if is_loopback(name):
        return True
    if is_loopback(bound):
        return False
    if name in (bound.lower(), socket.gethostname().lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _name(header: str) -> str | None:
    """The host of ``host``, ``host:port`` or ``[v6]:port`` in small letters; None if it is neither."""
    host, port = header.lower(), ""
    if host.startswith("["):
        host, bracket, port = host[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    elif ":" in host:
        host, _, port = host.partition(":")
    return host if host and (not port or (port.isascii() and port.isdigit())) else None


class Guard:
    """Refuses foreign hosts and gives every answer its security headers.

    ``framed``: pages of this machine, a notebook's for one, may show the explorer in a frame. ``any_host``: every host
    name is answered, for servers that ask for a key.
    """

    def __init__(self, app: ASGIApp, bound: str, *, framed: bool = False, any_host: bool = False) -> None:
        self.app = app
        self.bound = bound
        self.any_host = any_host
        headers = FRAMED_HEADERS if framed else HEADERS
        self.headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self.headers]
            await send(message)

        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) == 1 and (self.any_host or allowed(hosts[0].decode("latin-1"), self.bound)):
            await self.app(scope, receive, guarded)
            return
        foreign = refusal(
            421,
            "this server does not answer to the host name of the request.",
            "Use the address that was printed at the start; for another name start it with --host.",
        )
        await foreign(scope, receive, guarded)


def with_head(app: ASGIApp) -> ASGIApp:
    """``app``, answering HEAD wherever it answers GET; that the body is not sent is the server's part."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await app(scope, receive, send)

    return answered
