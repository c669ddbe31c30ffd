"""The server, with keys, faults, delays and the bill."""

import asyncio
import hashlib
import hmac
import time
from collections import Counter
from dataclasses import asdict

from adaptive_vtt.demo.server import STATISTICS
from adaptive_vtt.errors import one_line
from adaptive_vtt.utils.http_server import Call, HttpServer, Rejected, Request

from .anthropic_api import Anthropic
from .behaviour import Behaviour, Faults, Statistics
from .fake_models import FakeModel
from .http import Api, Response, Route, Usage
from .openai_api import Dialect, OpenAI, OpenAIBatches

MODEL = "demo-endoscopist"
"""Name of the served model."""


async def until_gone(call: Call) -> None:
    """Wait until the client gives up."""
    while await call.reader.read(65536):
        pass


class DemoServer(HttpServer):
    """Server of a ``FakeModel`` on loopback (``HttpServer``).

    It has OpenAI's chat completions, batches of them, and Anthropic's messages (/v1). Clients of
    OpenAI's API add "/v1" to ``url``.

    Args:
        fake: The model.
        behaviour: Delays and faults.
        key: If given, all requests need it, as "Authorization: Bearer KEY" or "X-Api-Key: KEY".
        dialect: Differences of chat completions from OpenAI's.
    """

    def __init__(
        self,
        fake: FakeModel,
        behaviour: Behaviour | None = None,
        *,
        key: str | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        super().__init__(0, most_bytes=32 * 2**20, patience=5.0, idle=60.0)
        self.fake, self.behaviour, self.model = fake, behaviour or Behaviour(), MODEL
        self.statistics = Statistics()
        self._key = key
        self._openai = OpenAI(fake, MODEL, dialect)
        self._apis: tuple[Api, ...] = (
            self._openai,
            OpenAIBatches(self._openai, self._faults, self.statistics),
            Anthropic(fake, MODEL),
        )
        self._times: Counter[bytes] = Counter()
        self._at_once = 0

    def error(self, rejected: Rejected) -> Response:
        """Return OpenAI's error response, for requests of no protocol."""
        return self._openai.error(rejected)

    async def serve(self, call: Call) -> bool:
        """Answer, or fail by the behaviour."""
        request = call.request
        if request.method == "GET" and request.path == STATISTICS:
            await call.send(Response(200, asdict(self.statistics)))
            return True
        api, route, arguments = self._find(request)
        if route is not None and route.paid:
            return await self._paid(call, api, route, arguments)
        if route is not None and route.fails:
            return await self._failing(call, api, route, arguments)
        await call.send(self._handled(api, route, request, arguments))
        return True

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

    async def _paid(self, call: Call, api: Api, route: Route, arguments: dict[str, str]) -> bool:
        """Handle a request that costs something, with delay and faults."""
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
                await until_gone(call)
                return False
            if faults.fault in ("limited", "broken"):
                await call.send(self._failed(api, faults))
                return True
            await asyncio.sleep(faults.delay - (time.monotonic() - came))
            return await self._answered(call, response, response.usage, faults)
        finally:
            self._at_once -= 1

    async def _failing(self, call: Call, api: Api, route: Route, arguments: dict[str, str]) -> bool:
        """Handle a request that costs nothing, with faults before or after it is handled.

        Its faults depend on the route and the number of earlier requests, as names of files and
        batches are new in every run.
        """
        request = call.request
        faults = self._faults(f"{route.method} {route.path}".encode())
        if faults.fault in ("limited", "broken"):
            await call.send(self._refused(api, faults))
            return True
        response = self._handled(api, route, request, arguments)
        if faults.fault == "hung":
            await until_gone(call)
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
        refusal = api.error(Rejected(429, "Rate limit reached.", "rate_limit_exceeded"))
        headers = {"Retry-After": f"{self.behaviour.retry_after:g}"}
        return Response(refusal.status, refusal.content, headers)

    async def _answered(self, call: Call, response: Response, usage: Usage, faults: Faults) -> bool:
        """Send the answer, or half of it, and count it."""
        unseen = "lost" if call.gone else faults.fault
        self.statistics.bill(usage, unseen)
        if unseen is not None:
            call.send_half(response)
            return False
        await call.send(response)
        return True
