"""Chat completions with images, and batches of them, by OpenAI's API and its dialects."""

import json
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from adaptive_vtt.types import JsonObject
from adaptive_vtt.utils.http_server import Rejected, Request

from .behaviour import Fault, Faults, Statistics
from .conversation import asked_in, filled, listed, pieces
from .fake_models import FakeModel, Reply
from .http import Response, Route, Usage

_FIELDS = ("model", "messages", "max_tokens", "temperature", "stream", "n")
"""Fields of a request that every server takes."""


class RejectedField(Rejected):
    """A request with an invalid ``field``."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(400, message)
        self.field = field


@dataclass(frozen=True)
class Dialect:
    """Differences of a server from OpenAI's protocol.

    Attributes:
        root: Path of the protocol.
        ignored: Fields that are ignored silently.
        known: Allowed fields next to the usual ones, others being refused with 400; None: others
            are ignored.
        most_alternatives: Largest ``top_logprobs``; more are refused.
        listed_errors: Whether errors come as a list of one.
        thoughts: Tokens of each reply that are billed and only counted in the total, within the
            length that is allowed.
    """

    root: str = "/v1"
    ignored: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    most_alternatives: int = 20
    listed_errors: bool = False
    thoughts: int = 0

    def taken(self, asked: Mapping[str, Any]) -> JsonObject:
        """Return the fields that the server reads. Raise Rejected for a refused field."""
        for name in asked:
            if self.known is not None and name not in (*_FIELDS, *self.known):
                raise RejectedField(f'Unknown name "{name}": Cannot find field.', name)
        top = asked.get("top_logprobs")
        if isinstance(top, int) and top > self.most_alternatives:
            message = f"{top} is greater than max allowed: {self.most_alternatives}"
            raise RejectedField(message, "top_logprobs")
        return {name: value for name, value in asked.items() if name not in self.ignored}


_LOGPROBS = ("logprobs", "top_logprobs")
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "openai": Dialect(),
        "gemini": Dialect(
            root="/v1beta/openai",
            known=("response_format", "reasoning_effort", "max_completion_tokens"),
            listed_errors=True,
        ),
        "vllm": Dialect(most_alternatives=5),  # where it is begun with --max-logprobs 5
        "ollama": Dialect(ignored=_LOGPROBS),
        "ollama-old": Dialect(ignored=(*_LOGPROBS, "response_format")),  # before 0.5
    }
)
"""Name of an imitated server -> its dialect."""


class OpenAI:
    """GET /v1/models and POST /v1/chat/completions.

    It answers the last user message with an image; earlier ones are examples. Answers to questions
    that are numbered from 1 are lines "1: ...", with the choice alone. It supports ``logprobs``
    with ``top_logprobs``, ``max_tokens`` or ``max_completion_tokens``, and a ``response_format`` of
    json_schema (`conversation.filled`). Each word of an answer is a token.
    """

    def __init__(self, fake: FakeModel, model: str, dialect: Dialect | None = None) -> None:
        self._fake, self._model = fake, model
        self._dialect = dialect or Dialect()
        root = self._dialect.root
        self.routes = (
            Route("GET", rf"{root}/models", self._models),
            Route("POST", rf"{root}/chat/completions", self._chat, paid=True),
        )

    def error(self, rejected: Rejected) -> Response:
        """Return an error response of OpenAI's API."""
        kinds = {401: "authentication_error", 429: "rate_limit_error"}
        kind = "server_error" if rejected.status >= 500 else "invalid_request_error"
        error = {"message": rejected.message, "type": kinds.get(rejected.status, kind)}
        body = {
            "error": {**error, "param": getattr(rejected, "field", None), "code": rejected.code}
        }
        return Response(rejected.status, [body] if self._dialect.listed_errors else body)

    def answer(self, request: Request) -> Response:
        """Return the response to a chat completion, also to a wrong one."""
        try:
            return self._chat(request)
        except Rejected as rejected:
            return self.error(rejected)

    def _models(self, request: Request) -> Response:
        card = {"id": self._model, "object": "model", "created": 0, "owned_by": "adaptive-vtt"}
        return Response(200, {"object": "list", "data": [card]})

    def _chat(self, request: Request) -> Response:
        asked = self._dialect.taken(request.json())
        if asked["model"] != self._model:
            message = f"The model `{asked['model']}` does not exist; this server has {self._model}."
            raise Rejected(404, message, "model_not_found", "model")
        question = asked_in(asked["messages"], _image_in)
        replies = self._fake.answers(question.image, question.prompt)
        wanted = asked.get("response_format")
        words = listed(replies)
        if wanted is not None:
            words = json.dumps(filled(wanted["json_schema"]["schema"], replies))
        tokens = pieces(words)
        most = asked.get("max_completion_tokens", asked.get("max_tokens", len(tokens)))
        sent, cut = tokens[:most], len(tokens) > most
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "".join(sent)},
            "logprobs": _logprobs(asked, sent, replies),
            "finish_reason": "length" if cut else "stop",
        }
        thoughts = min(self._dialect.thoughts, most - len(sent))
        return self._completion(choice, Usage(question.tokens, len(sent) + thoughts), thoughts)

    def _completion(self, choice: JsonObject, usage: Usage, thoughts: int) -> Response:
        billed = {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens - thoughts,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        }
        about = {"id": "chatcmpl-demo", "object": "chat.completion", "created": 0}
        content = {**about, "model": self._model, "choices": [choice], "usage": billed}
        return Response(200, content, usage=usage)


