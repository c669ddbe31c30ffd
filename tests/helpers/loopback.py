"""A server on loopback with the responses of a test's function."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any

RawResponse = tuple[int, Mapping[str, str], bytes] | str
"""Status, headers and body of a response; or "truncate", "drop", "hang" or "endless"."""
Answering = Callable[[str, Mapping[str, str], bytes], RawResponse]
"""Function of path, headers and body of a request -> the response."""


def _write_until(over: threading.Event, body: IO[bytes]) -> None:
    """Write chunks of 64 KiB until the client hangs up."""
    with suppress(OSError):
        while not over.is_set():
            body.write(b"10000\r\n" + b" " * 65536 + b"\r\n")


@contextmanager
def serving(answer: Answering) -> Iterator[str]:
    """Yield the URL of a server with the responses of ``answer``."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else 40 ms between headers and body

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            response = answer(self.path, self.headers, self.rfile.read(length))  # type: ignore[arg-type]
            if isinstance(response, str):
                self._misbehave(response)
                return
            status, headers, body = response
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def _misbehave(self, how: str) -> None:
            self.close_connection = True
            if how == "hang":
                over.wait(10)
            if how == "endless":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                _write_until(over, self.wfile)
            if how == "truncate":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b'{"outputs": [')

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Ignore clients that hang up."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Replies:
    """Function for ``serving`` that replies JSON and keeps the requests.

    Args:
        reply: JSON for status 200, a pair of status and JSON, or a function of the request's JSON
            that returns either.

    Attributes:
        saw: JSON of all requests.
    """

    def __init__(self, reply: Any) -> None:
        self.reply, self.saw = reply, list[Any]()

    def __call__(self, path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        self.saw.append(json.loads(body))
        sent = self.reply(self.saw[-1]) if callable(self.reply) else self.reply
        status, sent = sent if isinstance(sent, tuple) else (200, sent)
        return status, {}, json.dumps(sent).encode()
