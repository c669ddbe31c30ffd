"""Calls over HTTP: encode images, and read replies safely.

A server can send anything, so that the size of a reply, its decompression and its JSON are bounded
here. Redirects are not followed: an image goes only to the address that its user named.
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
    """Format in which images are sent: lossless PNG, or JPEG.

    Attributes:
        format: "png" or "jpeg".
        quality: Quality of JPEG, 1 to 100.
        most_bytes: Maximum size of an encoded image in bytes.
    """

    format: Annotated[
        Literal["png", "jpeg"], Option("how images are sent", name="image_format")
    ] = "png"
    quality: Annotated[int, Option("of JPEG", name="image_quality", ge=1, le=100)] = 95
    most_bytes: Annotated[int, Option("larger is refused", name="max_image_bytes")] = 20_000_000

    def __call__(self, image: Image, where: str) -> bytes:
        """Return an encoded image.

        Args:
            image: H x W x C of uint8.
            where: Where the image comes from, for the error.

        Raises:
            InputError: The encoded image is larger than ``most_bytes``.
        """
        data = png(image) if self.format == "png" else jpeg(image, self.quality)
        if len(data) > self.most_bytes:
            height, width = image.shape[:2]
            raise InputError(
                f"{where}: its image of {width} x {height} pixels takes {len(data):,} bytes as "
                f"{self.format}, above the limit of {self.most_bytes:,}"
            )
        return data

    def base64_of(self, prompt: Prompt) -> str | None:
        """Return a prompt's encoded image in base64; None if it has none."""
        if prompt.image is None:
            return None
        return base64.b64encode(self(prompt.image, f"sample {prompt.sample_id!r}")).decode()

    @property
    def media_type(self) -> str:
        return f"image/{self.format}"


MAX_REPLY_BYTES = 8_000_000
"""Maximum length in bytes of a reply's decompressed body."""
MaxReplyBytes = Annotated[int, Option("a longer reply, decompressed, is a failed attempt", ge=1)]
_PIECE = 65_536  # bytes decompressed at a time
_CONTAINERS = 100_000
"""Maximum number of lists and objects in a reply that is parsed: an empty object takes 2 bytes in
the reply, and 72 in memory."""


def client_options(most: int, bound: str = "max_reply_bytes") -> dict[str, Any]:
    """Return options of an asynchronous HTTP client, of httpx or a library with its interface.

    Redirects are not followed. There is no timeout, since that of the endpoint covers the whole
    attempt.

    Args:
        most: Maximum length in bytes of a reply's decompressed body, at least 1. A longer one
            raises Trouble.
        bound: Name of this option in errors.

    Raises:
        InputError: ``most`` is below 1.
    """
    if most < 1:
        raise InputError(f"{bound}: expected at least 1, got {most}")
    return {
        "event_hooks": {"response": [_bounded(most, bound)]},
        "follow_redirects": False,
        "headers": {"accept-encoding": "identity"},  # ask for replies that are not compressed
        "timeout": None,
        "verify": _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
    }


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Return trusted certificates, read once per process: reading takes 20 to 40 ms.

    They come from ``file`` and ``folder``, else from certifi if it is installed, else from the
    system.
    """
    if not (file or folder):
        with suppress(ImportError):  # the newest openai library does not install it
            import certifi

            file = certifi.where()
    return ssl.create_default_context(cafile=file or None, capath=folder or None)


def _bounded(most: int, bound: str) -> Callable[[Any], Awaitable[None]]:
    """Return a hook that reads a response's body, before the client does, up to ``most`` bytes."""

    async def read(response: Any) -> None:
        decompress = _decompressor(response.headers.pop("content-encoding", "identity"))
        received, body = 0, bytearray()
        async for chunk in response.stream:
            received += len(chunk)
            for piece in decompress(chunk):
                body += piece
                if max(received, len(body)) > most:
                    raise Trouble(TOO_LONG, f"over {bound}, {most:,}", billed=True)
        await response.stream.aclose()
        # httpx, or a library with its interface: each accepts only its own streams
        library = sys.modules[type(response).__module__.partition(".")[0]]
        response.stream = library.ByteStream(bytes(body))

    return read


