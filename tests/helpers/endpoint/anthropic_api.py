"""Messages with images, by Anthropic's API."""

import json

from adaptive_vtt.types import JsonObject
from adaptive_vtt.utils.http_server import Rejected, Request

from .conversation import asked_in, filled, listed, pieces
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
    """POST /v1/messages, which answers the last user message with an image.

    A tool that ``tool_choice`` names is used, with its ``input_schema`` filled by
    `conversation.filled`. Tokens are counted as those of chat completions.
    """

    def __init__(self, fake: FakeModel, model: str) -> None:
        self._fake, self._model = fake, model
        self.routes = (Route("POST", r"/v1/messages", self._message, paid=True),)

    def error(self, rejected: Rejected) -> Response:
        """Return an error response of Anthropic's API, with the status 529 for an overload."""
        status = 529 if rejected.status == 503 else rejected.status
        kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error = {"type": kind, "message": rejected.message}
        return Response(status, {"type": "error", "error": error, "request_id": "req_demo"})

    def _message(self, request: Request) -> Response:
        asked = request.json()
        if asked["model"] != self._model:
            raise Rejected(404, f"model: {asked['model']}")
        question = asked_in(asked["messages"], _image_in)
        replies = self._fake.answers(question.image, question.prompt)
        if "tool_choice" in asked:
            (tool,) = asked["tools"]
            arguments = filled(tool["input_schema"], replies)
            use = {"type": "tool_use", "id": "toolu_demo", "name": tool["name"], "input": arguments}
            words, why = pieces(json.dumps(arguments)), "tool_use"
            content: list[JsonObject] = [use]
        else:
            words, most = pieces(listed(replies)), asked["max_tokens"]
            words, why = (words, "end_turn") if len(words) <= most else (words[:most], "max_tokens")
            content = [{"type": "text", "text": "".join(words)}]
        about = {"id": "msg_demo", "type": "message", "role": "assistant", "model": self._model}
        billed = {"input_tokens": question.tokens, "output_tokens": len(words)}
        message = {**about, "content": content, "stop_reason": why, "usage": billed}
        return Response(200, message, usage=Usage(question.tokens, len(words)))


def _image_in(part: JsonObject) -> str | None:
    data: str | None = part["source"]["data"] if part["type"] == "image" else None
    return data
