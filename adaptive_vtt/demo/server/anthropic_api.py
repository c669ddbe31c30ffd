"""Messages with images, and batches of them, as Anthropic's API words them."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...types import JsonObject
from ...utils.http_server import Rejected, Request
from .behaviour import Batch, Batches, Faults, Statistics, jsonl
from .conversation import (
    MAX_PIXELS,
    asked_in,
    content_parts,
    filled,
    listed,
    pieces,
    texts_of,
    whole,
)
from .fake_models import FakeModel
from .http import Response, Route, Usage

_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Anthropic:
    """POST /v1/messages: the last user message that has an image is answered.

    ``tools`` with a ``tool_choice`` that names one, or "any", are answered by its use: its
    ``input_schema`` is filled as schemas are (`conversation.filled`), with P(yes) for a number. A
    refusal ends with the stop reason "refusal". Tokens are counted as those of chat completions.
    """

    def __init__(self, fake: FakeModel, model: str, most_pixels: int = MAX_PIXELS) -> None:
        self._fake, self._model, self._most_pixels = fake, model, most_pixels
        self.routes = (Route("POST", r"/v1/messages", self._message, paid=True),)

    def error(self, rejected: Rejected) -> Response:
        """The error's body as Anthropic words it; a server that is overloaded says 529."""
        status = 529 if rejected.status == 503 else rejected.status
        kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error = {"type": kind, "message": rejected.message}
        return Response(status, {"type": "error", "error": error, "request_id": "req_demo"})

    def answer(self, body: bytes) -> Response:
        """The reply to a request with this body, whatever is wrong with it."""
        try:
            return self._message(Request("POST", "/v1/messages", {}, body))
        except Rejected as rejected:
            return self.error(rejected)

    def _message(self, request: Request) -> Response:
        asked = request.json()
        if asked.get("model") != self._model:
            raise Rejected(404, f"model: {asked.get('model')}")
        if "max_tokens" not in asked or asked.get("stream"):
            raise Rejected(400, "max_tokens: Field required; this server does not stream")
        question = asked_in(asked.get("messages"), _parts, self._most_pixels)
        tool = _tool(asked)
        if tool is not None and (asked.get("thinking") or {}).get("type") == "enabled":
            raise Rejected(400, "Thinking may not be enabled when tool_choice forces tool use.")
        replies = self._fake.answers(question.image, question.prompt)
        refused = replies[0].refused
        if tool is not None and not refused:
            given = filled(tool.get("input_schema"), replies, self._fake, question.image)
            used = {"type": "tool_use", "id": "toolu_demo", "name": tool["name"], "input": given}
            said, why = pieces(json.dumps(given)), "tool_use"
            content: list[JsonObject] = [used]
        else:
            said, why = pieces(listed(replies)), "refusal" if refused else "end_turn"
            most = whole(asked, "max_tokens", 1)
            said, why = (said, why) if len(said) <= most else (said[:most], "max_tokens")
            content = [{"type": "text", "text": "".join(said)}]
        usage = Usage(question.tokens, len(said), refused, len(replies) == 1 and replies[0].rambled)
        return self._told(content, why, usage)

    def _told(self, content: list[JsonObject], why: str, usage: Usage) -> Response:
        billed = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
        message = {
            "id": "msg_demo",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": why,
            "stop_sequence": None,
            "usage": billed,
        }
        return Response(200, message, usage=usage)


def _tool(asked: JsonObject) -> JsonObject | None:
    choice = asked.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") not in ("tool", "any"):
        return None
    kind = choice["type"]
    for tool in asked.get("tools") or []:
        if isinstance(tool, dict) and (kind == "any" or tool.get("name") == choice.get("name")):
            return {"name": "", **tool}
    raise Rejected(400, "tool_choice: expected the name of one of the tools")


