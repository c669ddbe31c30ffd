"""A chat model on loopback that speaks OpenAI's protocol, to try caps, retries and resume on.

It counts what a paid API would bill: GET /demo/statistics shows its answers, failures and costs.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import cv2
import numpy as np

from ..errors import InputError, one_line
from ..types import Image, JsonObject
from ..utils.http_server import Call, HttpServer, Rejected, Request, Response
from ..utils.image_codec import declared_size
from ..utils.random_streams import generator
from .answers import Classifier, Reply

CHAT = "/v1/chat/completions"
STATISTICS = "/demo/statistics"
PRICE_INPUT, PRICE_OUTPUT = 2.5, 10.0
"""Dollars per million tokens."""

Failure = Literal["limited", "broken", "cut"]
"""Status 429; status 503; billed, but the reply is cut off in the middle."""
_FAILURES: tuple[Failure, ...] = ("limited", "broken", "cut")
_MOST_PIXELS = 4096 * 4096
_MOST_ALTERNATIVES = 20


class Model(Protocol):
    """Model that answers for the server."""

    name: str

    def replies(self, image: Image | None, prompt: str) -> Sequence[Reply]:
        """Return a reply to each question of a prompt: see ``answers.Classifier``."""


@dataclass
class Statistics:
    """Counts of what a server did since it started.

    ``requests`` = ``answered`` + ``rejected`` (a mistake of the client's) + ``limited`` +
    ``broken`` + ``cut`` + ``lost`` (the client had gone). Tokens are all that were billed; those
    ``unseen`` are of replies that were cut or lost, so that no client counted them.
    """

    requests: int = 0
    answered: int = 0
    rejected: int = 0
    limited: int = 0
    broken: int = 0
    cut: int = 0
    lost: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unseen_tokens: int = 0
    most_at_once: int = 0

    @property
    def cost(self) -> float:
        """Dollars, at the server's prices."""
        return (self.prompt_tokens * PRICE_INPUT + self.completion_tokens * PRICE_OUTPUT) / 1e6


class DemoServer(HttpServer):
    """Server of a model on this machine; clients of OpenAI's API take ``url + "/v1"``.

    It supports ``logprobs`` with ``top_logprobs``, ``max_tokens`` and a ``response_format`` of
    json_schema, and is a context manager. Which requests fail depends on the seed, the request's
    body and how often it came before, not on the order or timing of calls.

    Args:
        model: Model that answers. Default: the bundled classifier.
        port: Port that it listens at; 0 takes a free one.
        key: API key that requests must have; None: none.
        latency: Median seconds of an answer.
        spread: Standard deviation of the latency's logarithm; 0: always the same.
        fail: Share of requests, 0 to 1, that fail, in one of three ways (``Failure``).
        at_once: Most requests at a time; more get 429. 0: any number.
        seed: Seed that chooses the requests that fail.
        patience: Seconds that a request may take to arrive.
        idle: Seconds after which a connection without requests is closed.

    Raises:
        InputError: For a share outside 0..1, and a time or a number below 0.
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        port: int = 0,
        key: str | None = None,
        latency: float = 0.0,
        spread: float = 0.0,
        fail: float = 0.0,
        at_once: int = 0,
        seed: int = 0,
        patience: float = 5.0,
        idle: float = 60.0,
    ) -> None:
        super().__init__(port, most_bytes=32 * 2**20, patience=patience, idle=idle)
        if not 0 <= fail <= 1:
            raise InputError(f"fail: expected a share between 0 and 1, got {fail}")
        for name, number in (("latency", latency), ("spread", spread), ("at_once", at_once)):
            if not 0 <= number < math.inf:
                raise InputError(f"{name}: expected a number of 0 or more, got {number}")
        self.model = model or Classifier()
        self.statistics = Statistics()
        self._key, self._fail, self._seed = key, fail, seed
        self._latency, self._spread, self._at_once = latency, spread, at_once
        self._times: Counter[bytes] = Counter()
        self._working = 0

    def error(self, rejected: Rejected) -> Response:
        kind = "server_error" if rejected.status >= 500 else "invalid_request_error"
        error = {"message": rejected.message, "type": kind}
        return Response(rejected.status, {"error": {**error, "param": None, "code": rejected.code}})

    async def serve(self, call: Call) -> bool:
        request = call.request
        if (request.method, request.path) != ("POST", CHAT):
            await call.send(self._looked_up(request))
            return True
        self._working += 1
        self.statistics.requests += 1
        self.statistics.most_at_once = max(self.statistics.most_at_once, self._working)
        try:
            return await self._chat(call)
        finally:
            self._working -= 1

    async def _chat(self, call: Call) -> bool:
        """Answer one request, or fail it; return whether the connection stays open."""
        counts, request = self.statistics, call.request
        try:
            self._check_key(request)
            completion = _completion(self.model, request.json())
        except Rejected as rejected:
            counts.rejected += 1
            await call.send(self.error(rejected))
            return True
        except Exception as error:  # a bug must not look like a lost connection
            counts.broken += 1
            await call.send(self.error(Rejected(500, f"{type(error).__name__}: {one_line(error)}")))
            return True
        failure, seconds = self._fate(request.body)
        if failure == "limited" or 0 < self._at_once < self._working:
            counts.limited += 1
            limited = self.error(Rejected(429, "Rate limit reached.", "rate_limit_exceeded"))
            await call.send(Response(429, limited.content, {"Retry-After": "0.1"}))
            return True
        if failure == "broken":
            counts.broken += 1
            await call.send(self.error(Rejected(503, "The server had an error; try again.")))
            return True
        await asyncio.sleep(seconds)
        usage = completion["usage"]
        counts.prompt_tokens += usage["prompt_tokens"]
        counts.completion_tokens += usage["completion_tokens"]
        if failure == "cut" or call.gone:
            counts.cut += failure == "cut"
            counts.lost += failure != "cut"
            counts.unseen_tokens += usage["total_tokens"]
            call.send_half(Response(200, completion))
            return False
        counts.answered += 1
        await call.send(Response(200, completion))
        return True

    def _fate(self, body: bytes) -> tuple[Failure | None, float]:
        """Return how a request fails, None if it does not, and the seconds of its answer."""
        digest = hashlib.blake2b(body, digest_size=16).digest()
        rng = generator(self._seed, f"demo fate/{digest.hex()}", self._times[digest])
        self._times[digest] += 1
        chance, normal, place = rng.random(), rng.normal(), int(rng.integers(len(_FAILURES)))
        seconds = self._latency * math.exp(self._spread * normal)
        return _FAILURES[place] if chance < self._fail else None, seconds

    def _looked_up(self, request: Request) -> Response:
        asked = f"{request.method} {request.path}"
        if asked == f"GET {STATISTICS}":
            return Response(200, {**asdict(self.statistics), "cost": self.statistics.cost})
        try:
            self._check_key(request)
        except Rejected as rejected:
            return self.error(rejected)
        if asked != "GET /v1/models":
            return self.error(Rejected(404, f"nothing is served at {asked}"))
        card = {"id": self.model.name, "object": "model", "owned_by": "adaptive-vtt"}
        return Response(200, {"object": "list", "data": [{**card, "created": 0}]})

    def _check_key(self, request: Request) -> None:
        sent = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if self._key and not hmac.compare_digest(sent.encode(), self._key.encode()):
            raise Rejected(401, "Incorrect or missing API key.", "invalid_api_key")


# -- one chat completion ----------------------------------------------------------------------


def _completion(model: Model, asked: JsonObject) -> JsonObject:
    """Return the answer to the last user message with an image; earlier ones are examples."""
    if asked.get("model") != model.name:
        sentence = f"The model `{asked.get('model')}` does not exist; here is `{model.name}`."
        raise Rejected(404, sentence, "model_not_found")
    if asked.get("stream") or asked.get("n", 1) != 1:
        raise Rejected(400, "this server answers once and whole: no stream, n = 1")
    image, prompt, prompt_tokens = _read(asked.get("messages"))
    replies = model.replies(image, prompt)
    words = re.findall(r"\s*\S+", _text(asked.get("response_format"), replies))
    most = asked.get("max_completion_tokens") or asked.get("max_tokens") or len(words)
    if not isinstance(most, int) or most < 1:
        raise Rejected(400, f"expected max_tokens as a whole number above 0, got {most!r}")
    tokens = words[:most]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "".join(tokens), "refusal": None},
        "logprobs": _logprobs(asked, tokens, replies),
        "finish_reason": "stop" if tokens == words else "length",
    }
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(tokens)}
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion",
        "created": 0,
        "model": model.name,
        "choices": [choice],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }


def _read(messages: Any) -> tuple[Image | None, str, int]:
    """Return the image and the text to answer, and the tokens of all messages: one per four
    characters, and 85 per image, with 170 for each of its tiles of 512 x 512 pixels."""
    if not isinstance(messages, list) or not messages:
        raise Rejected(400, "expected messages, a list that is not empty")
    chosen, prompt, tokens = None, "", 0
    for message in messages:
        parts = message.get("content") if isinstance(message, dict) else None
        parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise Rejected(400, "expected each message's content as text or a list of parts")
        text = "\n".join(str(p.get("text", "")) for p in parts if p.get("type") == "text")
        images = [_decoded(p.get("image_url")) for p in parts if p.get("type") == "image_url"]
        tokens += math.ceil(len(text) / 4)
        for image in images:
            tokens += 85 + 170 * math.prod(math.ceil(side / 512) for side in image.shape[:2])
        if message.get("role") == "user" and (images or chosen is None):
            prompt, chosen = text, images[-1] if images else chosen
    return chosen, prompt, tokens


def _decoded(part: Any) -> Image:
    """Return H x W x 3 RGB uint8 of a data URI; nothing is fetched from elsewhere."""
    url = part.get("url") if isinstance(part, dict) else None
    if not isinstance(url, str) or not url.startswith("data:"):
        raise Rejected(400, "expected image_url with a url that is a data URI")
    try:
        data = base64.b64decode(url.partition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        raise Rejected(400, "expected an image in base64") from None
    if (size := declared_size(data)) is None:
        raise Rejected(400, "expected an image file: PNG, JPEG, GIF, BMP, TIFF or WebP")
    if math.prod(size) > _MOST_PIXELS:
        raise Rejected(413, f"expected at most {_MOST_PIXELS} pixels, got {size[0]} x {size[1]}")
    if (image := cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)) is None:
        raise Rejected(400, "the image cannot be decoded")
    return np.ascontiguousarray(image[:, :, ::-1], np.uint8)


def _text(wanted: Any, replies: Sequence[Reply]) -> str:
    """Return the replies in words, a line for each of several; as JSON where a schema is given."""
    words = [max(reply, key=lambda word: reply[word]) for reply in replies]
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind in (None, "text"):
        lines = [f"{number}: {word}" for number, word in enumerate(words, 1)]
        return words[0] if len(words) == 1 else "\n".join(lines)
    described = wanted.get("json_schema") if kind == "json_schema" else None
    schema = described.get("schema") if isinstance(described, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        raise Rejected(400, "expected response_format as a json_schema of an object")
    return json.dumps({name: _stated(name, properties[name], replies) for name in properties})


def _stated(name: str, schema: Any, replies: Sequence[Reply]) -> float | str:
    """Return P(yes) where a property is a number, else words; a question's number names it."""
    numbered = name.isdecimal() and 1 <= int(name) <= len(replies)
    reply = replies[int(name) - 1] if numbered else replies[0]
    word = max(reply, key=lambda word: reply[word])
    number = isinstance(schema, dict) and schema.get("type") == "number"
    return round(reply.get("Yes", reply[word]), 6) if number else word


def _logprobs(asked: Mapping[str, Any], tokens: Sequence[str], replies: Sequence[Reply]) -> Any:
    """Return the log-probability of every token, with those of the alternatives to an answer."""
    if not asked.get("logprobs"):
        return None
    top = asked.get("top_logprobs") or 0
    if not isinstance(top, int) or not 0 <= top <= _MOST_ALTERNATIVES:
        raise Rejected(400, f"expected top_logprobs in 0..{_MOST_ALTERNATIVES}")
    content = []
    for token in tokens:
        alone = len(replies) == 1 and token in replies[0]
        likely = replies[0] if alone else {token: 1.0}
        ranked = sorted(likely, key=lambda word: -likely[word])[:top]
        listed = [_logprob(word, likely[word]) for word in ranked]
        content.append({**_logprob(token, likely[token]), "top_logprobs": listed})
    return {"content": content, "refusal": None}


def _logprob(token: str, likelihood: float) -> JsonObject:
    logprob = math.log(max(likelihood, 1e-9))
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
