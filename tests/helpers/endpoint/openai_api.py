"""Chat completions with images, and batches of them, as OpenAI's API and the many that follow it
word them.
"""

import json
import math
import re
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


@dataclass(frozen=True)
class Dialect:
    """What a server that speaks OpenAI's protocol does otherwise than OpenAI's.

    ``root``: where its protocol is served. ``ignored``: fields that are passed over in silence.
    ``known``: fields that are taken beside the plainest, any other being refused with 400; None:
    others are passed over. ``most_alternatives``: of ``top_logprobs``; more are refused.
    ``listed_errors``: errors come as a list of one. ``thoughts``: tokens of each reply that are
    billed and counted in the total alone, as far as the longest reply allows.
    """

    root: str = "/v1"
    ignored: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    most_alternatives: int = 20
    listed_errors: bool = False
    thoughts: int = 0

    def taken(self, asked: Mapping[str, Any]) -> JsonObject:
        """What is heeded of a request; raises Rejected for a field that is refused."""
        for name in asked:
            if self.known is not None and name not in (*_FIELDS, *self.known):
                message = (
                    f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
                )
                raise Rejected(400, message, param=name)
        top = asked.get("top_logprobs")
        if isinstance(top, int) and top > self.most_alternatives:
            most = self.most_alternatives
            raise Rejected(
                400,
                f"Requested sample logprobs of {top}, which is greater than max allowed: {most}",
                param="top_logprobs",
            )
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
"""By the servers that are imitated."""


class OpenAI:
    """GET /v1/models and POST /v1/chat/completions.

    The last user message that has an image is answered; earlier ones are examples. Questions
    that are numbered from 1 are answered in lines "1: ...", without rambling. Honoured are
    ``logprobs`` with ``top_logprobs``, ``max_tokens`` or ``max_completion_tokens``, and a
    ``response_format`` of json_schema (`conversation.filled`). An answer's words are a token each.
    ``dialect``: what it does otherwise.
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
        """The error's body as OpenAI words it."""
        kinds = {401: "authentication_error", 429: "rate_limit_error"}
        kind = "server_error" if rejected.status >= 500 else "invalid_request_error"
        error = {
            "message": rejected.message,
            "type": kinds.get(rejected.status, kind),
            "param": rejected.param,
            "code": rejected.code,
        }
        said = {"error": error}
        return Response(rejected.status, [said] if self._dialect.listed_errors else said)

    def answer(self, request: Request) -> Response:
        """The reply to a chat completion, whatever is wrong with it."""
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
        said, cut = tokens[:most], len(tokens) > most
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "".join(said)},
            "logprobs": _logprobs(asked, said, replies),
            "finish_reason": "length" if cut else "stop",
        }
        thoughts = min(self._dialect.thoughts, most - len(said))
        return self._completion(choice, Usage(question.tokens, len(said) + thoughts), thoughts)

    def _completion(self, choice: JsonObject, usage: Usage, thoughts: int) -> Response:
        billed = {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens - thoughts,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        }
        content = {
            "id": "chatcmpl-demo",
            "object": "chat.completion",
            "created": 0,
            "model": self._model,
            "choices": [choice],
            "usage": billed,
        }
        return Response(200, content, usage=usage)


def _image_in(part: Mapping[str, Any]) -> str | None:
    return part["image_url"]["url"].partition(",")[2] if part["type"] == "image_url" else None


def _logprobs(asked: Mapping[str, Any], said: Sequence[str], replies: Sequence[Reply]) -> Any:
    """Per token its log-probability; where the one answer stands, those of all choices."""
    if not asked.get("logprobs"):
        return None
    return {"content": [*_weighed(said, replies, asked["top_logprobs"])], "refusal": None}


def _weighed(said: Sequence[str], replies: Sequence[Reply], top: int) -> Iterator[JsonObject]:
    for token in said:
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
    return {
        "token": token,
        "logprob": math.log(max(likelihood, 1e-9)),
        "bytes": list(token.encode()),
    }


# -- batches: files, and jobs made of them -------------------------------------------------

_CHAT = "/v1/chat/completions"
_BOUNDARY = re.compile(r'multipart/form-data;.*boundary="?([^";]+)"?', re.IGNORECASE)
_NAME = re.compile(rb'name="([^"]*)"')


@dataclass(kw_only=True)
class _Batch:
    """``began``, on a monotonic clock, and ``seconds``: when work on it began, and how long it
    takes; ``requests`` by custom id; ``output`` and ``failures`` are files."""

    id: str
    seconds: float
    input_file: str
    metadata: Any
    requests: dict[str, bytes] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    created: float = field(default_factory=time.time)
    status: str = "in_progress"
    errors: list[str] = field(default_factory=list)
    output: str | None = None
    failures: str | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> JsonObject:
        errors = [{"code": "invalid_request", "message": e, "line": None} for e in self.errors]
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": _CHAT,
            "errors": {"object": "list", "data": errors} if errors else None,
            "input_file_id": self.input_file,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.output,
            "error_file_id": self.failures,
            "created_at": int(self.created),
            "request_counts": {"total": len(self.requests), "completed": 0, "failed": 0}
            | self.counts,
            "metadata": self.metadata,
        }