def _parts(content: Any) -> tuple[list[str], list[str]]:
    parts = content_parts(content)
    sources = [part.get("source") for part in parts if part.get("type") == "image"]
    for source in sources:
        if not isinstance(source, dict) or source.get("type") != "base64":
            raise Rejected(400, "expected the source of an image in base64")
    return texts_of(parts), [str(source.get("data")) for source in sources if source]


# -- batches: submitted and read without files ---------------------------------------------

_PATH = "/v1/messages/batches"
_COUNTED = ("succeeded", "errored", "canceled", "expired")


@dataclass(kw_only=True)
class _Batch(Batch):
    """``results``: a line each, once it has ended."""

    results: list[JsonObject] = field(default_factory=list)

    def as_dict(self) -> JsonObject:
        created = datetime.fromtimestamp(self.created, UTC).isoformat()
        done = [line["result"]["type"] for line in self.results]
        left = len(self.requests) if self.running else 0
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "in_progress" if self.running else "ended",
            "request_counts": {"processing": left, **{k: done.count(k) for k in _COUNTED}},
            "created_at": created,
            "expires_at": created,
            "ended_at": None if self.running else created,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": None if self.running else f"{_PATH}/{self.id}/results",
        }


class AnthropicBatches(Batches[_Batch]):
    """/v1/messages/batches, by what answers messages one by one.

    A batch takes as long as an answer does. ``faults`` befall its requests: a "hung"
    one expires, and the result of a "truncated" one is billed and missing.
    """

    missing = "no batch {name}"

    def __init__(
        self, messages: Anthropic, faults: Callable[[bytes], Faults], statistics: Statistics
    ) -> None:
        super().__init__(messages.answer, messages.error, faults, statistics)
        of = rf"{_PATH}/(?P<name>[\w-]+)"
        self.routes = (
            Route("POST", _PATH, self._create, fails=True),
            Route("GET", _PATH, self._list, fails=True),
            Route("GET", of, self._look, fails=True),
            Route("GET", rf"{of}/results", self._results, fails=True),
            Route("POST", rf"{of}/cancel", self._cancel, fails=True),
        )

    def _create(self, request: Request) -> Response:
        requests = _requests(request.json().get("requests"))
        faults = self._faults(b"batch " + request.body)
        name = f"msgbatch_{secrets.token_hex(12)}"
        return self._begin(_Batch(id=name, seconds=faults.delay, requests=requests))

    def _list(self, request: Request) -> Response:
        page, more = self._page(request, "after_id", 1000)
        first, last = (page[0].id, page[-1].id) if page else (None, None)
        shown = [batch.as_dict() for batch in page]
        told = {"data": shown, "has_more": more, "first_id": first, "last_id": last}
        return Response(200, told)

    def _results(self, request: Request, name: str) -> Response:
        batch = self._now(name)
        if batch.running:
            raise Rejected(404, f"{name} is still in progress")
        return Response(200, jsonl(batch.results))

    def _end(self, batch: _Batch, many: int, *, cancelled: bool) -> None:
        for place, (name, body) in enumerate(batch.requests.items()):
            fault, response = self._answered(body) if place < many else (None, None)
            if response is None:
                result: JsonObject = {"type": "expired" if fault else "canceled"}
            elif response.status == 200:
                result = {"type": "succeeded", "message": response.content}
            else:
                result = {"type": "errored", "error": response.content}
            if fault != "truncated":
                batch.results.append({"custom_id": name, "result": result})
        batch.status = "ended"


def _requests(listed: Any) -> dict[str, bytes]:
    """Custom id -> body; raises Rejected for what is no list of requests."""
    if not isinstance(listed, list) or not listed:
        raise Rejected(400, "requests: expected a list that is not empty")
    found: dict[str, bytes] = {}
    for one in listed:
        told = one if isinstance(one, dict) else {}
        name, params = told.get("custom_id"), told.get("params")
        if not (isinstance(name, str) and isinstance(params, Mapping)) or name in found:
            raise Rejected(400, "requests: expected a custom_id of its own, and params")
        found[name] = json.dumps(params).encode()
    return found