def _image_in(part: Mapping[str, Any]) -> str | None:
    return part["image_url"]["url"].partition(",")[2] if part["type"] == "image_url" else None


def _logprobs(asked: Mapping[str, Any], tokens: Sequence[str], replies: Sequence[Reply]) -> Any:
    """Return log-probabilities of tokens; at the choice of a single reply, those of all choices."""
    if not asked.get("logprobs"):
        return None
    return {"content": [*_weighed(tokens, replies, asked["top_logprobs"])], "refusal": None}


def _weighed(tokens: Sequence[str], replies: Sequence[Reply], top: int) -> Iterator[JsonObject]:
    for token in tokens:
        bare = token.strip(" \n.")
        if len(replies) == 1 and bare == replies[0].choice:
            before, _, after = token.partition(bare)
            likely = {f"{before}{c}{after}": p for c, p in replies[0].likelihoods.items()}
        else:
            likely = {token: 1.0}
        ordered = sorted(likely.items(), key=lambda pair: -pair[1])[:top]
        own = _logprob(token, likely[token])
        yield {**own, "top_logprobs": [_logprob(*pair) for pair in ordered]}


def _logprob(token: str, likelihood: float) -> JsonObject:
    likely = math.log(max(likelihood, 1e-9))
    return {"token": token, "logprob": likely, "bytes": list(token.encode())}


# -- batches: files, and jobs made of them -------------------------------------------------

_CHAT = "/v1/chat/completions"


@dataclass
class _Batch:
    """A batch: its requests by custom id, its start on a monotonic clock, and its seconds."""

    id: str
    metadata: Any
    seconds: float
    requests: dict[str, bytes]
    errors: Any = None
    status: str = "in_progress"
    output_file_id: str | None = None
    error_file_id: str | None = None
    began: float = field(default_factory=time.monotonic)
    created_at: int = field(default_factory=lambda: int(time.time()))

    def as_dict(self) -> JsonObject:
        return {k: v for k, v in vars(self).items() if k not in ("seconds", "requests", "began")}


