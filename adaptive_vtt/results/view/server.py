"""HTTP on loopback, by the standard library: six addresses that are read by one person.

A page asks once a second. Starlette and uvicorn would not make these lines fewer, since Host,
headers and the lookup of names are ours either way, and `avtt view` would need an extra.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol, Self

from ...errors import InputError, one_line
from ...utils.web import ADDRESS, is_loopback
from .pages import Reply, Site, trouble
from .watching import Watch

MAX = 64
"""Connections at a time: several browsers have a few each."""
HEAD_SECONDS = 15.0
"""From a connection, or its last answer, until the head of a request must be there."""


class Answering(Protocol):
    """What says the reply to a GET of an address, path and query."""

    def answer(self, address: str) -> Reply: ...


class Serving:
    """Serves the pages of ``site`` from ``start`` to ``close``, in threads of its own.

    ``port`` 0 takes a free one. Only GET is answered, and only where the Host is a name of this
    machine. Also a context manager. Raises InputError where the port cannot be had.
    """

    def __init__(self, site: Answering, port: int = 0) -> None:
        self.site, self.port = site, port
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Where the first page stands."""
        return f"http://{ADDRESS}:{self.port}/"

    def start(self) -> Self:
        """Listens from now on; returns itself."""
        try:
            self._server = _Server(self.port, self.site)
        except (OSError, OverflowError) as error:
            self.close()
            raise InputError(
                f"--port: cannot listen on port {self.port}: {one_line(error)}"
            ) from None
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def close(self) -> None:
        """Nothing listens afterwards, and nothing is left of what was built."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()


class View(Serving):
    """Serves the pages about ``root``, a run folder or a folder of runs. Raises InputError where
    there is no such folder, and where the port cannot be had."""

    def __init__(self, root: Path, port: int = 0) -> None:
        self._watch = Watch(root)
        super().__init__(Site(self._watch), port)

    def close(self) -> None:
        super().close()
        self._watch.close()


class _Server(ThreadingHTTPServer):
    """A thread per connection, of which there are ``MAX``: the next one takes the place of that
    which has been waited for longest."""

    daemon_threads = True
    request_queue_size = MAX

    def __init__(self, port: int, site: Answering) -> None:
        self.site = site
        self._waiting: dict[Any, float] = {}  # since when each connection's next head is awaited
        self._answering: dict[Any, float] = {}
        self._lock = threading.Lock()
        super().__init__((ADDRESS, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._waiting) + len(self._answering) >= MAX:
                self._hang_up(next(iter(self._waiting or self._answering)))
            self._waiting[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._forget(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Twice a second: hangs up where the head of a request is not there in time."""
        with self._lock:
            late = time.monotonic() - HEAD_SECONDS
            for request in [each for each, since in self._waiting.items() if since < late]:
                self._hang_up(request)

    @contextmanager
    def answering(self, request: Any) -> Iterator[None]:
        """While a head that came is answered, which takes as long as it takes."""
        self._move(request, self._waiting, self._answering)
        yield
        self._move(request, self._answering, self._waiting)

    def _move(self, request: Any, here: dict[Any, float], there: dict[Any, float]) -> None:
        with self._lock:
            if here.pop(request, None) is not None:  # else it was hung up meanwhile
                there[request] = time.monotonic()

    def _forget(self, request: Any) -> None:
        self._waiting.pop(request, None)
        self._answering.pop(request, None)

    def _hang_up(self, request: Any) -> None:
        """Its thread sees the end of it, and ends."""
        self._forget(request)
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: Any) -> None:
        """A browser that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds that a connection may be silent
    server: _Server

    def do_GET(self) -> None:
        with self.server.answering(self.connection):
            self._answer()

    def _answer(self) -> None:
        host = self.headers.get("Host", "")
        if not is_loopback(host):
            sentence = f"Expected the Host localhost or 127.0.0.1, got {host[:60]!r}."
            self._send(Reply(trouble(sentence).encode(), status=421))
            return
        try:
            reply = self.server.site.answer(self.path)
        except Exception as error:  # a mistake of ours must not look like a lost connection
            told = f"A mistake of this server: {type(error).__name__}: {one_line(error)}"
            reply = Reply(trouble(told).encode(), status=500)
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        with suppress(ConnectionError, TimeoutError):
            self.send_response(reply.status)
            if reply.location is not None:
                self.send_header("Location", reply.location)
            for name, value in (
                ("Content-Type", reply.kind),
                ("Content-Length", str(len(reply.body))),
                ("Content-Security-Policy", reply.policy),
                ("X-Content-Type-Options", "nosniff"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Referrer-Policy", "no-referrer"),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

    def version_string(self) -> str:
        return "avtt"

    def log_message(self, *_: Any) -> None:
        """Nobody reads a log of polls."""
