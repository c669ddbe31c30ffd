"""The demo server and clients that mean no good: stalled ones, foreign names, absurd lengths."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adaptive_vtt.demo.server import STATISTICS, DemoServer

PATIENCE = 0.5


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer(patience=PATIENCE, idle=3 * PATIENCE) as server:
        yield server


def connected(server: DemoServer) -> "closing[socket.socket]":
    return closing(socket.create_connection(("127.0.0.1", server.port), timeout=10))


def until_dropped(client: socket.socket) -> tuple[float, bytes]:
    """Seconds until the server ends the connection, and what it said before."""
    began, output = time.monotonic(), b""
    while True:
        try:
            part = client.recv(65536)
        except ConnectionError:
            part = b""
        if not part:
            return time.monotonic() - began, output
        output += part


def refuses(client: socket.socket, part: bytes, rest: float) -> bool:
    """Whether the server ends the connection while ``part`` is sent to it again and again."""
    client.settimeout(60)
    began = time.monotonic()
    try:
        while time.monotonic() < began + 60:
            client.sendall(part)
            time.sleep(rest)
    except ConnectionError:
        return True
    return False


def exchange(server: DemoServer, request: bytes) -> bytes:
    with connected(server) as client:
        client.sendall(request)
        return until_dropped(client)[1]


def get(host: str, path: str = STATISTICS, more: str = "Connection: close\r\n") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"G",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ],
)
def test_half_open_clients_are_dropped(server: DemoServer, begun: bytes) -> None:
    with connected(server) as client:
        client.sendall(begun)
        seconds, output = until_dropped(client)
    assert output == b""
    assert PATIENCE / 2 < seconds < PATIENCE + 30


def test_a_client_that_trickles_its_head_is_dropped(server: DemoServer) -> None:
    with connected(server) as client:
        assert refuses(client, b"G", PATIENCE / 5)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8008", "127.0.0.1:1", "[::1]:80", "127.0.0.9"]
)
def test_this_machine_may_be_called_by_its_names(server: DemoServer, host: str) -> None:
    assert exchange(server, get(host)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "host",
    ["example.org", "localhost.example.org", "127.0.0.1.example.org", "10.0.0.1", "a@localhost"],
)
def test_a_foreign_host_is_refused(server: DemoServer, host: str) -> None:
    output = exchange(server, get(host))
    assert output.startswith(b"HTTP/1.1 421 ")
    assert b"expected the Host localhost or 127.0.0.1" in output


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 16, "-1", "+1", "0x10", "1 2", "\u0661"])
def test_a_length_that_is_none_is_a_400(server: DemoServer, length: str) -> None:
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    )
    output = exchange(server, head.encode())
    assert output.startswith(b"HTTP/1.1 400 ")
    assert len(output) < 1000


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(garbage=st.binary(max_size=200))
def test_whatever_is_sent_the_server_goes_on(server: DemoServer, garbage: bytes) -> None:
    with connected(server) as client:
        client.sendall(garbage + b"\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        until_dropped(client)
    assert exchange(server, get("localhost")).startswith(b"HTTP/1.1 200 ")