class OpenAIBatches:
    """/v1/files and /v1/batches, whose requests the fake model answers one by one.

    A batch takes as long as an answer does. Its requests have faults: "limited" and "broken" ones
    fail, a "hung" one makes the batch expire, and the result of a "truncated" one is billed and
    missing. A batch whose own fault is "broken" fails as a whole.
    """

    def __init__(
        self, openai: OpenAI, faults: Callable[[bytes], Faults], statistics: Statistics
    ) -> None:
        self._openai, self.error = openai, openai.error
        self._faults, self._statistics = faults, statistics
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, _Batch] = {}
        name = r"(?P<name>[\w-]+)"
        self.routes = (
            Route("POST", r"/v1/files", self._upload, fails=True),
            Route("GET", rf"/v1/files/{name}/content", self._content, fails=True),
            Route("POST", r"/v1/batches", self._create, fails=True),
            Route("GET", r"/v1/batches", self._list, fails=True),
            Route("GET", rf"/v1/batches/{name}", self._look, fails=True),
        )

    def _upload(self, request: Request) -> Response:
        """Store the file of a form (RFC 7578)."""
        boundary = b"--" + request.headers["content-type"].partition("boundary=")[2].encode()
        (part,) = (part for part in request.body.split(boundary) if b'name="file"' in part)
        name = self._store(part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n"))
        return Response(200, {"id": name, "object": "file", "purpose": "batch"})

    def _content(self, request: Request, name: str) -> Response:
        if name not in self._files:
            raise Rejected(404, f"No such File object: {name}")
        return Response(200, self._files[name])

    def _store(self, data: bytes) -> str:
        name = f"file-{secrets.token_hex(12)}"
        self._files[name] = data
        return name

    def _create(self, request: Request) -> Response:
        asked = request.json()
        assert (asked["endpoint"], asked["completion_window"]) == (_CHAT, "24h")
        content = self._files.pop(asked["input_file_id"])
        lines = [*map(json.loads, content.splitlines())]
        requests = {line["custom_id"]: json.dumps(line["body"]).encode() for line in lines}
        assert len(requests) == len(lines)
        faults, name = self._faults(b"batch " + content), f"batch_{secrets.token_hex(12)}"
        batch = _Batch(name, asked.get("metadata"), faults.delay, requests)
        if faults.fault == "broken":
            batch.status, batch.errors = "failed", {"data": [{"message": "It was not validated."}]}
        self._batches[name] = batch
        return Response(200, batch.as_dict())

    def _list(self, request: Request) -> Response:
        """List all batches, the newest first."""
        batches = [self._now(name).as_dict() for name in [*self._batches][::-1]]
        return Response(200, {"object": "list", "data": batches, "has_more": False})

    def _look(self, request: Request, name: str) -> Response:
        return Response(200, self._now(name).as_dict())

    def _now(self, name: str) -> _Batch:
        """Return the batch in its present state."""
        if name not in self._batches:
            raise Rejected(404, f"No batch found with id '{name}'.")
        batch = self._batches[name]
        if batch.status == "in_progress" and time.monotonic() - batch.began >= batch.seconds:
            self._end(batch)
        return batch

    def _answered(self, body: bytes) -> tuple[Fault | None, Response | None]:
        """Return the fault and the response of one request, and count it."""
        counts, faults = self._statistics, self._faults(body)
        counts.requests += 1
        if faults.fault in ("limited", "broken", "hung"):
            counts.fail(faults.fault)
            status = 429 if faults.fault == "limited" else faults.status
            failed = Rejected(status, "It failed; try again.")
            return faults.fault, None if faults.fault == "hung" else self.error(failed)
        response = self._openai.answer(Request("POST", _CHAT, {}, body))
        if response.usage is None:
            counts.rejected += 1
        else:
            counts.bill(response.usage, faults.fault)
        return faults.fault, response

    def _end(self, batch: _Batch) -> None:
        output, failures, batch.status = list[JsonObject](), list[JsonObject](), "completed"
        for name, body in batch.requests.items():
            fault, response = self._answered(body)
            if response is None:
                error = {"code": "batch_expired", "message": "It was not done."}
                failures.append({"custom_id": name, "response": None, "error": error})
                batch.status = "expired"
            elif fault != "truncated":
                reply = {"status_code": response.status, "body": response.content}
                kept = output if response.usage is not None else failures
                kept.append({"custom_id": name, "response": reply, "error": None})
        batch.output_file_id, batch.error_file_id = map(self._kept, (output, failures))

    def _kept(self, lines: list[JsonObject]) -> str | None:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return self._store(data) if lines else None
