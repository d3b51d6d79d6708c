"""The explorer in a notebook: a server of this process, shown in a frame by pages of this machine alone."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from browsing import BROWSER, CHROMIUM
from explorer_runs import made_run

import murp
from examples import PATIENCE
from murp.errors import MurpError
from murp.explorer.notebook import Explorer
from trees import tree


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> murp.Run:
    return murp.Run.of(made_run(tmp_path_factory.mktemp("frame") / "run", tree()))


@pytest.fixture(scope="module")
def explorer(run: murp.Run) -> Iterator[Explorer]:
    with run.explore(height=500) as served:
        yield served


def test_it_answers_and_shows_itself_in_a_frame(explorer: Explorer) -> None:
    assert httpx.get(f"{explorer.address}api/run", timeout=PATIENCE).json()["graph"]["name"] == "tree"
    shown = explorer._repr_html_()
    assert f'<iframe src="{explorer.address}"' in shown
    assert 'height="500"' in shown
    assert repr(explorer) == f"Explorer({explorer.address!r})"


def test_only_pages_of_this_machine_may_frame_it(explorer: Explorer) -> None:
    headers = httpx.get(explorer.address, timeout=PATIENCE).headers
    assert "x-frame-options" not in headers
    policy = headers["content-security-policy"]
    assert "frame-ancestors http://127.0.0.1:* http://localhost:* https://127.0.0.1:* https://localhost:*" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert httpx.get(explorer.address, headers={"host": "evil.example"}, timeout=PATIENCE).status_code == 421


def test_it_ends_when_it_is_closed(run: murp.Run) -> None:
    served = run.explore()
    port = int(served.address.rstrip("/").rpartition(":")[2])
    with pytest.raises(MurpError, match=f"port {port} of 127.0.0.1 is in use"):
        run.explore(port=port)
    served.close()
    served.close()  # what is closed stays so
    assert not served.running
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    assert "is closed" in served._repr_html_()
    with run.explore(port=port) as again:  # the port is free
        assert again.running


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason=BROWSER[1].kwargs["reason"])
def test_a_browser_shows_it_in_a_page_of_this_machine(explorer: Explorer, browser: Any) -> None:
    class Notebook(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(explorer._repr_html_().encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Notebook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with browser.new_page() as page:
                page.goto(f"http://localhost:{server.server_port}/")
                page.frame_locator("iframe").locator("body[data-ready]").wait_for()
        finally:
            server.shutdown()
