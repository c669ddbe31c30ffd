"""Messages with images, as Anthropic's API words them."""

import json
from typing import Any

from adaptive_vtt.types import JsonObject
from adaptive_vtt.utils.http_server import Rejected, Request

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
    ``input_schema`` is filled as schemas are (`conversation.filled`), with P(yes) for a number.
    Tokens are counted as those of chat completions.
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
        if tool is not None:
            given = filled(tool.get("input_schema"), replies, self._fake, question.image)
            used = {"type": "tool_use", "id": "toolu_demo", "name": tool["name"], "input": given}
            said, why = pieces(json.dumps(given)), "tool_use"
            content: list[JsonObject] = [used]
        else:
            said, why = pieces(listed(replies)), "end_turn"
            most = whole(asked, "max_tokens", 1)
            said, why = (said, why) if len(said) <= most else (said[:most], "max_tokens")
            content = [{"type": "text", "text": "".join(said)}]
        return self._told(content, why, Usage(question.tokens, len(said)))

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