def _decompressor(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    """Return a function from a chunk of a body to small pieces of decompressed data."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return lambda chunk: iter((chunk,))
    if name not in ("gzip", "x-gzip", "deflate"):
        detail = f"comes as {encoding[:40]!r}, which was not asked for"
        raise Trouble(MALFORMED, detail, billed=True)
    decompressor = zlib.decompressobj(15 + 32)  # the largest window; gzip or zlib, by the header

    def decompress(chunk: bytes) -> Iterator[bytes]:
        while chunk:  # yields at least once, so that the caller counts bytes that decode to nothing
            try:
                yield b"" if decompressor.eof else decompressor.decompress(chunk, _PIECE)
            except zlib.error as error:
                raise Trouble(MALFORMED, one_line(error), billed=True) from None
            chunk = decompressor.unconsumed_tail

    return decompress


def parsed(body: bytes) -> Any:
    """Return the JSON in a body; raise Trouble if it is malformed, or has too many objects."""
    if body.count(b"{") + body.count(b"[") > _CONTAINERS:
        detail = f"expected at most {_CONTAINERS:,} lists and objects"
        raise Trouble(MALFORMED, detail, billed=True)
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        detail = f"expected JSON, got {words_of(body)!r}"
        raise Trouble("truncated", detail, billed=True) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, too many digits, nested too deeply
        raise Trouble(MALFORMED, one_line(error), billed=True) from None


def fields_of(value: object) -> Mapping[str, Any]:
    """Return a JSON object's fields; {} for any other value that a server may send."""
    return value if isinstance(value, dict) else {}


def read_or_none(body: bytes) -> Any:
    """Return the JSON in a body, None if it is malformed."""
    try:
        return parsed(body)
    except Trouble:
        return None


def words_of(body: bytes) -> str:
    """Return the message in the body of an error: a field of its JSON, else its beginning."""
    text = body[:_PIECE].decode(errors="replace")
    try:
        error = json.loads(text)
        if isinstance(error, list) and len(error) == 1:  # the form of Gemini's errors
            error = error[0]
        while isinstance(error, dict) and (inner := error.get("error", error.get("message"))):
            error = inner
        text = error if isinstance(error, str) else text
    except (ValueError, RecursionError):
        pass
    return " ".join(text.split())[:QUOTED]


def lost(error: BaseException) -> Trouble:
    """Return the trouble with a connection that failed, from an error of httpx."""
    name, why = type(error).__name__, one_line(error)
    if name in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol"):
        detail = f"cannot be reached: {why}; is the url right, and the server up?"
        return Trouble("unreachable", detail)
    return Trouble("truncated" if "body" in why else "connection lost", why, billed=True)


class HttpEndpoint(Endpoint):
    """A model under test that is called by plain HTTP requests. Needs the extra ``http``.

    Args:
        url: The server's address, http:// or https://.
        headers: Name -> value of further headers; $VARIABLE in a value is read from the
            environment.
        keys: Further secrets, which are removed from all texts that are shown or stored.
        max_reply_bytes: Maximum length of a reply's decompressed body; a longer reply is a failed
            attempt.
        **options: Options of `Endpoint`.

    Raises:
        InputError: The URL is invalid, a variable is not set, or a key is written out.
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
        """Send a request, and return the body of the reply.

        Args:
            path: What is appended to the path of the URL.
            content: The body of a POST; None: the request is a GET.
            **headers: Further headers, with _ in place of -.

        Raises:
            Trouble: The request failed.
        """
        import httpx

        method = "GET" if content is None else "POST"
        dashed = {name.replace("_", "-"): value for name, value in headers.items()}
        root, mark, query = self._url.partition("?")
        url = (root.rstrip("/") + path if path else root) + mark + query
        request = self._client.build_request(method, url, content=content, headers=dashed)
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
        """Return the tokens that the JSON of a body counts, None if it counts none."""
        return None


def _authorised(headers: Mapping[str, Key], request: "httpx.Request") -> "httpx.Request":
    """Add headers with keys to a request. As a method it would keep its model in memory."""
    for name, value in headers.items():
        request.headers[name] = value.reveal()
    return request


def host_of(url: str) -> str:
    """Return the host, and the port if there is one, of a URL.

    Raises:
        InputError: The URL is malformed, not http(s), or has a user or password.
    """
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
