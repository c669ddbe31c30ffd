"""The server: connections, keys, faults, delays and the bill."""

import asyncio
import contextlib
import hashlib
import hmac
import threading
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any

from ...errors import InputError, one_line
from .anthropic_api import Anthropic, AnthropicBatches
from .behaviour import Behaviour, Faults, Statistics
from .conversation import MAX_PIXELS
from .fake_models import FakeModel
from .http import Api, Rejected, Request, Response, Route, Usage, read_request
from .openai_api import Dialect, OpenAI, OpenAIBatches
from .scores_api import OpenInference, Plain

MODEL = "demo-endoscopist"
"""What the served model is called."""

STATISTICS = "/demo/statistics"


class DemoServer:
    """Serves a ``FakeModel`` on loopback, in a thread of its own, from ``start`` to ``close``.

    Speaks OpenAI's chat completions and Anthropic's messages, and batches of both (/v1), the Open
    Inference Protocol (/v2) and plain JSON (/predict); GET /demo/statistics tells what was answered
    and billed. ``dialect``: how chat completions differ from OpenAI's. ``port`` 0 takes a free one.
    With ``key``, all but health and statistics need it, as "Authorization: Bearer KEY" or
    "X-Api-Key: KEY". Bodies above ``most_bytes`` and images above ``most_pixels`` get 413, and a
    Host other than this machine's own names 421. A client is dropped that takes more than
    ``patience`` seconds to begin its first request, to send the head of one, to send its body, or
    to take the answer; between requests, after ``idle`` seconds.
    Also a context manager. Raises InputError where the port cannot be had.
    """

    def __init__(
        self,
        fake: FakeModel,
        behaviour: Behaviour | None = None,
        *,
        port: int = 0,
        model: str = MODEL,
        key: str | None = None,
        most_bytes: int = 32 * 2**20,
        most_pixels: int = MAX_PIXELS,
        patience: float = 5.0,
        idle: float = 60.0,
        dialect: Dialect | None = None,
    ) -> None:
        self.fake, self.behaviour, self.model = fake, behaviour or Behaviour(), model
        self.statistics = Statistics()
        self.port = port
        self._key, self._most_bytes = key, most_bytes
        self._patience, self._idle = patience, idle
        self._openai = OpenAI(fake, model, most_pixels, dialect)
        messages = Anthropic(fake, model, most_pixels)
        self._apis: tuple[Api, ...] = (
            self._openai,
            OpenAIBatches(self._openai, self._faults, self.statistics),
            messages,
            AnthropicBatches(messages, self._faults, self.statistics),
            OpenInference(fake, model, most_pixels),
            Plain(fake, most_pixels),
        )
        self._times: Counter[bytes] = Counter()
        self._at_once = 0
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The server's root; clients of OpenAI's API add "/v1"."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> "DemoServer":
        """Listens from now on; returns itself."""
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._run(self._listen())
        except OSError as error:
            self.close()
            raise InputError(
                f"demo server: cannot listen on port {self.port}: {error.strerror or error}"
            ) from None
        return self

    def close(self) -> None:
        """Ends every connection; nothing listens afterwards. A second call does nothing."""
        if self._thread is None:
            return
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._thread = None

    def __enter__(self) -> "DemoServer":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._loop.create_task(self._talk(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wait = self._patience
            while await self._one(reader, writer, wait):
                wait = self._idle
        except (ConnectionError, TimeoutError):
            pass  # the client has gone, or stalls
        except asyncio.CancelledError:
            writer.transport.abort()  # the server ends
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(self._patience):
                    await writer.wait_closed()
            writer.transport.abort()  # also where a client never takes what was sent

    async def _one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait: float
    ) -> bool:
        """Serves one request, which begins within ``wait`` seconds; says whether the connection
        stays open."""
        patience = self._patience
        try:
            request = await read_request(reader, writer, self._most_bytes, patience, wait)
        except Rejected as rejected:  # where the next request begins is not known
            refusal = _Call(_NONE, reader, writer, False, patience)
            await refusal.send(self._openai.error(rejected))
            return False
        if request is None:
            return False
        keep = request.headers.get("connection", "").lower() != "close"
        call = _Call(request, reader, writer, keep, patience)
        api, route, arguments = self._find(request)
        if route is not None and route.paid:
            return await self._paid(call, api, route, arguments) and keep
        if route is not None and route.fails:
            return await self._failing(call, api, route, arguments) and keep
        if request.method == "GET" and request.path == STATISTICS:
            await call.send(Response(200, self.statistics.as_dict()))
        else:
            await call.send(self._handled(api, route, request, arguments))
        return keep

    def _find(self, request: Request) -> tuple[Api, Route | None, dict[str, str]]:
        for api in self._apis:
            for route in api.routes:
                arguments = route.match(request)
                if arguments is not None:
                    return api, route, arguments
        return self._openai, None, {}

    def _handled(
        self, api: Api, route: Route | None, request: Request, arguments: dict[str, str]
    ) -> Response:
        try:
            if route is None:
                raise Rejected(404, f"nothing is served at {request.method} {request.path}")
            if "/health/" not in request.path:
                self._check_key(request)
            return route.handle(request, **arguments)
        except Rejected as rejected:
            return api.error(rejected)
        except Exception as error:  # a bug must not look like a lost connection
            sentence = f"a mistake of this server: {type(error).__name__}: {one_line(error)}"
            return api.error(Rejected(500, sentence))

    def _check_key(self, request: Request) -> None:
        sent = request.headers.get("x-api-key") or request.headers.get("authorization", "")
        given = sent.removeprefix("Bearer ").strip()
        if self._key and not hmac.compare_digest(given.encode(), self._key.encode()):
            raise Rejected(401, "Incorrect or missing API key.", "invalid_api_key")

    async def _paid(self, call: "_Call", api: Api, route: Route, arguments: dict[str, str]) -> bool:
        """A request that costs something: it may meet a fault, and takes its time."""
        counts, came = self.statistics, time.monotonic()
        counts.requests += 1
        self._at_once += 1
        counts.most_at_once = max(counts.most_at_once, self._at_once)
        try:
            response = self._handled(api, route, call.request, arguments)
            if response.usage is None:
                counts.rejected += 1
                await call.send(response)
                return True
            faults = self._faults(call.request.body)
            if faults.fault == "hung":
                counts.fail("hung")
                await call.until_gone()
                return False
            if faults.fault in ("limited", "broken"):
                await call.send(self._failed(api, faults))
                return True
            if 0 < self.behaviour.at_once < self._at_once:
                await call.send(self._failed(api, replace(faults, fault="limited")))
                return True
            await asyncio.sleep(faults.delay - (time.monotonic() - came))
            return await self._answered(call, response, response.usage, faults)
        finally:
            self._at_once -= 1

    async def _failing(
        self, call: "_Call", api: Api, route: Route, arguments: dict[str, str]
    ) -> bool:
        """A request that costs nothing and may fail: before it is handled, or with its reply.

        Its faults go by how many came before: names of files and batches are new in every run.
        """
        request = call.request
        faults = self._faults(f"{route.method} {route.path}".encode())
        if faults.fault in ("limited", "broken"):
            await call.send(self._refused(api, faults))
            return True
        response = self._handled(api, route, request, arguments)
        if faults.fault == "hung":
            await call.until_gone()
        elif faults.fault == "truncated":
            call.send_half(response)
        else:
            await call.send(response)
        return faults.fault is None

    def _faults(self, body: bytes) -> Faults:
        digest = hashlib.blake2b(body, digest_size=16).digest()
        faults = self.behaviour.faults(digest, self._times[digest])
        self._times[digest] += 1
        return faults

    def _failed(self, api: Api, faults: Faults) -> Response:
        if faults.fault is not None:
            self.statistics.fail(faults.fault)
        return self._refused(api, faults)

    def _refused(self, api: Api, faults: Faults) -> Response:
        if faults.fault == "broken":
            return api.error(Rejected(faults.status, "The server had an error; try again."))
        worded = api.error(Rejected(429, "Rate limit reached.", "rate_limit_exceeded"))
        headers = {"Retry-After": f"{self.behaviour.retry_after:g}"}
        return Response(worded.status, worded.content, headers)

    async def _answered(
        self, call: "_Call", response: Response, usage: Usage, faults: Faults
    ) -> bool:
        """Sends the answer, or half of it, and writes the bill."""
        unseen = "lost" if call.gone else faults.fault
        self.statistics.bill(usage, unseen)
        if unseen is not None:
            call.send_half(response)
            return False
        await call.send(response)
        return True


_NONE = Request("", "", {}, b"")


@dataclass(frozen=True)
class _Call:
    """One request and the connection it came by.

    ``keep``: whether that stays open; ``patience``: seconds in which an answer is to be taken.
    """

    request: Request
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    keep: bool
    patience: float

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""
        return self.reader.at_eof() or self.writer.is_closing()

    async def send(self, response: Response) -> None:
        self.writer.write(b"".join(response.encoded(self.keep)))
        async with asyncio.timeout(self.patience):
            await self.writer.drain()

    def send_half(self, response: Response) -> None:
        head, body = response.encoded(keep_alive=False)
        self.writer.write(head + body[: len(body) // 2])

    async def until_gone(self) -> None:
        """Says nothing until the client gives up."""
        while await self.reader.read(65536):
            pass
