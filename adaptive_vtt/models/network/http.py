"""Endpoints that are called over plain HTTP, by httpx."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from ...errors import InputError
from ...utils.extras import pip_install
from ...utils.options import Option
from .attempts import Trouble, of_status
from .endpoint import Endpoint
from .key_signs import HEADERS, names_secret, texts, texts_of_query, written_out
from .keys import Key, fill
from .prices import Usage
from .wire import (
    MAX_REPLY_BYTES,
    MaxReplyBytes,
    client_options,
    lost,
    parsed,
    read_or_none,
    words_of,
)

if TYPE_CHECKING:
    import httpx


class HttpEndpoint(Endpoint):
    """Sends bytes to ``url`` with ``headers``, of which values may name "$VARIABLES".

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
        httpx = _library()
        host = host_of(url)
        self._headers, found = _filled(headers or {})
        found += written_out([*texts(headers or {}, "", "", "header"), *texts_of_query(url)])
        self._url = url
        super().__init__(host=host, keys=[*keys, *found], **options)
        _, most = self.limits.bounds
        self._client = httpx.AsyncClient(
            **client_options(max_reply_bytes),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            auth=_authorised(self._headers),
        )
        self._background.at_the_end(self._client.aclose)

    async def exchange(self, path: str = "", content: bytes | None = None, **headers: str) -> Any:
        """The JSON that comes back from a POST of ``content``, or a GET; raises Trouble."""
        import httpx

        method = "GET" if content is None else "POST"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        root, mark, query = self._url.partition("?")
        url = (root.rstrip("/") + path if path else root) + mark + query
        request = self._client.build_request(method, url, content=content, headers=named)
        try:
            reply = await self._client.send(request)
            if not reply.is_success:
                trouble = of_status(reply.status_code, reply.headers, words_of(reply.content))
                trouble.usage = self._used(read_or_none(reply.content))
                raise trouble
            return parsed(reply.content)
        except httpx.TransportError as error:
            trouble = lost(error)
        except Trouble as error:
            trouble = error
        trouble.billed = trouble.billed and content is not None
        raise trouble

    def _used(self, body: Any) -> Usage | None:
        """The tokens that are counted in a body."""
        return None


def _authorised(headers: Mapping[str, Key]) -> "Callable[[httpx.Request], httpx.Request]":
    """What puts keys into a request; it holds no model, which the client would keep alive."""

    def authorised(request: "httpx.Request") -> "httpx.Request":
        for name, value in headers.items():
            request.headers[name] = value.reveal()
        return request

    return authorised


def _library() -> Any:
    try:
        import httpx
    except ImportError:
        raise InputError(f"HTTP endpoints need httpx: {pip_install('http')}") from None
    return httpx


def host_of(url: str) -> str:
    """Host and port of a URL; raises InputError for what is no http URL, or holds a password."""
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


def _filled(headers: Mapping[str, str]) -> tuple[dict[str, Key], list[Key]]:
    filled, keys = {}, []
    for name, text in headers.items():
        filled[name], found = fill(text, f"model.headers: {name}")
        if not found and names_secret(name):
            raise InputError(
                f"model.headers: {name}: expected the key as '$VARIABLE', from the environment, "
                f"not written out"
            )
        keys += found
    return filled, keys
