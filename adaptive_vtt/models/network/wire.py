"""What comes back over a network: bounded in bytes, decompressed here, and parsed in one place.

Nothing that a server sends is trusted with the memory of this process, and no request is
repeated at another address: an image goes where its user sent it.
"""

import json
import os
import ssl
import sys
import zlib
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import Annotated, Any

from ...errors import InputError, one_line
from ...utils.options import Option
from .attempts import MALFORMED, QUOTED, TOO_LONG, Trouble

MAX_REPLY_BYTES = 8_000_000
"""The longest body, decompressed, that is read."""
MaxReplyBytes = Annotated[int, Option("a longer reply, decompressed, is a failed attempt", ge=1)]
_PIECE = 65_536  # bytes decompressed at a time
_CONTAINERS = 100_000
"""Most lists and objects in a reply that is parsed: an empty object takes 2 bytes on the wire and
72 in memory."""
_INFLATED = {"gzip": 47, "x-gzip": 47, "deflate": 47}
"""Content encodings that are unpacked here, with zlib's ``wbits``: 47 stands for the largest window
(15) and for telling gzip from zlib by the header (32)."""


def client_options(most: int, bound: str = "max_reply_bytes") -> dict[str, Any]:
    """Options of an asynchronous client (of httpx, or whichever library openai builds on).

    Bodies of more than ``most`` bytes raise Trouble that names the ``bound``; no redirect is
    followed; no time limit, since the endpoint's own covers the whole attempt. Raises InputError
    for ``most`` below 1.
    """
    if most < 1:
        raise InputError(f"{bound}: expected at least 1, got {most}")
    return {
        "event_hooks": {"response": [_bounded(most, bound)]},
        "follow_redirects": False,
        "headers": {"accept-encoding": "identity"},  # what is not packed cannot unpack to more
        "timeout": None,
        "verify": _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
    }


@cache
def _trusted(file: str | None, folder: str | None) -> ssl.SSLContext:
    """One for all clients of a process: reading the certificates takes 20 to 40 ms each time."""
    import certifi

    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    return ssl.create_default_context(cafile=certifi.where())


def _bounded(most: int, bound: str) -> Callable[[Any], Awaitable[None]]:
    """A hook that reads a response's body, before anyone else does, up to ``most`` bytes."""

    async def read(response: Any) -> None:
        unpack = _unpacker(response.headers.pop("content-encoding", "identity"))
        came, body = 0, bytearray()
        async for chunk in response.stream:
            came += len(chunk)
            for piece in unpack(chunk):
                body += piece
                if max(came, len(body)) > most:
                    raise Trouble(TOO_LONG, f"over {bound}, {most:,}", billed=True)
        await response.stream.aclose()
        # httpx, or its successor: each takes only streams of its own
        library = sys.modules[type(response).__module__.partition(".")[0]]
        response.stream = library.ByteStream(bytes(body))

    return read


def _unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    """From a chunk as it came to pieces of what it stands for, none of them large."""
    if encoding.strip().lower() in ("", "identity"):
        return lambda chunk: iter((chunk,))
    if encoding.strip().lower() not in _INFLATED:
        detail = f"comes as {encoding[:40]!r}, which was not asked for"
        raise Trouble(MALFORMED, detail, billed=True)
    inflating = zlib.decompressobj(_INFLATED[encoding.strip().lower()])

    def unpack(chunk: bytes) -> Iterator[bytes]:
        while chunk:  # once at least, so that bytes which stand for nothing are counted
            try:
                yield b"" if inflating.eof else inflating.decompress(chunk, _PIECE)
            except zlib.error as error:
                raise Trouble(MALFORMED, one_line(error), billed=True) from None
            chunk = inflating.unconsumed_tail

    return unpack


def parsed(body: bytes) -> Any:
    """The JSON of a body; raises Trouble for what is none, or is more than anyone means."""
    if body.count(b"{") + body.count(b"[") > _CONTAINERS:
        detail = f"expected no more than {_CONTAINERS:,} lists and objects"
        raise Trouble(MALFORMED, detail, billed=True)
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        detail = f"expected JSON, got {words_of(body)!r}"
        raise Trouble("truncated", detail, billed=True) from None
    except (ValueError, RecursionError) as error:  # no text, too many digits, too deep
        raise Trouble(MALFORMED, one_line(error), billed=True) from None


def read_or_none(body: bytes) -> Any:
    """The JSON of a body that need not have any: None where it has none."""
    try:
        return parsed(body)
    except Trouble:
        return None


def words_of(body: bytes) -> str:
    """The beginning of a reply, and of JSON errors the message alone."""
    text = body[:_PIECE].decode(errors="replace")
    try:
        said = json.loads(text)
        if isinstance(said, list) and len(said) == 1:  # as Gemini's errors come
            said = said[0]
        while isinstance(said, dict) and (inner := said.get("error", said.get("message"))):
            said = inner
        text = said if isinstance(said, str) else text
    except (ValueError, RecursionError):
        pass
    return " ".join(text.split())[:QUOTED]


def lost(error: BaseException) -> Trouble:
    """The trouble with a connection that failed. The names are those of httpx's errors."""
    name, said = type(error).__name__, one_line(error)
    if name in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol"):
        return Trouble(
            "unreachable", f"cannot be reached: {said}; is the url right, and the server up?"
        )
    kind = "truncated" if "body" in said else "connection lost"
    return Trouble(kind, said, billed=True)


def lost_in(error: Any) -> Trouble:
    """The trouble with the connection that an APIConnectionError of openai, or anthropic, is
    about."""
    cause = error.__cause__
    return cause if isinstance(cause, Trouble) else lost(cause or error)
