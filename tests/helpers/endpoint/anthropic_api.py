"""Messages with images, as Anthropic's API words them."""

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
    """POST /v1/messages: the last user message that has an image is answered.

    A tool that ``tool_choice`` names is used: its ``input_schema`` is filled
    (`conversation.filled`). Tokens are counted as those of chat completions.
    """

    def __init__(self, fake: FakeModel, model: str) -> None:
        self._fake, self._model = fake, model
        self.routes = (Route("POST", r"/v1/messages", self._message, paid=True),)

    def error(self, rejected: Rejected) -> Response:
        """The error's body as Anthropic words it; a server that is overloaded says 529."""
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
            given = filled(tool["input_schema"], replies)
            used = {"type": "tool_use", "id": "toolu_demo", "name": tool["name"], "input": given}
            said, why = pieces(json.dumps(given)), "tool_use"
            content: list[JsonObject] = [used]
        else:
            said, most = pieces(listed(replies)), asked["max_tokens"]
            said, why = (said, "end_turn") if len(said) <= most else (said[:most], "max_tokens")
            content = [{"type": "text", "text": "".join(said)}]
        about = {"id": "msg_demo", "type": "message", "role": "assistant", "model": self._model}
        billed = {"input_tokens": question.tokens, "output_tokens": len(said)}
        message = {**about, "content": content, "stop_reason": why, "usage": billed}
        return Response(200, message, usage=Usage(question.tokens, len(said)))


def _image_in(part: JsonObject) -> str | None:
    data: str | None = part["source"]["data"] if part["type"] == "image" else None
    return data
