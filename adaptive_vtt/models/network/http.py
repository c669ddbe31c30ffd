"""Calls over HTTP: images as they are sent, and what comes back, bounded in bytes, decompressed
here, and parsed in one place.

Nothing that a server sends is trusted with the memory of this process, and no request is
repeated at another address: an image goes where its user sent it.
"""

import base64
import json
import os
import ssl
import sys
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from ...errors import InputError, one_line
from ...types import Image, Prompt
from ...utils.image_codec import jpeg, png
from ...utils.importing import needed
from ...utils.options import Option
from .attempts import MALFORMED, QUOTED, TOO_LONG, Trouble, of_status, text_of_bytes
from .endpoint import Endpoint
from .keys import HEADERS, Key, fill, names_secret, written_in
from .prices import Usage

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class Encoding:
    """PNG, which loses nothing, or JPEG of ``quality``, at most ``most_bytes`` long."""

    format: Annotated[
        Literal["png", "jpeg"], Option("how images are sent", name="image_format")
    ] = "png"
    quality: Annotated[int, Option("of JPEG", name="image_quality", ge=1, le=100)] = 95
    most_bytes: Annotated[int, Option("larger is refused", name="max_image_bytes")] = 20_000_000

    def __call__(self, image: Image, where: str) -> bytes:
        """Return the file; raise InputError naming ``where`` for one above ``most_bytes``."""
        data = png(image) if self.format == "png" else jpeg(image, self.quality)
        if len(data) > self.most_bytes:
            height, width = image.shape[:2]
            raise InputError(
                f"{where}: its image of {width} x {height} pixels takes {len(data):,} bytes as "
                f"{self.format}, above the limit of {self.most_bytes:,}"
            )
        return data

    def base64_of(self, prompt: Prompt) -> str | None:
        """Return a prompt's image as it is sent in JSON; None if it has none."""
        if prompt.image is None:
            return None
        return base64.b64encode(self(prompt.image, f"sample {prompt.sample_id!r}")).decode()

    @property
    def media_type(self) -> str:
        return f"image/{self.format}"


MAX_REPLY_BYTES = 8_000_000
"""The longest body, decompressed, that is read."""
MaxReplyBytes = Annotated[int, Option("a longer reply, decompressed, is a failed attempt", ge=1)]
_PIECE = 65_536  # bytes decompressed at a time
_CONTAINERS = 100_000
"""Most lists and objects in a reply that is parsed: an empty object takes 2 bytes on the wire and
72 in memory."""
_INFLATED = ("gzip", "x-gzip", "deflate")
"""Content encodings that are unpacked here."""
_GZIP_OR_ZLIB = 47
"""zlib's ``wbits``: the largest window (15), and telling gzip from zlib by the header (32)."""


def client_options(most: int, bound: str = "max_reply_bytes") -> dict[str, Any]:
    """Return options of an asynchronous client (of httpx, or whichever library openai builds on).

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
    """Return certificates, once for all clients of a process: reading them takes 20 to 40 ms.

    They come from ``file`` and ``folder``, else from certifi if it is installed, else from the
    system.
    """
    if not (file or folder):
        with suppress(ImportError):  # openai's newest client comes without it
            import certifi

            file = certifi.where()
    return ssl.create_default_context(cafile=file or None, capath=folder or None)


def _bounded(most: int, bound: str) -> Callable[[Any], Awaitable[None]]:
    """Return a hook that reads a response's body, before anyone else does, up to ``most`` bytes."""

    async def read(response: Any) -> None:
        unpack = _unpacker(response.headers.pop("content-encoding", "identity"))
        received, body = 0, bytearray()
        async for chunk in response.stream:
            received += len(chunk)
            for piece in unpack(chunk):
                body += piece
                if max(received, len(body)) > most:
                    raise Trouble(TOO_LONG, f"over {bound}, {most:,}", billed=True)
        await response.stream.aclose()
        # httpx, or its successor: each takes only streams of its own
        library = sys.modules[type(response).__module__.partition(".")[0]]
        response.stream = library.ByteStream(bytes(body))

    return read


def _unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    """Return a function from a chunk to small pieces of what it unpacks to."""
    named = encoding.strip().lower()
    if named in ("", "identity"):
        return lambda chunk: iter((chunk,))
    if named not in _INFLATED:
        detail = f"comes as {encoding[:40]!r}, which was not asked for"
        raise Trouble(MALFORMED, detail, billed=True)
    inflating = zlib.decompressobj(_GZIP_OR_ZLIB)

    def unpack(chunk: bytes) -> Iterator[bytes]:
        while chunk:  # once at least, so that bytes which stand for nothing are counted
            try:
                yield b"" if inflating.eof else inflating.decompress(chunk, _PIECE)
            except zlib.error as error:
                raise Trouble(MALFORMED, one_line(error), billed=True) from None
            chunk = inflating.unconsumed_tail

    return unpack


