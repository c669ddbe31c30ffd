"""A small HTTP/1.1 server (RFC 9112) for clients on this machine.

One event loop in a separate thread serves all connections, so that a slow or malicious client does
not delay others.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qsl

from ..errors import InputError
from ..types import JsonObject
from .background import Background
from .web import ADDRESS, is_loopback

_HEAD = 64 * 1024
"""Maximum size in bytes of a request's head, which is asyncio's limit."""
_DIGITS = 15
"""Maximum number of digits of a Content-Length."""


class Rejected(Exception):
    """An invalid request, with status and message. Each server phrases its response."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
        method: GET, POST ...
        address: Path and query.
        headers: Name in lower case -> value.
        body: The body.
    """

    method: str
    address: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.address.partition("?")[0]

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query, with the last value of each name."""
        return dict(parse_qsl(self.address.partition("?")[2]))

    def json(self) -> JsonObject:
        """Return the body as a JSON object; raise Rejected for another body."""
        try:
            value = json.loads(self.body)
        except (RecursionError, ValueError) as error:
            raise Rejected(400, f"the body is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise Rejected(400, "expected a JSON object as the body")
        return value


@dataclass(frozen=True)
class Response:
    """A response.

    Attributes:
        status: The HTTP status.
        content: The body, as bytes or JSON.
        headers: Further headers, such as the type of the bytes.
    """

    status: int
    content: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self, keep_alive: bool) -> tuple[bytes, bytes]:
        """Return the bytes of head and body."""
        raw = isinstance(self.content, bytes)
        body = self.content if raw else json.dumps(self.content).encode()
        kind = f"application/{'octet-stream' if raw else 'json'}"
        keep = "keep-alive" if keep_alive else "close"
        headers = {"Content-Type": kind, "Content-Length": len(body), "Connection": keep}
        headers |= self.headers
        known = self.status in set(HTTPStatus)  # 529, overloaded, is no standard status
        phrase = HTTPStatus(self.status).phrase if known else "Overloaded"
        lines = [f"HTTP/1.1 {self.status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), body


@dataclass(frozen=True)
class Call:
    """A request with its connection.

    Attributes:
        request: The request.
        reader: The stream from the client.
        writer: The stream to the client.
        keep: Whether the connection stays open.
        patience: Seconds within which the client must read the response.
    """

    request: Request
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    keep: bool
    patience: float

    @property
    def gone(self) -> bool:
        """True once the client has hung up."""
        return self.reader.at_eof() or self.writer.is_closing()

    async def send(self, response: Response) -> None:
        """Send a response, within ``patience`` seconds."""
        self.writer.write(b"".join(response.encoded(self.keep)))
        async with asyncio.timeout(self.patience):
            await self.writer.drain()

    def send_half(self, response: Response) -> None:
        """Send a response that is cut short."""
        head, body = response.encoded(keep_alive=False)
        self.writer.write(head + body[: len(body) // 2])


class HttpServer:
    """Server on the loopback address, in a thread, from ``start`` to ``close``.

    A subclass answers requests in ``serve``, and invalid ones in ``error``. A request whose Host is
    no name of this machine gets status 421. The server is a context manager, too.

    Args:
        port: The port; 0: a free one.
        most_bytes: Maximum size of a body; a larger one gets status 413.
        patience: Seconds that a client has to begin its first request, to send a head, to send a
            body, and to read a response; then its connection is closed.
        idle: Seconds that a client has between requests.

    Raises:
        InputError: The port cannot be used; ``start`` raises it.
    """

    def __init__(self, port: int, *, most_bytes: int, patience: float, idle: float) -> None:
        self.port = port
        self._most_bytes, self._patience, self._idle = most_bytes, patience, idle
        self._background: Background | None = None
        self._server: asyncio.Server | None = None

    async def serve(self, call: Call) -> bool:
        """Answer a call; return whether the connection may stay open."""
        raise TypeError(f"{type(self).__name__} defines no serve")

    def error(self, rejected: Rejected) -> Response:
        """Return the response to an invalid request."""
        raise TypeError(f"{type(self).__name__} defines no error")

    @property
    def url(self) -> str:
        """The server's root."""
        return f"http://{ADDRESS}:{self.port}"

    def start(self) -> Self:
        """Start to listen, and return the server."""
        self._background = Background("server")
        try:
            self._background.submit(self._listen()).result()
        except (OSError, OverflowError) as error:
            self.close()
            why = getattr(error, "strerror", None) or error
            raise InputError(f"--port: cannot listen on port {self.port}: {why}") from None
        return self

    def close(self) -> None:
        """Close all connections and stop listening. May be called repeatedly."""
        background, self._background = self._background, None
        if background is not None:
            background.submit(self._stop_listening()).result()
            background.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._talk, ADDRESS, self.port, backlog=1024, limit=_HEAD
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop_listening(self) -> None:
        """Take no further connections."""
        if self._server is not None:
            self._server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wait = self._patience
            while await self._one(reader, writer, wait):
                wait = self._idle
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has disconnected, or is too slow
        except asyncio.CancelledError:
            writer.transport.abort()  # the server is closed
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(self._patience):
                    await writer.wait_closed()
            writer.transport.abort()  # if the client does not read the response

    async def _one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait: float
    ) -> bool:
        """Serve one request, which must begin within ``wait`` seconds.

        Returns:
            Whether the connection stays open.
        """
        try:
            request = await self._read(reader, writer, wait)
        except Rejected as rejected:  # the connection is closed: the end of the request is unknown
            refusal = Call(Request("", "", {}, b""), reader, writer, False, self._patience)
            await refusal.send(self.error(rejected))
            return False
        keep = request.headers.get("connection", "").lower() != "close"
        return await self.serve(Call(request, reader, writer, keep, self._patience)) and keep

    async def _read(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: float
    ) -> Request:
        """Return the next request of a connection.

        Args:
            reader: The stream from the client.
            writer: The stream to the client.
            idle: Seconds until the first byte must arrive.

        Raises:
            IncompleteReadError: The connection has ended.
            TimeoutError: The client is too slow.
            Rejected: The request is no HTTP/1.1, its Host is not loopback (421), its body has no
                length (411), or it is too large (413).
        """
        try:
            async with asyncio.timeout(idle):
                first_byte = await reader.readexactly(1)
            async with asyncio.timeout(self._patience):
                head = first_byte + await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise Rejected(431, f"expected headers of at most {_HEAD} bytes") from None
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise Rejected(400, "expected a request of HTTP/1.1")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        host = headers.get("host", "")
        if not is_loopback(host):
            got = repr(host[:60]) if host else "none"
            raise Rejected(421, f"expected the Host localhost or 127.0.0.1, got {got}")
        length, digits = headers.get("content-length", "0"), f"a number of up to {_DIGITS} digits"
        if "transfer-encoding" in headers:
            raise Rejected(411, "expected a Content-Length, not a Transfer-Encoding")
        if not (length.isascii() and length.isdigit() and len(length) <= _DIGITS):
            raise Rejected(400, f"expected {digits} as Content-Length, got {length[:40]!r}")
        if int(length) > self._most_bytes:
            limit = f"a body of at most {self._most_bytes} bytes"
            raise Rejected(413, f"expected {limit}, got {length}")
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async with asyncio.timeout(self._patience):
            body = await reader.readexactly(int(length))
        return Request(words[0], words[1], headers, body)
