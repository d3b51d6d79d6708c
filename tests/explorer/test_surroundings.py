"""Where the explorer runs: machines without IPv4 or names, other threads, a loop that runs already, a forked child."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest

from murp.errors import MurpError
from murp.explorer.server import address_of, bind


def without(monkeypatch: pytest.MonkeyPatch, family: int) -> None:
    """As on a machine that has no addresses of a family."""
    really = socket.socket.bind

    def refuses(line: socket.socket, address: Any) -> None:
        if line.family == family:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        really(line, address)

    monkeypatch.setattr(socket.socket, "bind", refuses)


def ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as line:
            line.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not ipv6(), reason="needs IPv6 on the loopback")
def test_without_ipv4_it_listens_on_the_other_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, socket.AF_INET)
    with bind("127.0.0.1", 0) as bound:
        assert address_of(bound) == f"http://[::1]:{bound.getsockname()[1]}/"


def test_a_name_is_tried_with_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of them may be of a family that this machine has no addresses of."""
    both = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    without(monkeypatch, socket.AF_INET6)
    with bind("localhost", 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_no_family_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, socket.AF_INET)
    with pytest.raises(MurpError, match=r"cannot listen on 127\.0\.0\.2, port 0: .* Choose another --host"):
        bind("127.0.0.2", 0)


def test_the_printed_address_needs_no_name() -> None:
    with bind("0.0.0.0", 0) as bound:
        assert address_of(bound) == f"http://127.0.0.1:{bound.getsockname()[1]}/"


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "", "\udcff"])
def test_what_is_no_host_name_is_refused(host: str) -> None:
    with pytest.raises(MurpError, match=r"cannot listen on --host .* Give an address of this machine"):
        bind(host, 0)
