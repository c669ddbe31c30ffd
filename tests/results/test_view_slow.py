"""Slow connections: pages in the browser are answered in the meantime."""

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from adaptive_vtt.results.view import View
from adaptive_vtt.results.view.server import PATIENCE, Serving
from tests.helpers.audits import finished
from tests.helpers.watched import LIMITS, small_space

pytestmark = pytest.mark.shares  # the thread that answers is begun by whoever asks first


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    folder: Path = tmp_path_factory.mktemp("slow")
    finished(small_space(), journal=folder / "journal.db", **{**LIMITS, "budget": 4}).close()
    with View(folder) as server:
        yield server


def slow(view: Serving) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", view.port), timeout=10)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
    return connection


@pytest.mark.slow
def test_a_page_is_answered_among_many_slow_connections(view: View) -> None:
    with ExitStack() as held:
        for _ in range(256):
            held.enter_context(slow(view))
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", view.port, timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().status in (200, 302, 303)
        connection.close()
        assert time.monotonic() - began < PATIENCE / 2


def test_a_head_that_drips_in_is_not_waited_for(view: View) -> None:
    with Serving(view.site, patience=0.5) as server, slow(server) as connection:
        connection.settimeout(0.1)
        began, byte = time.monotonic(), b"?"
        while byte and time.monotonic() - began < 8:
            try:
                connection.sendall(b"a")
                byte = connection.recv(1)
            except TimeoutError:
                continue
            except ConnectionError:  # ended, too: with bytes that nobody read
                byte = b""
        assert byte == b""
