"""As much of HTTP/1.1 as clients of an answering service need (RFC 9112), and which request goes
where.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import parse_qsl

from ...types import JsonObject
from ...utils.web import is_loopback

_HEAD = 64 * 1024
_DIGITS = 15
"""Most digits of a Content-Length that is read."""


@dataclass(frozen=True)
class Usage:
    """What a request is billed for, and what was said."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    refused: bool = False
    rambled: bool = False


@dataclass(frozen=True)
class Request:
    """One request; the names of ``headers`` are lower case; of ``query`` the first values."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    query: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> JsonObject:
        """The body as a JSON object; raises Rejected for anything else."""
        try:
            found = json.loads(self.body)
        except RecursionError:
            raise Rejected(400, "the body is JSON nested too deep") from None
        except ValueError as error:
            raise Rejected(400, f"the body is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise Rejected(400, "expected a JSON object as the body")
        return found


@dataclass(frozen=True)
class Response:
    """A body, bytes or JSON, with its status; ``usage`` where something was answered."""

    status: int
    content: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: Usage | None = None

    def encoded(self, keep_alive: bool) -> tuple[bytes, bytes]:
        """Head and body as they are sent."""
        raw = isinstance(self.content, bytes)
        body = self.content if raw else json.dumps(self.content).encode()
        lines = [
            f"HTTP/1.1 {self.status} {_phrase(self.status)}",
            f"Content-Type: application/{'octet-stream' if raw else 'json'}",
            f"Content-Length: {len(body)}",
            f"Connection: {'keep-alive' if keep_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), body


def _phrase(status: int) -> str:
    """The words of a status; 529, overloaded, is none of HTTP's."""
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Overloaded"


class Rejected(Exception):
    """A request that is wrong, whoever sends it again; each protocol words it its own way."""

    def __init__(
        self, status: int, message: str, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param


async def read_request(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    most_bytes: int,
    patience: float,
    idle: float,
) -> Request | None:
    """The next request of a connection, None at its end.

    ``patience``: seconds that the head may take, and the body again; ``idle``: seconds until
    the first byte. Raises TimeoutError where they pass, and Rejected for what is no HTTP/1.1,
    for a Host that is not loopback (421), for a body without a length (411) and for one above
    ``most_bytes`` (413).
    """
    try:
        async with asyncio.timeout(idle):
            first_byte = await reader.readexactly(1)
        async with asyncio.timeout(patience):
            head = first_byte + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise Rejected(431, f"expected headers of at most {_HEAD} bytes") from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Rejected(400, "expected a request of HTTP/1.1")
    headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    _check_host(headers.get("host", ""))
    length = _length(headers, most_bytes)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        async with asyncio.timeout(patience):
            body = await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return None
    path, _, query = words[1].partition("?")
    return Request(words[0], path, headers, body, dict(parse_qsl(query)))


def _check_host(host: str) -> None:
    """A page on the web must not reach this server under a name that leads here."""
    if not is_loopback(host):
        got = repr(host[:60]) if host else "none"
        raise Rejected(421, f"expected the Host localhost or 127.0.0.1, got {got}")


def _length(headers: Mapping[str, str], most_bytes: int) -> int:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers:
        raise Rejected(411, "expected a Content-Length, not a Transfer-Encoding")
    if not (length.isascii() and length.isdigit() and len(length) <= _DIGITS):
        raise Rejected(
            400,
            f"expected a number of up to {_DIGITS} digits as Content-Length, got {length[:40]!r}",
        )
    if int(length) > most_bytes:
        raise Rejected(413, f"expected a body of at most {most_bytes} bytes, got {length}")
    return int(length)


@dataclass(frozen=True)
class Route:
    """``path`` is a regular expression; its named groups become arguments of ``handle``.

    ``paid``: whether requests cost something, and so are what faults and delays befall; ``fails``:
    faults befall requests that cost nothing, too, before they are handled or after.
    """

    method: str
    path: str
    handle: Callable[..., Response]
    paid: bool = False
    fails: bool = False

    def match(self, request: Request) -> dict[str, str] | None:
        """The path's arguments, None where the request is for another route."""
        found = self._pattern.fullmatch(request.path)
        return found.groupdict() if found and request.method == self.method else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.path)


class Api(Protocol):
    """One protocol: what it answers, and how it words an error."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """All its routes."""

    def error(self, rejected: Rejected) -> Response:
        """The response to a request that is wrong, or that met a fault."""