def parsed(body: bytes) -> Any:
    """Return the JSON of a body; raise Trouble for what is none, or is more than anyone means."""
    if body.count(b"{") + body.count(b"[") > _CONTAINERS:
        detail = f"expected at most {_CONTAINERS:,} lists and objects"
        raise Trouble(MALFORMED, detail, billed=True)
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        detail = f"expected JSON, got {words_of(body)!r}"
        raise Trouble("truncated", detail, billed=True) from None
    except (ValueError, RecursionError) as error:  # no text, too many digits, too deep
        raise Trouble(MALFORMED, one_line(error), billed=True) from None


def fields_of(value: object) -> Mapping[str, Any]:
    """Return the fields of a JSON object; none of anything else that a server may send."""
    return value if isinstance(value, dict) else {}


def read_or_none(body: bytes) -> Any:
    """Return the JSON of a body, None if it has none."""
    try:
        return parsed(body)
    except Trouble:
        return None


def words_of(body: bytes) -> str:
    """Return the beginning of a reply, and of JSON errors the message alone."""
    text = body[:_PIECE].decode(errors="replace")
    try:
        error = json.loads(text)
        if isinstance(error, list) and len(error) == 1:  # as Gemini's errors come
            error = error[0]
        while isinstance(error, dict) and (inner := error.get("error", error.get("message"))):
            error = inner
        text = error if isinstance(error, str) else text
    except (ValueError, RecursionError):
        pass
    return " ".join(text.split())[:QUOTED]


def lost(error: BaseException) -> Trouble:
    """Return the trouble with a connection that failed. The names are those of httpx's errors."""
    name, why = type(error).__name__, one_line(error)
    if name in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol"):
        detail = f"cannot be reached: {why}; is the url right, and the server up?"
        return Trouble("unreachable", detail)
    return Trouble("truncated" if "body" in why else "connection lost", why, billed=True)


class HttpEndpoint(Endpoint):
    """Sends bytes to ``url`` with ``headers``, whose values may name "$VARIABLES".

    ``max_reply_bytes``: a longer reply is a failed attempt. Raises InputError for a URL that is
    none, a variable that is not set, and a key that is written out. Needs
    httpx (the extra ``http``).
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Annotated[Mapping[str, str] | None, Option(HEADERS)] = None,
        keys: Sequence[Key] = (),
        max_reply_bytes: MaxReplyBytes = MAX_REPLY_BYTES,
        **options: Any,
    ) -> None:
        with needed("http", "HTTP endpoints need httpx"):
            import httpx
        host = host_of(url)
        self._headers: dict[str, Key] = {}
        secrets = [*keys]
        for name, text in (headers or {}).items():
            self._headers[name], values = fill(text, f"model.headers: {name}")
            if not values and names_secret(name):
                expected = "expected the key as '$VARIABLE', from the environment"
                raise InputError(f"model.headers: {name}: {expected}, not written out")
            secrets += values
        secrets += written_in({"extra_headers": headers or {}}, url=url)
        self._url = url
        super().__init__(host=host, keys=secrets, **options)
        _, most = self.limits.bounds
        self._client = httpx.AsyncClient(
            **client_options(max_reply_bytes),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            auth=partial(_authorised, self._headers),
        )
        self._background.at_the_end(self._client.aclose)

    async def exchange(self, path: str = "", content: bytes | None = None, **headers: str) -> bytes:
        """Return the reply to a POST of ``content``, or to a GET; raise Trouble."""
        import httpx

        method = "GET" if content is None else "POST"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        root, mark, query = self._url.partition("?")
        url = (root.rstrip("/") + path if path else root) + mark + query
        request = self._client.build_request(method, url, content=content, headers=named)
        try:
            reply = await self._client.send(request)
        except httpx.TransportError as error:
            raise lost(error) from None
        body: bytes = reply.content
        if not reply.is_success:
            trouble = of_status(reply.status_code, reply.headers, words_of(body))
            trouble.usage, trouble.text = self._used(read_or_none(body)), text_of_bytes(body)
            raise trouble
        return body

    def _used(self, body: Any) -> Usage | None:
        """Return the tokens that are counted in a body."""
        return None


def _authorised(headers: Mapping[str, Key], request: "httpx.Request") -> "httpx.Request":
    """Put keys into a request. A method would keep its model alive."""
    for name, value in headers.items():
        request.headers[name] = value.reveal()
    return request


def host_of(url: str) -> str:
    """Return host and port of a URL; raise InputError unless it is http, without a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"model.url: is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        shown = url.partition("?")[0]  # a query may hold a key
        raise InputError(f"model.url: expected http:// or https:// and a host, got {shown!r}")
    if parts.username or parts.password:
        raise InputError(f"model.url: expected no user or password before {host!r}, use headers")
    return host if port is None else f"{host}:{port}"