class OpenAIBatches:
    """/v1/files and /v1/batches, by the fake that answers one by one.

    A file makes one batch, and is gone then. A batch takes as long as an answer does; a cancelled
    one has done as much as it had time for. The faults of ``faults`` befall its requests: "limited"
    and "broken" ones fail, a "hung" one makes the batch expire, and the result of a "truncated" one
    is billed and missing. A batch whose own fault is "broken" fails as a whole.
    """

    def __init__(
        self, openai: OpenAI, faults: Callable[[bytes], Faults], statistics: Statistics
    ) -> None:
        self._openai, self.error = openai, openai.error
        self._faults, self._statistics = faults, statistics
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, _Batch] = {}
        of = r"/v1/batches/(?P<name>[\w-]+)"
        self.routes = (
            Route("POST", r"/v1/files", self._upload, fails=True),
            Route("GET", r"/v1/files/(?P<name>[\w-]+)/content", self._content, fails=True),
            Route("POST", r"/v1/batches", self._create, fails=True),
            Route("GET", r"/v1/batches", self._list, fails=True),
            Route("GET", of, self._look, fails=True),
            Route("POST", rf"{of}/cancel", self._cancel, fails=True),
        )

    # -- files -----------------------------------------------------------------------------

    def _upload(self, request: Request) -> Response:
        name = self._store(dict(_form(request))["file"])
        return Response(200, {"id": name, "object": "file", "purpose": "batch"})

    def _content(self, request: Request, name: str) -> Response:
        if name not in self._files:
            raise Rejected(404, f"No such File object: {name}")
        return Response(200, self._files[name])

    def _store(self, data: bytes) -> str:
        name = f"file-{secrets.token_hex(12)}"
        self._files[name] = data
        return name

    # -- batches ---------------------------------------------------------------------------

    def _create(self, request: Request) -> Response:
        asked = request.json()
        name = asked["input_file_id"]
        assert (asked["endpoint"], asked["completion_window"]) == (_CHAT, "24h")
        faults = self._faults(b"batch " + self._files[name])
        batch = _Batch(
            id=f"batch_{secrets.token_hex(12)}",
            seconds=faults.delay,
            input_file=name,
            metadata=asked.get("metadata"),
        )
        for line in map(json.loads, self._files.pop(name).splitlines()):
            assert (line["method"], line["url"]) == ("POST", _CHAT)
            assert line["custom_id"] not in batch.requests
            batch.requests[line["custom_id"]] = json.dumps(line["body"]).encode()
        if faults.fault == "broken":
            batch.errors = ["The server had an error while it validated the batch."]
        batch.status = "failed" if batch.errors else "in_progress"
        self._batches[batch.id] = batch
        return Response(200, batch.as_dict())

    def _list(self, request: Request) -> Response:
        """A page of batches, the newest first, and whether others follow."""
        backwards = [*self._batches][::-1]
        after, limit = request.query.get("after"), request.query.get("limit", "20")
        start = backwards.index(after) + 1 if after in backwards else 0
        stop = start + (min(100, int(limit)) if limit.isdecimal() and len(limit) < 5 else 20)
        shown = [self._now(name).as_dict() for name in backwards[start:stop]]
        more = len(backwards) > stop
        return Response(200, {"object": "list", "data": shown, "has_more": more})

    def _look(self, request: Request, name: str) -> Response:
        return Response(200, self._now(name).as_dict())

    def _cancel(self, request: Request, name: str) -> Response:
        batch = self._now(name)
        if batch.status == "in_progress":
            done = (time.monotonic() - batch.began) / max(batch.seconds, 1e-9)
            self._end(batch, int(done * len(batch.requests)), cancelled=True)
        return Response(200, batch.as_dict())

    def _now(self, name: str) -> _Batch:
        """The batch as it stands by now."""
        if name not in self._batches:
            raise Rejected(404, f"No batch found with id '{name}'.")
        batch = self._batches[name]
        if batch.status == "in_progress" and time.monotonic() - batch.began >= batch.seconds:
            self._end(batch, len(batch.requests), cancelled=False)
        return batch

    def _answered(self, body: bytes) -> tuple[Fault | None, Response | None]:
        """What befalls one request, and its reply, if there is one; on the bill."""
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

    def _end(self, batch: _Batch, many: int, *, cancelled: bool) -> None:
        output: list[JsonObject] = []
        failures: list[JsonObject] = []
        code, hung = "batch_cancelled" if cancelled else "batch_expired", False
        for place, (name, body) in enumerate(batch.requests.items()):
            fault, response = self._answered(body) if place < many else ("hung", None)
            hung = hung or (fault == "hung" and place < many)
            line = {"id": f"batch_req_{place}", "custom_id": name, "response": None, "error": None}
            if response is None:
                failures.append({**line, "error": {"code": code, "message": "It was not done."}})
                continue
            reply = {"status_code": response.status, "body": response.content, "request_id": "demo"}
            if fault != "truncated":
                kept = output if response.usage is not None else failures
                kept.append({**line, "response": reply})
        batch.output, batch.failures = (
            self._store(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            if lines
            else None
            for lines in (output, failures)
        )
        batch.counts = {"completed": len(output), "failed": len(failures)}
        batch.status = "cancelled" if cancelled else "expired" if hung else "completed"


def _form(request: Request) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a form's parts (RFC 7578)."""
    found = _BOUNDARY.match(request.headers["content-type"])
    assert found is not None
    for part in request.body.split(b"--" + found[1].encode("latin-1")):
        head, blank, content = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if blank and name:
            yield name[1].decode("latin-1"), content.removesuffix(b"\r\n")
